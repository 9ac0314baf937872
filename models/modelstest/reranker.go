package modelstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/models"
)

const (
	rerankQuery  = "How long is the notice period?"
	rerankAnswer = "The notice period is three months to the end of a month."
	rerankFiller = "The canteen opens at noon and serves two dishes. "
)

// TestReranker checks the contract of models.Reranker.
func TestReranker(t *testing.T, r models.Reranker) {
	t.Run("scores lie between 0 and 1, in order", func(t *testing.T) { testScores(t, r) })
	t.Run("neighbours do not matter", func(t *testing.T) { testRerankBatch(t, r) })
	t.Run("an answer at the end of a long passage is found", func(t *testing.T) { testLongPassage(t, r) })
	t.Run("a long question leaves room for the passage", func(t *testing.T) { testLongQuery(t, r) })
	t.Run("a cancelled context ends it", func(t *testing.T) { testCancelledReranker(t, r) })
	t.Run("languages", func(t *testing.T) { testCovers(t, r) })
}

func testScores(t *testing.T, r models.Reranker) {
	ps := append([]string{rerankAnswer, rerankFiller}, samples...)
	got := scores(t, r, rerankQuery, ps)
	for i, s := range got {
		if !(s > 0 && s < 1) {
			t.Errorf("%q: %v", ps[i], s)
		}
	}
	if got[0] <= got[1] {
		t.Errorf("the answer has %v, another passage %v", got[0], got[1])
	}
	for _, q := range samples {
		if got := scores(t, r, q, []string{rerankAnswer}); !(got[0] > 0 && got[0] < 1) {
			t.Errorf("question %q: %v", q, got[0])
		}
	}
	if none := scores(t, r, rerankQuery, nil); len(none) != 0 {
		t.Errorf("%d scores of no passages", len(none))
	}
}

func testRerankBatch(t *testing.T, r models.Reranker) {
	ps := append([]string{rerankAnswer, strings.Repeat(rerankFiller, 60)}, samples...)
	want := scores(t, r, rerankQuery, ps)
	backwards := slices.Clone(ps)
	slices.Reverse(backwards)
	reversed := scores(t, r, rerankQuery, backwards)
	slices.Reverse(reversed)
	if diff := cmp.Diff(want, reversed); diff != "" {
		t.Errorf("order changes scores:\n%s", diff)
	}
	for i, p := range ps {
		if alone := scores(t, r, rerankQuery, []string{p}); alone[0] != want[i] {
			t.Errorf("%.40q: alone %v, in a batch %v", p, alone[0], want[i])
		}
	}
}

func testLongPassage(t *testing.T, r models.Reranker) {
	filler := strings.Repeat(rerankFiller, 60)
	got := scores(t, r, rerankQuery, []string{filler + rerankAnswer, filler + rerankAnswer + " " + filler, filler})
	if got[0] <= got[2] || got[1] <= got[2] {
		t.Errorf("answer last %v, in the middle %v, absent %v: text over the window is lost", got[0], got[1], got[2])
	}
}

func testLongQuery(t *testing.T, r models.Reranker) {
	long := rerankQuery + strings.Repeat(" Please tell me.", 400)
	got := scores(t, r, long, []string{rerankAnswer, rerankFiller})
	if got[0] == got[1] {
		t.Errorf("both passages have %v: the question took their place", got[0])
	}
}

func testCancelledReranker(t *testing.T, r models.Reranker) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	got, err := r.Rerank(ctx, rerankQuery, []string{rerankAnswer})
	if !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("%v and %v, want nothing and context.Canceled", got, err)
	}
}

func testCovers(t *testing.T, r models.Reranker) {
	if r.Name() == "" {
		t.Error("no name")
	}
	if r.Covers("") || r.Covers("zxx") {
		t.Error("covers a language that does not exist")
	}
}

func scores(t *testing.T, r models.Reranker, query string, passages []string) []float64 {
	t.Helper()
	got, err := r.Rerank(context.Background(), query, passages)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(passages) {
		t.Fatalf("%d scores of %d passages", len(got), len(passages))
	}
	return got
}
