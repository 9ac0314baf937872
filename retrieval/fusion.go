package retrieval

import (
	"cmp"
	"slices"
)

// Fusion names how the candidates of both legs were ordered before reranking.
type Fusion string

// Fusions, best first. Each is used where the one before it cannot be.
const (
	Late  Fusion = "token states"     // the generation has token states
	Sum   Fusion = "raw scores"       // a reranker for the question's language
	Ranks Fusion = "reciprocal ranks" // the rest
)

// Weights says how much each leg counts in the fusion of ranks. Equal weights
// are the plain reciprocal rank fusion; 0 switches a leg off.
type Weights struct {
	Lexical float64 `json:"lexical"`
	Dense   float64 `json:"dense"`
}

// Mix weighs raw scores against a cosine, which weighs 1. Ranks throw away how
// good a score is; sums keep it. Zero values mean the defaults, which were
// measured with
//
//	footnote eval quick en_docs ko_react en_squad2 en_nq
//
// and lie in flat places: half or double the value changes no figure beyond
// its noise.
type Mix struct {
	Candidates  float64 // BM25, where candidates are chosen for their token states: 0.005
	Late        float64 // BM25 beside MaxSim: 0.001
	LateRerank  float64 // the reranker's logit beside both: 0.01
	Plain       float64 // BM25 beside the cosine where there are no token states: 0.003
	PlainRerank float64 // the reranker's logit beside both: 0.015
	Unknown     float64 // a word that no chunk holds, as a part of the greatest idf: 0.6
}

func (m Mix) withDefaults() Mix {
	for _, d := range []struct {
		v *float64
		d float64
	}{{&m.Candidates, .005}, {&m.Late, .001}, {&m.LateRerank, .01}, {&m.Plain, .003}, {&m.PlainRerank, .015}, {&m.Unknown, .6}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	return m
}

// fused is a chunk with its place in each leg, 0 where the leg lacks it.
type fused struct {
	id            ChunkID
	lexicalRank   int
	denseRank     int
	bm25          float64 // 0 where the leg lacks it
	distance      float64
	distanceKnown bool
	late          *float64 // MaxSim; nil: not compared
	score         float64
}

// gather puts the hits of both legs together, each chunk once.
func gather(c Candidates) []fused {
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
		f.distance, f.distanceKnown = c.Distances[h.ID]
	}
	for i, h := range c.Dense {
		f := place(h.ID)
		f.denseRank, f.distance, f.distanceKnown = i+1, h.Distance, true
	}
	return out
}

// byRanks merges the legs by reciprocal ranks: the sum over the legs of
// weight / (k + rank), ranks from 1 (Cormack, Clarke and Büttcher, 2009). A
// chunk whose only leg has weight 0 is left out.
func byRanks(c Candidates, w Weights, k float64) []fused {
	all := gather(c)
	for i := range all {
		f := &all[i]
		if f.lexicalRank > 0 {
			f.score += w.Lexical / (k + float64(f.lexicalRank))
		}
		if f.denseRank > 0 {
			f.score += w.Dense / (k + float64(f.denseRank))
		}
	}
	all = slices.DeleteFunc(all, func(f fused) bool { return f.score <= 0 })
	sortFused(all)
	return all
}

// bySum merges the legs by cosine + weight · BM25. A distance that is not known
// counts as that of unrelated texts, 1.
func bySum(c Candidates, weight float64) []fused {
	all := gather(c)
	for i := range all {
		f := &all[i]
		if f.distanceKnown {
			f.score = 1 - f.distance
		}
		f.score += weight * f.bm25
	}
	sortFused(all)
	return all
}

// sortFused orders by score; ties order by id.
func sortFused(all []fused) {
	slices.SortFunc(all, func(a, b fused) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.id.Compare(b.id))
	})
}
