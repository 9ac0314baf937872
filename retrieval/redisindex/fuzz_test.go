package redisindex

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
)

// inputs of TestQueriesAgainstOracle; 20000 for the full form:
// go test ./retrieval/redisindex -run Oracle -inputs 20000 -timeout 30m
var inputs = flag.Int("inputs", 1500, "random inputs of the query test")

// nasty are pieces that mean something to the query language, to its
// tokeniser, or to careless encoders.
var nasty = []string{
	"", " ", "a", "A", "b", "ab", "key", "the", "or", "and", "not", "inf", "-inf", "nan", "1", "-1", "1e9", "0x1", "_", "__", "*", "a*", "*a", "a*b", "%a%", "%%a%%",
	"|", "||", "a|b", "(", ")", "()", "zzz) | @t:(key", "{", "}", "{}", "g}) | @state:{live", "[", "]", "[1 2]", `"`, `'`, "`", `\`, `\\`, `a\`, `\a`, `a\|b`,
	"@", "@acl", "@acl:{*}", "@t:(key)", "@pub:{none}", "=>", "=>{$weight:0}", "=>[KNN 5 @v $q]", "$", "$q", "$weight", "$BLOB", ":", ";", ",", "a,b", "-", "-key", "~", "~key", "!",
	"?", "w'key'", "<", ">", "=", "==", "&", "#", "^", "\x00", "key\x00", "a\x00b", "\x01", "\x7f", "\t", "\n", "\r\n", "\u00a0", "\u200b", "\u3000", "·", "。", "…", "“", "\xff", "\xc3(", "é", "É",
	"e\u0301", "İ", "ß", "비밀번호", "배포절차를", "한", "🙂", "😀key", "live", "state", "none", "everyone", "group:hr", "tkey", "bmnuw4", "p5d67991ae967994c94b2e21a4d639c65",
	strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 5000), strings.Repeat("한", 42), strings.Repeat("한", 43),
}

// oracle is a corpus of such terms and principals, and what may be found in it.
type oracle struct {
	g    *Generation
	docs []retrieval.Publication
}

func newOracle(t testing.TB) *oracle {
	o := &oracle{g: create(t, openStore(t, Options{}))}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 120 {
		id := fmt.Sprintf("doc%d", i)
		p := indextest.Publication(id, "r1", acl.NewList(pick(r, 1+r.IntN(3))...), "x", "y")
		for c := range p.Chunks {
			p.Chunks[c].Terms = append(words(r, 1+r.IntN(6)), "key")
		}
		must(t, o.g.Publish(t.Context(), p))
		o.docs = append(o.docs, p)
	}
	// A few lists are said by the overlay alone.
	for i := range 3 {
		o.docs[i].Access = acl.NewList(pick(r, 3)...)
		old, err := o.g.record(t.Context(), o.docs[i].Document.ID)
		must(t, err)
		next := *old
		next.list = o.docs[i].Access
		done, err := o.g.swap(t.Context(), "", o.docs[i].Document.ID, old, &next)
		must(t, err)
		if !done {
			t.Fatal("the list was not changed")
		}
	}
	return o
}

func words(r *rand.Rand, n int) []string {
	out := make([]string, n)
	for i := range out {
		for range 1 + r.IntN(5)/4 {
			out[i] += nasty[r.IntN(len(nasty))]
		}
	}
	return out
}

func pick(r *rand.Rand, n int) []acl.Principal {
	var out []acl.Principal
	for _, w := range words(r, n) {
		out = append(out, acl.Principal("g"+w)) // none is empty: that names nobody
	}
	return out
}

// check asks and compares with a scan: the same chunks, counts and missing
// terms, and nothing from outside the grant.
func (o *oracle) check(ctx context.Context, grant acl.Grant, terms []string) error {
	q := retrieval.Query{Terms: terms, Vector: indextest.Vector(30), Depth: 1000, Count: terms}
	c, err := o.g.Search(ctx, grant, q)
	if err != nil {
		return err
	}
	lexical, dense, chunks := map[retrieval.ChunkID]bool{}, map[retrieval.ChunkID]bool{}, 0
	holding := map[string]int{}
	for _, d := range o.docs {
		if !grant.Admits(d.Access) {
			continue
		}
		for _, ch := range d.Chunks {
			chunks++
			dense[ch.Chunk.ID] = true
			for _, t := range distinct(terms) {
				if slices.Contains(ch.Terms, t) {
					holding[t]++
					lexical[ch.Chunk.ID] = true
				}
			}
		}
	}
	for _, h := range c.Lexical {
		if !lexical[h.ID] {
			return fmt.Errorf("lexical hit %s is wrong", h.ID)
		}
	}
	for _, h := range c.Dense {
		if !dense[h.ID] {
			return fmt.Errorf("dense hit %s is wrong", h.ID)
		}
	}
	if len(c.Lexical) != len(lexical) || len(c.Dense) != len(dense) || c.Chunks != chunks {
		return fmt.Errorf("%d lexical and %d dense hits of %d chunks, want %d, %d and %d", len(c.Lexical), len(c.Dense), c.Chunks, len(lexical), len(dense), chunks)
	}
	for _, t := range distinct(terms) {
		if c.Holding[t] != holding[t] || (holding[t] == 0) != slices.Contains(c.Missing, t) {
			return fmt.Errorf("term %q is counted %d times instead of %d, missing %q", t, c.Holding[t], holding[t], c.Missing)
		}
	}
	return nil
}

// TestQueriesAgainstOracle asks the real server with terms and principals made
// to break a query: no error, no hit outside the grant, none missing.
func TestQueriesAgainstOracle(t *testing.T) {
	t.Parallel()
	o := newOracle(t)
	r := rand.New(rand.NewPCG(3, 4))
	hits := 0
	for i := range *inputs {
		asker := acl.NewIdentity(acl.Principal("g"+words(r, 1)[0]), pick(r, r.IntN(20))...)
		audience := acl.AskerOnly()
		if r.IntN(4) == 0 {
			audience = acl.Room(pick(r, 1+r.IntN(40)), pick(r, r.IntN(40)))
		}
		grant, terms := acl.NewGrant(asker, audience), words(r, 1+r.IntN(6))
		if r.IntN(3) == 0 {
			terms = append(terms, "key")
		}
		if err := o.check(t.Context(), grant, terms); err != nil {
			t.Fatalf("input %d: %v\nterms %q\ngrant %q", i, err, terms, grant.Clauses())
		}
		if grant.Admits(o.docs[0].Access) || grant.Admits(o.docs[50].Access) {
			hits++
		}
	}
	t.Logf("%d inputs; %d admit one of two documents", *inputs, hits)
	if hits == 0 {
		t.Error("no grant admits anything: the test shows nothing")
	}
}

// FuzzSearch takes terms and principals apart at 0x1f.
func FuzzSearch(f *testing.F) {
	for _, n := range nasty {
		f.Add(n+"\x1fkey", "everyone\x1f"+n, "")
		f.Add("key", n, n+"\x1fx")
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, terms, holds, viewer string) {
		split := func(s string) (out []acl.Principal) {
			for _, p := range strings.Split(s, "\x1f") {
				out = append(out, acl.Principal("g"+p))
			}
			return out
		}
		audience := acl.AskerOnly()
		if viewer != "" {
			audience = acl.Room(split(viewer))
		}
		grant := acl.NewGrant(acl.NewIdentity("gasker", split(holds)...), audience)
		if err := o.check(t.Context(), grant, strings.Split(terms, "\x1f")); err != nil {
			t.Errorf("terms %q, grant %q: %v", terms, grant.Clauses(), err)
		}
	})
}
