package indextest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
)

// bm25ByHand: N = 4 chunks of 2, 3, 1 and 2 terms, average 2.
func bm25ByHand(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	publish(t, g, Publication("a", "r1", everyone(), "cat dog", "cat cat bird"), Publication("b", "r1", everyone(), "fish", "dog dog"),
		Publication("hidden", "r1", acl.NewList(acl.Group("x")), "cat", "cat cat cat fish fish", "zebra"))
	id := func(doc string, n int) retrieval.ChunkID {
		return retrieval.ChunkID{Document: retrieval.DocumentID(doc), Revision: "r1", Ordinal: n}
	}
	// "cat" and "dog" are in 2 of 4: idf = ln(1 + 2.5/2.5) = ln 2.
	// "bird" and "fish" are in 1 of 4: idf = ln(1 + 3.5/1.5) = ln(10/3).
	// Length 2 is the average: K = 1.2. Length 3: K = 1.2·(0.25 + 0.75·1.5) = 1.65. Length 1: K = 1.2·0.625 = 0.75.
	ln2, ln103 := math.Ln2, math.Log(10.0/3)
	catOnce, catTwice, dogTwice := ln2*2.2/2.2, ln2*4.4/3.65, ln2*4.4/3.2
	for _, c := range []struct {
		question string
		want     []retrieval.LexicalHit
		missing  []string
	}{
		{"cat", []retrieval.LexicalHit{{ID: id("a", 1), Score: catTwice}, {ID: id("a", 0), Score: catOnce}}, nil},
		{"dog", []retrieval.LexicalHit{{ID: id("b", 1), Score: dogTwice}, {ID: id("a", 0), Score: ln2}}, nil},
		{"fish", []retrieval.LexicalHit{{ID: id("b", 0), Score: ln103 * 2.2 / 1.75}}, nil},
		{"cat dog", []retrieval.LexicalHit{{ID: id("a", 0), Score: 2 * ln2}, {ID: id("b", 1), Score: dogTwice}, {ID: id("a", 1), Score: catTwice}}, nil},
		{"cat bird cat", []retrieval.LexicalHit{{ID: id("a", 1), Score: 2*catTwice + ln103*2.2/2.65}, {ID: id("a", 0), Score: 2 * catOnce}}, nil},
		{"zebra", nil, []string{"zebra"}},
	} {
		got := search(t, g, person("ada", acl.Everyone), retrieval.Query{Terms: strings.Fields(c.question), Depth: 10})
		diff(t, c.question, c.want, got.Lexical, cmpopts.EquateApprox(0, 1e-12), cmpopts.EquateEmpty())
		diff(t, c.question+": missing", c.missing, got.Missing, cmpopts.EquateEmpty())
		if len(got.Dense) != 0 {
			t.Errorf("%s: dense hits without a vector: %v", c.question, got.Dense)
		}
	}
}

// rankingEqualsModel compares random corpora after random changes with the
// formulas, written out over a plain list.
func rankingEqualsModel(t *testing.T, s retrieval.Store) {
	r := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("a b c d e f g h i j k l m n o p")
	text := func() string {
		all := make([]string, 1+r.IntN(12))
		for i := range all {
			all[i] = words[min(r.IntN(16), r.IntN(16))]
		}
		return strings.Join(all, " ")
	}
	lists := []acl.List{everyone(), acl.NewList(acl.Group("x")), acl.NewList(acl.Group("y"), acl.Group("x")), acl.NewList(acl.User("ada"))}
	grants := []acl.Grant{{}, system.Grant(), person("ada", acl.Everyone), person("eve", acl.Group("x")), person("all", acl.Everyone, acl.Group("y"))}
	g, now := create(t, s), map[string]retrieval.Publication{}
	// Three degrees off the texts' angles, no two of them are equally far
	// unless they are equal, so that the order does not hang on rounding.
	angle := func() []float32 { return Vector(float64(r.IntN(36)*10 + 3)) }
	for step := range 120 {
		id := fmt.Sprintf("doc%d", r.IntN(15))
		if p, ok := now[id]; ok && r.IntN(4) == 0 {
			p.Access = lists[r.IntN(len(lists))]
			fatal(t, g.SetAccess(t.Context(), p.Document.ID, p.Access))
			now[id] = p
		} else if r.IntN(5) == 0 {
			fatal(t, g.Remove(t.Context(), retrieval.DocumentID(id)))
			delete(now, id)
		} else {
			texts := make([]string, 1+r.IntN(4))
			for i := range texts {
				texts[i] = text()
			}
			now[id] = Publication(id, fmt.Sprintf("r%d", step), lists[r.IntN(len(lists))], texts...)
			publish(t, g, now[id])
		}
		q := retrieval.Query{Terms: strings.Fields(text() + " nowhere"), Vector: angle(), Depth: 1 + r.IntN(40), Count: strings.Fields(text() + " nowhere")}
		for n, grant := range grants {
			want, got := model(now, grant, q), search(t, g, grant, q)
			diff(t, fmt.Sprintf("step %d, grant %d, %v", step, n, q.Terms), want, got, cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateEmpty())
		}
		if t.Failed() {
			return
		}
	}
}

// model answers a query by scanning.
func model(docs map[string]retrieval.Publication, grant acl.Grant, q retrieval.Query) (c retrieval.Candidates) {
	var chunks []retrieval.IndexedChunk
	length := 0
	for _, p := range docs {
		if grant.Admits(p.Access) {
			chunks = append(chunks, p.Chunks...)
		}
	}
	holding := map[string]int{}
	for _, ch := range chunks {
		length += len(ch.Terms)
		for _, w := range slices.Compact(slices.Sorted(slices.Values(ch.Terms))) {
			holding[w]++
		}
	}
	c.Chunks, c.Holding = len(chunks), map[string]int{}
	for _, w := range q.Count {
		if n := holding[w]; n > 0 {
			c.Holding[w] = n
		}
	}
	for _, ch := range chunks {
		score := 0.0
		for _, w := range q.Terms {
			tf, n := 0.0, float64(holding[w])
			for _, x := range ch.Terms {
				if x == w {
					tf++
				}
			}
			k := 1.2 * (0.25 + 0.75*float64(len(ch.Terms))/(float64(length)/float64(len(chunks))))
			score += math.Log(1+(float64(len(chunks))-n+0.5)/(n+0.5)) * tf * 2.2 / (tf + k)
		}
		if score > 0 {
			c.Lexical = append(c.Lexical, retrieval.LexicalHit{ID: ch.Chunk.ID, Score: score})
		}
		product := 0.0
		for i, x := range ch.Vector {
			product += float64(x) * float64(q.Vector[i])
		}
		c.Dense = append(c.Dense, retrieval.DenseHit{ID: ch.Chunk.ID, Distance: 1 - product})
	}
	for i, w := range q.Terms {
		if holding[w] == 0 && slices.Index(q.Terms, w) == i {
			c.Missing = append(c.Missing, w)
		}
	}
	// Equal within rounding is equal: otherwise the order would depend on how
	// a back-end adds up.
	slices.SortFunc(c.Lexical, func(a, b retrieval.LexicalHit) int { return order(-a.Score, -b.Score, a.ID, b.ID) })
	slices.SortFunc(c.Dense, func(a, b retrieval.DenseHit) int { return order(a.Distance, b.Distance, a.ID, b.ID) })
	rest := map[retrieval.ChunkID]float64{}
	for _, h := range c.Dense[min(q.Depth, len(c.Dense)):] {
		rest[h.ID] = h.Distance
	}
	c.Lexical = c.Lexical[:min(q.Depth, len(c.Lexical))]
	c.Dense = c.Dense[:min(q.Depth, len(c.Dense))]
	c.Distances = map[retrieval.ChunkID]float64{}
	for _, h := range c.Lexical {
		if d, ok := rest[h.ID]; ok {
			c.Distances[h.ID] = d
		}
	}
	return c
}

func order(a, b float64, x, y retrieval.ChunkID) int {
	if math.Abs(a-b) > 1e-6 {
		if a < b {
			return -1
		}
		return 1
	}
	return x.Compare(y)
}

func tiesOrderByID(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	// Published out of order; 12 chunks, so that ordinals have two digits.
	texts := slices.Repeat([]string{"same words"}, 12)
	for _, id := range []string{"c", "a", "b", "aa"} {
		publish(t, g, Publication(id, "r1", everyone(), texts...))
	}
	publish(t, g, Publication("a", "r2", everyone(), texts...))
	var want []string
	for _, id := range []string{"a@r2", "aa@r1", "b@r1", "c@r1"} {
		for i := range 12 {
			want = append(want, fmt.Sprintf("%s#%05d", id, i))
		}
	}
	for _, depth := range []int{1, 5, 17, 48, 100} {
		q := ask("same")
		q.Depth = depth
		c := search(t, g, system.Grant(), q)
		var lexical, dense []string
		for i := range c.Lexical {
			lexical, dense = append(lexical, c.Lexical[i].ID.String()), append(dense, c.Dense[i].ID.String())
		}
		diff(t, fmt.Sprintf("lexical, depth %d", depth), want[:min(depth, 48)], lexical)
		diff(t, fmt.Sprintf("dense, depth %d", depth), want[:min(depth, 48)], dense)
	}
}

func depthBounds(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	for i := range 10 {
		publish(t, g, Publication(fmt.Sprintf("d%d", i), "r1", everyone(), fmt.Sprintf("word w%d", i)))
	}
	deep := search(t, g, system.Grant(), ask("word w3"))
	for _, depth := range []int{-1, 0, 1, 4, 10, 11, math.MaxInt} {
		q := ask("word w3")
		q.Depth = depth
		c := search(t, g, system.Grant(), q)
		n := min(max(depth, 0), 10)
		diff(t, fmt.Sprintf("lexical, depth %d", depth), deep.Lexical[:n], c.Lexical, cmpopts.EquateEmpty())
		diff(t, fmt.Sprintf("dense, depth %d", depth), deep.Dense[:n], c.Dense, cmpopts.EquateEmpty())
	}
	for i := 1; i < len(deep.Dense); i++ {
		if deep.Dense[i].Distance < deep.Dense[i-1].Distance {
			t.Errorf("dense hit %d is nearer than the one before it", i)
		}
	}
}

func missingTerms(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	publish(t, g, Publication("d", "r1", everyone(), "here"), Publication("e", "r1", acl.NewList(acl.Group("x")), "hidden"))
	q := ask("zz here hidden aa zz here")
	q.Depth = 0
	diff(t, "for everyone", []string{"zz", "hidden", "aa"}, search(t, g, person("ada", acl.Everyone), q).Missing)
	diff(t, "for the group", []string{"zz", "here", "aa"}, search(t, g, person("eve", acl.Group("x")), q).Missing)
	diff(t, "for nobody", []string{"zz", "here", "hidden", "aa"}, search(t, g, acl.Grant{}, q).Missing)
	fatal(t, g.Remove(t.Context(), "e"))
	diff(t, "after removal", []string{"zz", "hidden", "aa"}, search(t, g, system.Grant(), q).Missing)
	if m := search(t, g, system.Grant(), ask("here")).Missing; len(m) != 0 {
		t.Errorf("missing %v", m)
	}
}

func passages(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	modified := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	p := Publication("d", "r2", everyone(), "비밀번호 first", "", "third 🙂")
	p.Document.Modified, p.Document.Link = modified, "https://wiki.example.org/d?page=1"
	c := &p.Chunks[2].Chunk
	c.Text, c.Kind, c.Section, c.Span.SourceFrom, c.Span.SourceTo = "a header | but other content", "table", nil, 7, 99
	publish(t, g, Publication("d", "r1", everyone(), "older"), p, Publication("e", "r1", acl.NewList(acl.Group("x")), "hidden"))
	id := func(doc, rev string, n int) retrieval.ChunkID {
		return retrieval.ChunkID{Document: retrieval.DocumentID(doc), Revision: retrieval.Revision(rev), Ordinal: n}
	}
	got, err := g.Passages(t.Context(), person("ada", acl.Everyone), []retrieval.ChunkID{
		id("d", "r2", 2), id("d", "r1", 0), id("e", "r1", 0), id("d", "r2", 3), id("d", "r2", -1), id("nowhere", "r1", 0), id("d", "r2", 0), id("d", "r2", 1), id("d", "r2", 2),
	})
	fatal(t, err)
	var want []retrieval.Passage
	for _, n := range []int{2, 0, 1, 2} {
		want = append(want, retrieval.Passage{Chunk: p.Chunks[n].Chunk, Title: "D", Path: "docs/d.md", Link: "https://wiki.example.org/d?page=1", Format: "markdown", Language: "en", Modified: modified})
	}
	diff(t, "passages", want, got, cmpopts.EquateEmpty())
	if none, err := g.Passages(t.Context(), system.Grant(), nil); len(none) != 0 || err != nil {
		t.Errorf("no ids give %v, %v", none, err)
	}
}

func tokenStates(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	p := Publication("d", "r2", everyone(), "one", "", "비밀번호 three")
	large := Publication("large", "r1", everyone(), strings.Repeat("word ", 5000))
	publish(t, g, Publication("d", "r1", everyone(), "older"), p, large, Publication("e", "r1", acl.NewList(acl.Group("x")), "hidden"))
	id := func(doc, rev string, n int) retrieval.ChunkID {
		return retrieval.ChunkID{Document: retrieval.DocumentID(doc), Revision: retrieval.Revision(rev), Ordinal: n}
	}
	ids := []retrieval.ChunkID{
		id("d", "r2", 2), id("d", "r1", 0), id("e", "r1", 0), id("d", "r2", 3), id("d", "r2", -1), id("nowhere", "r1", 0),
		id("d", "r2", 0), id("d", "r2", 1), id("large", "r1", 0), id("d", "r2", 2),
	}
	three := States("비밀번호 three")
	want := [][]byte{three, nil, nil, nil, nil, nil, States("one"), nil, large.Chunks[0].States, three}
	got, err := g.States(t.Context(), person("ada", acl.Everyone), ids)
	fatal(t, err)
	diff(t, "states", want, got)
	for i := range got {
		for j := range got[i] {
			got[i][j] = 0 // the caller's own
		}
	}
	fatal(t, g.SetAccess(t.Context(), "large", acl.NewList(acl.Group("x"))))
	want[8] = nil
	if got, err = g.States(t.Context(), person("ada", acl.Everyone), ids); err != nil {
		t.Fatal(err)
	}
	diff(t, "states after a revocation", want, got)
	got, err = g.States(t.Context(), acl.Grant{}, ids)
	fatal(t, err)
	diff(t, "states for nobody", make([][]byte, len(ids)), got)
	if none, err := g.States(t.Context(), system.Grant(), nil); len(none) != 0 || err != nil {
		t.Errorf("no ids give %v, %v", none, err)
	}
}

func countsTerms(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	publish(t, g, Publication("a", "r0", everyone(), "key older"), Publication("a", "r1", everyone(), "key key", "lunch"),
		Publication("b", "r1", everyone(), "key lunch"), Publication("c", "r1", acl.NewList(acl.Group("x")), "key secret", "secret"))
	ada, both := person("ada", acl.Everyone), person("eve", acl.Everyone, acl.Group("x"))
	for _, c := range []struct {
		name   string
		query  retrieval.Query
		mine   map[string]int
		theirs map[string]int
	}{
		{"terms of the question", ask("key lunch"), map[string]int{"key": 2, "lunch": 2}, map[string]int{"key": 3, "lunch": 2}},
		{"a term twice", ask("key key"), map[string]int{"key": 2}, map[string]int{"key": 3}},
		{"a term of what may not be read", ask("secret"), nil, map[string]int{"secret": 2}},
		{"a term of an older revision", ask("older"), nil, nil},
		{"a term that is not searched for", retrieval.Query{Terms: []string{"lunch"}, Count: []string{"key"}, Depth: 3}, map[string]int{"key": 2}, map[string]int{"key": 3}},
		{"nothing to count", retrieval.Query{Terms: []string{"lunch"}, Depth: 3}, nil, nil},
		{"no hits wanted", retrieval.Query{Count: []string{"key"}}, map[string]int{"key": 2}, map[string]int{"key": 3}},
	} {
		mine, theirs, nobody := search(t, g, ada, c.query), search(t, g, both, c.query), search(t, g, acl.Grant{}, c.query)
		diff(t, c.name, c.mine, mine.Holding, cmpopts.EquateEmpty())
		diff(t, c.name+", with the group", c.theirs, theirs.Holding, cmpopts.EquateEmpty())
		diff(t, c.name+", for nobody", map[string]int{}, nobody.Holding, cmpopts.EquateEmpty())
		diff(t, c.name+": chunks", []int{3, 5, 0}, []int{mine.Chunks, theirs.Chunks, nobody.Chunks})
	}
}

func revisions(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	one, two := Publication("d", "r1", everyone(), "the first text"), Publication("d", "r2", acl.NewList(acl.Group("x")), "the second text")
	one.Document.Title = "Former title"
	publish(t, g, one, two)
	x := person("eve", acl.Group("x"))
	for rev, want := range map[retrieval.Revision]retrieval.Document{"": two.Document, "r2": two.Document, "r1": one.Document} {
		got, err := g.Document(t.Context(), x, "d", rev)
		fatal(t, err)
		diff(t, fmt.Sprintf("revision %q", rev), want, got)
		// The current list decides, also for the revision that everyone could read.
		if _, err := g.Document(t.Context(), person("ada", acl.Everyone), "d", rev); !errors.Is(err, retrieval.ErrNotFound) {
			t.Errorf("revision %q for somebody outside gives %v", rev, err)
		}
	}
	if _, err := g.Document(t.Context(), x, "d", "r3"); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("a revision that never was gives %v", err)
	}
	publish(t, g, Publication("d", "r1", everyone(), "the first text, again"))
	back, err := g.Document(t.Context(), system.Grant(), "d", "r1")
	fatal(t, err)
	diff(t, "a revision that came back", "the first text, again", back.Canonical)
}

func documents(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := Publication("b", "r1", acl.NewList(acl.Group("y"), acl.Everyone), "비밀번호", "two")
	b.Document.Path, b.Document.Modified = "a/first.md", modified
	a, hidden := Publication("a", "r1", everyone(), "one"), Publication("c", "r1", acl.NewList(acl.Group("x")), "three")
	a.Document.Path = "b/second.md"
	publish(t, g, a, b, hidden)
	got, err := g.Documents(t.Context(), person("ada", acl.Everyone))
	fatal(t, err)
	diff(t, "documents", []retrieval.DocumentInfo{
		{ID: "b", Revision: "r1", Path: "a/first.md", Title: "B", Format: "markdown", Modified: modified, Chunks: 2, Runes: 8, Access: b.Access},
		{ID: "a", Revision: "r1", Path: "b/second.md", Title: "A", Format: "markdown", Chunks: 1, Runes: 3, Access: a.Access},
	}, got)
}
