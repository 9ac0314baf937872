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

	"footnote/retrieval"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/inbox/inboxtest"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
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

func doc(id string, access ...string) inbox.Meta {
	return inbox.Meta{ID: id, Name: "a.md", Access: access}
}

func put(t testing.TB, b *inbox.Inbox, m inbox.Meta, content string) inbox.Entry {
	t.Helper()
	e, _, err := b.Put(t.Context(), m, strings.NewReader(content), inbox.Condition{})
	must(t, err)
	return e
}

// holds is what an inbox holds: id to access list and content.
func holds(t testing.TB, b *inbox.Inbox) map[string]string {
	t.Helper()
	out := map[string]string{}
	all, err := b.List(t.Context(), "", "", 1000)
	must(t, err)
	for _, e := range all {
		c, err := b.Read(t.Context(), b.PathOf(e.ID))
		must(t, err)
		out[e.ID] = strings.Join(e.Access, " ") + ": " + string(c.Data)
	}
	return out
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
	e := put(t, a, doc("a", "everyone"), "from a")
	if diff := cmp.Diff(map[string]string{"a": "everyone: from a"}, holds(t, b)); diff != "" {
		t.Errorf("at b (-want +got):\n%s", diff)
	}
	if _, _, err := b.Put(t.Context(), doc("a", "hr"), strings.NewReader("x"), inbox.Condition{Absent: true}); !errors.Is(err, inbox.ErrChanged) {
		t.Errorf("new at b, where a has it: %v", err)
	}
	if _, change, err := b.Put(t.Context(), doc("a", "everyone"), strings.NewReader("from a"), inbox.Condition{}); change != inbox.Same || err != nil {
		t.Errorf("the same again at b: %d, %v", change, err)
	}
	put(t, b, doc("b", "everyone"), "from b")
	if _, _, err := a.Put(t.Context(), doc("c", "everyone"), strings.NewReader("x"), inbox.Condition{}); !errors.Is(err, inbox.ErrFull) {
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
				put(t, b, doc(fmt.Sprintf("%d/%d", i, n), "everyone"), "own")
				put(t, b, doc("shared", fmt.Sprintf("group:g%d", i)), fmt.Sprintf("g%d", i))
				if n%2 == 1 {
					must(t, b.Delete(t.Context(), fmt.Sprintf("%d/%d", i, n), inbox.Condition{}))
				}
			}
		})
	}
	wg.Wait()
	all := holds(t, Open(client(t), "push:", Options{Prefix: p}))
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
		_, _, err := b.Put(t.Context(), doc("a", "everyone"), bytes.NewReader(data), inbox.Condition{})
		must(t, err)
		got, err := Open(client(t), "push:", Options{Prefix: p}).Read(t.Context(), "push:/a")
		if err != nil || !bytes.Equal(got.Data, data) {
			t.Errorf("%d bytes come back as %d, %v", size, len(got.Data), err)
		}
	}
	_, _, err := b.Put(t.Context(), doc("b", "everyone"), io.LimitReader(endless{}, 1<<40), inbox.Condition{})
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
	must(t, d.Seal(t.Context(), inbox.Entry{Meta: doc("a", "everyone")}))
	b := Open(client(t), "push:", Options{Prefix: p})
	if got := holds(t, b); len(got) != 0 {
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
	e := inbox.Entry{Meta: doc("a", "everyone"), Size: 2*part + 5, Sum: strings.Repeat("0", 64)}
	err = k.Change(t.Context(), func(*inbox.Table) (inbox.Step, error) { return inbox.Step{Put: &e, Draft: d}, nil })
	if !errors.Is(err, retrieval.ErrUnavailable) || !strings.Contains(err.Error(), "send it again") {
		t.Errorf("a document without content: %v", err)
	}
	if got := holds(t, b); len(got) != 0 {
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
		put(t, b, doc(id, "group:hr"), "text of "+id)
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
		put(t, b, doc(id, "group:hr"), "text of "+id+", again")
	}
	if got := holds(t, b); len(got) != 6 || len(b.Damaged()) != 0 {
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
			put(t, a, doc("a", "everyone"), "one")
			seq, was := c.Get(t.Context(), at+"seq").Val(), c.HGet(t.Context(), at+"docs", "a").Val()
			put(t, a, doc("a", "everyone"), "two")
			_, err := b.List(t.Context(), "", "", 9)
			must(t, err)
			told := make(chan string, 99)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = b.Watch(ctx, func(path string, _ bool) { told <- path }) }()
			lose(t.Context(), c, at, seq, was)
			put(t, a, doc("b", "everyone"), "three")
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

// Who watches is told of what other processes change.
func TestWatchOthers(t *testing.T) {
	t.Parallel()
	p := prefix(t.TempDir())
	a, b := Open(client(t), "push:", Options{Prefix: p, Again: true}), Open(client(t), "push:", Options{Prefix: p, Again: true})
	told := make(chan string, 9)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = b.Watch(ctx, func(path string, urgent bool) { told <- fmt.Sprint(path, urgent) }) }()
	put(t, a, doc("a", "everyone"), "x")
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
