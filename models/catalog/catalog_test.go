package catalog

import (
	"encoding/json"
	"errors"
	"io/fs"
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
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "footnote eval gate") {
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

func TestReadCard(t *testing.T) {
	t.Parallel()
	whole := func(change func(map[string]any)) string {
		c := card(t, DefaultEmbedder)
		c.Name = "own"
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		if data, err = json.Marshal(m); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	files := func(name, sum string, n any) func(map[string]any) {
		return func(m map[string]any) {
			m["files"] = append(m["files"].([]any), map[string]any{"name": name, "sha256": sum, "bytes": n})
		}
	}
	good := strings.Repeat("ab", 32)
	for situation, tc := range map[string]struct{ card, want string }{
		"whole":               {whole(func(map[string]any) {}), ""},
		"another file":        {whole(files("onnx/data.bin", good, 1)), ""},
		"empty":               {"", "EOF"},
		"unknown key":         {whole(func(m map[string]any) { m["windw"] = 1 }), `unknown field "windw"`},
		"two cards":           {whole(func(map[string]any) {}) + "{}", "text after the card"},
		"name with a slash":   {whole(func(m map[string]any) { m["name"] = "a/b" }), "name"},
		"name of a parent":    {whole(func(m map[string]any) { m["name"] = ".." }), "name"},
		"a shipped model's":   {whole(func(m map[string]any) { m["name"] = DefaultEmbedder }), "choose another"},
		"no licence":          {whole(func(m map[string]any) { m["licence"] = "" }), "licence"},
		"no files":            {whole(func(m map[string]any) { m["files"] = nil }), "files names no " + Tokenizer},
		"file over the top":   {whole(files("../x", good, 1)), "not a path inside"},
		"absolute file":       {whole(files("/x", good, 1)), "not a path inside"},
		"short checksum":      {whole(files("x", "abcd", 1)), "not 64 hex digits"},
		"no size":             {whole(files("x", good, 0)), "bytes is 0"},
		"unknown pooling":     {whole(func(m map[string]any) { m["pooling"] = "cls" }), "pooling"},
		"unknown kind":        {whole(func(m map[string]any) { m["kind"] = "generator" }), "kind"},
		"unknown input":       {whole(func(m map[string]any) { m["inputs"] = []string{"input_ids", "pixels"} }), "pixels"},
		"no dimensions":       {whole(func(m map[string]any) { m["dimensions"] = 0 }), "dimensions"},
		"late over range":     {whole(func(m map[string]any) { m["min_late"] = 1.5 }), "min_late"},
		"distance over range": {whole(func(m map[string]any) { m["max_distance"] = 2.5 }), "max_distance"},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			got, err := ReadCard(fstest.MapFS{CardFile: {Data: []byte(tc.card)}})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q in it", err, tc.want)
				}
				return
			}
			if err != nil || got.Name != "own" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if _, err := ReadCard(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no card: %v", err)
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

func FuzzParseCard(f *testing.F) {
	for _, c := range Cards() {
		data, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"name":"a","files":[{"name":"../b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCard(data)
		if err != nil {
			return
		}
		out, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseCard(out)
		if err != nil {
			t.Fatalf("written and read again: %v", err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("written and read again it differs:\n%s", diff)
		}
		for _, f := range c.Files {
			if !fs.ValidPath(f.Name) || f.Name == "." {
				t.Errorf("accepted the file name %q", f.Name)
			}
		}
	})
}

func card(t testing.TB, name string) Card {
	t.Helper()
	c, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
