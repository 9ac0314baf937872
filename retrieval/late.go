package retrieval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/acl"
	"footnote/models"
)

// word is a word of a question: bytes from to to, and its terms.
type word struct {
	from, to int
	terms    []string
}

// words are the runs of letters, digits, marks, underscores and apostrophes.
func words(question string, analyse func(string) []string) []word {
	var out []word
	from := -1
	end := func(to int) {
		if from >= 0 {
			out = append(out, word{from, to, analyse(question[from:to])})
		}
		from = -1
	}
	for i, r := range question {
		switch {
		case !inWord(r):
			end(i)
		case from < 0:
			from = i
		}
	}
	end(len(question))
	return out
}

func inWord(r rune) bool { return says(r) || unicode.IsMark(r) || strings.ContainsRune("_'’", r) }

func says(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// terms are all terms of the words, each once.
func terms(words []word) []string {
	var out []string
	for _, w := range words {
		out = append(out, w.terms...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// weigh gives each place of a question the weight of its word: the greatest idf
// of the word's terms, or this part of the greatest idf that there can be for
// a word that no admitted chunk holds. What lies in no word weighs nothing,
// unless nothing else is asked.
func weigh(question string, places []models.Place, words []word, c Candidates, unknown float64) []float64 {
	weights := make([]float64, len(places))
	total := 0.0
	for i, p := range places {
		at := firstWord(question, p)
		for _, w := range words {
			if w.from <= at && at < w.to {
				weights[i] = w.weight(c, unknown)
			}
		}
		total += weights[i]
	}
	if total == 0 {
		for i := range weights {
			weights[i] = 1
		}
	}
	return weights
}

// firstWord is where the first letter or digit of a place lies, -1 for none.
// A place may begin with the space or the bracket before the word.
func firstWord(question string, p models.Place) int {
	from, to := min(max(p.From, 0), len(question)), min(p.To, len(question))
	if from >= to {
		return -1
	}
	i := strings.IndexFunc(question[from:to], says)
	if i < 0 {
		return -1
	}
	return from + i
}

func (w word) weight(c Candidates, unknown float64) float64 {
	best, found := 0.0, false
	for _, t := range w.terms {
		if n := c.Holding[t]; n > 0 {
			best, found = max(best, idf(c.Chunks, n)), true
		}
	}
	if !found {
		return unknown * idf(c.Chunks, 0)
	}
	return best
}

// idf = ln(1 + (N − n + 0.5)/(n + 0.5)), as in the lexical leg.
func idf(chunks, holding int) float64 {
	return math.Log1p((float64(chunks-holding) + 0.5) / (float64(holding) + 0.5))
}

// byLate orders candidates by MaxSim + weight · BM25: how well each word of the
// question is met somewhere in the chunk, rarer words counting more. A chunk
// without token states keeps its BM25 alone.
//
// SECURITY: states are read inside the grant, like every text.
func (s *Searcher) byLate(ctx context.Context, reader Reader, grant acl.Grant, q *models.States, weights []float64, all []fused) error {
	ids := make([]ChunkID, len(all))
	for i, f := range all {
		ids[i] = f.id
	}
	states, err := reader.States(ctx, grant, ids)
	if err != nil {
		return fmt.Errorf("loading token states: %w", err)
	}
	if len(states) != len(ids) {
		return errors.New("the index returned token states of other chunks than were asked for")
	}
	for i := range all {
		f := &all[i]
		f.score = s.options.Mix.Late * f.bm25
		if states[i] == nil {
			continue
		}
		score, err := q.MaxSim(states[i], weights)
		if err != nil {
			return fmt.Errorf("%w: token states of %s: %w", ErrCorrupt, f.id, err)
		}
		f.late, f.score = &score, f.score+score
	}
	sortFused(all)
	return nil
}

// searchable drops what has no meaning of its own from the question's terms,
// unless nothing is left. Documents keep all their terms, so that a question
// of nothing but such words still finds them.
func searchable(terms []string, function func(string) bool) []string {
	if function == nil {
		return terms
	}
	if kept := slices.DeleteFunc(slices.Clone(terms), function); len(kept) > 0 {
		return kept
	}
	return terms
}

// readable is the question as the embedder reads it, so that places fit.
func readable(question string) string {
	if utf8.ValidString(question) {
		return question
	}
	return strings.ToValidUTF8(question, "\uFFFD")
}
