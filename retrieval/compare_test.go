package retrieval_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/models"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
	"footnote/retrieval/memindex"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
)

var compared = flag.Int("compare", 0, "chunks of TestCompareSpeed, which prints times of both indexes: 50000 for make bench-redis; 0: skip")

// shared is the prefix of its generation on Redis.
var shared = "speed-" + strings.ToLower(rand.Text())

// TestCompareSpeed prints how long both indexes take for the same questions,
// with filters of 1, 50 and 500 principals, in a quiet index and in one that
// changes, and what the Query Engine's own score would take. It judges nothing.
func TestCompareSpeed(t *testing.T) {
	if *compared == 0 {
		t.Skip("run it with make bench-redis")
	}
	load(t, "before")
	h := newHandbook()
	embedded, err := memindex.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	served, err := redisindex.OpenURL(t.Context(), redistest.URL(t), redisindex.Options{Prefix: shared, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	stores := []struct {
		name string
		s    retrieval.Store
		g    retrieval.Generation
	}{{name: "embedded", s: embedded}, {name: "redis", s: served}}
	m := indextest.Manifest()
	m.Embedder.Dimensions = handbookDims
	loads := make([]time.Duration, len(stores))
	server := client(t)
	ours, theirs := heap(), used(t, server)
	for i := range stores {
		if stores[i].g, err = stores[i].s.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for n := range *compared / handbookPer {
		p := h.publication(n)
		for i, s := range stores {
			start := time.Now()
			if err := s.g.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			loads[i] += time.Since(start)
		}
	}
	for i, s := range stores {
		fmt.Printf("%-9s loads %.0f chunks/s (one writer)\n", s.name, float64(*compared)/loads[i].Seconds())
	}
	fmt.Printf("memory a chunk: embedded %d B of heap, redis %d B of the server (text, vector, token states, index)\n",
		(heap()-ours) / *compared, (used(t, server)-theirs) / *compared)
	questions := make([]retrieval.Query, 40)
	for i := range questions {
		questions[i] = retrieval.Query{Terms: h.question(), Vector: h.vector(), Depth: 100}
		questions[i].Count = append([]string{"term0", "term1", "term2", "term5", "term9"}, questions[i].Terms...) // function words are counted, not searched for
	}
	fmt.Printf("\n%s\n%-9s %-14s %-9s %7s  %14s  %14s  %14s  %14s  %s\n", "p50 / p95 in ms; whole: both, 50 token states, 25 passages; terms: what they add to vectors, of the whole, by first quartiles",
		"filter", "meanwhile", "index", "chunks", "text", "vectors", "both", "whole", "terms")
	for _, principals := range []int{1, 50, 500} {
		grant := h.grant(principals)
		for _, c := range circumstances {
			for _, s := range stores {
				line := c.speed(t, h, s.s, s.g, grant, questions)
				fmt.Printf("%-9d %-14s %-9s %s\n", principals, c.name, s.name, line)
			}
		}
	}
	load(t, "after these")
	engine := newEngine(t, server, *compared/handbookPer)
	for _, principals := range []int{1, 50, 500} {
		engine.compare(t, stores[1].g, principals, h.grant(principals), questions)
	}
}

// load prints how busy the machine is.
func load(t *testing.T, when string) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Log(err) // not Linux
		return
	}
	fmt.Printf("load averages %s: %s\n", when, strings.Join(strings.Fields(string(b))[:3], " "))
}

func client(t *testing.T) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// heap is what this process holds, in bytes.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// used is what the server holds, in bytes.
func used(t *testing.T, c *redis.Client) int {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(info["Memory"]["used_memory"])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// circumstance is what else happens while questions are asked.
type circumstance struct {
	name   string
	before func(t *testing.T, g retrieval.Generation, n int)                                          // each search
	around func(t *testing.T, h *handbook, s retrieval.Store, g retrieval.Generation) (finish func()) // all of them
}

var circumstances = []circumstance{
	{"nothing", func(*testing.T, retrieval.Generation, int) {}, func(*testing.T, *handbook, retrieval.Store, retrieval.Generation) func() { return func() {} }},
	{"after a change", change, func(*testing.T, *handbook, retrieval.Store, retrieval.Generation) func() { return func() {} }},
	{"20 changes/s", func(*testing.T, retrieval.Generation, int) {}, ingest},
}

// ingest replaces 20 documents of 10 chunks a second, on Redis by connections
// of its own.
func ingest(t *testing.T, h *handbook, s retrieval.Store, g retrieval.Generation) (finish func()) {
	t.Helper()
	if _, ok := s.(*redisindex.Store); ok {
		other, err := redisindex.OpenURL(t.Context(), redistest.URL(t), redisindex.Options{Prefix: shared, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { other.Close() })
		if g, err = other.Open(t.Context(), g.Manifest().Name); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]retrieval.Publication, 50)
	for i := range all {
		all[i] = h.publication(i * 7)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second / 20)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := g.Publish(context.WithoutCancel(ctx), all[n%len(all)]); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return func() { stop(); wg.Wait() }
}

// speed asks the questions in each stage, in turn, so that what else the
// machine does falls on all stages alike.
func (c circumstance) speed(t *testing.T, h *handbook, store retrieval.Store, g retrieval.Generation, grant acl.Grant, questions []retrieval.Query) (line string) {
	t.Helper()
	chunks := 0
	both := func(q retrieval.Query) retrieval.Candidates {
		found, err := g.Search(t.Context(), grant, q)
		if err != nil {
			t.Fatal(err)
		}
		chunks = found.Chunks
		return found
	}
	stages := []func(q retrieval.Query){
		func(q retrieval.Query) { q.Vector = nil; both(q) },
		func(q retrieval.Query) { q.Terms, q.Count = nil, nil; both(q) },
		func(q retrieval.Query) { both(q) },
		func(q retrieval.Query) { read(t, g, grant, both(q)) },
	}
	for _, q := range questions {
		both(q) // terms and names are known
	}
	took := make([][]time.Duration, len(stages))
	finish := c.around(t, h, store, g)
	for i, q := range questions {
		for n, stage := range stages {
			c.before(t, g, len(stages)*i+n)
			start := time.Now()
			stage(q)
			took[n] = append(took[n], time.Since(start))
		}
	}
	finish()
	line = fmt.Sprintf("%7d", chunks)
	for _, all := range took {
		line += fmt.Sprintf("  %6.1f /%6.1f", quantile(all, .5), quantile(all, .95))
	}
	// A busy machine disturbs the quicker ones least.
	return line + fmt.Sprintf("  %3.0f %%", 100*(quantile(took[2], .25)-quantile(took[1], .25))/quantile(took[3], .25))
}

// quantile is in ms.
func quantile(all []time.Duration, part float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return float64(all[int(part*float64(len(all)-1))].Microseconds()) / 1000
}

// change publishes something small, so that what was fetched before is of no
// use.
func change(t *testing.T, g retrieval.Generation, n int) {
	t.Helper()
	p := indextest.Publication("changing", fmt.Sprint(n), acl.NewList(acl.User("nobody")), "term1")
	p.Chunks[0].Vector = append([]float32{1}, make([]float32, handbookDims-1)...)
	if err := g.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// read is what follows the legs of a search.
func read(t *testing.T, g retrieval.Generation, grant acl.Grant, c retrieval.Candidates) {
	t.Helper()
	var ids []retrieval.ChunkID
	for _, h := range c.Lexical[:min(25, len(c.Lexical))] {
		ids = append(ids, h.ID)
	}
	for _, h := range c.Dense[:min(25, len(c.Dense))] {
		ids = append(ids, h.ID)
	}
	_, err := g.States(t.Context(), grant, ids)
	_, err2 := g.Passages(context.WithoutCancel(t.Context()), grant, ids[:min(25, len(ids))])
	if err := cmp.Or(err, err2); err != nil {
		t.Fatal(err)
	}
}

const (
	handbookDims   = 384
	handbookPer    = 10
	handbookWords  = 150
	handbookGroups = 2000
)

// handbook makes documents of 10 chunks of 150 words by Zipf's law, random
// vectors and 150 token states of 96 bytes, each for 1 to 4 of 2,000 groups.
type handbook struct {
	r      *mrand.Rand
	words  *mrand.Zipf
	states []byte
}

func newHandbook() *handbook {
	r := mrand.New(mrand.NewPCG(1, 2))
	return &handbook{r, mrand.NewZipf(r, 1.1, 8, 200_000), models.EncodeStates(make([]float32, 150*96), 96)}
}

func (h *handbook) vector() []float32 {
	v, sum := make([]float32, handbookDims), 0.0
	for i := range v {
		v[i] = float32(h.r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func (h *handbook) publication(n int) retrieval.Publication {
	var list []string
	for range 1 + h.r.IntN(4) {
		list = append(list, fmt.Sprintf("g%d", h.r.IntN(handbookGroups)))
	}
	if n%2 == 0 {
		list = append(list, "half")
	}
	texts := make([]string, handbookPer)
	for i := range texts {
		words := make([]string, handbookWords)
		for j := range words {
			words[j] = fmt.Sprintf("term%d", h.words.Uint64())
		}
		texts[i] = strings.Join(words, " ")
	}
	p := indextest.Publication(fmt.Sprintf("doc-%05d", n), "0123456789abcdef", acl.NewList(groups(list)...), texts...)
	for i := range p.Chunks {
		p.Chunks[i].Vector, p.Chunks[i].States = h.vector(), h.states
	}
	return p
}

// question is six words, none of the 20 most frequent: those are function
// words, which a search leaves out.
func (h *handbook) question() []string {
	var out []string
	for len(out) < 6 {
		if w := h.words.Uint64(); w >= 20 {
			out = append(out, fmt.Sprintf("term%d", w))
		}
	}
	return out
}

// grant is a person with so many principals: one is the group that half of the
// documents are for.
func (h *handbook) grant(principals int) acl.Grant {
	return acl.NewGrant(acl.NewIdentity(acl.User("ada"), groups(holds(principals))...), acl.AskerOnly())
}

// holds are the groups of such a person.
func holds(principals int) []string {
	if principals == 1 {
		return []string{"half"}
	}
	out := make([]string, principals-1)
	for i := range out {
		out[i] = fmt.Sprintf("g%d", i)
	}
	return out
}

func groups(names []string) []acl.Principal {
	out := make([]acl.Principal, len(names))
	for i, n := range names {
		out[i] = acl.Group(n)
	}
	return out
}
