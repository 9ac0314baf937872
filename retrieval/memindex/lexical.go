package memindex

import (
	"context"
	"math"

	"footnote/retrieval"
)

const (
	k1 = 1.2
	b  = 0.75
)

// lengthNorms gives K = k1·(1 − b + b·length/average) for each length up to
// longest, of chunks chunks with length terms in all.
func lengthNorms(chunks, length, longest int) []float64 {
	norms := make([]float64, longest+1)
	if length == 0 {
		return norms // no terms, no postings
	}
	average := float64(length) / float64(chunks)
	for l := range norms {
		norms[l] = k1 * (1 - b + b*float64(l)/average)
	}
	return norms
}

// idf = ln(1 + (N − n + 0.5)/(n + 0.5)).
func idf(chunks, holding int) float64 {
	return math.Log1p((float64(chunks-holding) + 0.5) / (float64(holding) + 0.5))
}

// weighted is a term of the question.
type weighted struct {
	term   string
	number uint32
	weight float64 // multiplicity·idf·(k1 + 1)
}

// weigh looks the terms up, each once in order, and names the missing.
func (s *state) weigh(v *view, terms []string) (found []weighted, missing []string) {
	times := make(map[string]int, len(terms))
	for _, t := range terms {
		times[t]++
	}
	for _, t := range terms {
		m := times[t]
		if m == 0 {
			continue
		}
		delete(times, t)
		number, known := s.numbers[t]
		n := 0
		if known {
			n = v.frequency(s, number)
		}
		if n == 0 {
			missing = append(missing, t)
			continue
		}
		found = append(found, weighted{t, number, float64(m) * idf(v.chunks, n) * (k1 + 1)})
	}
	return found, missing
}

// holding counts the admitted chunks that hold each term, where any does.
func (s *state) holding(v *view, terms []string) map[string]int {
	var out map[string]int
	for _, t := range terms {
		number, known := s.numbers[t]
		if !known {
			continue
		}
		if n := v.frequency(s, number); n > 0 {
			if out == nil {
				out = make(map[string]int, len(terms))
			}
			out[t] = n
		}
	}
	return out
}

// lexical ranks the admitted chunks by BM25. scores is zeroed scratch of one
// number for each ordinal.
func (s *state) lexical(ctx context.Context, v *view, found []weighted, scores []float64, depth int) ([]retrieval.LexicalHit, error) {
	for _, w := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		accumulate(scores, v.norms, s.lists[w.number], w.weight)
	}
	best := newTop(s, min(depth, v.chunks), math.SmallestNonzeroFloat64)
	for _, r := range v.spans {
		for o, score := range scores[r.from:r.to] {
			if score >= best.floor {
				best.offer(uint32(r.from+o), score)
			}
		}
	}
	hits := make([]retrieval.LexicalHit, 0, len(best.items))
	for _, it := range best.sorted() {
		hits = append(hits, retrieval.LexicalHit{ID: s.chunkID(it.ordinal), Score: it.score})
	}
	return hits, nil
}

// accumulate adds one term's share to the chunks that hold it. Chunks outside
// the grant are added to as well, into scores that are never read: a branch
// would cost more.
func accumulate(scores, norms []float64, list []posting, weight float64) {
	for _, p := range list {
		count := float64(p.count)
		scores[p.ordinal] += weight * count / (count + norms[p.length])
	}
}
