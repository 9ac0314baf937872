package retrieval_test

import (
	"crypto/rand"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
	"footnote/retrieval/memindex"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// TestIndexesAgree puts the same documents into the embedded index and into the
// one on Redis, through the same history, and asks both 500 questions with
// random grants: the same hits in the same order, the same scores, distances,
// counts and missing terms.
func TestIndexesAgree(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mem, red := w.open(t)
	for range 250 {
		w.change(t, mem, red)
	}
	if a, b := mem.Counts(), red.Counts(); a != b {
		t.Fatalf("memindex counts %+v, redisindex %+v", a, b)
	}
	lexical, dense := 0, 0
	for n := range 500 {
		grant, q := w.grant(), w.query()
		want, got := find(t, mem, grant, q), find(t, red, grant, q)
		lexical, dense = lexical+len(want.Lexical), dense+len(want.Dense)
		agree(t, fmt.Sprintf("question %d, %v, depth %d", n, q.Terms, q.Depth), want, got)
		if t.Failed() {
			return
		}
	}
	t.Logf("%+v; %d lexical and %d dense hits are the same", mem.Counts(), lexical, dense)
	if lexical < 500*10 || dense < 500*10 {
		t.Error("too few hits to show anything")
	}
}

func agree(t *testing.T, what string, want, got retrieval.Candidates) {
	t.Helper()
	for leg, d := range map[string]string{
		"lexical":         cmp.Diff(want.Lexical, got.Lexical, cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateEmpty()),
		"dense":           cmp.Diff(want.Dense, got.Dense, cmpopts.EquateApprox(0, 1e-5), cmpopts.EquateEmpty()),
		"other distances": cmp.Diff(want.Distances, got.Distances, cmpopts.EquateApprox(0, 1e-5), cmpopts.EquateEmpty()),
		"missing":         cmp.Diff(want.Missing, got.Missing, cmpopts.EquateEmpty()),
		"chunks, holding": cmp.Diff([]any{want.Chunks, want.Holding}, []any{got.Chunks, got.Holding}, cmpopts.EquateEmpty()),
	} {
		if d != "" {
			t.Errorf("%s: %s (-memindex +redisindex):\n%s", what, leg, d)
		}
	}
}

func find(t *testing.T, g retrieval.Generation, grant acl.Grant, q retrieval.Query) retrieval.Candidates {
	t.Helper()
	c, err := g.Search(t.Context(), grant, q)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const dims = 32

// world makes documents, people and questions. Words follow Zipf's law, so that
// some are in nearly every chunk; every tenth vector is one of a few, so that
// distances tie.
type world struct {
	r     *mrand.Rand
	words *mrand.Zipf
}

func newWorld() *world {
	r := mrand.New(mrand.NewPCG(7, 8))
	return &world{r: r, words: mrand.NewZipf(r, 1.2, 3, 4000)}
}

func (w *world) open(t *testing.T) (mem, red retrieval.Generation) {
	t.Helper()
	embedded, err := memindex.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { embedded.Close() })
	shared, err := redisindex.OpenURL(t.Context(), redistest.URL(t), redisindex.Options{Prefix: "differential-" + strings.ToLower(rand.Text())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.Close() })
	m := indextest.Manifest()
	m.Embedder.Dimensions = dims
	var out []retrieval.Generation
	for _, s := range []retrieval.Store{embedded, shared} {
		g, err := s.Create(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out[0], out[1]
}

// change publishes, replaces or removes a document or changes its list, in both.
func (w *world) change(t *testing.T, both ...retrieval.Generation) {
	t.Helper()
	id := fmt.Sprintf("doc%03d", w.r.IntN(150))
	do := func(g retrieval.Generation) error { return g.Remove(t.Context(), retrieval.DocumentID(id)) }
	switch n := w.r.IntN(20); {
	case n < 2:
	case n < 5:
		list := w.list()
		do = func(g retrieval.Generation) error {
			err := g.SetAccess(t.Context(), retrieval.DocumentID(id), list)
			if err != nil && strings.Contains(err.Error(), retrieval.ErrNotFound.Error()) {
				return nil
			}
			return err
		}
	default:
		p := w.publication(id)
		do = func(g retrieval.Generation) error { return g.Publish(t.Context(), p) }
	}
	for _, g := range both {
		if err := do(g); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) publication(id string) retrieval.Publication {
	texts := make([]string, 1+w.r.IntN(20))
	for i := range texts {
		texts[i] = strings.Join(w.terms(w.r.IntN(200)), " ")
	}
	p := indextest.Publication(id, fmt.Sprintf("r%d", w.r.IntN(1000)), w.list(), texts...)
	for i := range p.Chunks {
		p.Chunks[i].Vector = w.vector()
	}
	return p
}

// terms are words as analysers give them: plain, Korean, with punctuation,
// very long.
func (w *world) terms(n int) []string {
	out := make([]string, n)
	for i := range out {
		k := w.words.Uint64()
		switch k % 7 {
		case 3:
			out[i] = fmt.Sprintf("배포절차%d를", k)
		case 4:
			out[i] = fmt.Sprintf("kube-proxy_v1.%d|c++", k)
		case 5:
			out[i] = fmt.Sprintf("%s%d", strings.Repeat("long", 60), k)
		default:
			out[i] = fmt.Sprintf("w%d", k)
		}
	}
	return out
}

func (w *world) vector() []float32 {
	r := w.r
	if r.IntN(10) == 0 {
		r = mrand.New(mrand.NewPCG(uint64(w.r.IntN(3)), 0))
	}
	v, sum := make([]float32, dims), 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

func (w *world) groups(n int) []acl.Principal {
	var out []acl.Principal
	for range n {
		out = append(out, acl.Group(fmt.Sprintf("g%d", w.r.IntN(60))))
	}
	return out
}

func (w *world) list() acl.List {
	if w.r.IntN(4) == 0 {
		return acl.NewList(acl.Everyone)
	}
	return acl.NewList(w.groups(1 + w.r.IntN(4))...)
}

// grant is somebody with 0 to 50 groups, alone or in a room.
func (w *world) grant() acl.Grant {
	person := func() acl.Identity {
		holds := w.groups(w.r.IntN(50))
		if w.r.IntN(3) > 0 {
			holds = append(holds, acl.Everyone)
		}
		return acl.NewIdentity(acl.User(fmt.Sprint(w.r.IntN(9))), holds...)
	}
	switch w.r.IntN(10) {
	case 0:
		return system.Grant()
	case 1, 2:
		return acl.NewGrant(person(), acl.Room(person().Principals(), person().Principals()))
	case 3:
		return acl.Grant{}
	}
	return acl.NewGrant(person(), acl.AskerOnly())
}

func (w *world) query() retrieval.Query {
	q := retrieval.Query{Terms: w.terms(1 + w.r.IntN(8)), Vector: w.vector(), Depth: 20, Count: w.terms(4)}
	if w.r.IntN(3) == 0 {
		q.Depth = 1 + w.r.IntN(120)
	}
	if w.r.IntN(5) == 0 {
		q.Terms = append(q.Terms, "nowhere", q.Terms[0])
	}
	return q
}
