package redisinbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/indextest"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/inbox/inboxtest"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func client(t testing.TB) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(redistest.URL(t))
	must(t, err)
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// prefix is one that no other test has.
func prefix(place string) string {
	sum := sha256.Sum256([]byte(place))
	return "t" + hex.EncodeToString(sum[:8])
}

// open opens an inbox that waits for no disk: what that costs is the server's.
func open(t testing.TB, place string, o inbox.Options) *inbox.Inbox {
	t.Helper()
	return Open(client(t), "push:", Options{Options: o, Prefix: prefix(place), Again: true})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	inboxtest.Run(t, open)
}

func TestInForce(t *testing.T) {
	t.Parallel()
	inboxtest.RunGuard(t, func(t testing.TB, place string) (retrieval.Store, *inbox.Inbox) {
		s, err := redisindex.OpenURL(t.Context(), redistest.URL(t), redisindex.Options{Prefix: prefix(place)})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s, open(t, place, inbox.Options{})
	})
}

// What one process does, every other one sees with its next look, limits and
// conditions are those of all together, and each waits for the server's disk.
func TestShared(t *testing.T) {
	t.Parallel()
	p := prefix(t.TempDir())
	replica := func() *inbox.Inbox {
		return Open(client(t), "push:", Options{Options: inbox.Options{MaxDocuments: 2}, Prefix: p})
	}
	a, b := replica(), replica()
	e := inboxtest.Put(t, a, inboxtest.Doc("a", "everyone"), "from a")
	if diff := cmp.Diff(map[string]string{"a": "everyone: from a"}, inboxtest.Holds(t, b)); diff != "" {
		t.Errorf("at b (-want +got):\n%s", diff)
	}
	if _, _, err := b.Put(t.Context(), inboxtest.Doc("a", "hr"), strings.NewReader("x"), inbox.Condition{Absent: true}); !errors.Is(err, inbox.ErrChanged) {
		t.Errorf("new at b, where a has it: %v", err)
	}
	if _, change, err := b.Put(t.Context(), inboxtest.Doc("a", "everyone"), strings.NewReader("from a"), inbox.Condition{}); change != inbox.Same || err != nil {
		t.Errorf("the same again at b: %d, %v", change, err)
	}
	inboxtest.Put(t, b, inboxtest.Doc("b", "everyone"), "from b")
	if _, _, err := a.Put(t.Context(), inboxtest.Doc("c", "everyone"), strings.NewReader("x"), inbox.Condition{}); !errors.Is(err, inbox.ErrFull) {
		t.Errorf("one too many in all: %v", err)
	}
	must(t, b.Delete(t.Context(), "a", inbox.Condition{Tags: []string{e.Tag()}}))
	if !a.Gone("push:/a") || b.Gone("push:/b") {
		t.Error("what b dropped is not gone at a")
	}
	if err := a.Delete(t.Context(), "a", inbox.Condition{}); !errors.Is(err, inbox.ErrNotFound) {
		t.Errorf("dropped again at a: %v", err)
	}
	roots, err := Roots(t.Context(), client(t), p)
	if diff := cmp.Diff([]string{"push:"}, roots); diff != "" || err != nil {
		t.Errorf("roots: %v (-want +got):\n%s", err, diff)
	}
}

// Wherever a connection is cut, with or without the client trying again, others
// see all of the old or all of the new document, what was said to be done is done,
// and no content stays that is none's.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{-1, 2} {
		o, err := redis.ParseURL(redistest.URL(t))
		must(t, err)
		cuts := 0
		for n := range 30 {
			var cut redistest.Cutter
			cut.Left.Store(1 << 40)
			p := prefix(t.TempDir())
			o.Dialer, o.PoolSize, o.MaxRetries = cut.Dial, 1, retries
			c := redis.NewClient(o)
			whole, b := Open(client(t), "push:", Options{Prefix: p, Again: true}), Open(c, "push:", Options{Prefix: p, Again: true})
			inboxtest.Put(t, b, inboxtest.Doc("a", "everyone"), "old, for all")
			cut.Left.Store(int64(n + 1))
			_, _, err := b.Put(t.Context(), inboxtest.Doc("a", "hr"), strings.NewReader("new, for few"), inbox.Condition{})
			got := inboxtest.Holds(t, whole)["a"]
			if got != "group:hr: new, for few" && (err == nil || got != "everyone: old, for all") {
				t.Errorf("cut %d: %v, and it holds %q", n, err, got)
			}
			gone := b.Delete(t.Context(), "a", inbox.Condition{})
			if got := inboxtest.Holds(t, whole); gone == nil && len(got) != 0 {
				t.Errorf("cut %d: dropped, and it holds %v", n, got)
			}
			if cut.Left.Load() < 0 {
				cuts++
			}
			must(t, whole.Drop(t.Context(), "a"))
			admin := client(t)
			keys := admin.Keys(t.Context(), "{"+p+":inbox}:push:b:*").Val()
			for _, key := range keys {
				if ttl := admin.TTL(t.Context(), key).Val(); ttl < 0 {
					t.Errorf("cut %d: content that is nobody's stays for ever", n)
				}
			}
			must(t, c.Close())
		}
		if cuts < 5 {
			t.Errorf("only %d connections were cut", cuts)
		}
	}
}

// Any number of processes change one inbox: each put and each deletion is made
// once, and no content is left over.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	c, p := client(t), prefix(t.TempDir())
	var wg sync.WaitGroup
	for i := range 5 {
		b := Open(client(t), "push:", Options{Prefix: p, Again: true})
		wg.Go(func() {
			for n := range 20 {
				own := fmt.Sprintf("%d/%d", i, n)
				_, _, err := b.Put(t.Context(), inboxtest.Doc(own, "everyone"), strings.NewReader("own"), inbox.Condition{})
				_, _, all := b.Put(t.Context(), inboxtest.Doc("shared", fmt.Sprintf("group:g%d", i)), strings.NewReader(fmt.Sprintf("g%d", i)), inbox.Condition{})
				if n%2 == 1 {
					err = errors.Join(err, b.Delete(t.Context(), own, inbox.Condition{}))
				}
				if err := errors.Join(err, all); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all := inboxtest.Holds(t, Open(client(t), "push:", Options{Prefix: p}))
	group, text, _ := strings.Cut(strings.TrimPrefix(all["shared"], "group:"), ": ")
	if len(all) != 51 || group != text {
		t.Errorf("%d documents, the shared one is %q", len(all), all["shared"])
	}
	keys, err := c.Keys(t.Context(), "{"+p+":inbox}:push:b:*").Result()
	if err != nil || len(keys) != len(all) {
		t.Errorf("%d contents of %d documents, %v", len(keys), len(all), err)
	}
	for _, key := range keys {
		if ttl := c.TTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("the content of a document ends after %v", ttl)
		}
	}
}

// A document of several parts comes back whole, and one that is over the limit
// is refused with it.
func TestLargeDocuments(t *testing.T) {
	t.Parallel()
	c, p := client(t), prefix(t.TempDir())
	b := Open(c, "push:", Options{Options: inbox.Options{MaxBytes: 3*part + 1}, Prefix: p, Again: true})
	for _, size := range []int{1, part - 1, part, part + 1, 3*part + 1} {
		data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		_, _, err := b.Put(t.Context(), inboxtest.Doc("a", "everyone"), bytes.NewReader(data), inbox.Condition{})
		must(t, err)
		got, err := Open(client(t), "push:", Options{Prefix: p}).Read(t.Context(), "push:/a")
		if err != nil || !bytes.Equal(got.Data, data) {
			t.Errorf("%d bytes come back as %d, %v", size, len(got.Data), err)
		}
	}
	_, _, err := b.Put(t.Context(), inboxtest.Doc("b", "everyone"), io.LimitReader(endless{}, 1<<40), inbox.Condition{})
	if !errors.Is(err, inbox.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(3*part+1)) {
		t.Errorf("over the limit: %v", err)
	}
	if keys := c.Keys(t.Context(), "{"+p+":inbox}:push:b:*").Val(); len(keys) != 1 {
		t.Errorf("what was refused leaves %v", keys)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A process that ends between content and document leaves nothing that anybody
// sees, and what it left goes by itself.
func TestEndedInTheMiddle(t *testing.T) {
	t.Parallel()
	c, p := client(t), prefix(t.TempDir())
	k := &keep{client: c, root: "push:", lazy: true, top: "{" + p + ":inbox}:", at: "{" + p + ":inbox}:push:", table: inbox.NewTable(), damaged: map[string]bool{}}
	d, err := k.Begin(t.Context())
	must(t, err)
	_, err = d.Write(make([]byte, 2*part+5))
	must(t, err)
	must(t, d.Seal(t.Context(), inbox.Entry{Meta: inboxtest.Doc("a", "everyone")}))
	b := Open(client(t), "push:", Options{Prefix: p})
	if got := inboxtest.Holds(t, b); len(got) != 0 {
		t.Errorf("half a document is seen: %v", got)
	}
	keys := c.Keys(t.Context(), "*"+p+"*").Val()
	if len(keys) != 1 {
		t.Fatalf("there are %v", keys)
	}
	if ttl := c.TTL(t.Context(), keys[0]).Val(); ttl <= 0 || ttl > unplaced {
		t.Errorf("what is left ends after %v", ttl)
	}
	// Content that went is no document either.
	c.Del(t.Context(), keys[0])
	e := inbox.Entry{Meta: inboxtest.Doc("a", "everyone"), Size: 2*part + 5, Sum: strings.Repeat("0", 64)}
	err = k.Change(t.Context(), func(*inbox.Table) (inbox.Step, error) { return inbox.Step{Put: &e, Draft: d}, nil })
	if !errors.Is(err, retrieval.ErrUnavailable) || !strings.Contains(err.Error(), "send it again") {
		t.Errorf("a document without content: %v", err)
	}
	if got := inboxtest.Holds(t, b); len(got) != 0 {
		t.Errorf("it is seen: %v", got)
	}
}

// What is not as Put writes it is not read, and the sender can send it again.
func TestDamaged(t *testing.T) {
	t.Parallel()
	c, p := client(t), prefix(t.TempDir())
	at := "{" + p + ":inbox}:push:"
	b := Open(client(t), "push:", Options{Prefix: p, Again: true})
	for _, id := range []string{"content", "gone", "open", "other", "text", "whole"} {
		inboxtest.Put(t, b, inboxtest.Doc(id, "group:hr"), "text of "+id)
	}
	raw := func(id string) string { return c.HGet(t.Context(), at+"docs", id).Val() }
	token := func(id string) string {
		d, err := decode(raw(id))
		must(t, err)
		return d.Bytes
	}
	c.HSet(t.Context(), at+"b:"+token("content"), "0", "text of context")
	c.Del(t.Context(), at+"b:"+token("gone"))
	c.HSet(t.Context(), at+"docs", "open", strings.Replace(raw("open"), `"access":["group:hr"]`, `"access":[]`, 1))
	c.HSet(t.Context(), at+"docs", "other", raw("whole"), "text", "{")
	b = Open(client(t), "push:", Options{Prefix: p, Again: true})
	all, err := b.List(t.Context(), "", "", 99)
	must(t, err)
	var ids []string
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff([]string{"content", "gone", "whole"}, ids); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"open", "other", "text"}, b.Damaged()); diff != "" {
		t.Errorf("damaged (-want +got):\n%s", diff)
	}
	for _, id := range []string{"content", "gone", "open", "other", "text"} {
		var fault *ingest.Fault
		if _, err := b.Read(t.Context(), "push:/"+id); !errors.As(err, &fault) || !strings.Contains(fault.Reason, "send it again") {
			t.Errorf("%s is read: %v", id, err)
		}
		if _, held, err := b.Get(t.Context(), id); err != nil || held != (id == "content" || id == "gone") {
			t.Errorf("%s is held: %t, %v", id, held, err)
		}
		inboxtest.Put(t, b, inboxtest.Doc(id, "group:hr"), "text of "+id+", again")
	}
	if got := inboxtest.Holds(t, b); len(got) != 6 || len(b.Damaged()) != 0 {
		t.Errorf("sent again: %v, damaged %v", got, b.Damaged())
	}
}

// A process that is too far behind, or knows what the server lost, reads all
// anew, and tells who watches of what is other by that.
func TestGaps(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(ctx context.Context, c *redis.Client, at, seq, a string){
		"the log is cut": func(ctx context.Context, c *redis.Client, at, _, _ string) { c.XTrimMaxLen(ctx, at+"log", 0) },
		"the server lost the last change, and made another": func(ctx context.Context, c *redis.Client, at, seq, a string) {
			c.Set(ctx, at+"seq", seq, 0)
			c.HSet(ctx, at+"docs", "a", a)
			c.XTrimMaxLen(ctx, at+"log", 1)
			c.Del(ctx, at+"log")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := client(t), prefix(t.TempDir())
			at := "{" + p + ":inbox}:push:"
			a, b := Open(client(t), "push:", Options{Prefix: p, Again: true}), Open(client(t), "push:", Options{Prefix: p, Again: true})
			inboxtest.Put(t, a, inboxtest.Doc("a", "everyone"), "one")
			seq, was := c.Get(t.Context(), at+"seq").Val(), c.HGet(t.Context(), at+"docs", "a").Val()
			inboxtest.Put(t, a, inboxtest.Doc("a", "everyone"), "two")
			_, err := b.List(t.Context(), "", "", 9)
			must(t, err)
			told := make(chan string, 99)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = b.Watch(ctx, func(path string, _ bool) { told <- path }) }()
			lose(t.Context(), c, at, seq, was)
			inboxtest.Put(t, a, inboxtest.Doc("b", "everyone"), "three")
			want, err := Open(client(t), "push:", Options{Prefix: p}).List(t.Context(), "", "", 9)
			must(t, err)
			got, err := b.List(t.Context(), "", "", 9)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			for seen := ""; seen != "push:/b"; {
				select {
				case seen = <-told:
				case <-time.After(time.Minute):
					t.Fatal("nobody is told")
				}
			}
		})
	}
}

// slow is a store whose writes come late: something happens before each first one.
type slow struct {
	retrieval.Store

	meanwhile func()
}

// Open opens a generation.
func (s slow) Open(ctx context.Context, name string) (retrieval.Generation, error) {
	g, err := s.Store.Open(ctx, name)
	return &slowGeneration{g, sync.OnceFunc(s.meanwhile)}, err
}

type slowGeneration struct {
	retrieval.Generation

	meanwhile func()
}

// Publish publishes.
func (g *slowGeneration) Publish(ctx context.Context, p retrieval.Publication) error {
	g.meanwhile()
	return g.Generation.Publish(ctx, p)
}

// SetAccess replaces the list.
func (g *slowGeneration) SetAccess(ctx context.Context, id retrieval.DocumentID, l acl.List) error {
	g.meanwhile()
	return g.Generation.SetAccess(ctx, id, l)
}

// A write that one process decided by the inbox, and that comes after another one
// changed the document and put that in force, opens nothing that was closed.
func TestWriteThatComesLate(t *testing.T) {
	t.Parallel()
	all, few := acl.NewList(acl.Everyone, acl.Group("hr")), acl.NewList(acl.Group("hr"))
	publish := func(ctx context.Context, g retrieval.Generation) error {
		p := indextest.Publication("doc", "r2", all, "key two")
		p.Document.Path = "push:/zip/in"
		return g.Publish(ctx, p)
	}
	open := func(ctx context.Context, g retrieval.Generation) error { return g.SetAccess(ctx, "doc", all) }
	narrow := func(ctx context.Context, b *inbox.Inbox) error {
		_, _, err := b.Put(ctx, inbox.Meta{ID: "zip", Name: "a.zip", Access: []string{"hr"}}, strings.NewReader("PK"), inbox.Condition{})
		return err
	}
	remove := func(ctx context.Context, b *inbox.Inbox) error { return b.Delete(ctx, "zip", inbox.Condition{}) }
	other := func(ctx context.Context, b *inbox.Inbox) error {
		_, _, err := b.Put(ctx, inboxtest.Doc("else", "hr"), strings.NewReader("x"), inbox.Condition{})
		return err
	}
	for _, c := range []struct {
		name      string
		published bool // before
		write     func(context.Context, retrieval.Generation) error
		meanwhile func(context.Context, *inbox.Inbox) error
		want      string // in force at last
		done      bool
	}{
		{"published, taken back meanwhile", false, publish, remove, "", false},
		{"published, narrowed meanwhile", false, publish, narrow, few.String(), true},
		{"published, something else meanwhile", false, publish, other, all.String(), true},
		{"published anew, taken back meanwhile", true, publish, remove, "", false},
		{"opened, narrowed meanwhile", true, open, narrow, few.String(), true},
		{"opened, taken back meanwhile", true, open, remove, "", false},
		{"opened, something else meanwhile", true, open, other, all.String(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, p := t.Context(), prefix(t.TempDir())
			s, err := redisindex.OpenURL(ctx, redistest.URL(t), redisindex.Options{Prefix: p})
			must(t, err)
			t.Cleanup(func() { _ = s.Close() })
			g, err := s.Create(ctx, indextest.Manifest())
			must(t, err)
			must(t, s.Promote(ctx, g.Manifest().Name))
			mine, others := Open(client(t), "push:", Options{Prefix: p, Again: true}), Open(client(t), "push:", Options{Prefix: p, Again: true})
			_, _, err = mine.Put(ctx, inbox.Meta{ID: "zip", Name: "a.zip", Access: []string{"everyone", "hr"}}, strings.NewReader("PK"), inbox.Condition{})
			must(t, err)
			if c.published {
				first := indextest.Publication("doc", "r1", few, "key one")
				first.Document.Path = "push:/zip/in"
				must(t, g.Publish(ctx, first))
			}
			guarded, err := inbox.Guard(slow{s, func() {
				must(t, c.meanwhile(ctx, others))
				_, err := others.Enforce(ctx, s, catalog.Record{}, "zip")
				must(t, err)
			}}, func(retrieval.DocumentID) string { return "push:/zip/in" }, mine).Open(ctx, "")
			must(t, err)
			if err := c.write(ctx, guarded); c.done != (err == nil) {
				t.Errorf("it gives %v", err)
			}
			docs, err := g.Documents(ctx, system.Grant())
			must(t, err)
			got := ""
			for _, d := range docs {
				got += d.Access.String()
			}
			if got != c.want {
				t.Errorf("in force is %q, want %q", got, c.want)
			}
		})
	}
}

// Where the server has no room for documents, nothing more is taken, and that is
// said.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	c, p := client(t), prefix(t.TempDir())
	b := Open(c, "push:", Options{Prefix: p, Again: true, Room: func(_ context.Context, n int64) string {
		if n > 10 {
			return "the memory of Redis is full"
		}
		return ""
	}})
	inboxtest.Put(t, b, inboxtest.Doc("a", "everyone"), "0123456789")
	_, _, err := b.Put(t.Context(), inboxtest.Doc("b", "everyone"), strings.NewReader("0123456789a"), inbox.Condition{})
	if !errors.Is(err, inbox.ErrFull) || !strings.Contains(err.Error(), "memory of Redis") {
		t.Errorf("it gives %v", err)
	}
}

// Notes are settled by what was read, not by what came since.
func TestNotes(t *testing.T) {
	t.Parallel()
	p := prefix(t.TempDir())
	a, b := NewNotes(client(t), "slack:C1", p), NewNotes(client(t), "slack:C1", p)
	noted := func() map[string]string {
		t.Helper()
		all, err := b.Noted(t.Context())
		must(t, err)
		return all
	}
	must(t, a.Note(t.Context(), "1.0"))
	must(t, a.Note(t.Context(), "2.0"))
	first := noted()
	must(t, a.Note(t.Context(), "2.0"))
	must(t, b.Settle(t.Context(), "1.0", first["1.0"]))
	must(t, b.Settle(t.Context(), "2.0", first["2.0"]))
	if got := noted(); len(first) != 2 || len(got) != 1 || got["2.0"] == "" || got["2.0"] == first["2.0"] {
		t.Errorf("first %v, then %v", first, got)
	}
}

// A process whose lease was lost changes nothing with the context that it had.
func TestUnderALostLease(t *testing.T) {
	t.Parallel()
	c, p := client(t), prefix(t.TempDir())
	b := Open(c, "slack:C1", Options{Prefix: p, Again: true})
	c.Set(t.Context(), p+":lease", "me", 0)
	ctx := redislink.While(t.Context(), redislink.Condition{Key: p + ":lease", Value: "me"})
	_, _, err := b.Put(ctx, inboxtest.Doc("1", "hr"), strings.NewReader("x"), inbox.Condition{})
	must(t, err)
	c.Set(t.Context(), p+":lease", "you", 0)
	_, _, err = b.Put(ctx, inboxtest.Doc("1", "everyone"), strings.NewReader("x"), inbox.Condition{})
	if deleted := b.Delete(ctx, "1", inbox.Condition{}); !errors.Is(err, retrieval.ErrFenced) || !errors.Is(deleted, retrieval.ErrFenced) {
		t.Errorf("put gives %v, delete %v", err, deleted)
	}
	if got := inboxtest.Holds(t, b); got["1"] != "group:hr: x" {
		t.Errorf("it holds %v", got)
	}
}

// Who watches is told of what other processes change.
func TestWatchOthers(t *testing.T) {
	t.Parallel()
	p := prefix(t.TempDir())
	a, b := Open(client(t), "push:", Options{Prefix: p, Again: true}), Open(client(t), "push:", Options{Prefix: p, Again: true})
	told := make(chan string, 9)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = b.Watch(ctx, func(path string, urgent bool) { told <- fmt.Sprint(path, urgent) }) }()
	inboxtest.Put(t, a, inboxtest.Doc("a", "everyone"), "x")
	if got := <-told; got != "push:/afalse" {
		t.Errorf("told %s", got)
	}
	must(t, a.Delete(t.Context(), "a", inbox.Condition{}))
	if got := <-told; got != "push:/atrue" {
		t.Errorf("told %s", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"id":"a","name":"a.md","access":["everyone"],"size":1,"sha256":"` + strings.Repeat("0", 64) + `","received":"2031-04-01T09:00:00Z","bytes":"abcdefghijklmnopqrstuvwxyz","parts":1}`)
	f.Add(`{"id":"a","name":"a.md","access":[],"size":1}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := decode(s)
		if err == nil && (d.List().IsZero() || d.Size < 1 || d.Parts < 1 || !isToken(d.Bytes)) {
			t.Errorf("%q becomes %+v", s, d)
		}
	})
}
