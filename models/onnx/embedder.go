package onnx

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"

	"footnote/models"
	"footnote/models/catalog"
)

// Embedder is a models.Embedder on the ONNX runtime.
type Embedder struct {
	m       *model
	info    models.EmbedderInfo
	buffers sync.Pool // *[]float32 of window x dimensions
}

var _ models.Embedder = (*Embedder)(nil)

// Embedder opens an embedder whose files lie in dir. It lives until the
// Runtime is closed.
func (rt *Runtime) Embedder(card catalog.Card, dir fs.FS) (*Embedder, error) {
	m, err := rt.open(card, catalog.Embedder, dir)
	if err != nil {
		return nil, err
	}
	e := &Embedder{m: m, info: card.Info()}
	e.buffers.New = func() any {
		b := make([]float32, card.Window*card.Dimensions)
		return &b
	}
	if _, err := e.embed("", "a"); err != nil {
		return nil, errors.Join(m.unfit(err), m.close())
	}
	return e, nil
}

// Info implements models.Embedder.
func (e *Embedder) Info() models.EmbedderInfo { return e.info }

// EmbedQuery implements models.Embedder.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) (models.Embedding, error) {
	var v models.Embedding
	err := e.m.rt.one(ctx, func() (err error) {
		v, err = e.embed(e.m.card.QueryPrefix, text)
		return err
	})
	if err != nil {
		return models.Embedding{}, fmt.Errorf("embedding a question: %w", err)
	}
	return v, nil
}

// EmbedPassages implements models.Embedder.
func (e *Embedder) EmbedPassages(ctx context.Context, texts []string) ([]models.Embedding, error) {
	out := make([]models.Embedding, len(texts))
	err := e.m.rt.each(ctx, len(texts), func(i int) (err error) {
		if out[i], err = e.embed(e.m.card.PassagePrefix, texts[i]); err == nil {
			out[i].Coded, out[i].States = models.EncodeStates(out[i].States.Vectors, e.info.Dimensions), nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("embedding passages: %w", err)
	}
	return out, nil
}

// CountTokens implements models.Embedder. It is 0 once the Runtime is closed.
func (e *Embedder) CountTokens(text string) (n int) {
	_ = e.m.use(func() error {
		n = len(e.m.tok.pieces(text))
		return nil
	})
	return n
}

// embed makes the vector and the token states of a text behind its prefix.
func (e *Embedder) embed(prefix, text string) (v models.Embedding, err error) {
	err = e.m.use(func() error {
		tok, window := e.m.tok, e.info.Window
		whole := readable(prefix + text)
		pieces, places := tok.placed(whole)
		v.Tokens = len(pieces) + tok.specials()
		v.Truncated = v.Tokens > window
		n := min(len(pieces), window-tok.specials())
		k := keep(whole, places[:n], len(prefix), len(tok.lead))
		v.States = &models.States{Dimensions: e.info.Dimensions, Places: k.places}
		v.Vector, v.States.Vectors, err = e.infer(joined(tok.lead, pieces[:n], tok.trail), k.rows)
		return err
	})
	return v, err
}

// infer returns the pooled vector and the states of these rows.
func (e *Embedder) infer(ids []int64, rows []int) (vector, states []float32, err error) {
	b := e.buffers.Get().(*[]float32)
	defer e.buffers.Put(b)
	n, d := len(ids), e.info.Dimensions
	hidden := (*b)[:n*d]
	if err = e.m.run(ids, make([]int64, n), hidden, 1, int64(n), int64(d)); err != nil {
		return nil, nil, err
	}
	if vector, err = meanPool(hidden, n, d); err == nil {
		states, err = unitRows(hidden, rows, d)
	}
	return vector, states, err
}

// meanPool averages n vectors of length d (hidden is n x d, row by row) and
// scales the mean to L2 norm 1. Sums are kept in float64.
func meanPool(hidden []float32, n, d int) ([]float32, error) {
	sum := make([]float64, d)
	for i := range n {
		for j, x := range hidden[i*d : (i+1)*d] {
			sum[j] += float64(x)
		}
	}
	var square float64
	for _, x := range sum {
		square += x * x
	}
	norm := math.Sqrt(square)
	if norm == 0 || math.IsNaN(norm) || math.IsInf(norm, 0) {
		return nil, fmt.Errorf("the model returned a vector of norm %v", norm)
	}
	v := make([]float32, d)
	for j, x := range sum {
		v[j] = float32(x / norm)
	}
	return v, nil
}

func joined(parts ...[]int64) []int64 {
	var all []int64
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
