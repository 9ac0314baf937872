package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"footnote/models/assets"
)

func TestShippedCards(t *testing.T) {
	t.Parallel()
	for _, c := range Cards() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
			dir, err := assets.Model(c.Name)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(dir); err != nil {
				t.Error(err)
			}
			for _, f := range c.Files {
				if info, err := fs.Stat(dir, f.Name); err != nil || info.Size() != f.Bytes {
					t.Errorf("%s: %v, the card says %d bytes", f.Name, err, f.Bytes)
				}
			}
		})
	}
}

// Cuts belong to one model: each card has its own, none is taken over. The gate
// of a card without one does not open.
func TestCase_Q5_CutsBelongToModels(t *testing.T) {
	t.Parallel()
	for _, c := range Cards() {
		c.MaxDistance, c.MinProbability = 0, 0
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "measured for this model") {
			t.Errorf("%s without a cut: %v", c.Name, err)
		}
	}
}

// A reranker's cut is a probability, not a logit, whose scale differs.
func TestCase_Q6_CutIsAProbability(t *testing.T) {
	t.Parallel()
	for _, cut := range []float64{-4.2, 0, 1, 3} {
		c := card(t, DefaultReranker)
		c.MinProbability = cut
		if c.Validate() == nil {
			t.Errorf("a cut of %v is accepted", cut)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	if c := card(t, DefaultReranker); !c.Covers("en") || !c.Covers("EN") || c.Covers("ko") || c.Covers("") {
		t.Error("the reranker's card names English alone")
	}
	if _, err := Lookup("gone"); err == nil || !strings.Contains(err.Error(), DefaultEmbedder) {
		t.Errorf("the error does not name what there is: %v", err)
	}
	if _, err := assets.Model("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files of an unknown model: %v", err)
	}
}

func TestCardsAreTheCallers(t *testing.T) {
	t.Parallel()
	a := Cards()
	a[0].Files[0].SHA256 = "changed"
	a[0].Languages[0] = "changed"
	if diff := cmp.Diff(a, Cards()); diff == "" {
		t.Error("a change of the result changed the catalog")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	c := small(t, map[string]string{Weights: "weights", Tokenizer: "{}"})
	for situation, tc := range map[string]struct {
		files fstest.MapFS
		name  string
		want  string // of the error
	}{
		"right":            {fstest.MapFS{Weights: {Data: []byte("weights")}}, Weights, ""},
		"one byte changed": {fstest.MapFS{Weights: {Data: []byte("Weights")}}, Weights, "expected sha256 " + sum("weights") + " (7 bytes), found " + sum("Weights")},
		"cut off":          {fstest.MapFS{Weights: {Data: []byte("weigh")}}, Weights, "(5 bytes)"},
		"missing":          {fstest.MapFS{}, Weights, Weights + " is missing"},
		"not of the card":  {fstest.MapFS{"other": {Data: []byte("x")}}, "other", "names no file other"},
		"a directory":      {fstest.MapFS{Weights + "/x": {Data: []byte("x")}}, Weights, "reading " + Weights},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			got, err := c.Read(tc.files, tc.name)
			if tc.want == "" {
				if err != nil || string(got) != "weights" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestVerifyReportsAllFaults(t *testing.T) {
	t.Parallel()
	c := small(t, map[string]string{Weights: "weights", Tokenizer: "{}"})
	err := c.Verify(fstest.MapFS{Weights: {Data: []byte("Weights")}})
	if err == nil || !strings.Contains(err.Error(), Weights) || !strings.Contains(err.Error(), Tokenizer) {
		t.Errorf("not both files are named: %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	file := func(name, sum string, n int64) func(*Card) {
		return func(c *Card) { c.Files = append(slices.Clone(c.Files), File{Name: name, SHA256: sum, Bytes: n}) }
	}
	good := strings.Repeat("ab", 32)
	for situation, tc := range map[string]struct {
		change func(*Card)
		want   string // in the error, "" for none
	}{
		"whole":               {func(*Card) {}, ""},
		"another file":        {file("onnx/data.bin", good, 1), ""},
		"name with a slash":   {func(c *Card) { c.Name = "a/b" }, "name"},
		"name of a parent":    {func(c *Card) { c.Name = ".." }, "name"},
		"no licence":          {func(c *Card) { c.Licence = "" }, "licence"},
		"no files":            {func(c *Card) { c.Files = nil }, "files names no " + Tokenizer},
		"file over the top":   {file("../x", good, 1), "not a path inside"},
		"absolute file":       {file("/x", good, 1), "not a path inside"},
		"the directory":       {file(".", good, 1), "not a path inside"},
		"short checksum":      {file("x", "abcd", 1), "not 64 hex digits"},
		"no size":             {file("x", good, 0), "bytes is 0"},
		"unknown pooling":     {func(c *Card) { c.Pooling = "cls" }, "pooling"},
		"unknown kind":        {func(c *Card) { c.Kind = "generator" }, "kind"},
		"unknown input":       {func(c *Card) { c.Inputs = []string{"input_ids", "pixels"} }, "pixels"},
		"no dimensions":       {func(c *Card) { c.Dimensions = 0 }, "dimensions"},
		"late over range":     {func(c *Card) { c.MinLate = 1.5 }, "min_late"},
		"distance over range": {func(c *Card) { c.MaxDistance = 2.5 }, "max_distance"},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			c := card(t, DefaultEmbedder)
			tc.change(&c)
			err := c.Validate()
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

// All faults come at once.
func TestValidateReportsAllFaults(t *testing.T) {
	t.Parallel()
	err := Card{Kind: Reranker}.Validate()
	for _, want := range []string{"name", "licence", "precision", "window", "languages", "output", "inputs", Weights, Tokenizer, "query_window", "overlap", "min_probability"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not reported: %v", want, err)
		}
	}
}

func card(t testing.TB, name string) Card {
	t.Helper()
	c, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small is a valid card of files with these contents.
func small(t testing.TB, files map[string]string) Card {
	t.Helper()
	c := card(t, DefaultReranker)
	c.Name, c.Files = "small", nil
	for name, content := range files {
		c.Files = append(c.Files, File{name, int64(len(content)), sum(content)})
	}
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}
