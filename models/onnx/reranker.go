package onnx

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"footnote/models"
	"footnote/models/catalog"
)

// Reranker is a models.Reranker on the ONNX runtime: a cross-encoder over
// [CLS] question [SEP] passage [SEP].
type Reranker struct{ m *model }

var _ models.Reranker = (*Reranker)(nil)

// Reranker opens a reranker whose files lie in dir. It lives until the Runtime
// is closed.
func (rt *Runtime) Reranker(card catalog.Card, dir fs.FS) (*Reranker, error) {
	m, err := rt.open(card, catalog.Reranker, dir)
	if err != nil {
		return nil, err
	}
	if room := passageRoom(card, m.tok, card.QueryWindow); room <= card.Overlap {
		err := fmt.Errorf("a window of %d leaves %d tokens for the passage beside a question of %d; more than the overlap of %d is needed",
			card.Window, room, card.QueryWindow, card.Overlap)
		return nil, errors.Join(m.unfit(err), m.close())
	}
	r := &Reranker{m}
	if _, err := r.Rerank(context.Background(), "a", []string{"a"}); err != nil {
		return nil, errors.Join(m.unfit(err), m.close())
	}
	return r, nil
}

// Name implements models.Reranker.
func (r *Reranker) Name() string { return r.m.card.Name }

// Covers implements models.Reranker.
func (r *Reranker) Covers(language string) bool { return r.m.card.Covers(language) }

// pair is one question with one window of one passage.
type pair struct {
	passage    int
	ids, types []int64
}

// Rerank implements models.Reranker.
func (r *Reranker) Rerank(ctx context.Context, query string, passages []string) ([]float64, error) {
	var pairs []pair
	err := r.m.use(func() error {
		pairs = r.pairs(query, passages)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reranking: %w", err)
	}
	logits := make([]float32, len(pairs))
	err = r.m.rt.each(ctx, len(pairs), func(i int) error {
		return r.m.use(func() error {
			return r.m.run(pairs[i].ids, pairs[i].types, logits[i:i+1], 1, 1)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reranking: %w", err)
	}
	return best(pairs, logits, len(passages)), nil
}

// best is the sigmoid of each passage's highest logit.
func best(pairs []pair, logits []float32, passages int) []float64 {
	scores := make([]float64, passages)
	for i, p := range pairs {
		s := 1 / (1 + math.Exp(-float64(logits[i])))
		scores[p.passage] = max(scores[p.passage], s)
	}
	return scores
}

func (r *Reranker) pairs(query string, passages []string) []pair {
	card, tok := r.m.card, r.m.tok
	q := tok.pieces(query)
	q = q[:min(len(q), card.QueryWindow)]
	room := passageRoom(card, tok, len(q))
	head := joined(tok.lead, q, tok.trail)
	var ps []pair
	for i, passage := range passages {
		for _, w := range windows(tok.pieces(passage), room, card.Overlap) {
			ids := joined(head, w, tok.trail)
			types := make([]int64, len(ids))
			for j := len(head); j < len(ids); j++ {
				types[j] = 1
			}
			ps = append(ps, pair{i, ids, types})
		}
	}
	return ps
}

// passageRoom is how many tokens of a passage fit beside a question of n.
func passageRoom(card catalog.Card, tok *tokenizer, n int) int {
	return card.Window - n - len(tok.lead) - 2*len(tok.trail)
}

// windows cuts pieces into the fewest windows of room tokens that overlap by
// at least overlap, spread evenly; every piece is in one, and one that fits is
// whole. No pieces make one empty window.
func windows(pieces []int64, room, overlap int) [][]int64 {
	n := len(pieces)
	if n <= room {
		return [][]int64{pieces}
	}
	stride := room - overlap
	count := (n - overlap + stride - 1) / stride
	ws := make([][]int64, count)
	for i := range ws {
		from := i * (n - room) / (count - 1)
		ws[i] = pieces[from : from+room]
	}
	return ws
}
