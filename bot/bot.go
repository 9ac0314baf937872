package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"footnote/acl"
	"footnote/bot/cite"
	"footnote/bot/generate"
	"footnote/retrieval"
)

// Message is one question as an adapter hands it over.
type Message struct {
	ID       string // the caller's, returned in the reply; may be ""
	Text     string
	Asker    acl.Identity
	Audience acl.Audience
	History  []Turn // oldest first, without this message
}

// Turn is an earlier utterance of the same conversation.
type Turn struct {
	Speaker string `json:"speaker"` // User or Agent
	Text    string `json:"text"`
}

// Speakers of a turn.
const (
	User  = "user"
	Agent = "agent"
)

// Outcome says whether a reply answers.
type Outcome string

// Outcomes of a reply. There is no third: what fails is an error.
const (
	Answered Outcome = "answered"
	Refused  Outcome = "refused"
)

// Reason says why a reply refuses.
type Reason string

// Reasons of refusals. None tells a document that is absent from one that may
// not be read.
const (
	NoMatch       Reason = "no_match"       // nothing near enough
	NotAnswered   Reason = "not_answered"   // near, but not answering
	EmptyQuestion Reason = "empty_question" // nothing to search for
	TooLong       Reason = "too_long"       // more characters than are read
)

// Reply is what the asker gets. Its JSON is the contract of `ask --json`; the
// fields beyond that contract are plain (of a sentence), kind, modified,
// question, missing and text.
type Reply struct {
	ID         string          `json:"id"`
	Outcome    Outcome         `json:"outcome"`
	Reason     Reason          `json:"reason"`   // "" when answered
	Question   string          `json:"question"` // as it was searched: a follow-up is complete
	Language   string          `json:"language"`
	Sentences  []cite.Sentence `json:"sentences"`
	Sources    []cite.Source   `json:"sources"`
	Nearest    []Nearest       `json:"nearest"` // of a refusal
	Missing    []string        `json:"missing"` // of a refusal
	Text       string          `json:"text"`    // of a refusal, ready to show
	Generation string          `json:"generation"`
	Trace      string          `json:"trace"`
	MS         int64           `json:"ms"`
}

// Nearest is a document that a refusal names, with the section that came
// nearest.
type Nearest struct {
	Document retrieval.DocumentID `json:"document"`
	Title    string               `json:"title"`
	Section  []string             `json:"section"`
	Path     string               `json:"path"`

	chunk retrieval.ChunkID
}

// UserError is an error whose text is safe to show to the person.
type UserError struct {
	Text string
	Err  error
}

func (e *UserError) Error() string { return e.Text }
func (e *UserError) Unwrap() error { return e.Err }

// generator makes drafts. It is given evidence that the gate let through, and
// never more.
type generator interface {
	Generate(ctx context.Context, r generate.Request) (generate.Draft, error)
}

// Config connects a Bot. All of it is required but Limits.
type Config struct {
	// Current opens the generation that answers now; one question uses one.
	Current   func(ctx context.Context) (retrieval.Reader, error)
	Searcher  *retrieval.Searcher
	Generator generator
	Cuts      Cuts
	Limits    Limits
}

// Limits bound a question and its answer; zero values mean the defaults.
type Limits struct {
	Question int // code points: 2,000
	Sources  int // passages that the generator sees: 4
}

// Bot answers messages. It is safe for concurrent use.
type Bot struct{ c Config }

// New makes a Bot.
func New(c Config) (*Bot, error) {
	if c.Current == nil || c.Searcher == nil || c.Generator == nil {
		return nil, errors.New("a bot needs an index, a searcher and a generator")
	}
	if c.Cuts.Distance <= 0 {
		return nil, errors.New("a bot needs the distance cut of its embedder")
	}
	if c.Limits.Question <= 0 {
		c.Limits.Question = 2000
	}
	if c.Limits.Sources <= 0 || c.Limits.Sources > maxSources {
		c.Limits.Sources = maxSources
	}
	return &Bot{c}, nil
}

const maxSources = 4

// Handle answers one message. A refusal is a Reply; an error means that the
// question could not be worked on, and is a *UserError if its text may be
// shown.
//
// An index that cannot be reached is such a UserError, which wraps
// retrieval.ErrUnavailable.
func (b *Bot) Handle(ctx context.Context, m Message) (Reply, error) {
	e, err := b.Explain(ctx, m)
	return e.Reply, err
}

// Explanation is a reply with every stage that led to it, for an operator who
// may see the asker's identity.
type Explanation struct {
	Asker   acl.Identity
	Grant   acl.Grant
	Forms   []string          // the question as it was tried, the last one counts
	Results retrieval.Results // of that form
	Gate    []Verdict         // of its hits
	Draft   generate.Draft
	Unknown int // numbers of the draft that were never supplied
	Dropped int // claims without a source
	Stages  []retrieval.Stage
	Reply   Reply
}

// attempts bounds how often a question starts anew because access changed
// while it was worked on.
const attempts = 3

// Explain is Handle with all its stages.
func (b *Bot) Explain(ctx context.Context, m Message) (Explanation, error) {
	e, err := b.explain(ctx, m)
	if errors.Is(err, retrieval.ErrUnavailable) {
		err = &UserError{Text: UnavailableText, Err: err}
	}
	return e, err
}

// UnavailableText is what a person is told while the index cannot be reached.
const UnavailableText = "Search is unavailable right now. Please try again in a minute."

func (b *Bot) explain(ctx context.Context, m Message) (Explanation, error) {
	start := time.Now()
	e := Explanation{Asker: m.Asker}
	e.Reply = Reply{ID: m.ID, Question: clean(m.Text), Trace: rand.Text()}
	finish := func() Explanation {
		e.Reply.MS = time.Since(start).Milliseconds()
		e.Reply.fill()
		return e
	}
	if b.refuseUnread(&e, m); e.Reply.Outcome != "" {
		return finish(), nil
	}
	reader, err := b.c.Current(ctx)
	if err != nil {
		return e, fmt.Errorf("opening the index: %w", err)
	}
	// SECURITY: the one place where the authority of a question is made.
	e.Grant = acl.NewGrant(m.Asker, m.Audience)
	for n := range attempts {
		ok, err := b.work(ctx, reader, m, &e)
		if err == nil && !ok && n == attempts-1 {
			ok, err = b.lasting(ctx, reader, &e)
		}
		if err != nil {
			return e, err
		}
		if ok {
			return finish(), nil
		}
	}
	return e, &UserError{Text: "The documents are changing right now. Please ask again in a moment.", Err: errChanging}
}

var errChanging = errors.New("access changed during every attempt")

// refuseUnread refuses what is not worth a search.
func (b *Bot) refuseUnread(e *Explanation, m Message) {
	n := len([]rune(e.Reply.Question))
	switch {
	case !says(e.Reply.Question):
		e.Reply.refuse(EmptyQuestion, m)
	case n > b.c.Limits.Question:
		e.Reply.Question = ""
		e.Reply.refuse(TooLong, m)
		e.Reply.Text = tooLong(e.Reply.Language, n, b.c.Limits.Question)
	}
}

// work tries the forms of the question until one is answered. It reports
// false if a document of the reply lost its access meanwhile: then the
// question must be worked on anew.
func (b *Bot) work(ctx context.Context, reader retrieval.Reader, m Message, e *Explanation) (bool, error) {
	e.Forms = nil
	for _, f := range forms(e.Reply.Question, m.History) {
		e.Forms = append(e.Forms, f.text)
		if err := b.try(ctx, reader, f, e); err != nil {
			return false, err
		}
		if e.Reply.Outcome == Answered {
			break
		}
	}
	if e.Reply.Outcome == Refused {
		e.Reply.refuse(e.Reply.Reason, m)
	}
	return b.standing(ctx, reader, e)
}

// try searches one form, gates it, and has a draft made of what passes.
func (b *Bot) try(ctx context.Context, reader retrieval.Reader, f form, e *Explanation) error {
	results, err := b.c.Searcher.Search(ctx, reader, e.Grant, f.text)
	if err != nil {
		return err
	}
	e.Results, e.Stages, e.Draft = results, results.Stages, generate.Draft{}
	e.Gate = b.c.Cuts.judge(results.Hits, b.c.Limits.Sources)
	e.Reply = Reply{
		ID: e.Reply.ID, Trace: e.Reply.Trace, Question: e.Reply.Question, Language: results.Language,
		Generation: results.Generation, Outcome: Refused, Reason: NoMatch,
		Nearest: nearest(results.Hits), Missing: missing(f, results),
	}
	evidence, err := b.evidence(ctx, reader, e)
	if err != nil || len(evidence) == 0 {
		return err
	}
	e.Reply.Reason = NotAnswered
	return b.answer(ctx, f, evidence, e)
}

// evidence loads what passed the gate anew.
//
// SECURITY: the second check, just before the generator sees a passage.
func (b *Bot) evidence(ctx context.Context, reader retrieval.Reader, e *Explanation) ([]cite.Evidence, error) {
	var ids []retrieval.ChunkID
	for i, v := range e.Gate {
		if v.Passed {
			ids = append(ids, e.Results.Hits[i].Passage.Chunk.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	passages, err := reader.Passages(ctx, e.Grant, ids)
	if err != nil {
		return nil, fmt.Errorf("loading the evidence: %w", err)
	}
	evidence := make([]cite.Evidence, len(passages))
	for i, p := range passages {
		evidence[i] = cite.Evidence{N: i + 1, Passage: p}
	}
	return evidence, nil
}

// answer has a draft made and resolves it. The reply answers only if a claim
// with a source is left.
func (b *Bot) answer(ctx context.Context, f form, evidence []cite.Evidence, e *Explanation) error {
	start := time.Now()
	draft, err := b.c.Generator.Generate(ctx, request(f, e.Results, evidence))
	if err != nil {
		return fmt.Errorf("generating: %w", err)
	}
	a := cite.Resolve(draft.Claims, evidence)
	e.Draft, e.Unknown, e.Dropped = draft, a.Unknown, a.Unsupported
	e.Stages = append(e.Stages, retrieval.Stage{Name: "answer", Took: time.Since(start)})
	if len(a.Sentences) > 0 {
		e.Reply.Outcome, e.Reply.Reason, e.Reply.Nearest, e.Reply.Missing = Answered, "", nil, nil
		e.Reply.Sentences, e.Reply.Sources = a.Sentences, a.Sources
	}
	return nil
}

// request is what the generator may know: no ids, paths or links.
func request(f form, results retrieval.Results, evidence []cite.Evidence) generate.Request {
	relevance := map[retrieval.ChunkID]float64{}
	for _, h := range results.Hits {
		if h.Rerank != nil {
			relevance[h.Passage.Chunk.ID] = *h.Rerank
		}
	}
	r := generate.Request{Question: f.text, Own: f.own, Language: results.Language}
	for _, e := range evidence {
		p := e.Passage
		r.Evidence = append(r.Evidence, generate.Evidence{
			N: e.N, Header: "[" + strings.Join(append([]string{p.Title}, p.Chunk.Section...), " > ") + "]",
			Language: languageOf(p), Content: p.Chunk.Content, TableHead: tableHead(p.Chunk), Relevance: relevance[p.Chunk.ID],
		})
	}
	return r
}

// tableHead is the head row that a chunk in the middle of a table is read under:
// what its text has before the first row of its content, "" if it has none.
func tableHead(c retrieval.Chunk) string {
	if c.Kind != cite.Table {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.Content), "\n")
	before, _, found := strings.Cut(c.Text, "\n"+first)
	head := before[strings.LastIndex(before, "\n")+1:]
	if !found || !strings.ContainsAny(head, "\t|") {
		return ""
	}
	return head
}

// standing reports whether the asker may still read every document that the
// reply names.
//
// SECURITY: the third check, just before the reply leaves.
func (b *Bot) standing(ctx context.Context, reader retrieval.Reader, e *Explanation) (bool, error) {
	var ids []retrieval.ChunkID
	for _, s := range e.Reply.Sources {
		ids = append(ids, s.Chunk)
	}
	for _, n := range e.Reply.Nearest {
		ids = append(ids, n.chunk)
	}
	if len(ids) == 0 {
		return true, nil
	}
	passages, err := reader.Passages(ctx, e.Grant, ids)
	if err != nil {
		return false, fmt.Errorf("checking the reply: %w", err)
	}
	left := map[retrieval.ChunkID]bool{}
	for _, p := range passages {
		left[p.Chunk.ID] = true
	}
	for _, id := range ids {
		if !left[id] {
			return false, nil
		}
	}
	return true, nil
}

// lasting settles for a reply from revisions that were superseded in every
// attempt, as where documents change all the time: those stay readable, and
// documents to check that are gone are left out. It reports false if a source
// is gone, or what a refusal did not see.
//
// SECURITY: the third check again, by documents and their present access lists.
func (b *Bot) lasting(ctx context.Context, reader retrieval.Reader, e *Explanation) (bool, error) {
	if e.Reply.Outcome == Refused && slices.ContainsFunc(e.Gate, func(v Verdict) bool { return v.Passed }) {
		return false, nil // its evidence may have been superseded: a refusal would say too much
	}
	for _, s := range e.Reply.Sources {
		if ok, err := readable(ctx, reader, e.Grant, s.Document, s.Revision); !ok {
			return false, err
		}
	}
	var left []Nearest
	for _, n := range e.Reply.Nearest {
		ok, err := readable(ctx, reader, e.Grant, n.Document, "")
		if err != nil {
			return false, err
		}
		if ok {
			left = append(left, n)
		}
	}
	e.Reply.Nearest = left
	return true, nil
}

func readable(ctx context.Context, reader retrieval.Reader, g acl.Grant, id retrieval.DocumentID, rev retrieval.Revision) (bool, error) {
	_, err := reader.Document(ctx, g, id, rev)
	if errors.Is(err, retrieval.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// fill makes lists of the JSON contract empty instead of null.
func (r *Reply) fill() {
	r.Sentences = append([]cite.Sentence{}, r.Sentences...)
	r.Sources = append([]cite.Source{}, r.Sources...)
	r.Nearest = append([]Nearest{}, r.Nearest...)
	r.Missing = append([]string{}, r.Missing...)
}
