package modelstest_test

import (
	"context"
	"testing"

	"footnote/models/modelstest"
)

func TestFakeEmbedder(t *testing.T) {
	t.Parallel()
	modelstest.TestEmbedder(t, modelstest.NewEmbedder())
	t.Run("without token states", func(t *testing.T) {
		modelstest.TestEmbedder(t, modelstest.NewEmbedder(modelstest.WithoutStates()))
	})
	t.Run("with another window and size", func(t *testing.T) {
		modelstest.TestEmbedder(t, modelstest.NewEmbedder(modelstest.WithName("small"), modelstest.WithWindow(64), modelstest.WithDimensions(16)))
	})
}

func TestFakeReranker(t *testing.T) {
	t.Parallel()
	r := modelstest.NewReranker("en")
	modelstest.TestReranker(t, r)
	if !r.Covers("en") || r.Covers("ko") {
		t.Error("languages are not those given")
	}
}

func TestFakeSimilarity(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := modelstest.NewEmbedder()
	q, err := e.EmbedQuery(ctx, "how do I rotate the API key")
	if err != nil {
		t.Fatal(err)
	}
	ps, err := e.EmbedPassages(ctx, []string{
		"Rotate the API key in the settings.",
		"The canteen opens at noon.",
	})
	if err != nil {
		t.Fatal(err)
	}
	near, far := modelstest.Dot(q.Vector, ps[0].Vector), modelstest.Dot(q.Vector, ps[1].Vector)
	if near < far+.2 {
		t.Errorf("cosine with shared words %.3f, without %.3f", near, far)
	}
	if e.Queries() != 1 || e.Passages() != 2 {
		t.Errorf("counted %d questions and %d passages, want 1 and 2", e.Queries(), e.Passages())
	}
}
