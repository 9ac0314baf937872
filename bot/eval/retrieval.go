package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"footnote/acl"
	"footnote/retrieval"
)

// Methods are the stages that Retrieval grades, in the order of its rows.
var Methods = []string{"bm25", "dense", "hybrid", "hybrid+rerank"}

// depth is how far down a ranking is graded.
const depth = 20

// Row is one method on one style of one set. R1, R4 and R20 are the shares of
// questions with a right result among the first 1, 4 and 20; MRR is the mean
// of the reciprocal rank of the first right one among 20, 0 where there is
// none.
type Row struct {
	Set       string  `json:"set"`
	Style     string  `json:"style"`
	Method    string  `json:"method"`
	Questions int     `json:"questions"`
	R1        float64 `json:"r1"`
	R4        float64 `json:"r4"`
	R20       float64 `json:"r20"`
	MRR       float64 `json:"mrr"`
}

// Searcher is what is graded.
type Searcher interface {
	Search(ctx context.Context, reader retrieval.Reader, grant acl.Grant, question string) (retrieval.Results, error)
}

// Retrieval asks every question of the set and grades every method, one row
// for each style and method.
func Retrieval(ctx context.Context, s Searcher, reader retrieval.Reader, grant acl.Grant, set Set) ([]Row, error) {
	tallies := map[[2]string]*Row{}
	for _, q := range set.Questions {
		found, err := s.Search(ctx, reader, grant, q.Text)
		if err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
		for method, ids := range rankings(found) {
			rank, err := firstRight(ctx, reader, grant, q, ids)
			if err != nil {
				return nil, fmt.Errorf("question %s: %w", q.ID, err)
			}
			key := [2]string{q.Style, method}
			if tallies[key] == nil {
				tallies[key] = &Row{Set: set.Name, Style: q.Style, Method: method}
			}
			tallies[key].count(rank)
		}
	}
	return rows(tallies), nil
}

// rankings is the order of chunks by each method.
func rankings(r retrieval.Results) map[string][]retrieval.ChunkID {
	out := map[string][]retrieval.ChunkID{}
	for _, h := range r.Lexical {
		out["bm25"] = append(out["bm25"], h.ID)
	}
	for _, h := range r.Dense {
		out["dense"] = append(out["dense"], h.ID)
	}
	byFusion := slices.Clone(r.Hits)
	slices.SortFunc(byFusion, func(a, b retrieval.Hit) int { return a.FusedRank - b.FusedRank })
	for i, h := range byFusion {
		out["hybrid"] = append(out["hybrid"], h.Passage.Chunk.ID)
		out["hybrid+rerank"] = append(out["hybrid+rerank"], r.Hits[i].Passage.Chunk.ID)
	}
	for _, m := range Methods {
		out[m] = out[m][:min(len(out[m]), depth)]
	}
	return out
}

// firstRight is the rank of the first right chunk, from 1; 0: none.
func firstRight(ctx context.Context, reader retrieval.Reader, grant acl.Grant, q Question, ids []retrieval.ChunkID) (int, error) {
	passages, err := reader.Passages(ctx, grant, ids)
	if err != nil {
		return 0, err
	}
	for _, p := range passages {
		if right(q, p) {
			return slices.Index(ids, p.Chunk.ID) + 1, nil
		}
	}
	return 0, nil
}

// right reports whether the passage holds a gold span of the question.
func right(q Question, p retrieval.Passage) bool {
	from, to := p.Chunk.Span.SourceFrom, p.Chunk.Span.SourceTo
	for _, g := range q.Gold {
		if !strings.HasSuffix(filepath.ToSlash(p.Path), "/"+g.Doc) {
			continue
		}
		if from <= g.From && g.To <= to {
			return true
		}
		if shared := min(to, g.To) - max(from, g.From); q.Half && 2*shared >= min(to-from, g.To-g.From) {
			return true
		}
	}
	return false
}

func (r *Row) count(rank int) {
	r.Questions++
	if rank == 0 {
		return
	}
	r.MRR += 1 / float64(rank)
	r.R20++
	if rank <= 4 {
		r.R4++
	}
	if rank == 1 {
		r.R1++
	}
}

// shares turns counts into shares.
func (r Row) shares() Row {
	n := float64(max(r.Questions, 1))
	r.R1, r.R4, r.R20, r.MRR = r.R1/n, r.R4/n, r.R20/n, r.MRR/n
	return r
}

// rows turns counts into shares, ordered by style and method.
func rows(tallies map[[2]string]*Row) []Row {
	var out []Row
	for _, r := range tallies {
		out = append(out, r.shares())
	}
	slices.SortFunc(out, func(a, b Row) int {
		if c := strings.Compare(a.Style, b.Style); c != 0 {
			return c
		}
		return slices.Index(Methods, a.Method) - slices.Index(Methods, b.Method)
	})
	return out
}
