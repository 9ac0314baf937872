package models

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// randomRows makes n rows of L2 norm 1.
func randomRows(r *rand.Rand, n, dims int) []float32 {
	var out []float32
	for range n {
		row := make([]float64, dims)
		square := 0.0
		for i := range row {
			row[i] = r.NormFloat64()
			square += row[i] * row[i]
		}
		for _, x := range row {
			out = append(out, float32(x/math.Sqrt(square)))
		}
	}
	return out
}

func product(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func places(n int) []Place { return make([]Place, n) }

// Whatever the rows, each decodes to something whose inner product with the
// row is 1, of the expected length.
func TestStatesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dims, n := rapid.IntRange(1, 70).Draw(t, "dims"), rapid.IntRange(0, 5).Draw(t, "n")
		rows := randomRows(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), n, dims)
		coded := EncodeStates(rows, dims)
		if want := n * (4 + (dims+1)/2); len(coded) != want {
			t.Fatalf("%d bytes, want %d", len(coded), want)
		}
		got, err := DecodeStates(coded, dims)
		if err != nil || len(got) != len(rows) {
			t.Fatalf("%d numbers of %d, %v", len(got), len(rows), err)
		}
		for i := 0; i < len(rows); i += dims {
			if p := product(rows[i:i+dims], got[i:i+dims]); math.Abs(p-1) > 1e-5 {
				t.Fatalf("product of a state and its decoded form: %v, want 1", p)
			}
		}
	})
}

// One outlier, equal numbers, and the edges of the steps.
func TestStatesOfOddShape(t *testing.T) {
	t.Parallel()
	for name, row := range map[string][]float32{
		"one number":          {1},
		"one negative number": {-1},
		"all in one place":    {0, 0, 0, 0, 0, 0, 0, 1},
		"negative outlier":    {-1, 0, 0, 0, 0},
		"all equal":           {.5, .5, .5, .5},
		"opposite":            {.5, -.5, .5, -.5},
	} {
		got, err := DecodeStates(EncodeStates(row, len(row)), len(row))
		if err != nil {
			t.Fatal(err)
		}
		if p := product(row, got); math.Abs(p-1) > 1e-5 {
			t.Errorf("%s: product %v with %v, want 1", name, p, got)
		}
	}
}

// Scores of decoded states are those of exact ones, without a shift.
func TestStatesKeepProducts(t *testing.T) {
	t.Parallel()
	const dims, n = 384, 300
	r := rand.New(rand.NewPCG(7, 8))
	rows, q := randomRows(r, n, dims), randomRows(r, 1, dims)
	// States of one language share a direction, so that products are large.
	for i := range rows {
		rows[i] = .8*q[i%dims] + .6*rows[i]
	}
	for i := 0; i < len(rows); i += dims {
		norm := math.Sqrt(product(rows[i:i+dims], rows[i:i+dims]))
		for j := range dims {
			rows[i+j] = float32(float64(rows[i+j]) / norm)
		}
	}
	got, err := DecodeStates(EncodeStates(rows, dims), dims)
	if err != nil {
		t.Fatal(err)
	}
	shift, worst := 0.0, 0.0
	for i := 0; i < len(rows); i += dims {
		d := product(q, got[i:i+dims]) - product(q, rows[i:i+dims])
		shift += d / n
		worst = max(worst, math.Abs(d))
	}
	if math.Abs(shift) > .001 || worst > .02 {
		t.Errorf("shift %.4f, worst %.4f", shift, worst)
	}
}

func TestStatesOfWrongLength(t *testing.T) {
	t.Parallel()
	whole := EncodeStates(randomRows(rand.New(rand.NewPCG(1, 2)), 2, 6), 6)
	s := States{Dimensions: 6, Vectors: make([]float32, 6), Places: places(1)}
	for name, c := range map[string]struct {
		coded []byte
		dims  int
	}{
		"a byte short":       {whole[:len(whole)-1], 6},
		"a byte too many":    {append([]byte{1}, whole...), 6},
		"of other dimension": {whole, 3},
	} {
		if _, err := DecodeStates(c.coded, c.dims); err == nil {
			t.Errorf("%s: decoded", name)
		}
		s := States{Dimensions: c.dims, Vectors: make([]float32, c.dims), Places: places(1)}
		if _, err := s.MaxSim(c.coded, []float64{1}); err == nil {
			t.Errorf("%s: compared", name)
		}
	}
	if _, err := DecodeStates(whole, 0); err == nil {
		t.Error("no dimensions: decoded")
	}
	if _, err := s.MaxSim(whole, nil); err == nil {
		t.Error("no weights for a state: compared")
	}
}

func TestMaxSim(t *testing.T) {
	t.Parallel()
	x, y, z := []float32{1, 0, 0, 0}, []float32{0, 1, 0, 0}, []float32{0, 0, 1, 0}
	rows := func(vs ...[]float32) (out []float32) {
		for _, v := range vs {
			out = append(out, v...)
		}
		return out
	}
	tests := map[string]struct {
		question, passage []float32
		weights           []float64
		want              float64
	}{
		"all covered":                   {rows(x, y), rows(y, z, x), []float64{1, 1}, 1},
		"half covered":                  {rows(x, y), rows(x, x), []float64{1, 1}, .5},
		"what is not covered weighs 3":  {rows(x, y), rows(x), []float64{1, 3}, .25},
		"what is not covered weighs 0":  {rows(x, y), rows(x), []float64{1, 0}, 1},
		"weights need not sum to 1":     {rows(x, y), rows(x), []float64{10, 10}, .5},
		"no weight at all":              {rows(x), rows(x), []float64{0}, 0},
		"a question without states":     {nil, rows(x), nil, 0},
		"a passage without states":      {rows(x), nil, []float64{1}, 0},
		"the best state counts, once":   {rows(x), rows(z, x, x, z), []float64{1}, 1},
		"all products may be under 0":   {rows(x), []float32{-1, 0, 0, 0}, []float64{1}, -1},
		"order of a passage is nothing": {rows(x, z), rows(z, y, x), []float64{2, 1}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := States{Dimensions: 4, Vectors: tt.question, Places: places(len(tt.question) / 4)}
			got, err := s.MaxSim(EncodeStates(tt.passage, 4), tt.weights)
			if err != nil {
				t.Fatal(err)
			}
			// A row of 4 numbers is coded coarsely: the other three are half a
			// step each.
			if math.Abs(got-tt.want) > .08 {
				t.Errorf("%.3f, want %.3f", got, tt.want)
			}
		})
	}
}

// MaxSim is the formula, written out over decoded states, and more states of a
// passage never lower it.
func TestMaxSimProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		dims, n, m := 1+r.IntN(40), 1+r.IntN(6), 1+r.IntN(6)
		s := States{Dimensions: dims, Vectors: randomRows(r, n, dims), Places: places(n)}
		coded := EncodeStates(randomRows(r, m, dims), dims)
		weights, want, total := make([]float64, n), 0.0, 0.0
		decoded, err := DecodeStates(coded, dims)
		if err != nil {
			t.Fatal(err)
		}
		for i := range weights {
			weights[i] = r.Float64() + .01
			best := math.Inf(-1)
			for j := range m {
				best = max(best, product(s.Vectors[i*dims:(i+1)*dims], decoded[j*dims:(j+1)*dims]))
			}
			want, total = want+weights[i]*best, total+weights[i]
		}
		got, err := s.MaxSim(coded, weights)
		if err != nil || math.Abs(got-want/total) > 1e-5 {
			t.Fatalf("%v, %v; want %v", got, err, want/total)
		}
		more, _ := s.MaxSim(append(coded, EncodeStates(randomRows(r, 2, dims), dims)...), weights)
		if more < got-1e-6 {
			t.Fatalf("with more states %v, before %v", more, got)
		}
	})
}

func FuzzMaxSim(f *testing.F) {
	f.Add([]byte{}, 3)
	f.Add(EncodeStates([]float32{1, 0, 0}, 3), 3)
	f.Fuzz(func(t *testing.T, coded []byte, dims int) {
		if dims > 1000 || dims < 0 {
			return
		}
		s := States{Dimensions: dims, Vectors: make([]float32, dims), Places: places(1)}
		rows, err := DecodeStates(coded, dims)
		if _, alike := s.MaxSim(coded, []float64{1}); (err == nil) != (alike == nil) {
			t.Fatalf("decoding gives %v, comparing %v", err, alike)
		}
		if err == nil && len(rows)%dims != 0 {
			t.Fatalf("%d numbers of %d dimensions", len(rows), dims)
		}
	})
}

func BenchmarkMaxSim(b *testing.B) {
	const dims = 384
	r := rand.New(rand.NewPCG(1, 1))
	s := States{Dimensions: dims, Vectors: randomRows(r, 20, dims), Places: places(20)}
	weights := make([]float64, 20)
	for i := range weights {
		weights[i] = 1
	}
	passages := make([][]byte, 50)
	for i := range passages {
		passages[i] = EncodeStates(randomRows(r, 170, dims), dims)
	}
	for b.Loop() {
		for _, p := range passages {
			if _, err := s.MaxSim(p, weights); err != nil {
				b.Fatal(err)
			}
		}
	}
}
