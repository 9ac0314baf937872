package redisindex

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
)

// large is a document of many chunks, all of which hold its revision and
// "shared".
func large(rev string, list acl.List, chunks int) retrieval.Publication {
	texts := make([]string, chunks)
	for i := range texts {
		texts[i] = fmt.Sprintf("shared %s n%d", rev, i)
	}
	return indextest.Publication("large", rev, list, texts...)
}

// TestLargeDocumentsChangeAtOnce: while documents of 5,000 chunks are
// replaced, their access lists changed, and removed, every search sees all of
// one revision or, where it may not be read, none.
func TestLargeDocumentsChangeAtOnce(t *testing.T) {
	t.Parallel()
	chunks := 5000
	if testing.Short() {
		chunks = 500
	}
	g := create(t, openStore(t, Options{}))
	must(t, g.Publish(t.Context(), large("r1", everyone, chunks)))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	seen := make([]map[string]int, 2)
	for i, grant := range []acl.Grant{member(), member("hr")} {
		other := again(t, g)
		seen[i] = map[string]int{}
		wg.Go(func() {
			for ctx.Err() == nil {
				what, err := glance(other, grant, chunks)
				if err != nil {
					t.Error(err)
					return
				}
				seen[i][what]++
			}
		})
	}
	must(t, g.Publish(t.Context(), large("r2", everyone, chunks+1)))
	must(t, g.SetAccess(t.Context(), "large", acl.NewList(acl.Group("hr"))))
	must(t, g.SetAccess(t.Context(), "large", acl.NewList(acl.Group("hr"), acl.Everyone)))
	must(t, g.Publish(t.Context(), large("r3", acl.NewList(acl.Group("hr")), chunks+2)))
	must(t, g.Remove(t.Context(), "large"))
	must(t, g.Publish(t.Context(), large("r4", everyone, chunks+3)))
	stop()
	wg.Wait()
	t.Logf("%d chunks; everyone saw %v, hr saw %v", chunks, seen[0], seen[1])
	for what := range seen[0] {
		if strings.Contains(what, "r3") {
			t.Errorf("everyone saw %s", what)
		}
	}
	report, err := g.Verify(t.Context())
	must(t, err)
	want := Report{Counts: retrieval.Counts{Documents: 1, Chunks: chunks + 3}}
	if d := cmp.Diff(want, report); d != "" {
		t.Errorf("afterwards (-want +got):\n%s", d)
	}
}

// glance searches and says which whole revision it saw, or what is wrong.
func glance(g *Generation, grant acl.Grant, chunks int) (string, error) {
	q := retrieval.Query{Terms: []string{"shared"}, Vector: indextest.Vector(30), Depth: 2 * chunks, Count: []string{"r1", "r2", "r3", "r4"}}
	c, err := g.Search(context.Background(), grant, q)
	if err != nil {
		return "", err
	}
	lexical, dense := map[retrieval.Revision]int{}, map[retrieval.Revision]int{}
	for _, h := range c.Lexical {
		lexical[h.ID.Revision]++
	}
	for _, h := range c.Dense {
		dense[h.ID.Revision]++
	}
	if len(lexical) == 0 && len(dense) == 0 && c.Chunks == 0 && len(c.Holding) == 0 {
		return "nothing", nil
	}
	for i := 1; i <= 4; i++ {
		rev, n := retrieval.Revision(fmt.Sprintf("r%d", i)), chunks+i-1
		if len(lexical) == 1 && len(dense) == 1 && lexical[rev] == n && dense[rev] == n && c.Chunks == n && c.Holding[string(rev)] == n && len(c.Holding) == 1 {
			return string(rev), nil
		}
	}
	return "", fmt.Errorf("a search saw lexical %v, dense %v, %d chunks, holding %v", lexical, dense, c.Chunks, c.Holding)
}

// TestRevocationDoesNotWaitForTags: a list is in force before the tags of the
// chunks say so, and where they never do.
func TestRevocationDoesNotWaitForTags(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	publish(t, g, "doc", "r1", everyone, "key one", "key two")
	publish(t, g, "other", "r1", everyone, "key three")
	g.client.AddHook(hook{command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if strings.HasPrefix(cmd.Name(), "evalsha") && cmd.Args()[1] == retagScript.Hash() {
			err := errors.New("the connection is cut")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}})
	must(t, g.SetAccess(t.Context(), "doc", acl.NewList(acl.Group("hr"))))
	other := again(t, g)
	look := func(grant acl.Grant, want string) {
		t.Helper()
		c := find(t, other, grant, "key")
		if got := fmt.Sprint(len(c.Lexical), len(c.Dense), c.Chunks, c.Holding["key"]); got != want {
			t.Errorf("lexical, dense, chunks, holding: %s, want %s", got, want)
		}
	}
	both := acl.NewGrant(acl.NewIdentity("user:eve", acl.Group("hr")), acl.AskerOnly()) // not everyone
	look(member(), "1 1 1 1")
	look(member("hr"), "3 3 3 3")
	look(both, "2 2 2 2")
	look(system.Grant(), "3 3 3 3")
	report, err := other.Verify(t.Context())
	must(t, err)
	if report.Pending != 1 || len(report.Problems) != 0 {
		t.Errorf("Verify gives %+v", report)
	}
	must(t, other.Sweep(t.Context()))
	report, err = other.Verify(t.Context())
	must(t, err)
	if report.Pending != 0 || len(report.Problems) != 0 {
		t.Errorf("after Sweep Verify gives %+v", report)
	}
	look(both, "2 2 2 2")
	look(member(), "1 1 1 1")
}

// TestAnswerLost: the client sends a script again when the answer was lost; the
// second run meets the first one's work.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	publish(t, g, "doc", "r1", everyone, "key one")
	g.client.AddHook(hook{command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			if err := next(ctx, cmd); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}})
	publish(t, g, "doc", "r2", everyone, "key two", "key three")
	must(t, g.SetAccess(t.Context(), "doc", acl.NewList(acl.Group("hr"))))
	publish(t, g, "gone", "r1", everyone, "key")
	must(t, g.Remove(t.Context(), "gone"))
	c := find(t, g, member("hr"), "key")
	if len(c.Lexical) != 2 || len(c.Dense) != 2 || c.Chunks != 2 {
		t.Errorf("found %+v", c)
	}
	report, err := g.Verify(t.Context())
	must(t, err)
	if len(report.Problems) != 0 || report.Counts != (retrieval.Counts{Documents: 1, Chunks: 2}) {
		t.Errorf("Verify gives %+v", report)
	}
	if d, err := g.Document(t.Context(), member("hr"), "doc", "r1"); err != nil || d.Canonical != "key one" {
		t.Errorf("the superseded revision gives %+v, %v", d, err)
	}
}

// TestWritersTogether: many change the same document at once; one after
// another they take effect, and nothing is left over.
func TestWritersTogether(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	publish(t, g, "doc", "r0", everyone, "key")
	var wg sync.WaitGroup
	for w := range 4 {
		other := again(t, g)
		wg.Go(func() {
			for i := range 10 {
				var err error
				switch (w + i) % 4 {
				case 0:
					err = other.SetAccess(context.Background(), "doc", acl.NewList(acl.Group(fmt.Sprint(w, i))))
				case 1:
					err = other.Remove(context.Background(), "doc")
				default:
					err = other.Publish(context.Background(), indextest.Publication("doc", fmt.Sprintf("r%d-%d", w, i), everyone, "key", "door"))
				}
				if err != nil && !errors.Is(err, retrieval.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, g.Sweep(t.Context()))
	report, err := g.Verify(t.Context())
	must(t, err)
	if len(report.Problems) != 0 || report.Hidden != 0 || report.Pending != 0 {
		t.Errorf("Verify gives %+v", report)
	}
	must(t, g.Remove(t.Context(), "doc"))
	if left := keysOf(t, g, "[cpstxw]:*"); len(left) != 0 {
		t.Errorf("keys are left: %v", left)
	}
}

// keysOf lists the generation's keys of a pattern.
func keysOf(t *testing.T, g *Generation, pattern string) []string {
	t.Helper()
	all, err := g.client.Keys(t.Context(), g.keys.index+":"+pattern).Result()
	must(t, err)
	return all
}

// TestWriterDiedHalfway: what it wrote is never seen and goes after an hour.
func TestWriterDiedHalfway(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := create(t, openStore(t, Options{now: func() time.Time { return now }}))
	publish(t, g, "doc", "r1", everyone, "key one")
	half := indextest.Publication("doc", "r2", everyone, "key two", "key three")
	r := newRecord(half)
	old, err := g.stage(t.Context(), half, r.pub)
	must(t, err)
	see := func() {
		t.Helper()
		c := find(t, g, system.Grant(), "key two")
		if len(c.Lexical) != 1 || len(c.Dense) != 1 || c.Chunks != 1 || c.Holding["two"] != 0 || len(c.Missing) != 1 {
			t.Errorf("found %+v", c)
		}
	}
	see()
	must(t, g.Sweep(t.Context()))
	if len(keysOf(t, g, "c:"+r.pub+":*")) != 2 {
		t.Error("Sweep deleted what may still be written")
	}
	now = now.Add(abandoned + time.Second)
	must(t, g.Sweep(t.Context()))
	if left := keysOf(t, g, "*"+r.pub+"*"); len(left) != 0 {
		t.Errorf("keys are left: %v", left)
	}
	see()
	if err := g.show(t.Context(), "", "doc", old, r); err == nil || !strings.Contains(err.Error(), "swept away") {
		t.Errorf("showing what was swept away gives %v", err)
	}
	see()
}

func TestVerifyFindsDrift(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		spoil func(g *Generation, r *record)
		want  string
	}{
		"statistics": {func(g *Generation, r *record) {
			g.client.HSet(ctx, g.keys.directory, r.pub, encodeEntry(share{2, 5}, r.list))
		}, "the directory says"},
		"another list in the directory": {func(g *Generation, r *record) {
			g.client.HSet(ctx, g.keys.directory, r.pub, encodeEntry(r.share(), acl.NewList("group:x")))
		}, "the directory says"},
		"lost statistics": {func(g *Generation, _ *record) { g.client.Del(ctx, g.keys.directory) }, "not in the directory"},
		"a publication too many": {func(g *Generation, r *record) {
			g.client.HSet(ctx, g.keys.directory, newPublication(), encodeEntry(r.share(), r.list))
		}, "which no document has"},
		"a term is not listed": {func(g *Generation, r *record) { g.client.HDel(ctx, g.keys.postings+"ttwo", r.pub) }, "terms in the lists: 3 instead of 4"},
		"a chunk is gone":      {func(g *Generation, r *record) { g.client.Del(ctx, g.keys.chunk(place{r.pub, 1})) }, "chunks in the index: 1 instead of 2"},
		"a tag too many": {func(g *Generation, r *record) {
			g.client.HSet(ctx, g.keys.chunk(place{r.pub, 1}), fieldAccess, accessTags(everyone)+","+principalTag("group:x"))
		}, "chunks with the access list: 1 instead of 2"},
		"a passage is gone": {func(g *Generation, r *record) { g.client.HDel(ctx, g.keys.passages+r.pub, "0") }, "passages: 1 instead of 2"},
		"the text is gone":  {func(g *Generation, r *record) { g.client.Del(ctx, g.keys.texts+r.pub) }, "texts: 0 instead of 1"},
		"a vector of another length": {func(g *Generation, r *record) {
			g.client.HSet(ctx, g.keys.chunk(place{r.pub, 0}), fieldVector, "123")
		}, "could not index 1 chunks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := create(t, openStore(t, Options{}))
			must(t, g.Publish(t.Context(), indextest.Publication("doc", "r1", everyone, "key one", "key two")))
			r, err := g.record(t.Context(), "doc")
			must(t, err)
			c.spoil(g, r)
			report, err := g.Verify(t.Context())
			must(t, err)
			if !strings.Contains(strings.Join(report.Problems, "\n"), c.want) {
				t.Errorf("Verify gives %q, want %q", report.Problems, c.want)
			}
		})
	}
}

func TestTextThatWouldNotComeBack(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	for name, spoil := range map[string]func(p *retrieval.Publication){
		"path":    func(p *retrieval.Publication) { p.Document.Path = "a\xff.md" },
		"title":   func(p *retrieval.Publication) { p.Document.Title = "\xc3" },
		"section": func(p *retrieval.Publication) { p.Chunks[0].Chunk.Section = []string{"\xff"} },
	} {
		p := indextest.Publication("doc", "r1", everyone, "key")
		spoil(&p)
		if err := g.Publish(t.Context(), p); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%s gives %v", name, err)
		}
	}
	p := indextest.Publication("a\x00b", "r1", everyone, "key \x00 \xff w")
	p.Document.Canonical, p.Chunks[0].Chunk.Content, p.Chunks[0].Chunk.Text = "key", "key", "key"
	p.Chunks[0].Chunk.Span = retrieval.Span{To: 3, ToByte: 3}
	must(t, g.Publish(t.Context(), p))
	c := find(t, g, member(), "\x00 \xff key")
	if len(c.Lexical) != 1 || len(c.Missing) != 0 || c.Lexical[0].ID.Document != "a\x00b" {
		t.Errorf("found %+v", c)
	}
}
