package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"footnote/acl"
	"footnote/bot/generate"
	"footnote/models"
	"footnote/models/modelstest"
	"footnote/retrieval"
)

// fixed is a reranker that costs nothing.
type fixed struct{ models.Reranker }

func (fixed) Rerank(_ context.Context, _ string, passages []string) ([]float64, error) {
	out := make([]float64, len(passages))
	for i := range out {
		out[i] = .9
	}
	return out, nil
}

// BenchmarkHandle is a whole question without models: 1,000 passages of about
// 2,000 characters, 25 of which are ranked and 4 cut into sentences.
func BenchmarkHandle(b *testing.B) {
	w := benchWorld(b)
	m := Message{Text: "Where are the badges of department 7 made, and what must I bring?", Asker: ben, Audience: acl.AskerOnly()}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := w.Handle(b.Context(), m); err != nil || r.Outcome != Answered {
			b.Fatal(r.Text, err)
		}
	}
}

func benchWorld(b *testing.B) *Bot {
	var docs []doc
	for d := range 50 {
		var chunks []string
		for c := range 20 {
			chunks = append(chunks, strings.Repeat(fmt.Sprintf("Badges of department %d are made in room %d of [the lodge](x). You must bring a **passport** and two photos.\n", c, d), 18))
		}
		docs = append(docs, doc{fmt.Sprintf("d%02d", d), strings.Join(chunks, "\n\n"), everyone})
	}
	w := newWorld(b, docs...)
	e, r := modelstest.NewEmbedder(), fixed{modelstest.NewReranker("en")}
	bot, err := New(Config{
		Current:   func(context.Context) (retrieval.Reader, error) { return w.gen, nil },
		Searcher:  newSearcher(e, r),
		Generator: generate.NewExtractive(e, r, generate.Options{}),
		Cuts:      Cuts{Distance: 2},
	})
	if err != nil {
		b.Fatal(err)
	}
	return bot
}
