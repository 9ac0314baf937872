package retrieval

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func id(doc string, n int) ChunkID {
	return ChunkID{Document: DocumentID(doc), Revision: "r", Ordinal: n}
}

func legs(lexical, dense []string) Candidates {
	var c Candidates
	for i, d := range lexical {
		c.Lexical = append(c.Lexical, LexicalHit{ID: id(d, 0), Score: 10 - float64(i)})
	}
	for i, d := range dense {
		c.Dense = append(c.Dense, DenseHit{ID: id(d, 0), Distance: .1 + float64(i)/100})
	}
	return c
}

func TestByRanks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lexical, dense []string
		weights        Weights
		want           []string
	}{
		"nothing found":   {weights: Weights{1, 1}},
		"both legs agree": {[]string{"a", "b"}, []string{"a", "b"}, Weights{1, 1}, []string{"a", "b"}},
		"found twice beats first place in one leg": {[]string{"a", "c"}, []string{"b", "c"}, Weights{1, 1}, []string{"c", "a", "b"}},
		"a tie orders by id":                       {[]string{"b", "a"}, []string{"a", "b"}, Weights{1, 1}, []string{"a", "b"}},
		"only the lexical leg":                     {[]string{"b", "a"}, nil, Weights{1, 1}, []string{"b", "a"}},
		"only the dense leg":                       {nil, []string{"b", "a"}, Weights{1, 1}, []string{"b", "a"}},
		"a light lexical leg breaks the tie":       {[]string{"a", "b"}, []string{"b", "a"}, Weights{.5, 1}, []string{"b", "a"}},
		"a leg of weight 0 adds nothing":           {[]string{"a", "x"}, []string{"b", "a"}, Weights{0, 1}, []string{"b", "a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range byRanks(legs(tt.lexical, tt.dense), tt.weights, 60) {
				got = append(got, string(f.id.Document))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestByRanksScoresAndDistances(t *testing.T) {
	t.Parallel()
	c := legs([]string{"a", "b"}, []string{"b"})
	c.Distances = map[ChunkID]float64{id("a", 0): .3}
	got := byRanks(c, Weights{1, 1}, 60)
	want := []fused{
		{id: id("b", 0), lexicalRank: 2, denseRank: 1, bm25: 9, distance: .1, distanceKnown: true, score: 1/62. + 1/61.},
		{id: id("a", 0), lexicalRank: 1, bm25: 10, distance: .3, distanceKnown: true, score: 1 / 61.},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(fused{}), cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	if got := byRanks(legs([]string{"a"}, nil), Weights{1, 1}, 60); got[0].distanceKnown {
		t.Error("a distance that nobody gave counts as known")
	}
}

func TestBySum(t *testing.T) {
	t.Parallel()
	near := map[ChunkID]float64{id("a", 0): .3, id("b", 0): .1}
	tests := map[string]struct {
		c      Candidates
		weight float64
		want   []string
	}{
		"nothing found":                     {Candidates{}, .1, nil},
		"only the dense leg":                {legs(nil, []string{"b", "a"}), .1, []string{"b 0.90", "a 0.89"}},
		"words without a distance":          {legs([]string{"b", "a"}, nil), .1, []string{"b 1.00", "a 0.90"}},
		"words with one":                    {Candidates{Lexical: legs([]string{"a", "b"}, nil).Lexical, Distances: near}, .01, []string{"b 0.99", "a 0.80"}},
		"words decide where they are heavy": {Candidates{Lexical: legs([]string{"a", "b"}, nil).Lexical, Distances: near}, 1, []string{"a 10.70", "b 9.90"}},
		"both legs":                         {legs([]string{"c"}, []string{"a", "c"}), .001, []string{"a 0.90", "c 0.90"}},
		"how good a score is counts":        {legs([]string{"c"}, []string{"a", "c"}), .01, []string{"c 0.99", "a 0.90"}},
		"a tie orders by id":                {Candidates{Dense: []DenseHit{{id("b", 0), .2}, {id("a", 0), .2}}}, .1, []string{"a 0.80", "b 0.80"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range bySum(tt.c, tt.weight) {
				got = append(got, fmt.Sprintf("%s %.2f", f.id.Document, f.score))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMixDefaults(t *testing.T) {
	t.Parallel()
	want := Mix{.005, .001, .01, .003, .015, .6}
	if d := cmp.Diff(want, Mix{}.withDefaults()); d != "" {
		t.Error(d)
	}
	want.Late = 3
	if d := cmp.Diff(want, Mix{Late: 3}.withDefaults()); d != "" {
		t.Error(d)
	}
}

func TestChunkIDOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) ChunkID {
			return id(rapid.StringMatching("[a-c]{1,2}").Draw(t, label), rapid.IntRange(0, 99_999).Draw(t, label))
		}
		a, b := draw("a"), draw("b")
		if (a.Compare(b) == 0) != (a == b) || a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%v and %v: %d, %d", a, b, a.Compare(b), b.Compare(a))
		}
		if len(a.Document) == len(b.Document) && (a.Compare(b) < 0) != (a.String() < b.String()) {
			t.Fatalf("%v and %v order otherwise than their text", a, b)
		}
	})
}

// Every chunk of either leg comes out once, and a better rank in one leg
// never lowers a chunk.
func TestByRanksProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 12, rapid.ID[int])
		draw := func(label string) (out []string) {
			for _, n := range names.Draw(t, label) {
				out = append(out, fmt.Sprintf("d%02d", n))
			}
			return out
		}
		c := legs(draw("lexical"), draw("dense"))
		seen := map[ChunkID]int{}
		got := byRanks(c, Weights{1, 1}, 60)
		for i, f := range got {
			seen[f.id]++
			if i > 0 && got[i-1].score < f.score {
				t.Fatalf("rank %d scores more than rank %d", i+1, i)
			}
		}
		for _, h := range c.Lexical {
			if seen[h.ID] != 1 {
				t.Fatalf("%v came out %d times", h.ID, seen[h.ID])
			}
		}
		for _, h := range c.Dense {
			if seen[h.ID] != 1 {
				t.Fatalf("%v came out %d times", h.ID, seen[h.ID])
			}
		}
	})
}
