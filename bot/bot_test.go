package bot

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/acl"
	"footnote/bot/cite"
	"footnote/bot/generate"
	"footnote/retrieval"
)

func TestHandleAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	r := w.says(ben, "Where are badges made?")
	if r.Outcome != Answered || r.Reason != "" {
		t.Fatalf("%s %s: %s", r.Outcome, r.Reason, r.Text)
	}
	if len(r.Sentences) == 0 || r.Sentences[0].Text != "Badges are made in room 212 🙂." {
		t.Fatalf("sentences %+v", r.Sentences)
	}
	s := r.Sources[0]
	if s.N != 1 || s.Document != "handbook" || s.Title != "HANDBOOK" || s.Path != "handbook.md" {
		t.Errorf("source %+v", s)
	}
	if got := string([]rune(handbook.text)[s.From:s.To]); got != s.Quote || got != "Badges are made in room 212 🙂." {
		t.Errorf("quote %q, at its place %q", s.Quote, got)
	}
	if got := handbook.text[s.SourceFromByte:s.SourceToByte]; got != s.Quote {
		t.Errorf("source bytes hold %q", got)
	}
	if r.Text != "" || len(r.Nearest) != 0 || len(r.Missing) != 0 {
		t.Errorf("an answer refuses as well: %+v", r)
	}
}

func TestHandleQuestionsThatAreNone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want Reason
	}{
		"no characters":                {"", EmptyQuestion},
		"only white space":             {" \n\t\u2003", EmptyQuestion},
		"only control characters":      {"\x00\x1b\x07\u202e", EmptyQuestion},
		"only punctuation":             {"???", EmptyQuestion},
		"invalid UTF-8":                {"\xff\xfe", EmptyQuestion},
		"one character":                {"x", NoMatch},
		"only stop words":              {"what is it and where are they", NoMatch},
		"only emoji":                   {"🙂🙂🎉", NoMatch},
		"100,000 characters":           {strings.Repeat("where ", 17_000), TooLong},
		"100,000 characters, no space": {strings.Repeat("가", 100_000), TooLong},
	}
	w := newWorld(t, handbook)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := w.bot.Handle(t.Context(), Message{Text: tt.text, Asker: ben, Audience: acl.AskerOnly()})
			if err != nil {
				t.Fatal(err)
			}
			if r.Outcome != Refused || r.Reason != tt.want && (tt.want != NoMatch || r.Reason != NotAnswered) {
				t.Errorf("%s %q, want refused %q", r.Outcome, r.Reason, tt.want)
			}
			if r.Text == "" || len(r.Text) > 2000 {
				t.Errorf("text of %d bytes: %.80q", len(r.Text), r.Text)
			}
		})
	}
}

func TestHandleReadsAQuestionWithControlCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	r := w.says(ben, "Where\x00 are\n\nbadges \x1b[31mmade?")
	if r.Outcome != Answered || strings.ContainsAny(r.Question, "\x00\x1b\n") {
		t.Errorf("%s, question %q", r.Outcome, r.Question)
	}
}

func TestCase_Q5(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	for name, tt := range map[string]struct {
		cut  float64
		want Outcome
	}{"the cut of one model": {.75, Answered}, "the cut of another": {.05, Refused}} {
		w.bot.c.Cuts.Distance = tt.cut
		if r := w.says(ben, "Where are badges made?"); r.Outcome != tt.want {
			t.Errorf("%s (%.2f): %s, want %s", name, tt.cut, r.Outcome, tt.want)
		}
		if w.bot.c.Cuts.Distance != tt.cut {
			t.Errorf("%s: the cut moved to %.2f", name, w.bot.c.Cuts.Distance)
		}
	}
}

func TestCase_Q8(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	r := w.says(ben, "Who won the world cup in 1998?")
	if r.Outcome != Refused || r.Reason != NoMatch {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
	if w.generated.calls != 0 {
		t.Errorf("the generator was called %d times", w.generated.calls)
	}
	if d := cmp.Diff([]string{"won", "world", "cup", "1998"}, r.Missing); d != "" {
		t.Error(d)
	}
	if len(r.Nearest) == 0 || !strings.Contains(r.Text, "HANDBOOK > Part") || !strings.Contains(r.Text, "1998") {
		t.Errorf("text %q", r.Text)
	}
}

func TestCase_Q9(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	history := []Turn{{User, "Where are badges made?"}, {Agent, "In room 212 [1]."}}
	if r := w.says(ben, "Who won the world cup in 1998?", history...); r.Outcome != Refused {
		t.Errorf("an earlier hit switched the refusal off: %+v", r.Sentences)
	}
}

func TestCase_Q10(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	history := []Turn{{User, "How many vacation days do employees get?"}, {Agent, "Thirty [1]."}}
	r := w.says(ben, "And for interns?", history...)
	if r.Outcome != Answered || !strings.Contains(r.Sources[0].Quote+r.Sources[len(r.Sources)-1].Quote, "Interns get twenty") {
		t.Errorf("%s %s, sources %+v", r.Outcome, r.Reason, r.Sources)
	}
	if r := w.says(ben, "And for astronauts?", history...); r.Outcome != Refused {
		t.Errorf("an answer about something else: %+v", r.Sentences)
	}
}

func TestCase_Q11(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.says(ben, "Where are badges made?")
	if r.Outcome != Refused || r.Reason != NoMatch || !strings.Contains(r.Text, "Where are badges made?") {
		t.Errorf("%s %s %q", r.Outcome, r.Reason, r.Text)
	}
	if r := w.says(ben, "배지는 어디서 만드나요?"); !strings.Contains(r.Text, "답할 수 없습니다") {
		t.Errorf("a Korean question is refused in other words: %q", r.Text)
	}
}

// said is a generator that writes a fixed text.
type said string

func (s said) Generate(context.Context, generate.Request) (generate.Draft, error) {
	return generate.Draft{Claims: cite.Parse(string(s))}, nil
}

func TestDraftsOfALanguageModel(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		draft string
		want  []string // quotes; none: refused
	}{
		"TestCase_C2 only numbers that were never supplied": {"Badges are made in room 212 [7].", nil},
		"TestCase_C2 one number too many":                   {"Badges are made in room 212 [1][7].", []string{"Badges are made in room 212 🙂."}},
		"TestCase_C9 an invented sentence":                  {"Badges are made in room 212 [1]. Badges can fly home alone [1].", []string{"Badges are made in room 212 🙂."}},
		"no numbers at all":                                 {"Badges are made in room 212.", nil},
		"nothing":                                           {"", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, handbook)
			w.use(said(tt.draft), w.bot.c.Current)
			r := w.says(ben, "Where are badges made?")
			var quotes []string
			for _, s := range r.Sources {
				quotes = append(quotes, s.Quote)
			}
			if d := cmp.Diff(tt.want, quotes); d != "" {
				t.Error(d)
			}
			if (r.Outcome == Answered) != (tt.want != nil) || tt.want == nil && r.Reason != NotAnswered {
				t.Errorf("%s %s", r.Outcome, r.Reason)
			}
			for _, s := range r.Sentences {
				if strings.Contains(s.Text, "[") {
					t.Errorf("a number is shown: %q", s.Text)
				}
			}
		})
	}
}

func TestCase_C7(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	w.use(said("Badges are made in room 212 [1]."), w.bot.c.Current)
	first := w.says(ben, "Where are badges made?")
	if first.Outcome != Answered {
		t.Fatal("the first turn must answer")
	}
	r := w.says(ben, "Who won the world cup in 1998?", Turn{User, "Where are badges made?"}, Turn{Agent, "In room 212 [1]."})
	if r.Outcome != Refused || len(r.Sources) != 0 || w.generated.calls != 1 {
		t.Errorf("%s with sources %v after %d calls: turn 1's numbers must not resolve", r.Outcome, r.Sources, w.generated.calls)
	}
}

// revoking takes a document away before the n-th call of Passages.
type revoking struct {
	retrieval.Generation
	calls, before int
	document      retrieval.DocumentID
}

func (r *revoking) Passages(ctx context.Context, g acl.Grant, ids []retrieval.ChunkID) ([]retrieval.Passage, error) {
	if r.calls++; r.calls == r.before {
		if err := r.SetAccess(ctx, r.document, acl.NewList(acl.User("nobody"))); err != nil {
			return nil, err
		}
	}
	return r.Generation.Passages(ctx, g, ids)
}

// restless changes a document before each check of a reply, the last of so many
// calls of Passages.
type restless struct {
	retrieval.Generation
	calls, every int
	change       func(n int)
}

func (r *restless) Passages(ctx context.Context, g acl.Grant, ids []retrieval.ChunkID) ([]retrieval.Passage, error) {
	if r.calls++; r.calls%r.every == 0 {
		r.change(r.calls)
	}
	return r.Generation.Passages(ctx, g, ids)
}

// Documents that change all the time are answered from, and named in refusals,
// as long as the asker may read them.
func TestDocumentsThatChangeAllTheTime(t *testing.T) {
	t.Parallel()
	again := func(access ...string) func(w *world, n int) {
		return func(w *world, n int) {
			w.publish(doc{"handbook", handbook.text + strings.Repeat("x", n), access})
		}
	}
	tests := map[string]struct {
		change func(w *world, n int)
		ask    string
		every  int
		want   Outcome
	}{
		"an answer":             {again("everyone"), "Where are badges made?", 3, Answered},
		"an answer, taken away": {again("user:nobody"), "Where are badges made?", 3, Refused},
		"a refusal":             {again("everyone"), "Who won the world cup in 1998?", 2, Refused},
		"a refusal, taken away": {again("user:nobody"), "Who won the world cup in 1998?", 2, Refused},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, handbook)
			r := &restless{Generation: w.gen, every: tt.every, change: func(n int) { tt.change(w, n) }}
			w.use(w.generated.generator, func(context.Context) (retrieval.Reader, error) { return r, nil })
			reply, err := w.bot.Handle(t.Context(), Message{Text: tt.ask, Asker: ben, Audience: acl.AskerOnly()})
			if err != nil || reply.Outcome != tt.want {
				t.Fatalf("%s %s, %v, want %q", reply.Outcome, reply.Reason, err, tt.want)
			}
			if strings.Contains(name, "taken") && len(reply.Sources)+len(reply.Nearest) > 0 {
				t.Errorf("names what was taken away: %v %v", reply.Sources, reply.Nearest)
			}
		})
	}
}

func TestAccessLostWhileAnswering(t *testing.T) {
	t.Parallel()
	second := doc{"lodge", "Badges are made in the lodge as well, says the lodge.", everyone}
	tests := map[string]struct {
		before int // call of Passages: the search's, the evidence's, the reply's
		docs   []doc
		want   Outcome
	}{
		"before the search loads, another document answers":    {1, []doc{handbook, second}, Answered},
		"before the generator, another document answers":       {2, []doc{handbook, second}, Answered},
		"before the reply, another document answers":           {3, []doc{handbook, second}, Answered},
		"before the search loads, and nothing else answers":    {1, []doc{handbook}, Refused},
		"before the generator, and nothing else answers":       {2, []doc{handbook}, Refused},
		"before the reply leaves, and nothing else answers":    {3, []doc{handbook}, Refused},
		"after the reply was checked: the answer has gone out": {4, []doc{handbook}, Answered},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.docs...)
			rd := &revoking{Generation: w.gen, before: tt.before, document: "handbook"}
			w.use(w.generated.generator, func(context.Context) (retrieval.Reader, error) { return rd, nil })
			r := w.says(ben, "Where are badges made?")
			if r.Outcome != tt.want {
				t.Fatalf("%s %s, want %s", r.Outcome, r.Reason, tt.want)
			}
			if raw, _ := json.Marshal(r); tt.before < 4 && strings.Contains(string(raw), "handbook") {
				t.Errorf("the reply names the document: %s", raw)
			}
		})
	}
}

func TestHandleErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	w := newWorld(t, handbook)
	w.use(failing{broken}, w.bot.c.Current)
	_, err := w.bot.Handle(t.Context(), Message{Text: "Where are badges made?", Asker: ben, Audience: acl.AskerOnly()})
	if user := new(UserError); !errors.Is(err, broken) || errors.As(err, &user) {
		t.Errorf("a failing generator gives %v: want an internal error", err)
	}
	w.use(failing{}, func(context.Context) (retrieval.Reader, error) { return nil, retrieval.ErrNoIndex })
	if _, err := w.bot.Handle(t.Context(), Message{Text: "Where?", Asker: ben, Audience: acl.AskerOnly()}); !errors.Is(err, retrieval.ErrNoIndex) {
		t.Errorf("no index gives %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.use(failing{}, func(context.Context) (retrieval.Reader, error) { return w.gen, nil })
	if _, err := w.bot.Handle(ctx, Message{Text: "Where?", Asker: ben, Audience: acl.AskerOnly()}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled question gives %v", err)
	}
}

type failing struct{ err error }

func (f failing) Generate(context.Context, generate.Request) (generate.Draft, error) {
	return generate.Draft{}, f.err
}

func TestReplyContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	tests := map[string]struct{ text, want string }{
		"answered": {"Where are badges made?", "id language generation missing ms nearest outcome question reason sentences.cites sentences.kind sentences.plain sentences.text sources.document sources.from sources.locator sources.modified sources.n sources.path sources.quote sources.revision sources.section sources.source_from_byte sources.source_to_byte sources.title sources.to text trace"},
		"refused":  {"Who won the world cup?", "id language generation missing ms nearest.document nearest.path nearest.section nearest.title outcome question reason sentences sources text trace"},
	}
	for name, tt := range tests {
		raw, err := json.Marshal(w.ask(Message{ID: "q1", Text: tt.text, Asker: ben, Audience: acl.AskerOnly()}))
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		var got []string
		for k, v := range fields {
			list, _ := v.([]any)
			inner := false
			for _, e := range list[:min(1, len(list))] {
				if m, ok := e.(map[string]any); ok {
					inner = true
					for kk := range m {
						got = append(got, k+"."+kk)
					}
				}
			}
			if !inner {
				got = append(got, k)
			}
			if v == nil {
				t.Errorf("%s: %s is null", name, k)
			}
		}
		if d := cmp.Diff(strings.Fields(tt.want), got, cmpopts.SortSlices(strings.Compare)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if fields["id"] != "q1" {
			t.Errorf("%s: id %v", name, fields["id"])
		}
	}
}
