package redisindex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	"footnote/retrieval/indextest"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// fill writes a document of n chunks into the index, past Publish, which would
// take long.
func fill(t testing.TB, g *Generation, n int) {
	t.Helper()
	pub := newPublication()
	for from := 0; from < n; from += 2000 {
		_, err := g.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := from; i < min(from+2000, n); i++ {
				p.HSet(t.Context(), g.keys.chunk(place{pub, i}), fieldVector, packVector(indextest.Vector(float64(i))),
					fieldAccess, accessTags(everyone), fieldPublication, pub, fieldState, live)
			}
			return nil
		})
		must(t, err)
	}
	_, err := g.client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.HSet(t.Context(), g.keys.names, pub, encodeName("doc", "r1"))
		p.HSet(t.Context(), g.keys.directory, pub, encodeEntry(share{n, n}, everyone))
		p.Set(t.Context(), g.keys.version, newVersion(), 0)
		return nil
	})
	must(t, err)
}

// TestCase_R7_TimeoutsAreErrors: a query that the server gives up is an error that says
// to try again, whatever the server's policy; never a result without hits.
func TestCase_R7_TimeoutsAreErrors(t *testing.T) {
	t.Parallel()
	module, err := redistest.Module()
	if err != nil {
		redistest.URL(t) // says what is missing
	}
	lenient := redistest.New(t, t.TempDir(), "--loadmodule", module, "ON_TIMEOUT", "RETURN")
	for name, url := range map[string]string{"the policy is to fail": redistest.URL(t), "the policy is to return what there is": "redis://" + lenient.Address} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := create(t, openAt(t, url, Options{Timeout: time.Millisecond}))
			fill(t, g, 60_000)
			q := retrieval.Query{Vector: indextest.Vector(1), Depth: 10}
			for range 5 {
				if c, err := g.Search(t.Context(), member(), q); !errors.Is(err, retrieval.ErrUnavailable) {
					t.Errorf("60,000 chunks in a millisecond give %v, with %d hits", err, len(c.Dense))
				}
				if err := g.complete(t.Context()); err != nil && !errors.Is(err, retrieval.ErrUnavailable) {
					t.Errorf("counting them gives %v", err) // it can be quick enough
				}
			}
		})
	}
}

// TestEngineDropsSilently: what the engine does not index is an error of
// Publish, which the server does not give.
func TestEngineDropsSilently(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	g := create(t, s)
	g.manifest.Embedder.Dimensions = 4 // the index has 3
	p := indextest.Publication("doc", "r1", everyone, "key")
	p.Chunks[0].Vector = []float32{1, 0, 0, 0}
	if err := g.Publish(t.Context(), p); err == nil || !strings.Contains(err.Error(), "indexed 0 of 1 chunks") {
		t.Errorf("Publish gives %v", err)
	}
	g.manifest.Embedder.Dimensions = 3
	if n := g.Counts(); n != (retrieval.Counts{}) {
		t.Errorf("counts are %+v", n)
	}
	if left := keysOf(t, g, "[cpstxw]:*"); len(left) != 0 {
		t.Errorf("keys are left: %v", left)
	}
	if err := s.Promote(t.Context(), g.manifest.Name); !errors.Is(err, retrieval.ErrCorrupt) || !strings.Contains(err.Error(), "could not be indexed") {
		t.Errorf("Promote gives %v", err)
	}
}

// TestPromoteWaitsForTheIndex: an index made over chunks that are there already
// answers with a part of them for a while.
func TestPromoteWaitsForTheIndex(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	g := create(t, s)
	must(t, g.client.FTDropIndex(t.Context(), g.keys.index).Err())
	fill(t, g, 20_000)
	must(t, g.client.FTCreate(t.Context(), g.keys.index, &redis.FTCreateOptions{OnHash: true, Prefix: []any{g.keys.chunks}, NoOffsets: true, NoHL: true, NoFreqs: true}, schema(3, true)...).Err())
	info, err := g.client.FTInfo(t.Context(), g.keys.index).Result()
	must(t, err)
	must(t, s.Promote(t.Context(), g.manifest.Name))
	c, err := g.Search(t.Context(), member(), retrieval.Query{Vector: indextest.Vector(1), Depth: 20_000})
	must(t, err)
	if len(c.Dense) != 20_000 {
		t.Errorf("after Promote %d of 20,000 chunks are found (%d were when it began)", len(c.Dense), info.NumDocs)
	}
	must(t, g.client.Del(t.Context(), g.client.Keys(t.Context(), g.keys.chunks+"*:7").Val()...).Err())
	if err := s.Promote(t.Context(), g.manifest.Name); !errors.Is(err, retrieval.ErrCorrupt) || !strings.Contains(err.Error(), "19999 chunks are indexed instead of 20000") {
		t.Errorf("with a chunk less Promote gives %v", err)
	}
}

// A server that became a replica, as the old master does after a failover,
// promotes nothing: also not the first generation, for itself alone.
func TestPromoteOnAReplica(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	link, err := redislink.Open(redislink.Options{URL: "redis://" + server.Address})
	must(t, err)
	t.Cleanup(func() { must(t, link.Close()) })
	s, err := Open(t.Context(), link, Options{})
	must(t, err)
	g := create(t, s)
	if said, err := server.Say("REPLICAOF 127.0.0.1 1"); err != nil || !strings.HasPrefix(said, "+OK") {
		t.Fatal(said, err)
	}
	err = s.Promote(t.Context(), g.Manifest().Name)
	if !errors.Is(err, retrieval.ErrUnavailable) || !strings.Contains(err.Error(), "it is a replica") {
		t.Errorf("it gives %v", err)
	}
	if current, err := s.current(t.Context()); current != "" || err != nil {
		t.Errorf("the current generation is %q, %v", current, err)
	}
}

// When a change is acknowledged a replica has it: should that take over, nobody
// reads again what was taken away.
func TestChangesAreAtAReplica(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	master := redistest.New(t, t.TempDir(), "--repl-diskless-sync-delay", "0")
	slow := redistest.NewProxy(t, master.Address)
	replica := redistest.New(t, t.TempDir(), "--replicaof", strings.Replace(slow.Address(), ":", " ", 1))
	redistest.Await(t, func() string {
		about, err := master.Say("INFO replication")
		if err != nil || !strings.Contains(about, "state=online") {
			return about
		}
		return ""
	})
	s := openAt(t, "redis://"+master.Address, Options{Prefix: "footnote"})
	g := create(t, s)
	public, narrow := acl.NewList(acl.Everyone), acl.NewList("user:ada")
	must(t, g.Publish(ctx, indextest.Publication("a", "1", public, "alpha")))
	must(t, g.Publish(ctx, indextest.Publication("b", "1", public, "beta")))
	slow.Delay(500)
	must(t, g.SetAccess(ctx, "a", narrow))
	there := func() map[retrieval.DocumentID]string {
		other, err := openAt(t, "redis://"+replica.Address, Options{Prefix: "footnote"}).Open(ctx, g.manifest.Name)
		must(t, err)
		infos, err := other.Documents(ctx, system.Grant())
		must(t, err)
		out := map[retrieval.DocumentID]string{}
		for _, d := range infos {
			out[d.ID] = d.Access.String()
		}
		return out
	}
	if d := cmp.Diff(map[retrieval.DocumentID]string{"a": narrow.String(), "b": public.String()}, there()); d != "" {
		t.Errorf("after an access list changed (-want +got):\n%s", d)
	}
	must(t, g.Remove(ctx, "b"))
	if d := cmp.Diff(map[retrieval.DocumentID]string{"a": narrow.String()}, there()); d != "" {
		t.Errorf("after a document was removed (-want +got):\n%s", d)
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := openStore(t, Options{now: func() time.Time { return now }})
	first, second, third := create(t, s), create(t, s), create(t, s)
	for _, g := range []*Generation{first, second, third} {
		publish(t, g, "doc", "r1", everyone, "key "+g.manifest.Name)
	}
	must(t, s.Promote(t.Context(), first.manifest.Name))
	must(t, s.Promote(t.Context(), second.manifest.Name))
	for name, want := range map[string]string{
		second.manifest.Name: "current one", first.manifest.Name: "may be asked until",
		"no-such": "no generation", "live": "no generation", s.alias(): "not the name",
	} {
		if err := s.Drop(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("dropping %s gives %v, want %q", name, err, want)
		}
	}
	must(t, s.Drop(t.Context(), third.manifest.Name)) // never was current
	now = now.Add(s.o.Grace + time.Second)
	must(t, s.Drop(t.Context(), first.manifest.Name))
	for _, g := range []*Generation{first, third} {
		if left := keysOf(t, g, "*"); len(left) != 0 {
			t.Errorf("keys are left: %v", left)
		}
		if _, err := s.Open(t.Context(), g.manifest.Name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("opening what was dropped gives %v", err)
		}
	}
	g, err := s.Open(t.Context(), "")
	must(t, err)
	if c := find(t, g.(*Generation), member(), "key"); g.Manifest().Name != second.manifest.Name || len(c.Lexical) != 1 {
		t.Errorf("the current one is %s and finds %+v", g.Manifest().Name, c)
	}
}

// TestRollback: a generation that was current is so again at once.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	old, young := create(t, s), create(t, s)
	publish(t, old, "doc", "r1", everyone, "key")
	publish(t, young, "doc", "r2", everyone, "key")
	for _, g := range []*Generation{old, young, old} {
		must(t, s.Promote(t.Context(), g.manifest.Name))
		now, err := s.Open(t.Context(), "")
		must(t, err)
		if now != retrieval.Generation(g) {
			t.Errorf("the current one is %s, want %s", now.Manifest().Name, g.manifest.Name)
		}
	}
}

// TestServerKilled: what was acknowledged is there when the server is back,
// with the index and the alias; meanwhile everything is unavailable.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	dir := t.TempDir()
	server := redistest.New(t, dir)
	s := openAt(t, "redis://"+server.Address, Options{Prefix: "killed"})
	g := create(t, s)
	for i := range 50 {
		publish(t, g, fmt.Sprintf("d%d", i), "r1", everyone, "key one", fmt.Sprintf("key w%d", i))
	}
	must(t, g.SetAccess(t.Context(), "d7", acl.NewList(acl.Group("hr"))))
	must(t, s.Promote(t.Context(), g.manifest.Name))
	before := find(t, g, system.Grant(), "key w7")
	server.Kill()
	_, searchErr := g.Search(t.Context(), member(), retrieval.Query{Terms: []string{"key"}, Depth: 3})
	_, passagesErr := g.Passages(t.Context(), member(), []retrieval.ChunkID{before.Lexical[0].ID})
	_, openErr := s.Open(t.Context(), "")
	for what, err := range map[string]error{
		"Search": searchErr, "Passages": passagesErr, "Open": openErr,
		"Publish":   g.Publish(t.Context(), indextest.Publication("d1", "r2", everyone, "key")),
		"SetAccess": g.SetAccess(t.Context(), "d1", everyone),
	} {
		if !errors.Is(err, retrieval.ErrUnavailable) {
			t.Errorf("without a server %s gives %v", what, err)
		}
	}
	server = redistest.New(t, dir)
	back, err := openAt(t, "redis://"+server.Address, Options{Prefix: "killed"}).Open(t.Context(), "")
	must(t, err)
	if d := cmp.Diff(before, find(t, back.(*Generation), system.Grant(), "key w7")); d != "" {
		t.Errorf("after the restart (-want +got):\n%s", d)
	}
	report, err := back.(*Generation).Verify(t.Context())
	must(t, err)
	if len(report.Problems) != 0 || report.Counts.Chunks != 100 {
		t.Errorf("Verify gives %+v", report)
	}
}

// TestServerLostAll: a server that was emptied, or came back without its data,
// is not one without hits.
func TestServerLostAll(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	server := redistest.New(t, t.TempDir())
	g := create(t, openAt(t, "redis://"+server.Address, Options{}))
	fresh := anew(g)
	publish(t, g, "doc", "r1", everyone, "key")
	find(t, g, member(), "key")
	must(t, g.client.FlushAll(t.Context()).Err())
	for what, g := range map[string]*Generation{"a process that knew it": g, "one that did not": fresh} {
		for _, q := range []retrieval.Query{{Terms: []string{"key"}, Depth: 3}, {Vector: indextest.Vector(1), Depth: 3}} {
			if c, err := g.Search(t.Context(), member(), q); !errors.Is(err, retrieval.ErrCorrupt) || !strings.Contains(err.Error(), "restore the Redis") {
				t.Errorf("%s finds %+v, %v", what, c, err)
			}
		}
	}
}

// TestServerLoading: while a server that was started again reads its data,
// searches and changes wait or fail as unavailable; the first answer is whole.
func TestServerLoading(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	server := redistest.New(t, t.TempDir())
	address := "redis://" + server.Address
	s := openAt(t, address, Options{Prefix: "loading"})
	g, changed := create(t, s), create(t, s)
	for i := range 50 {
		publish(t, g, fmt.Sprintf("d%02d", i), "r1", everyone, "key one", fmt.Sprintf("key w%d", i))
		publish(t, changed, fmt.Sprintf("d%02d", i), "r1", everyone, "key")
	}
	must(t, s.Promote(t.Context(), g.manifest.Name))
	want := find(t, g, member(), "key w7")
	link, err := redislink.Open(redislink.Options{URL: address})
	must(t, err)
	t.Cleanup(func() { must(t, link.Close()) })
	linked := newGeneration(link, s.o, g.manifest)
	find(t, linked, member(), "key w7")
	_, err = link.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 15_000 { // a load to load
			p.Set(t.Context(), fmt.Sprint("loading:", i), i, 0)
		}
		return nil
	})
	must(t, err)
	server.RestartSlowly(t)

	search := func(g *Generation, vector []float32, want retrieval.Candidates) func(context.Context) (string, error) {
		q := retrieval.Query{Terms: []string{"key", "w7"}, Vector: vector, Depth: 1000, Count: []string{"key", "w7"}}
		return func(ctx context.Context) (string, error) {
			got, err := g.Search(ctx, member(), q)
			return cmp.Diff(want, got), err
		}
	}
	change := func(do func(ctx context.Context) error) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return "", do(ctx) }
	}
	var wg sync.WaitGroup
	for what, try := range map[string]func(context.Context) (string, error){
		"a search":                          search(g, indextest.Vector(30), want),
		"a search by words":                 search(g, nil, retrieval.Candidates{Lexical: want.Lexical, Chunks: want.Chunks, Holding: want.Holding}),
		"a search by a link":                search(linked, indextest.Vector(30), want),
		"the first search of a new process": search(newGeneration(link, s.o, g.manifest), indextest.Vector(30), want),
		"passages": func(ctx context.Context) (string, error) {
			got, err := g.Passages(ctx, member(), []retrieval.ChunkID{want.Lexical[0].ID})
			return cmp.Diff(1, len(got)), err
		},
		"documents": func(ctx context.Context) (string, error) {
			got, err := g.Documents(ctx, member())
			return cmp.Diff(50, len(got)), err
		},
		"the current generation": func(ctx context.Context) (string, error) {
			got, err := s.current(ctx)
			return cmp.Diff(g.manifest.Name, got), err
		},
		"a store": func(ctx context.Context) (string, error) {
			_, err := Open(ctx, link, Options{Prefix: "loading"})
			return "", err
		},
		"publishing": change(func(ctx context.Context) error {
			return changed.Publish(ctx, indextest.Publication("d01", "r2", everyone, "key two"))
		}),
		"changing a list": change(func(ctx context.Context) error { return changed.SetAccess(ctx, "d02", acl.NewList(acl.Group("hr"))) }),
		"removing":        change(func(ctx context.Context) error { return changed.Remove(ctx, "d03") }),
		"promoting":       change(func(ctx context.Context) error { return s.Promote(ctx, g.manifest.Name) }),
	} {
		wg.Go(func() { insist(t, what, try) })
	}
	wg.Wait()
	report, err := changed.Verify(t.Context())
	must(t, err)
	if len(report.Problems) != 0 || report.Counts.Documents != 49 {
		t.Errorf("afterwards Verify gives %+v", report)
	}
}

// insist tries until it is done. Before, it is unavailable, at least once.
func insist(t *testing.T, what string, try func(context.Context) (wrong string, err error)) {
	for refused := 0; ; refused++ {
		wrong, err := try(t.Context())
		switch {
		case err == nil && wrong == "" && refused > 0:
			return
		case err == nil:
			t.Errorf("%s: refused %d times, then wrong (-want +got):\n%s", what, refused, wrong)
			return
		case !errors.Is(err, retrieval.ErrUnavailable):
			t.Errorf("%s gives %v", what, err)
			return
		}
	}
}

func TestServerWithoutEngine(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	server := redistest.New(t, t.TempDir(), redistest.WithoutEngine)
	if _, err := OpenURL(t.Context(), "redis://"+server.Address, Options{}); err == nil || !strings.Contains(err.Error(), "no Query Engine") {
		t.Errorf("Open gives %v", err)
	}
}

// TestErrorsAreToldApart: what trying again may help, and what it does not.
func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	answer := func(s string) error { return fmt.Errorf("sending: %w", redisError(s)) }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{answer("LOADING Redis is loading the dataset in memory"), true},
		{answer("OOM command not allowed when used memory > 'maxmemory'."), true},
		{answer("READONLY You can't write against a read only replica."), true},
		{answer("Timeout limit was reached"), true},
		{answer("ERR syntax error"), false},
		{answer("Syntax error at offset 4 near x"), false},
		{answer("NOPERM this user has no permissions"), false},
		{answer("x: no such index"), false},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true},
		{io.EOF, true},
		{fmt.Errorf("%w: damaged", retrieval.ErrCorrupt), false},
		{redis.Nil, false},
		{redis.ErrClosed, false},
	} {
		if got := errors.Is(failed(t.Context(), "searching", c.err), retrieval.ErrUnavailable); got != c.want {
			t.Errorf("%v: unavailable is %v, want %v", c.err, got, c.want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := failed(gone, "searching", answer("LOADING")); !errors.Is(err, context.Canceled) || errors.Is(err, retrieval.ErrUnavailable) {
		t.Errorf("a question that was given up gives %v", err)
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestCase_R14_SwitchUnderQuestions: while the alias goes there and back, each search
// answers from one generation, the one that it opened.
func TestCase_R14_SwitchUnderQuestions(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	var all []*Generation
	for range 2 {
		g := create(t, s)
		for i := range 5 {
			publish(t, g, fmt.Sprintf("d%d", i), revisionOf(g), everyone, "key")
		}
		all = append(all, g)
	}
	must(t, s.Promote(t.Context(), all[0].manifest.Name))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := askCurrent(s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 60 {
		must(t, s.Promote(t.Context(), all[(i+1)%2].manifest.Name))
	}
	stop()
	wg.Wait()
}

// revisionOf is a revision that names the generation.
func revisionOf(g *Generation) string { return "of-" + g.manifest.Name }

func askCurrent(s *Store) error {
	now, err := s.Open(context.Background(), "")
	if err != nil {
		return err
	}
	c, err := now.Search(context.Background(), member(), retrieval.Query{Terms: []string{"key"}, Vector: indextest.Vector(30), Depth: 10})
	if err != nil {
		return err
	}
	for _, h := range c.Lexical {
		if string(h.ID.Revision) != revisionOf(now.(*Generation)) {
			return fmt.Errorf("generation %s gives %s", now.Manifest().Name, h.ID)
		}
	}
	if len(c.Lexical) != 5 || len(c.Dense) != 5 {
		return fmt.Errorf("generation %s gives %d and %d hits", now.Manifest().Name, len(c.Lexical), len(c.Dense))
	}
	return nil
}
