package ledger

import "context"

// Store is a whole ledger, in the data directory or shared by replicas
// (redisledger). ledgertest holds the suite that both pass. It is safe for
// concurrent use. An error that wraps retrieval.ErrUnavailable says that the
// ledger cannot be reached now; what was asked may have happened or not.
type Store interface {
	Claims
	// Delivery returns a delivery by its key or one of its further keys, with
	// its payload while it is unfinished. ErrNotFound if there is none.
	Delivery(ctx context.Context, key string) (Delivery, error)
	// Of lists an asker's own deliveries, newest first, without payloads.
	Of(ctx context.Context, asker string, limit int) ([]Delivery, error)
	// Latest lists deliveries of everybody likewise.
	Latest(ctx context.Context, limit int) ([]Delivery, error)
	// Pending lists unfinished deliveries, oldest first, without payloads.
	Pending(ctx context.Context, limit int) ([]Delivery, error)
	// Counts says how many deliveries are in each state.
	Counts(ctx context.Context) (map[State]int, error)
	// PutAnswer records an answer, or replaces it.
	PutAnswer(ctx context.Context, a Answer) error
	// Posted notes where an answer was posted.
	Posted(ctx context.Context, id string, message []byte) error
	// Answer returns an answer, ErrNotFound if there is none or no longer.
	Answer(ctx context.Context, id string) (Answer, error)
	// AnswerTo returns the latest answer to the delivery with the key.
	AnswerTo(ctx context.Context, key string) (Answer, error)
	// Rate records feedback; the last word of a person on an answer counts.
	Rate(ctx context.Context, f Feedback) error
	// Feedback lists what was said of an answer, oldest first; "" is of all.
	Feedback(ctx context.Context, id string) ([]Feedback, error)
	// AskHuman records that a person wants a human to look, and reports
	// whether that is new.
	AskHuman(ctx context.Context, id, user string) (fresh bool, err error)
	// HelpRequests lists who asked for a human, oldest first.
	HelpRequests(ctx context.Context) ([]HelpRequest, error)
	// NoteGap records a question that was refused.
	NoteGap(ctx context.Context, id, question string) error
	// Gaps lists refused questions, oldest first.
	Gaps(ctx context.Context) ([]Gap, error)
	// NoteAudit records an action.
	NoteAudit(ctx context.Context, a Audit) error
	// Audits lists the latest actions, newest first.
	Audits(ctx context.Context, limit int) ([]Audit, error)
	Close() error
}

var _ Store = (*Ledger)(nil)
