package eval

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMcNemar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b, c int
		want float64
	}{
		{0, 0, 1}, {1, 0, 1}, {5, 5, 1}, {0, 6, 0.03125}, {6, 0, 0.03125},
		{2, 10, 2 * (1 + 12 + 66) / 4096.}, {0, 400, 0},
	} {
		if got := mcnemar(c.b, c.c); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d against %d: %g, want %g", c.b, c.c, got, c.want)
		}
	}
}

func TestPermuted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		differences []float64
		low, high   float64
	}{
		"nothing":         {nil, 1, 1},
		"no difference":   {[]float64{0, 0, 0}, 1, 1},
		"one question":    {[]float64{0.5}, 1, 1},
		"all the same":    {slices.Repeat([]float64{0.5}, 6), 0.025, 0.038}, // 2 of 64
		"evenly both":     {[]float64{0.5, -0.5, 0.5, -0.5}, 1, 1},
		"many that agree": {slices.Repeat([]float64{0.1}, 50), 0, 0.0002},
	} {
		if got := permuted(c.differences); got < c.low || got > c.high {
			t.Errorf("%s: %g, want %g to %g", name, got, c.low, c.high)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	without, with := Ranks{}, Ranks{}
	for _, m := range Methods {
		without[m], with[m] = []int{1, 0, 5, 4}, []int{1, 2, 4, 10}
	}
	got := Compare(Set{Name: "s"}, without, with)
	want := Change{
		Set: "s", Method: "dense", Found: 2, Lost: 1, Chance: 1,
		Without: Row{Set: "s", Method: "dense", Questions: 4, R1: 0.25, R4: 0.5, R20: 0.75, MRR: (1 + 1/5. + 1/4.) / 4},
		With:    Row{Set: "s", Method: "dense", Questions: 4, R1: 0.25, R4: 0.75, R20: 1, MRR: (1 + 1/2. + 1/4. + 1/10.) / 4},
	}
	if d := cmp.Diff(want, got[1], cmpopts.IgnoreFields(Change{}, "ChanceMRR"), cmpopts.EquateApprox(0, 1e-9)); d != "" || len(got) != len(Methods) {
		t.Errorf("%d changes, of dense (-want +got):\n%s", len(got), d)
	}
}
