package redisindex

import (
	"strings"
	"testing"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
)

// Names of groups that other clients took for something else: each opens its
// own document and no other.
func TestCases_P3_P4_P5_R1_NamesOfGroups(t *testing.T) {
	t.Parallel()
	names := []string{
		"acme", "victim", "acme|victim", "a}", `a\`, `\`, `a\|b`, "a|b", "a", "b", "a,b", "HR", "hr", "Hr", "will", "is x", "is", "x",
		" a", "a ", "*", "a*", "$p0", "@acl", "-a", "~a", "%a%", "'a'", `"a"`, "(a)", "{a}", "[1 2]", "a;b", "a:b", "é", strings.Repeat("x", 300), strings.Repeat("x", 301),
	}
	g := create(t, openStore(t, Options{}))
	for _, n := range names {
		publish(t, g, "doc "+n, "r1", acl.NewList(acl.Group(n)), "common "+n)
	}
	for _, n := range names {
		grant := acl.NewGrant(acl.NewIdentity(acl.User("ada"), acl.Group(n)), acl.AskerOnly())
		c := find(t, g, grant, "common")
		if len(c.Lexical) != 1 || len(c.Dense) != 1 || c.Chunks != 1 || string(c.Dense[0].ID.Document) != "doc "+n {
			t.Errorf("group %q sees %v and %v of %d chunks", n, c.Lexical, c.Dense, c.Chunks)
		}
	}
}

// Words of questions that broke other clients' queries find what holds them.
func TestCases_R2_R4_R12_WordsOfQuestions(t *testing.T) {
	t.Parallel()
	words := []string{"10-20", "10", "20", "a", "will", "is", "AND", "and", "or", "not", "-x", "what", "it?", "kube-proxy", "v1.2.3", "c++", "배포절차를", "|", "_", "@title", "=>[KNN"}
	for r := rune('!'); r <= '~'; r++ {
		words = append(words, string(r), "in"+string(r)+"side")
	}
	g := create(t, openStore(t, Options{}))
	for _, w := range words {
		p := indextest.Publication("doc "+w, "r1", everyone, "text")
		p.Chunks[0].Terms = []string{w}
		must(t, g.Publish(t.Context(), p))
	}
	for _, w := range words {
		c, err := g.Search(t.Context(), member(), retrieval.Query{Terms: []string{w}, Vector: indextest.Vector(30), Depth: 10})
		must(t, err)
		if len(c.Lexical) == 0 {
			t.Errorf("%q finds nothing", w)
		}
		for _, h := range c.Lexical {
			if string(h.ID.Document) != "doc "+w {
				t.Errorf("%q finds %s", w, h.ID.Document)
			}
		}
	}
}

// A grant that admits nobody asks nothing and finds nothing, and a question
// without words is no error.
func TestCase_R11_NothingToFilterBy(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	publish(t, g, "doc", "r1", everyone, "common")
	for name, grant := range map[string]acl.Grant{"zero": {}, "nobody": acl.NewGrant(acl.Identity{}, acl.AskerOnly()), "an empty room": acl.NewGrant(acl.NewIdentity(acl.User("ada"), acl.Everyone), acl.Room(nil))} {
		if c := find(t, g, grant, "common"); len(c.Lexical)+len(c.Dense)+c.Chunks != 0 {
			t.Errorf("%s sees %v and %v of %d chunks", name, c.Lexical, c.Dense, c.Chunks)
		}
	}
	if c := find(t, g, member(), ""); len(c.Lexical) != 0 || len(c.Dense) != 1 {
		t.Errorf("without words: %v and %v", c.Lexical, c.Dense)
	}
}
