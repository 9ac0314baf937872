package onnx

import (
	"context"
	"io/fs"
	"sync"
	"testing"

	"footnote/models/assets"
	"footnote/models/catalog"
	"footnote/models/modelstest"
)

// shipped opens the models of the program once for all tests.
var shipped = sync.OnceValues(func() (models struct {
	rt *Runtime
	e  *Embedder
	r  *Reranker
}, err error) {
	if models.rt, err = New(Options{}); err != nil {
		return
	}
	card, dir, err := shippedModel(catalog.DefaultEmbedder)
	if err != nil {
		return
	}
	if models.e, err = models.rt.Embedder(card, dir); err != nil {
		return
	}
	if card, dir, err = shippedModel(catalog.DefaultReranker); err != nil {
		return
	}
	models.r, err = models.rt.Reranker(card, dir)
	return
})

func shippedModel(name string) (catalog.Card, fs.FS, error) {
	card, err := catalog.Lookup(name)
	if err != nil {
		return card, nil, err
	}
	dir, err := assets.Model(name)
	return card, dir, err
}

func embedder(t testing.TB) *Embedder {
	t.Helper()
	m, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return m.e
}

func reranker(t testing.TB) *Reranker {
	t.Helper()
	m, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return m.r
}

func TestParity(t *testing.T) {
	got, err := catalog.Parity(context.Background(), embedder(t), "testdata/parity.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2*20 {
		t.Fatalf("%d cosines, want 40", len(got))
	}
	for _, c := range got {
		t.Logf("%.6f passage %t %.40q", c.Cosine, c.Passage, c.Text)
		least := catalog.MinParity
		if c.Truncated { // the other stack averages windows there
			least = .99
		}
		if c.Cosine < least {
			t.Errorf("passage %t %.60q: cosine %.6f", c.Passage, c.Text, c.Cosine)
		}
	}
}

func TestEmbedderConformance(t *testing.T) { modelstest.TestEmbedder(t, embedder(t)) }

func TestRerankerConformance(t *testing.T) {
	r := reranker(t)
	modelstest.TestReranker(t, r)
	if !r.Covers("en") || r.Covers("ko") {
		t.Error("the card names English alone")
	}
}
