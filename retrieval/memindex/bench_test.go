package memindex

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models"
	"footnote/retrieval"
)

// The corpus of the benchmarks: 5,000 documents of 10 chunks, 384 dimensions,
// 150 distinct terms in each chunk, drawn by Zipf's law from 200,000. Half of
// the documents may be read by one of 100 groups, half by everyone.
const (
	benchDocuments = 5000
	benchPer       = 10
	benchDims      = 384
	benchTerms     = 150
	benchVocab     = 200_000
)

type corpus struct {
	r    *rand.Rand
	zipf *rand.Zipf
}

func newCorpus() *corpus {
	r := rand.New(rand.NewPCG(1, 2))
	return &corpus{r, rand.NewZipf(r, 1.1, 8, benchVocab-1)}
}

func (c *corpus) vector() []float32 {
	v := make([]float32, benchDims)
	sum := 0.0
	for i := range v {
		v[i] = float32(c.r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func (c *corpus) terms() []string {
	seen := map[uint64]bool{}
	var all []string
	for len(seen) < benchTerms {
		t := c.zipf.Uint64()
		seen[t] = true
		all = append(all, fmt.Sprintf("term%d", t))
	}
	return all
}

func (c *corpus) publication(n int) retrieval.Publication {
	text := fmt.Sprintf("%2000d", n)
	d := retrieval.Document{ID: retrieval.DocumentID(fmt.Sprintf("doc-%05d", n)), Revision: "0123456789abcdef",
		Path: fmt.Sprintf("handbook/part/%05d.md", n), Title: fmt.Sprintf("Chapter %d", n), Format: "markdown", Canonical: text}
	p := retrieval.Publication{Document: d, Access: acl.NewList(acl.Everyone)}
	if n%2 == 1 {
		p.Access = acl.NewList(acl.Group(fmt.Sprintf("g%02d", n/2%100)))
	}
	for i := range benchPer {
		p.Chunks = append(p.Chunks, retrieval.IndexedChunk{
			Chunk: retrieval.Chunk{ID: retrieval.ChunkID{Document: d.ID, Revision: d.Revision, Ordinal: i},
				Section: []string{"One", "Two"}, Kind: "text", Locator: "#char=0,2000",
				Span: retrieval.Span{To: 2000, ToByte: 2000}, Content: text, Text: "[Chapter > One]\n" + text},
			Terms: c.terms(), Vector: c.vector(),
		})
	}
	return p
}

// benchPath is removed when the run ends.
var benchPath string

// benchDir is built once for all benchmarks of a run.
var benchDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "memindex-bench-")
	if err != nil {
		return "", err
	}
	benchPath = dir
	s, err := Open(dir)
	if err != nil {
		return "", err
	}
	defer s.Close()
	g, err := s.Create(context.Background(), retrieval.Manifest{Embedder: models.EmbedderInfo{Dimensions: benchDims}})
	if err != nil {
		return "", err
	}
	c := newCorpus()
	for n := range benchDocuments {
		if err := g.Publish(context.Background(), c.publication(n)); err != nil {
			return "", err
		}
	}
	return dir, s.Promote(context.Background(), g.Manifest().Name)
})

func openBench(b *testing.B) (*Store, *Generation) {
	b.Helper()
	dir, err := benchDir()
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	g, err := s.Open(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	return s, g.(*Generation)
}

// BenchmarkOpen also reports what a chunk costs in memory beyond its vector.
func BenchmarkOpen(b *testing.B) {
	if _, err := benchDir(); err != nil {
		b.Fatal(err)
	}
	before := heap()
	var per float64
	b.ResetTimer()
	for range b.N {
		s, g := openBench(b)
		b.StopTimer()
		chunks := g.Counts().Chunks
		per = (heap()-before)/float64(chunks) - 4*benchDims
		runtime.KeepAlive(g)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(per, "B/chunk")
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// grants: everything, and a person in 50 of the 100 groups, seen before or new.
func fifty(n int) acl.Grant {
	holds := []acl.Principal{acl.Everyone}
	for i := range 50 {
		holds = append(holds, acl.Group(fmt.Sprintf("g%02d", 2*i)))
	}
	return acl.NewGrant(acl.NewIdentity(acl.User(fmt.Sprintf("u%d", n)), holds...), acl.AskerOnly())
}

// question draws terms as the corpus does, without the commonest.
func (c *corpus) question(n, rarer int) []string {
	var all []string
	for len(all) < n {
		if t := c.zipf.Uint64(); t >= uint64(rarer) {
			all = append(all, fmt.Sprintf("term%d", t))
		}
	}
	return slices.Compact(all)
}

func BenchmarkSearch(b *testing.B) {
	s, g := openBench(b)
	defer s.Close()
	c := newCorpus()
	var words, stop [][]string
	var vectors [][]float32
	for range 64 {
		words = append(words, c.question(6, 100))
		stop = append(stop, c.question(8, 0))
		vectors = append(vectors, c.vector())
	}
	legs := []struct {
		name  string
		query func(i int) retrieval.Query
	}{
		{"bm25", func(i int) retrieval.Query { return retrieval.Query{Terms: words[i%64], Depth: 100} }},
		{"bm25stop", func(i int) retrieval.Query { return retrieval.Query{Terms: stop[i%64], Depth: 100} }},
		{"dense", func(i int) retrieval.Query { return retrieval.Query{Vector: vectors[i%64], Depth: 100} }},
	}
	grants := []struct {
		name string
		of   func(i int) acl.Grant
	}{
		{"all", func(int) acl.Grant { return system.Grant() }},
		{"groups", func(int) acl.Grant { return fifty(0) }},
		{"newcomer", fifty},
	}
	for _, l := range legs {
		for _, gr := range grants {
			b.Run(l.name+"/"+gr.name, func(b *testing.B) {
				made := make([]acl.Grant, 256)
				for i := range made {
					made[i] = gr.of(i)
				}
				took := make([]float64, 0, b.N)
				b.ResetTimer()
				for i := range b.N {
					start := time.Now()
					if _, err := g.Search(b.Context(), made[i%len(made)], l.query(i)); err != nil {
						b.Fatal(err)
					}
					took = append(took, float64(time.Since(start)))
				}
				slices.Sort(took)
				b.ReportMetric(took[len(took)/2], "p50-ns")
			})
		}
	}
}
