package shelf_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/bot/shelf"
	"footnote/bot/shelf/shelftest"
)

func TestAsks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"add this": true, "Add this!": true, "  ADD  THESE files. ": true, "please add this": true, "이거 추가해줘": true, "이 파일을 추가해 줘.": true, "추가": true,
		"": false, "add": true, "how do I add this to the index?": false, "add this user to the group": false, "ad": false, "추가 요금이 있나요?": false,
	} {
		if got := shelf.Asks(text); got != want {
			t.Errorf("Asks(%q) = %v", text, got)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	ada := acl.NewIdentity("slack:T1:user/U1", "slack:T1:usergroup/S1", acl.Email("ada@example.org"))
	by := func(entries ...string) shelf.Rules {
		list, err := acl.ParseList(entries)
		if err != nil {
			t.Fatal(err)
		}
		return shelf.Rules{By: list}
	}
	for name, c := range map[string]struct {
		r    shelf.Rules
		who  acl.Identity
		want bool
	}{
		"nobody by default":         {shelf.Rules{}, ada, false},
		"by group":                  {by("slack:T1:usergroup/S1"), ada, true},
		"by e-mail":                 {by("ada@example.org"), ada, true},
		"by account":                {by("slack:T1:user/U1"), ada, true},
		"another group":             {by("slack:T1:usergroup/S2"), ada, false},
		"another workspace's group": {by("slack:T2:usergroup/S1"), ada, false},
		"somebody unknown":          {by("everyone"), acl.Identity{}, false},
	} {
		if got := c.r.May(c.who); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	r := shelf.Rules{MaxBytes: 2 << 20, Types: []string{"md", "pdf"}, Supported: func(n string) bool { return strings.HasSuffix(n, ".md") }}
	for name, c := range map[string]struct {
		file string
		size int64
		want string // in the objection
	}{
		"fits":                    {"a.md", 2 << 20, ""},
		"too large":               {"a.md", 2<<20 + 1, "2.0 MB"},
		"size unknown":            {"a.md", 0, ""},
		"type not allowed":        {"a.docx", 1, "md, pdf"},
		"allowed but not read":    {"a.PDF", 1, "cannot read"},
		"without an ending":       {"README", 1, "md, pdf"},
		"ending behind a dot dir": {"x.md/a", 1, "md, pdf"},
	} {
		if got := r.Objection(c.file, c.size); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// told is a platform that is told.
type told struct {
	mu   sync.Mutex
	all  []string
	fail error
}

func (t *told) tell(_ context.Context, message json.RawMessage, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail != nil {
		return t.fail
	}
	t.all = append(t.all, string(message)+" "+text)
	return nil
}

// texts are what it was told.
func (t *told) texts() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

func (t *told) failing(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail = err
}

func TestNoticesSurviveARestartAndTellOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, k, platform := t.TempDir(), shelftest.New(), &told{}
		for _, id := range []string{"a", "b"} {
			if err := k.Put(t.Context(), shelf.Document{ID: id, Name: id + ".md", Access: []acl.Principal{"everyone"}}, strings.NewReader("text")); err != nil {
				t.Fatal(err)
			}
		}
		run := func() (n *shelf.Notices, stop func()) {
			n, err := shelf.OpenNotices(dir, k, shelf.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n.Handle("chat", platform.tell)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = n.Run(ctx) }()
			return n, func() { cancel(); <-done }
		}
		n, stop := run()
		for _, id := range []string{"a", "b", "a"} {
			if err := n.Await(shelf.Notice{Platform: "chat", Document: id, Name: id + ".md", Message: json.RawMessage(`"` + id + `"`)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if len(platform.texts()) != 0 || n.Waiting() != 2 {
			t.Errorf("before anything was settled: %q, %d wait", platform.texts(), n.Waiting())
		}
		stop()
		k.Settle("a", shelf.State{Published: true, Chunks: 12})
		k.Settle("b", shelf.State{Reason: "the model is away", Retryable: true})
		n, stop = run()
		time.Sleep(2 * time.Second)
		k.Settle("b", shelf.State{Published: true, Chunks: 1})
		time.Sleep(2 * time.Second)
		want := []string{
			"\"b\" “b.md” failed: the model is away\nI try again by myself.", `"a" “a.md” is published: 12 chunks; ask me about it.`,
			`"b" “b.md” is published: 1 chunk; ask me about it.`,
		}
		if diff := cmp.Diff(want, platform.texts()); diff != "" || n.Waiting() != 0 {
			t.Errorf("%d wait (-want +got):\n%s", n.Waiting(), diff)
		}
		stop()
	})
}

func TestNoticesTryAgainAndGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, platform := shelftest.New(), &told{fail: errors.New("away")}
		n, err := shelf.OpenNotices(t.TempDir(), k, shelf.Options{Every: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		n.Handle("chat", platform.tell)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = n.Run(ctx) }()
		await := func() {
			if err := n.Await(shelf.Notice{Platform: "chat", Document: "gone", Name: "a.md", Message: json.RawMessage(`1`)}); err != nil {
				t.Fatal(err)
			}
		}
		await()
		time.Sleep(time.Minute)
		if n.Waiting() != 1 {
			t.Error("what could not be told is not kept")
		}
		platform.failing(shelf.ErrGone)
		time.Sleep(time.Minute)
		if n.Waiting() != 0 {
			t.Error("a message that is gone is kept")
		}
		platform.failing(errors.New("away"))
		await()
		time.Sleep(25 * time.Hour)
		if n.Waiting() != 0 {
			t.Error("what cannot be told is kept for ever")
		}
		cancel()
		<-done
	})
}

// shared keeps notices of several processes; turn is closed when it is this one's.
type shared struct {
	*sync.Mutex

	all  map[string]shelf.Notice
	turn chan struct{}
}

func (s shared) Lead(ctx context.Context, work func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.turn:
	}
	return work(ctx)
}

func (s shared) All(context.Context) ([]shelf.Notice, error) {
	s.Lock()
	defer s.Unlock()
	return slices.Collect(maps.Values(s.all)), nil
}

func (s shared) Put(_ context.Context, n shelf.Notice) error {
	s.Lock()
	defer s.Unlock()
	s.all[string(n.Message)] = n
	return nil
}

func (s shared) Swap(_ context.Context, was shelf.Notice, now *shelf.Notice) error {
	s.Lock()
	defer s.Unlock()
	if there := s.all[string(was.Message)]; !there.Since.Equal(was.Since) || there.Shown != was.Shown {
		return nil
	}
	delete(s.all, string(was.Message))
	if now != nil {
		s.all[string(was.Message)] = *now
	}
	return nil
}

// Of several processes one tells, whichever took the document, once.
func TestNoticesOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, platform := shelftest.New(), &told{}
		if err := k.Put(t.Context(), shelf.Document{ID: "a", Name: "a.md", Access: []acl.Principal{"everyone"}}, strings.NewReader("text")); err != nil {
			t.Fatal(err)
		}
		first := shared{new(sync.Mutex), map[string]shelf.Notice{}, make(chan struct{})}
		second := shared{first.Mutex, first.all, make(chan struct{})}
		run := func(s shared) *shelf.Notices {
			n, err := shelf.OpenNotices(t.TempDir(), k, shelf.Options{Shared: s})
			if err != nil {
				t.Fatal(err)
			}
			n.Handle("chat", platform.tell)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = n.Run(ctx) }()
			t.Cleanup(func() { cancel(); <-done })
			return n
		}
		n := run(first)
		run(second)
		if err := n.Await(shelf.Notice{Platform: "chat", Document: "a", Name: "a.md", Message: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
		k.Settle("a", shelf.State{Reason: "the model is away", Retryable: true})
		time.Sleep(time.Minute)
		if got := platform.texts(); len(got) != 0 {
			t.Errorf("nobody's turn, and told %q", got)
		}
		close(second.turn)
		time.Sleep(time.Minute)
		k.Settle("a", shelf.State{Published: true, Chunks: 2})
		time.Sleep(time.Minute)
		want := []string{"1 “a.md” failed: the model is away\nI try again by myself.", "1 “a.md” is published: 2 chunks; ask me about it."}
		left, _ := first.All(t.Context())
		if diff := cmp.Diff(want, platform.texts()); diff != "" || len(left) != 0 {
			t.Errorf("%d wait (-want +got):\n%s", len(left), diff)
		}
	})
}

func TestNoticesThatCannotBeReadSayWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, shelf.File), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shelf.OpenNotices(dir, shelftest.New(), shelf.Options{}); err == nil || !strings.Contains(err.Error(), shelf.File) {
		t.Error(err)
	}
}

func TestExactly(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{"four": nil, "fou": shelf.ErrOther, "fours": shelf.ErrOther, "": shelf.ErrOther} {
		if _, err := io.ReadAll(shelf.Exactly(io.NopCloser(iotest.OneByteReader(strings.NewReader(body))), 4)); err != want && !errors.Is(err, want) {
			t.Errorf("%q: %v", body, err)
		}
	}
	for name, want := range map[string]string{" a.md ": "a.md", "../../etc/x.md": ".._.._etc_x.md", `a\b.md`: "a_b.md", "": "the file"} {
		if got := shelf.FileName(name); got != want {
			t.Errorf("FileName(%q) = %q", name, got)
		}
	}
}
