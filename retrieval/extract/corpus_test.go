package extract_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval"
	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
)

// corpora are the documents beside the checkout where they are present, and
// always those in testdata.
func corpora(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, root := range []string{"testdata/docs", "../../../shared/data"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && extract.Supported(path) && filepath.Ext(path) != "" {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// words counts as a tokenizer would that splits words every four characters.
func words(s string) int {
	n := 0
	for _, w := range strings.Fields(s) {
		n += (utf8.RuneCountInString(w) + 3) / 4
	}
	return n
}

func TestEveryCorpusDocumentKeepsTheContract(t *testing.T) {
	t.Parallel()
	files := corpora(t)
	if len(files) < 3 {
		t.Fatalf("only %d documents found", len(files))
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := extract.Extract(context.Background(), extract.Source{Path: path, Data: data})
		if err != nil {
			if len(data) > 0 {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		for _, o := range []chunk.Options{{Count: words}, {Count: words, Budget: 60}, {Count: words, Size: 1200}, {Strategy: chunk.A}, {Strategy: chunk.B}, {Strategy: chunk.C}, {Strategy: chunk.D}, {Strategy: chunk.E}, {Strategy: chunk.F}} {
			cs, err := chunk.Split(tree, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults(tree, data, cs, o) {
				t.Errorf("%s with %s: %s", path, o.Strategy, fault)
			}
		}
	}
}

// faults checks what holds for the chunks of every document.
func faults(tree doctree.Tree, data []byte, cs []retrieval.Chunk, o chunk.Options) (found []string) {
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if len(cs) == 0 {
		fault("no chunks")
		return found
	}
	verbatim := tree.Format != "html" && tree.Canonical == string(data)
	points := []rune(tree.Canonical)
	last, overlaps := 0, strings.Contains("BDF", string(o.Strategy)) && o.Strategy != ""
	for i, c := range cs {
		s := c.Span
		switch {
		case c.ID.Ordinal != i:
			fault("chunk %d has ordinal %d", i, c.ID.Ordinal)
		case c.Content == "" || c.Content != tree.Canonical[s.FromByte:s.ToByte]:
			fault("chunk %d: content is not the canonical bytes", i)
		case c.Content != string(points[s.From:s.To]):
			fault("chunk %d: content is not the canonical code points", i)
		case verbatim && c.Content != string(data[s.SourceFrom:s.SourceTo]):
			fault("chunk %d: content is not the source bytes", i)
		case s.SourceFrom < 0 || s.SourceTo <= s.SourceFrom || s.SourceTo > len(data):
			fault("chunk %d: source span %d-%d of %d", i, s.SourceFrom, s.SourceTo, len(data))
		case c.Locator != fmt.Sprintf("#char=%d,%d", s.From, s.To):
			fault("chunk %d: locator %s", i, c.Locator)
		case !overlaps && s.FromByte < last:
			fault("chunk %d overlaps the one before", i)
		case strings.TrimSpace(c.Text) == "" || strings.ContainsFunc(c.Text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
			fault("chunk %d: text is blank or holds control characters", i)
		case o.Count != nil && words(c.Text) > max(o.Budget, 60) && words(c.Text) > 500:
			fault("chunk %d: %d tokens", i, words(c.Text))
		case o.Budget > 0 && words(c.Text) > o.Budget:
			fault("chunk %d: %d tokens over %d", i, words(c.Text), o.Budget)
		}
		if s.FromByte > last {
			gap(&tree, i, last, s.FromByte, fault)
		}
		last = max(last, s.ToByte)
	}
	gap(&tree, len(cs), last, len(tree.Canonical), fault)
	return found
}

// gap reports text between two chunks that is in neither. The front matter
// lies outside the sections.
func gap(tree *doctree.Tree, i, from, to int, fault func(string, ...any)) {
	from = max(from, tree.Sections[0].Span.FromByte)
	if from < to && strings.TrimSpace(tree.Canonical[from:to]) != "" && tree.Plain(from, to) != "" {
		fault("nothing covers %q before chunk %d", tree.Canonical[from:to], i)
	}
}
