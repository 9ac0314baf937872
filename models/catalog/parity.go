package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"footnote/models"
)

// MinParity is the cosine to an independent stack below which an embedder is
// not the model that its card describes.
const MinParity = 0.999

// ParityResult compares one vector with that of another stack.
type ParityResult struct {
	Text    string
	Passage bool // embedded as a passage, else as a question
	Cosine  float64
	// Truncated: the text is over this model's window. What another stack does
	// there differs, so that MinParity does not hold for it.
	Truncated bool
}

// Parity embeds the sentences of a JSON file as questions and as passages and
// compares them with the vectors there:
//
//	{"model": …, "stack": …, "sentences": [{"text": …, "query": [numbers], "passage": [numbers]}]}
//
// Results are in file order, the question's before the passage's.
func Parity(ctx context.Context, e models.Embedder, path string) ([]ParityResult, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading parity sentences: %w", err)
	}
	var file struct {
		Sentences []struct {
			Text           string
			Query, Passage []float64
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("reading parity sentences from %s: %w", path, err)
	}
	if len(file.Sentences) == 0 {
		return nil, fmt.Errorf("%s has no sentences", path)
	}
	var results []ParityResult
	for _, s := range file.Sentences {
		q, err := e.EmbedQuery(ctx, s.Text)
		if err != nil {
			return nil, err
		}
		p, err := e.EmbedPassages(ctx, []string{s.Text})
		if err != nil {
			return nil, err
		}
		qc, qerr := cosine(q.Vector, s.Query)
		pc, perr := cosine(p[0].Vector, s.Passage)
		if err := errors.Join(qerr, perr); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, s.Text, err)
		}
		results = append(results,
			ParityResult{s.Text, false, qc, q.Truncated},
			ParityResult{s.Text, true, pc, p[0].Truncated})
	}
	return results, nil
}

// cosine of two vectors of any norm but 0.
func cosine(a []float32, b []float64) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("the model has %d dimensions, the file %d", len(a), len(b))
	}
	var dot, aa, bb float64
	for i, x := range a {
		dot += float64(x) * b[i]
		aa += float64(x) * float64(x)
		bb += b[i] * b[i]
	}
	if aa == 0 || bb == 0 {
		return 0, errors.New("a vector is zero")
	}
	return dot / math.Sqrt(aa*bb), nil
}
