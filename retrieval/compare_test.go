package retrieval_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// TestCompareSpeed prints how long both indexes take for the same questions,
// with filters of 1, 50 and 500 principals. It judges nothing.
func TestCompareSpeed(t *testing.T) {
	if *compared == 0 {
		t.Skip("run it with make bench-redis")
	}
	h := newHandbook()
	embedded, err := memindex.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	shared, err := redisindex.OpenURL(t.Context(), redistest.URL(t), redisindex.Options{Prefix: "speed-" + strings.ToLower(rand.Text()), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	stores := []struct {
		name string
		s    retrieval.Store
		g    retrieval.Generation
	}{{name: "embedded", s: embedded}, {name: "redis", s: shared}}
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
	fmt.Printf("\n%-16s %-9s %8s  %s\n", "filter", "index", "chunks", "p50 / p95 in ms of: text, text after a change, vectors, both, whole search (both, 50 token states, 25 passages)")
	for _, principals := range []int{1, 50, 500} {
		grant := h.grant(principals)
		for _, s := range stores {
			line, chunks := speed(t, s.g, grant, questions)
			fmt.Printf("%-16s %-9s %8d  %s\n", fmt.Sprintf("%d principals", principals), s.name, chunks, line)
		}
	}
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

func speed(t *testing.T, g retrieval.Generation, grant acl.Grant, questions []retrieval.Query) (line string, chunks int) {
	t.Helper()
	both := func(q retrieval.Query) retrieval.Candidates {
		c, err := g.Search(t.Context(), grant, q)
		if err != nil {
			t.Fatal(err)
		}
		chunks = c.Chunks
		return c
	}
	text := func(q retrieval.Query) { q.Vector = nil; both(q) }
	for n, stage := range []func(q retrieval.Query){
		text, text,
		func(q retrieval.Query) { q.Terms, q.Count = nil, nil; both(q) },
		func(q retrieval.Query) { both(q) },
		func(q retrieval.Query) { read(t, g, grant, both(q)) },
	} {
		stage(questions[0])
		took := make([]time.Duration, len(questions))
		for i, q := range questions {
			if n == 1 {
				change(t, g, i)
			}
			start := time.Now()
			stage(q)
			took[i] = time.Since(start)
		}
		slices.Sort(took)
		at := func(part float64) float64 { return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000 }
		line += fmt.Sprintf("%7.1f /%7.1f", at(.5), at(.95))
	}
	return line, chunks
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
	var list []acl.Principal
	for range 1 + h.r.IntN(4) {
		list = append(list, acl.Group(fmt.Sprintf("g%d", h.r.IntN(handbookGroups))))
	}
	if n%2 == 0 {
		list = append(list, acl.Group("half"))
	}
	texts := make([]string, handbookPer)
	for i := range texts {
		words := make([]string, handbookWords)
		for j := range words {
			words[j] = fmt.Sprintf("term%d", h.words.Uint64())
		}
		texts[i] = strings.Join(words, " ")
	}
	p := indextest.Publication(fmt.Sprintf("doc-%05d", n), "0123456789abcdef", acl.NewList(list...), texts...)
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
	if principals == 1 {
		return acl.NewGrant(acl.NewIdentity(acl.Group("half")), acl.AskerOnly())
	}
	var holds []acl.Principal
	for i := range principals - 1 {
		holds = append(holds, acl.Group(fmt.Sprintf("g%d", i)))
	}
	return acl.NewGrant(acl.NewIdentity(acl.User("ada"), holds...), acl.AskerOnly())
}
