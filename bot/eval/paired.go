package eval

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"footnote/acl"
	"footnote/retrieval"
)

// Ranks is the rank of the first right result, from 1, of each question of a
// set in order, by method; 0: none among 20.
type Ranks map[string][]int

// RanksOf asks every question of the set.
func RanksOf(ctx context.Context, s Searcher, reader retrieval.Reader, grant acl.Grant, set Set) (Ranks, error) {
	out := Ranks{}
	for _, q := range set.Questions {
		found, err := s.Search(ctx, reader, grant, q.Text)
		if err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
		by := rankings(found)
		for _, m := range Methods {
			rank, err := firstRight(ctx, reader, grant, q, by[m])
			if err != nil {
				return nil, fmt.Errorf("question %s: %w", q.ID, err)
			}
			out[m] = append(out[m], rank)
		}
	}
	return out, nil
}

// Change is what one method gains from something, on the same questions with
// and without it.
type Change struct {
	Set     string `json:"set"`
	Method  string `json:"method"`
	Without Row    `json:"without"`
	With    Row    `json:"with"`

	// Found and Lost are the questions that have a right result among the first
	// 4 only with it, and only without. Chance is how likely so uneven a split
	// is if it makes no difference: McNemar's test, exact and two-sided.
	Found  int     `json:"found"`
	Lost   int     `json:"lost"`
	Chance float64 `json:"chance"`

	// ChanceMRR is how likely so great a difference of the MRR is if it makes
	// none: a permutation test that swaps the two answers to each question at
	// random, 10,000 times, two-sided.
	ChanceMRR float64 `json:"chance_mrr"`
}

// Compare pairs the ranks of the same questions, one Change for each method.
func Compare(set Set, without, with Ranks) []Change {
	var out []Change
	for _, m := range Methods {
		c := Change{Set: set.Name, Method: m, Without: rowOf(set.Name, m, without[m]), With: rowOf(set.Name, m, with[m])}
		var differences []float64
		for i, a := range without[m] {
			b := with[m][i]
			switch early := func(rank int) bool { return rank > 0 && rank <= 4 }; {
			case early(b) && !early(a):
				c.Found++
			case early(a) && !early(b):
				c.Lost++
			}
			differences = append(differences, reciprocal(b)-reciprocal(a))
		}
		c.Chance, c.ChanceMRR = mcnemar(c.Found, c.Lost), permuted(differences)
		out = append(out, c)
	}
	return out
}

func rowOf(set, method string, ranks []int) Row {
	r := Row{Set: set, Method: method}
	for _, rank := range ranks {
		r.count(rank)
	}
	return r.shares()
}

func reciprocal(rank int) float64 {
	if rank == 0 {
		return 0
	}
	return 1 / float64(rank)
}

// mcnemar = min(1, 2 Σ_{i ≤ min(b,c)} C(b+c, i) / 2^(b+c)).
func mcnemar(b, c int) float64 {
	n, sum := b+c, 0.0
	whole, _ := math.Lgamma(float64(n + 1))
	for i := range min(b, c) + 1 {
		one, _ := math.Lgamma(float64(i + 1))
		other, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(whole - one - other - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}

const permutations = 10_000

// permuted is the share of swaps with a mean as far from 0 or farther; that
// which was observed counts as one.
func permuted(differences []float64) float64 {
	r := rand.New(rand.NewPCG(1, 2)) // the same figures in every run
	observed := 0.0
	for _, d := range differences {
		observed += d
	}
	farther := 1
	for range permutations {
		sum := 0.0
		for _, d := range differences {
			if r.Uint64()&1 == 0 {
				d = -d
			}
			sum += d
		}
		if math.Abs(sum) >= math.Abs(observed)-1e-9 {
			farther++
		}
	}
	return float64(farther) / (permutations + 1)
}
