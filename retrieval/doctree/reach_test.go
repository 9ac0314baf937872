package doctree_test

import (
	"testing"

	"pgregory.net/rapid"

	"footnote/retrieval/doctree"
)

func TestReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, first, last, want string }{
		{"the same place", "page=3", "page=3", "page=3"},
		{"two pages: the first", "page=3", "page=4", "page=3"},
		{"no place", "", "", ""},
		{"only the first has one", "page=3", "", "page=3"},
		{"only the last has one", "", "page=4", "page=4"},
		{"two rows", "row=2", "row=9", "row=2-9"},
		{"ranges of rows", "row=2-4", "row=5-9", "row=2-9"},
		{"two cues over an hour in", "t=3605,3607.5", "t=3608,3610", "t=3605,3610"},
		{"rows of a sheet", "sheet=Prices&range=A2:C2", "sheet=Prices&range=B9:D9", "sheet=Prices&range=A2:D9"},
		{"columns beyond Z", "sheet=P&range=Z1:Z1", "sheet=P&range=AA2:AB2", "sheet=P&range=Z1:AB2"},
		{"two sheets: the first", "sheet=A&range=A1:B1", "sheet=B&range=A2:B2", "sheet=A&range=A1:B1"},
		{"places of two kinds", "page=1", "t=1,2", "page=1"},
		{"a damaged range", "sheet=A&range=?", "sheet=A&range=A2:B2", "sheet=A&range=?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := doctree.Reach(c.first, c.last); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRangesOfCellsJoin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := func(name string) int { return rapid.IntRange(1, 16384).Draw(r, name) }
		a, b, c, d := n("a"), n("b"), n("c"), n("d")
		got := doctree.Reach("range="+doctree.Range(a, b, a, b), "range="+doctree.Range(c, d, c, d))
		want := "range=" + doctree.Range(min(a, c), min(b, d), max(a, c), max(b, d))
		if a == c && b == d {
			want = "range=" + doctree.Range(a, b, a, b)
		}
		if got != want {
			r.Fatalf("%s, want %s", got, want)
		}
	})
}
