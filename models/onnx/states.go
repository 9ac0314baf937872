package onnx

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"footnote/models"
)

// kept are the pieces of a text whose token states are given: those that hold
// a letter or a digit, or all where none does. from is where the text begins
// after its prefix; the pieces of the prefix have no say.
type kept struct {
	rows   []int // of the output: special tokens before the text are counted
	places []models.Place
}

func keep(whole string, places []models.Place, from, lead int) kept {
	var all, saying kept
	for i, p := range places {
		if p.To <= from {
			continue
		}
		// The first piece of the text may begin with the prefix's space.
		p.From = max(p.From, from)
		all.add(lead+i, p.From-from, p.To-from)
		if strings.ContainsFunc(whole[p.From:p.To], says) {
			saying.add(lead+i, p.From-from, p.To-from)
		}
	}
	if len(saying.rows) == 0 {
		return all
	}
	return saying
}

func (k *kept) add(row, from, to int) {
	k.rows = append(k.rows, row)
	k.places = append(k.places, models.Place{From: from, To: to})
}

func says(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// unitRows copies the rows of hidden, each of length d, scaled to L2 norm 1.
func unitRows(hidden []float32, rows []int, d int) ([]float32, error) {
	out := make([]float32, 0, len(rows)*d)
	for _, r := range rows {
		row := hidden[r*d : (r+1)*d]
		var square float64
		for _, x := range row {
			square += float64(x) * float64(x)
		}
		norm := math.Sqrt(square)
		if norm == 0 || math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, fmt.Errorf("the model returned a token state of norm %v", norm)
		}
		for _, x := range row {
			out = append(out, float32(float64(x)/norm))
		}
	}
	return out, nil
}
