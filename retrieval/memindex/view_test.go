package memindex

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval/indextest"
)

func TestBitmapHoldsTheSpans(t *testing.T) {
	t.Parallel()
	for n, spans := range [][]span{
		{}, {{0, 1}}, {{0, 64}}, {{0, 65}}, {{63, 64}}, {{63, 129}}, {{64, 128}}, {{1, 3}, {5, 200}, {255, 300}},
	} {
		v := &view{spans: spans}
		bits := v.bitmap(300)
		for o := range 300 {
			want := false
			for _, r := range spans {
				want = want || r.from <= o && o < r.to
			}
			if got := bits[o>>6]>>(o&63)&1 == 1; got != want {
				t.Errorf("case %d %v: ordinal %d is %t, want %t", n, spans, o, got, want)
			}
		}
	}
}

// The views are an equivalent of Grant.Admits: after any change each grant
// sees exactly the documents that it admits.
func TestViewsFollowEveryChange(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	r := rand.New(rand.NewPCG(3, 4))
	grants := []acl.Grant{{}, system.Grant(), acl.NewGrant(acl.Identity{}, acl.AskerOnly())}
	for i := range 5 {
		id := acl.NewIdentity(acl.User(fmt.Sprint(i)), group(i), group(i+1))
		grants = append(grants, acl.NewGrant(id, acl.AskerOnly()), acl.NewGrant(id, acl.Room([]acl.Principal{group(i + 1)})))
	}
	for step := range 300 {
		id := fmt.Sprintf("doc%d", r.IntN(12))
		switch doc := g.state.docs[docID(id)]; {
		case r.IntN(3) == 0 && doc != nil:
			must(t, g.SetAccess(t.Context(), docID(id), acl.NewList(group(r.IntN(7)))))
		case r.IntN(4) == 0:
			must(t, g.Remove(t.Context(), docID(id)))
		default:
			must(t, g.Publish(t.Context(), indextest.Publication(id, fmt.Sprintf("rev%d", step), acl.NewList(group(r.IntN(7))), "a b", "c")))
		}
		for n, grant := range grants {
			v := g.views.of(g.state, grant)
			admitted := map[int]bool{}
			for _, s := range v.spans {
				for o := s.from; o < s.to; o++ {
					admitted[o] = true
				}
			}
			for o, doc := range g.state.owners {
				live := g.state.docs[doc.id] == doc
				if want := live && grant.Admits(g.state.classes[doc.class]); admitted[o] != want {
					t.Fatalf("step %d, grant %d: ordinal %d of %s admitted %t, want %t", step, n, o, doc.id, admitted[o], want)
				}
			}
		}
	}
}

func TestViewsForgetTheOldest(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	must(t, g.Publish(t.Context(), indextest.Publication("a", "1", acl.NewList(acl.Everyone), "word")))
	for i := range 3 * maxViews {
		g.views.of(g.state, fifty(i))
	}
	if n := len(g.views.byKey); n != maxViews || len(g.views.recent) != n {
		t.Fatalf("%d views and %d keys are kept, want %d", n, len(g.views.recent), maxViews)
	}
	if g.views.byKey[fifty(3*maxViews-1).Digest()] == nil {
		t.Fatal("the most recent view is not kept")
	}
}
