package redisindex

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
	"footnote/retrieval/redisindex/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"flat": {}, "graph": {HNSW: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			indextest.Run(t, func(t *testing.T) retrieval.Store { return openStore(t, o) })
		})
	}
}

// openStore opens an empty store on the shared server.
func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	return openAt(t, redistest.URL(t), o)
}

func openAt(t testing.TB, url string, o Options) *Store {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = "test-" + strings.ToLower(rand.Text())[:12]
	}
	s, err := OpenURL(t.Context(), url, o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func create(t testing.TB, s *Store) *Generation {
	t.Helper()
	g, err := s.Create(t.Context(), indextest.Manifest())
	must(t, err)
	return g.(*Generation)
}

// again opens the generation as another process would, with nothing cached.
func again(t testing.TB, g *Generation) *Generation {
	t.Helper()
	s := openAt(t, redistest.URL(t), Options{Prefix: g.o.Prefix})
	other, err := s.Open(t.Context(), g.manifest.Name)
	must(t, err)
	return other.(*Generation)
}

func publish(t testing.TB, g *Generation, id, rev string, list acl.List, texts ...string) {
	t.Helper()
	must(t, g.Publish(t.Context(), indextest.Publication(id, rev, list, texts...)))
}

func find(t testing.TB, g *Generation, grant acl.Grant, words string) retrieval.Candidates {
	t.Helper()
	c, err := g.Search(t.Context(), grant, retrieval.Query{Terms: strings.Fields(words), Vector: indextest.Vector(30), Depth: 1000, Count: strings.Fields(words)})
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func member(groups ...string) acl.Grant {
	holds := []acl.Principal{acl.Everyone}
	for _, g := range groups {
		holds = append(holds, acl.Group(g))
	}
	return acl.NewGrant(acl.NewIdentity(acl.User("ada"), holds...), acl.AskerOnly())
}

var everyone = acl.NewList(acl.Everyone)

// hook calls what is set before, or instead of, sending.
type hook struct {
	command  func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error
	pipeline func(cmds []redis.Cmder)
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.command == nil {
			return next(ctx, cmd)
		}
		return h.command(ctx, cmd, next)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.pipeline != nil {
			h.pipeline(cmds)
		}
		return next(ctx, cmds)
	}
}

func TestRoundTripsOfASearch(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	for i := range 40 {
		publish(t, g, fmt.Sprintf("d%02d", i), "r1", everyone, fmt.Sprintf("key w%d", i))
	}
	find(t, g, member(), "key") // the first learns names and state
	var trips atomic.Int32
	g.client.AddHook(hook{
		command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			trips.Add(1)
			return next(ctx, cmd)
		},
		pipeline: func([]redis.Cmder) { trips.Add(1) },
	})
	other := again(t, g)
	for _, c := range []struct {
		what   string
		vector []float32
		depth  int
		before func()
		most   int32
	}{
		{"words alone", nil, 1000, func() {}, 1},
		{"all lexical hits are near", indextest.Vector(30), 1000, func() {}, 2},
		{"some are far", indextest.Vector(30), 3, func() {}, 3},
		{"another process published", indextest.Vector(30), 1000, func() { publish(t, other, "new", "r1", everyone, "key one") }, 3}, // and a name
		{"another process changed a list", indextest.Vector(30), 1000, func() { must(t, other.SetAccess(t.Context(), "d03", everyone)) }, 2},
		{"another process removed", indextest.Vector(30), 1000, func() { must(t, other.Remove(t.Context(), "d04")) }, 2},
		{"words alone after a change", nil, 1000, func() { publish(t, other, "d05", "r1", everyone, "key one") }, 3},
	} {
		c.before()
		trips.Store(0)
		q := retrieval.Query{Terms: []string{"key", "w7"}, Vector: c.vector, Depth: c.depth, Count: []string{"key", "other"}}
		_, err := g.Search(t.Context(), member(), q)
		must(t, err)
		if n := trips.Load(); n > c.most {
			t.Errorf("%s: %d round trips, want at most %d", c.what, n, c.most)
		}
	}
}

// TestAnotherProcess: what one process changes another sees with its next
// search, although it has seen the generation before.
func TestAnotherProcess(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	publish(t, g, "doc", "r1", everyone, "key one")
	other := again(t, g)
	see := func(grant acl.Grant, want string) {
		t.Helper()
		c := find(t, other, grant, "key")
		got := fmt.Sprint(len(c.Lexical), len(c.Dense), c.Chunks, c.Holding["key"])
		if got != want {
			t.Errorf("lexical, dense, chunks, holding: %s, want %s", got, want)
		}
	}
	see(member(), "1 1 1 1")
	must(t, g.SetAccess(t.Context(), "doc", acl.NewList(acl.Group("hr"))))
	see(member(), "0 0 0 0")
	see(member("hr"), "1 1 1 1")
	publish(t, g, "doc", "r2", everyone, "key one", "key two")
	see(member(), "2 2 2 2")
	must(t, g.Remove(t.Context(), "doc"))
	see(member(), "0 0 0 0")
}

// TestNoBytesOfOthersReachTheLanguage: principals and terms are encoded.
func TestNoBytesOfOthersReachTheLanguage(t *testing.T) {
	t.Parallel()
	nasty := acl.Principal("group:x}) | @state:{live\x00*|$")
	s := &state{overlay: map[string]overlay{"aaaaaaaaaaaaaaaa": {list: everyone}, "bbbbbbbbbbbbbbbb": {hidden: true},
		"cccccccccccccccc": {list: acl.NewList(acl.Everyone, nasty)}}}
	f, ok := newFilter(acl.NewGrant(acl.NewIdentity(nasty, acl.Everyone), acl.Room([]acl.Principal{nasty}, []acl.Principal{acl.Everyone})), s)
	if !ok {
		t.Fatal("no filter")
	}
	p, e := principalTag(nasty), principalTag(acl.Everyone)
	tags := []string{e, p}
	want := "(@state:{live} @acl:{" + strings.Join(tags, "|") + "} @acl:{" + p + "} @acl:{" + e +
		"} -@pub:{aaaaaaaaaaaaaaaa|bbbbbbbbbbbbbbbb|cccccccccccccccc|none}) | (@state:{live} @pub:{cccccccccccccccc})"
	if d := cmp.Diff(want, f.text); d != "" {
		t.Errorf("the filter (-want +got):\n%s", d)
	}
	for _, term := range []string{"x) | @acl:{*", "\x00", "\xff", "*", "-x", "~x", "%x%", "A", "é", "", "_", "$q", strings.Repeat("x", 500), "비밀번호"} {
		if got := token(term); !isPlain(got) || len(got) > 128 {
			t.Errorf("the token of %q is %q", term, got)
		}
	}
}

// TestNoClauseVanishes: whatever the grant, its filter has one access clause
// for each of its clauses, or there is no filter.
func TestNoClauseVanishes(t *testing.T) {
	t.Parallel()
	id := acl.NewIdentity(acl.User("ada"), acl.Everyone)
	for name, c := range map[string]struct {
		grant   acl.Grant
		clauses int // -1: no filter
	}{
		"nobody":                   {acl.Grant{}, -1},
		"unknown person":           {acl.NewGrant(acl.Identity{}, acl.AskerOnly()), -1},
		"audience unstated":        {acl.NewGrant(id, acl.Audience{}), -1},
		"a viewer without any":     {acl.NewGrant(id, acl.Room(nil)), -1},
		"one viewer of two is bad": {acl.NewGrant(id, acl.Room(id.Principals(), nil)), -1},
		"direct":                   {acl.NewGrant(id, acl.AskerOnly()), 1},
		"room":                     {acl.NewGrant(id, acl.Room([]acl.Principal{"group:a"}, []acl.Principal{"group:b"})), 3},
		"operator":                 {system.Grant(), 0},
	} {
		f, ok := newFilter(c.grant, &state{})
		got := strings.Count(f.text, "@acl:{p")
		if !ok {
			got = -1
		}
		if got != c.clauses || ok != (f.text != "") {
			t.Errorf("%s: %d clauses in %q, want %d", name, got, f.text, c.clauses)
		}
	}
}

func TestCase_R9_ClientOfTheOlderProtocol(t *testing.T) {
	t.Parallel()
	settings, err := redis.ParseURL(redistest.URL(t))
	must(t, err)
	settings.Protocol = 2
	c := redis.NewClient(settings)
	defer c.Close()
	if _, err := Open(t.Context(), c, Options{}); err == nil || !strings.Contains(err.Error(), "Protocol to 3") {
		t.Errorf("Open gives %v", err)
	}
}

func TestAddressesThatCannotBe(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://127.0.0.1":         "write redis://host:port",
		"redis://:s3cret@h:x":      "write redis://host:port",
		"redis://127.0.0.1:1/3":    "database 0",
		"redis://127.0.0.1:1?db=2": "database 0",
	} {
		_, err := OpenURL(t.Context(), url, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s gives %v, want %q", url, err, want)
		}
	}
	if _, err := OpenURL(t.Context(), redistest.URL(t), Options{Prefix: "a*{b}"}); err == nil {
		t.Error("a prefix with a pattern is taken")
	}
	start := time.Now()
	_, err := OpenURL(t.Context(), "redis://127.0.0.1:1", Options{})
	if !errors.Is(err, retrieval.ErrUnavailable) {
		t.Errorf("nobody there gives %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v to say so", took)
	}
}
