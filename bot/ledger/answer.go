package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"footnote/bot/cite"
	"footnote/retrieval"
)

// Answer is a reply as buttons and links refer to it. Who may open what is
// decided anew each time, never read from here.
type Answer struct {
	ID       string    `json:"id"`       // opaque: see NewID
	Delivery string    `json:"delivery"` // key
	Asker    string    `json:"asker"`
	Room     string    `json:"room"`
	Refused  bool      `json:"refused,omitempty"`
	Private  bool      `json:"private,omitempty"` // only the asker saw it
	Question string    `json:"-"`                 // as it was asked; "" once it is past its age
	Sources  []Source  `json:"sources,omitempty"`
	Message  []byte    `json:"message,omitempty"` // the adapter's reference to what it posted
	At       time.Time `json:"at"`                // zero in a put: now
}

// Source is one footnote of an answer: where it lies, nothing of what it says.
type Source struct {
	N        int                  `json:"n"`
	Document retrieval.DocumentID `json:"document"`
	Revision retrieval.Revision   `json:"revision"`
	From     int                  `json:"from"` // code points of the canonical text
	To       int                  `json:"to"`
}

// Sources keeps of a reply's sources what may be kept.
func Sources(cited []cite.Source) []Source {
	out := make([]Source, len(cited))
	for i, s := range cited {
		out[i] = Source{s.N, s.Document, s.Revision, s.From, s.To}
	}
	return out
}

// Source returns the source with the number n.
func (a Answer) Source(n int) (Source, bool) {
	for _, s := range a.Sources {
		if s.N == n {
			return s, true
		}
	}
	return Source{}, false
}

// NewID makes an id that cannot be guessed and says nothing.
func NewID() string { return rand.Text() }

// Feedback is what a person said of an answer.
type Feedback struct {
	Answer  string    `json:"answer"`
	User    string    `json:"user"`
	Helpful bool      `json:"helpful"`
	Reason  string    `json:"reason,omitempty"` // a code, from one tap
	At      time.Time `json:"at"`
}

// HelpRequest says that a person asked for a human about an answer.
type HelpRequest struct {
	Answer string    `json:"answer"`
	User   string    `json:"user"`
	At     time.Time `json:"at"`
}

// Gap is a question that the documents did not answer.
type Gap struct {
	ID       string    `json:"id"` // of the answer record
	At       time.Time `json:"at"`
	Question string    `json:"question,omitempty"` // only with Options.GapText
}

// Audit is one access decision or action worth keeping. No field holds text.
type Audit struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`  // a code: open_source, share
	Subject string    `json:"subject"` // an id
	Result  string    `json:"result"`  // a code: shown, denied
}

// PutAnswer records an answer, or replaces it. It is recorded before it is
// posted, so that no button refers to nothing.
func (l *Ledger) PutAnswer(_ context.Context, a Answer) error {
	if err := a.Check(); err != nil {
		return err
	}
	a.Sources, a.Message = slices.Clone(a.Sources), slices.Clone(a.Message)
	return l.update(func(t *tx) error {
		if a.At.IsZero() {
			a.At = t.now
		}
		a.At = Stamp(a.At)
		question := a.Question
		a.Question = ""
		if len(t.s.answers) >= l.o.MaxAnswers {
			t.evictAnswers()
		}
		t.put(op{Answer: &answer{Answer: a}, Parts: 1}, []byte(question))
		return nil
	})
}

// Posted notes where an answer was posted.
func (l *Ledger) Posted(_ context.Context, id string, message []byte) error {
	if err := (Step{Posted: message}).Check(); err != nil {
		return err
	}
	return l.update(func(t *tx) error {
		old := t.s.answers[id]
		if old == nil {
			return ErrNotFound
		}
		a := *old
		a.Message = slices.Clone(message)
		t.put(op{Answer: &a})
		return nil
	})
}

// Answer returns an answer, ErrNotFound if there is none or no longer.
func (l *Ledger) Answer(_ context.Context, id string) (Answer, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.answer(l.s.answers[id])
}

// AnswerTo returns the latest answer to the delivery with the key.
func (l *Ledger) AnswerTo(_ context.Context, key string) (Answer, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.answer(l.s.answers[l.s.answerTo[key]])
}

func (l *Ledger) answer(a *answer) (Answer, error) {
	now := l.now()
	if a == nil || now.Sub(a.At) > l.o.KeepAnswers {
		return Answer{}, ErrNotFound
	}
	out := a.Answer
	out.Sources, out.Message = slices.Clone(a.Sources), slices.Clone(a.Message)
	if now.Sub(a.At) > l.o.Keep {
		return out, nil
	}
	question, err := l.read(a.question)
	out.Question = string(question)
	return out, err
}

// Rate records feedback; the last word of a person on an answer counts.
// ErrNotFound if there is no such answer.
func (l *Ledger) Rate(_ context.Context, f Feedback) error {
	if err := f.Check(); err != nil {
		return err
	}
	return l.onAnswer(f.Answer, func(t *tx) {
		f.At = t.now
		t.put(op{Feedback: &f})
	})
}

// AskHuman records that a person wants a human to look. It reports whether
// that is new. ErrNotFound if there is no such answer.
func (l *Ledger) AskHuman(_ context.Context, id, user string) (fresh bool, err error) {
	if err := (HelpRequest{Answer: id, User: user}).Check(); err != nil {
		return false, err
	}
	err = l.onAnswer(id, func(t *tx) {
		if _, asked := t.s.help[mark{id, user}]; !asked {
			fresh = true
			t.put(op{Help: &HelpRequest{id, user, t.now}})
		}
	})
	return fresh && err == nil, err
}

// onAnswer makes a change that belongs to an answer which is there.
func (l *Ledger) onAnswer(id string, change func(*tx)) error {
	return l.update(func(t *tx) error {
		if a := t.s.answers[id]; a == nil || t.now.Sub(a.At) > l.o.KeepAnswers {
			return ErrNotFound
		}
		change(t)
		return nil
	})
}

// NoteGap records a question that was refused. The text is kept only with
// Options.GapText.
func (l *Ledger) NoteGap(_ context.Context, id, question string) error {
	if err := (Gap{ID: id}).Check(); err != nil {
		return err
	}
	if !l.o.GapText {
		question = ""
	}
	return l.update(func(t *tx) error {
		t.put(op{Gap: &Gap{id, t.now, question}})
		return nil
	})
}

// NoteAudit records an action.
func (l *Ledger) NoteAudit(_ context.Context, a Audit) error {
	if err := a.Check(); err != nil {
		return err
	}
	return l.update(func(t *tx) error {
		a.At = t.now
		t.put(op{Audit: &a})
		return nil
	})
}

// Check refuses what a ledger should not hold.
func (a Answer) Check() error {
	if err := checkIDs(a.ID, a.Asker); err != nil {
		return err
	}
	if len(a.Question) > maxPayload {
		return fmt.Errorf("a question of %d bytes is longer than %d", len(a.Question), maxPayload)
	}
	return Step{Posted: a.Message}.Check()
}

// Check refuses what a ledger should not hold.
func (f Feedback) Check() error {
	return cmp.Or(checkIDs(f.Answer, f.User), Step{Reason: f.Reason}.Check())
}

// Check refuses what a ledger should not hold.
func (h HelpRequest) Check() error { return checkIDs(h.Answer, h.User) }

// Check refuses what a ledger should not hold.
func (g Gap) Check() error { return checkIDs(g.ID) }

// Check refuses what a ledger should not hold.
func (a Audit) Check() error {
	if err := checkIDs(a.Actor, a.Action, a.Subject); err != nil {
		return err
	}
	if !isCode(a.Action) || !isCode(a.Result) {
		return fmt.Errorf("an audit's action and result must be codes")
	}
	return nil
}

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if id == "" || len(id) > maxKey {
			return fmt.Errorf("an id of %d bytes: it must have 1 to %d", len(id), maxKey)
		}
	}
	return nil
}

// Feedback lists what was said of an answer, oldest first; "" is of all.
func (l *Ledger) Feedback(_ context.Context, id string) ([]Feedback, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return inOrder(l.s.feedback, func(k mark, f Feedback) bool { return (id == "" || k.answer == id) && !l.old(f.At) }, func(a, b Feedback) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Answer, b.Answer), cmp.Compare(a.User, b.User))
	}), nil
}

// HelpRequests lists who asked for a human, oldest first.
func (l *Ledger) HelpRequests(_ context.Context) ([]HelpRequest, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return inOrder(l.s.help, func(_ mark, h HelpRequest) bool { return !l.old(h.At) }, func(a, b HelpRequest) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Answer, b.Answer), cmp.Compare(a.User, b.User))
	}), nil
}

// Gaps lists refused questions, oldest first.
func (l *Ledger) Gaps(_ context.Context) ([]Gap, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return inOrder(l.s.gaps, func(_ string, g Gap) bool { return !l.old(g.At) }, func(a, b Gap) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	}), nil
}

// inOrder lists the values that are kept, in an order; nil if there are none.
func inOrder[K comparable, V any](all map[K]V, keep func(K, V) bool, compare func(a, b V) int) []V {
	var out []V
	for k, v := range all {
		if keep(k, v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

// Audits lists the latest actions, newest first.
func (l *Ledger) Audits(_ context.Context, limit int) ([]Audit, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []Audit
	for _, a := range slices.Backward(l.s.audits) {
		if len(out) < limit && !l.old(a.At) {
			out = append(out, a)
		}
	}
	return out, nil
}

func (l *Ledger) old(at time.Time) bool { return l.now().Sub(at) > l.o.Keep }
