package notes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"footnote/models/remote"
	"footnote/retrieval"
)

// model answers with reply; it notes what it was asked.
type model struct {
	name  string
	reply func(n int, r remote.Request) (string, error)

	mu    sync.Mutex
	asked []remote.Request
}

func (m *model) Model() string { return m.name }

func (m *model) Complete(_ context.Context, r remote.Request) (remote.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	text, err := m.reply(len(m.asked), r)
	return remote.Answer{Text: text}, err
}

func says(text string) *model {
	return &model{name: "m", reply: func(int, remote.Request) (string, error) { return text, nil }}
}

func open(t *testing.T, dir string, m Model, perRun int) *Writer {
	t.Helper()
	w, err := Open(Options{Model: m, Dir: dir, PerRun: perRun, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// document is one of n chunks.
func document(title string, n int) (retrieval.Document, []retrieval.Chunk) {
	d := retrieval.Document{Title: title}
	var chunks []retrieval.Chunk
	for i := range n {
		from := len(d.Canonical)
		d.Canonical += fmt.Sprintf("This is paragraph %d of %s.\n", i, title)
		chunks = append(chunks, retrieval.Chunk{Span: retrieval.Span{FromByte: from, ToByte: len(d.Canonical) - 1}})
	}
	return d, chunks
}

func TestNotesAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := says("It is about keys.")
	d, chunks := document("Keys", 3)
	want := []string{"It is about keys.", "It is about keys.", "It is about keys."}
	for i := range 3 {
		got, err := open(t, dir, m, 0).Begin().Document(t.Context(), d, chunks)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
	}
	if len(m.asked) != 3 {
		t.Errorf("asked %d times for 3 chunks", len(m.asked))
	}
	for name, change := range map[string]func() *Run{
		"another model":              func() *Run { n := says("x y."); n.name = "n"; m = n; return open(t, dir, n, 0).Begin() },
		"another document around it": func() *Run { d.Canonical += "An end."; m = says("x y."); return open(t, dir, m, 0).Begin() },
		"another title":              func() *Run { d.Title = "Locks"; m = says("x y."); return open(t, dir, m, 0).Begin() },
	} {
		if _, err := change().Document(t.Context(), d, chunks); err != nil || len(m.asked) != 3 {
			t.Errorf("%s: asked %d times, error %v", name, len(m.asked), err)
		}
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := says("It is about keys.")
	ask := func(r *Run, title string, n int) string {
		d, chunks := document(title, n)
		_, err := r.Document(t.Context(), d, chunks)
		return fmt.Sprint(err)
	}
	none, spent := "<nil>", ErrBudget.Error()
	r := open(t, dir, m, 5).Begin()
	if got := []string{ask(r, "a", 3), ask(r, "b", 3), ask(r, "c", 2), ask(r, "d", 1), ask(r, "a", 3)}; !cmp.Equal(got, []string{none, spent, none, spent, none}) {
		t.Errorf("documents of 3, 3, 2 and 1 and the first again in a budget of 5: %v", got)
	}
	if r.Ended() == nil || len(m.asked) != 5 {
		t.Errorf("asked %d times, ended %v", len(m.asked), r.Ended())
	}
	// One that never fits is spread over runs.
	for i, want := range []string{spent, spent, none} {
		m.asked = nil
		if got := ask(open(t, dir, m, 5).Begin(), "long", 12); got != want || len(m.asked) != []int{5, 5, 2}[i] {
			t.Errorf("run %d over 12 chunks: %s, asked %d times", i, got, len(m.asked))
		}
	}
}

func TestModelThatFails(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%w: status 503", remote.ErrUnavailable)
	dir := t.TempDir()
	m := &model{name: "m", reply: func(n int, _ remote.Request) (string, error) {
		if n == 3 {
			return "", away
		}
		return "It is about keys.", nil
	}}
	r := open(t, dir, m, 0).Begin()
	d, chunks := document("Keys", 4)
	if _, err := r.Document(t.Context(), d, chunks); !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	other, more := document("Locks", 2)
	if _, err := r.Document(t.Context(), other, more); !errors.Is(err, remote.ErrUnavailable) || len(m.asked) != 3 || r.Ended() == nil {
		t.Errorf("after it failed: asked %d times, error %v", len(m.asked), err)
	}
	if got, err := open(t, dir, m, 0).Begin().Document(t.Context(), d, chunks); err != nil || len(m.asked) != 5 || len(got) != 4 {
		t.Errorf("the next run asks %d times in all, error %v", len(m.asked), err)
	}
}

func TestChunkThatGetsNoNote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply func(n int, r remote.Request) (string, error)
		want  string
		asked int
	}{
		"nothing said":       {func(int, remote.Request) (string, error) { return "", remote.ErrNoAnswer }, "", 1},
		"nothing but markup": {func(int, remote.Request) (string, error) { return "<b></b> ***", nil }, "", 1},
		"too long at first": {func(n int, _ remote.Request) (string, error) {
			return "It is short.", map[bool]error{true: remote.ErrTooLong}[n == 1]
		}, "It is short.", 2},
		"too long at any size": {func(int, remote.Request) (string, error) { return "", remote.ErrTooLong }, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{name: "m", reply: c.reply}
			w := open(t, t.TempDir(), m, 0)
			d, chunks := document("Keys", 1)
			for range 2 {
				got, err := w.Begin().Document(t.Context(), d, chunks)
				if err != nil || got[0] != c.want || len(m.asked) != c.asked {
					t.Errorf("note %q, asked %d times, error %v; want %q, %d times", got, len(m.asked), err, c.want, c.asked)
				}
			}
		})
	}
}

// TestPromptHoldsOneDocument: a note can say only what its own document says.
func TestPromptHoldsOneDocument(t *testing.T) {
	t.Parallel()
	m := says("It is about keys.")
	r := open(t, t.TempDir(), m, 0).Begin()
	for _, title := range []string{"Keys", "Salaries"} {
		d, chunks := document(title, 2)
		if _, err := r.Document(t.Context(), d, chunks); err != nil {
			t.Fatal(err)
		}
	}
	for i, q := range m.asked {
		own, other := "Keys", "Salaries"
		if i >= 2 {
			own, other = other, own
		}
		if whole := q.System + q.User; !strings.Contains(whole, own) || strings.Contains(whole, other) {
			t.Errorf("prompt %d of %s holds of %s:\n%s", i, own, other, whole)
		}
	}
}

func TestPromptOfALongDocumentIsBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("가나다라 ", 40_000)
	for _, at := range []int{0, 100, len(text) / 2 / 13 * 13, len(text)} {
		c := retrieval.Chunk{Span: retrieval.Span{FromByte: at, ToByte: min(len(text), at+13)}}
		p := prompt(retrieval.Document{Title: "길", Canonical: text}, c, around)
		if len(p) > around+300 || !utf8.ValidString(p) && at%13 == 0 {
			t.Errorf("at %d: %d bytes, valid %v", at, len(p), utf8.ValidString(p))
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"plain":                   {"It is about keys.", "It is about keys."},
		"too many sentences":      {"One is here. Two is here. Three is here.", "One is here. Two is here."},
		"lines":                   {"One\nis\there.\n\nTwo.", "One is here. Two."},
		"a list under a heading":  {"## Note\n- It tells of keys.\n- And locks.", "Note It tells of keys. And locks."},
		"emphasis and code":       {"**It** tells of `max_size`.", "It tells of max_size."},
		"a link":                  {"See [the guide](https://evil.example/x) now.", "See the guide now."},
		"an address":              {"See https://evil.example/x for it.", "See for it."},
		"tags":                    {`<img src=x onerror="a">It tells <b>of</b> keys.`, "It tells of keys."},
		"a comparison":            {"It holds for sizes < 5 and > 3.", "It holds for sizes 5 and 3."},
		"quoted":                  {`"It is about keys."`, "It is about keys."},
		"thoughts":                {"<think>The user wants.</think>It is about keys.", "It is about keys."},
		"thoughts without an end": {"<think>The user wants a note. Let me", ""},
		"control characters":      {"It\x00 is\x1b[31m about\u202e keys\u200b.", "It is [31m about keys."},
		"not UTF-8":               {"It \xff is.", "It is."},
		"Korean":                  {"VPN 비밀번호를 바꾸는 방법입니다. 90일마다 바꿉니다. 끝.", "VPN 비밀번호를 바꾸는 방법입니다. 90일마다 바꿉니다."},
		"nothing":                 {"  ", ""},
		"no letter":               {"1. 2. 3.", ""},
	} {
		if got := clean(remote.Answer{Text: c.answer}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := clean(remote.Answer{Text: "It is about keys. They open", Cut: true}); got != "It is about keys." {
		t.Errorf("an answer that was cut: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("It **is** [x](y) <b>about</b> keys. https://a.b/c", true)
	f.Add("<<a>b>\u202e<think>", false)
	f.Fuzz(func(t *testing.T, s string, cut bool) {
		got := clean(remote.Answer{Text: s, Cut: cut})
		bad := strings.IndexFunc(got, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) })
		switch {
		case !utf8.ValidString(got) || bad >= 0 || strings.ContainsAny(got, "<>`*|"):
			t.Errorf("%q gives %q", s, got)
		case utf8.RuneCountInString(got) > maxRunes || strings.TrimSpace(got) != got:
			t.Errorf("%q gives %q", s, got)
		}
		short := Fit(got, func(s string) bool { return len(s) <= 20 })
		if len(short) > 20 || !strings.HasPrefix(got, short) {
			t.Errorf("%q is cut to %q", got, short)
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, CacheFile)
	if err := os.WriteFile(path, []byte("no journal at all, of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := openCache(dir, 4000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := c.put(keyOf("r", fmt.Sprint(i)), fmt.Sprintf("note %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.log.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = openCache(dir, 4000); err != nil {
		t.Fatal(err)
	}
	defer c.log.Close()
	if note, ok := c.get(keyOf("r", "199")); !ok || note != "note 199" || c.log.Size() > 4100 {
		t.Errorf("the last note is %q, %v; the file has %d bytes", note, ok, c.log.Size())
	}
	if _, ok := c.get(keyOf("r", "0")); ok {
		t.Error("the oldest note is still there")
	}
}
