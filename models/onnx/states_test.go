package onnx

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/models"
	"footnote/models/catalog"
)

// kept pieces of the shipped embedder's vocabulary, as text.
func TestKeptPieces(t *testing.T) {
	tok := load(t, tokenizerFile(t, catalog.DefaultEmbedder))
	const prefix = "query: "
	for situation, tt := range map[string]struct{ text, want string }{
		"the first word counts, the prefix does not": {"query here", "que|ry| here"},
		"punctuation has no say":                     {"how, then?", "how| then"},
		"nothing but punctuation is kept whole":      {"?!", "?!"},
		"no text":                                    {"", ""},
		"Korean":                                     {"비밀번호를 바꿔?", "비밀번호|를| 바|꿔"},
		"digits count":                               {"ERR-4012", "ERR|-40|12"},
		"a NUL and broken UTF-8":                     {"a\x00b \xff", "a|�b"},
	} {
		whole := readable(prefix + tt.text)
		_, places := tok.placed(whole)
		var got []string
		for _, p := range keep(whole, places, len(prefix), 1).places {
			got = append(got, whole[len(prefix):][p.From:p.To])
		}
		if d := cmp.Diff(tt.want, strings.Join(got, "|")); d != "" {
			t.Errorf("%s:\n%s", situation, d)
		}
	}
}

func TestKeepCountsLeadingTokens(t *testing.T) {
	t.Parallel()
	places := []models.Place{{From: 0, To: 2}, {From: 2, To: 3}, {From: 3, To: 4}, {From: 4, To: 6}}
	got := keep("p:a-bc", places, 2, 5)
	want := kept{rows: []int{6, 8}, places: []models.Place{{From: 0, To: 1}, {From: 2, To: 4}}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(kept{})); d != "" {
		t.Error(d)
	}
}

func TestUnitRows(t *testing.T) {
	t.Parallel()
	hidden := []float32{0, 0, 3, 4, 0, 2}
	got, err := unitRows(hidden, []int{2, 1}, 2)
	if d := cmp.Diff([]float32{0, 1, .6, .8}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	hidden[2] = float32(math.NaN())
	for _, row := range []int{0, 1} {
		if _, err := unitRows(hidden, []int{row}, 2); err == nil {
			t.Errorf("row %d, of no length, is taken", row)
		}
	}
}

// A cut text has the states of its window: the same number for any tail.
func TestStatesOfACutText(t *testing.T) {
	e := embedder(t)
	long, err := e.EmbedPassages(t.Context(), []string{strings.Repeat("word ", 600), strings.Repeat("word ", 900)})
	if err != nil {
		t.Fatal(err)
	}
	if !long[0].Truncated || len(long[0].Coded) != len(long[1].Coded) || len(long[0].Coded) == 0 {
		t.Errorf("states of %d and %d bytes", len(long[0].Coded), len(long[1].Coded))
	}
}
