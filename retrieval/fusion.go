package retrieval

import (
	"cmp"
	"slices"
)

// Weights says how much each leg counts in the fusion. Equal weights are the
// plain reciprocal rank fusion; 0 switches a leg off.
type Weights struct {
	Lexical float64 `json:"lexical"`
	Dense   float64 `json:"dense"`
}

// fused is a chunk with its place in each leg, 0 where the leg lacks it.
type fused struct {
	id            ChunkID
	lexicalRank   int
	denseRank     int
	bm25          float64
	distance      float64
	distanceKnown bool
	score         float64
}

// fuse merges the legs by reciprocal ranks: the sum over the legs of
// weight / (k + rank), ranks from 1 (Cormack, Clarke and Büttcher, 2009).
// Ties order by id. A chunk whose only leg has weight 0 is left out.
func fuse(c Candidates, w Weights, k float64) []fused {
	at := make(map[ChunkID]int, len(c.Lexical)+len(c.Dense))
	out := make([]fused, 0, len(c.Lexical)+len(c.Dense))
	place := func(id ChunkID) *fused {
		i, ok := at[id]
		if !ok {
			i = len(out)
			at[id] = i
			out = append(out, fused{id: id})
		}
		return &out[i]
	}
	for i, h := range c.Lexical {
		f := place(h.ID)
		f.lexicalRank, f.bm25 = i+1, h.Score
		f.score += w.Lexical / (k + float64(i+1))
		f.distance, f.distanceKnown = c.Distances[h.ID]
	}
	for i, h := range c.Dense {
		f := place(h.ID)
		f.denseRank, f.distance, f.distanceKnown = i+1, h.Distance, true
		f.score += w.Dense / (k + float64(i+1))
	}
	out = slices.DeleteFunc(out, func(f fused) bool { return f.score <= 0 })
	slices.SortFunc(out, func(a, b fused) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.id.Compare(b.id))
	})
	return out
}
