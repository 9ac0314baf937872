package catalog_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"footnote/models/catalog"
	"footnote/models/modelstest"
)

func TestParity(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := modelstest.NewEmbedder(modelstest.WithDimensions(8), modelstest.WithWindow(16))
	texts := []string{"rotate the key", strings.Repeat("long ", 20)}
	type sentence struct {
		Text           string    `json:"text"`
		Query, Passage []float32 `json:",omitempty"`
	}
	var file struct {
		Sentences []sentence `json:"sentences"`
	}
	for _, text := range texts {
		q, err := e.EmbedQuery(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		// The stored passage is the opposite vector: cosine -1.
		p := make([]float32, len(q.Vector))
		ps, err := e.EmbedPassages(ctx, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range ps[0].Vector {
			p[i] = -3 * x
		}
		file.Sentences = append(file.Sentences, sentence{text, q.Vector, p})
	}
	got, err := catalog.Parity(ctx, e, store(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 {
		t.Fatalf("%d results, want 4", len(got))
	}
	for i, r := range got {
		want := 1.
		if r.Passage {
			want = -1
		}
		if r.Text != texts[i/2] || r.Passage != (i%2 == 1) || r.Truncated != (i >= 2) || math.Abs(r.Cosine-want) > 1e-6 {
			t.Errorf("result %d: %+v, want cosine %v", i, r, want)
		}
	}
}

func TestParityOfBadFiles(t *testing.T) {
	t.Parallel()
	e := modelstest.NewEmbedder(modelstest.WithDimensions(2))
	type object = map[string]any
	for situation, tc := range map[string]struct {
		file any
		want string
	}{
		"no sentences":        {object{}, "no sentences"},
		"another form":        {[]int{1}, "reading parity sentences"},
		"another model":       {object{"sentences": []object{{"text": "a", "query": []int{1, 2, 3}, "passage": []int{1, 2, 3}}}}, "2 dimensions, the file 3"},
		"a vector is missing": {object{"sentences": []object{{"text": "a", "query": []int{1, 2}}}}, "the file 0"},
		"a zero vector":       {object{"sentences": []object{{"text": "a", "query": []int{0, 0}, "passage": []int{1, 2}}}}, "zero"},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			_, err := catalog.Parity(context.Background(), e, store(t, tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
	if _, err := catalog.Parity(context.Background(), e, filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("a missing file is no error")
	}
}

func store(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "parity.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
