package extract_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"footnote/retrieval"
	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
)

// corpora are the documents in testdata and, where they are present, those
// beside the checkout.
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
	for i, path := range files {
		if strings.HasSuffix(path, ".txt") && i%10 != 0 {
			continue // they are many and alike
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := extract.Extract(context.Background(), extract.Source{Path: path, Data: data})
		if err != nil {
			if len(data) > 0 && !strings.Contains(path, "/formats/") { // see TestFormatFiles
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

// traced formats lead every chunk back to bytes of the source. A chunk of HTML
// may consist of what was made.
var traced = map[string]bool{"markdown": true, "text": true, "csv": true, "captions": true}

// faults checks what holds for the chunks of every document.
func faults(tree doctree.Tree, data []byte, cs []retrieval.Chunk, o chunk.Options) (found []string) {
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if len(cs) == 0 {
		fault("no chunks")
		return found
	}
	verbatim := traced[tree.Format] && tree.Canonical == string(data)
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
		case s.SourceFrom < 0 || s.SourceTo < s.SourceFrom || s.SourceTo > len(data) || s.SourceTo == s.SourceFrom && traced[tree.Format]:
			fault("chunk %d: source span %d-%d of %d", i, s.SourceFrom, s.SourceTo, len(data))
		case !strings.HasSuffix(c.Locator, fmt.Sprintf("char=%d,%d", s.From, s.To)) || !strings.HasPrefix(c.Locator, "#"):
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

// check extracts and cuts, and holds every result to the contract.
func check(t *testing.T, name string, data []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tree, err := extract.Extract(ctx, extract.Source{Path: name, Data: data})
	if err != nil {
		if strings.Contains(err.Error(), "parser failed") || ctx.Err() != nil {
			t.Fatal(err)
		}
		return
	}
	if !utf8.ValidString(tree.Canonical) {
		t.Fatal("the canonical text is no UTF-8")
	}
	for _, o := range []chunk.Options{{Count: words}, {Count: words, Budget: 32, Size: 80}, {Strategy: chunk.A, Size: 20, Overlap: 5}, {Strategy: chunk.F, Size: 40, Overlap: 8}} {
		cs, err := chunk.Split(tree, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults(tree, data, cs, o) {
			t.Errorf("%s: %s", o.Strategy, fault)
		}
	}
}

var seeds = []string{
	"# T\n\ntext **b** `c` [l](u) ![a](i) <b>x</b> &amp; \\* <http://x.y>\n\n## S {#id}\n\n- a\n  - b\n\n    c\n1. d\n\n> q\n> > r\n\n```js\ncode\n```\n\n    indented\n\n| a | b |\n|---|---|\n| 1 \\| 2 | |\n\nTitle\n===\n\n[r]: u\n\n***\n",
	"---\ntitle: t\naccess: [everyone]\n---\n<Intro>\n\n:::note x\ny\n:::\n\n!!! tip \"T\"\n    a\n\n    b\n\n> [!NOTE]\n> n\n\n{/* c */} {% a \"b c\" %} x[^1]\n\n[^1]: f\n",
	"<title>t</title><main><h1>h<a class=anchor-link>#</a></h1><p>a&nbsp;b<br>c<ul><li>d<table><tr><th><td>e<table><tr><td>f</table></table><pre>\n g\n</pre><p hidden>x<div>y</main><nav>z",
	"one\r\ntwo\rthree\n\n\u00e9\u3000 \ud55c\uad6d\uc5b4. \x1b[0m \x85\xff \f \u2028",
	"\xff\xfea\x00\x00\xd8b\x00", "\xb0\xa1\xb3\xaa \xb4\xd9", "\x1b$B%Q%9\x1b(B",
}

func fuzz(f *testing.F, name string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, name, data) })
}

func FuzzMarkdown(f *testing.F) { fuzz(f, "a.md") }
func FuzzHTML(f *testing.F)     { fuzz(f, "a.html") }
func FuzzText(f *testing.F)     { fuzz(f, "a.txt") }

func TestDocumentsOfRandomPieces(t *testing.T) {
	t.Parallel()
	pieces := []string{"word ", "Sentence one. ", "한국어 문장입니다. ", "\n", "\n\n", "- ", "1. ", "> ", "# ", "## ", "```\n", "    ", "| a | b |\n", "|---|---|\n", "**", "_", "`", "[x](y)", "<b>", "</b>", "<p>", "<table><tr><td>", "</table>", "<li>", "<pre>", "<h2>", "&amp;", "&#27;", "\\*", "<Note>\n", ":::tip\n", "!!! note\n", "{/* c */}", "{% t \"x y\" %}", "[^1]", "===\n", "---\n", "\r\n", "\U0001F642", "\x1b[m", "\xff", strings.Repeat("long", 40)}
	rapid.Check(t, func(r *rapid.T) {
		data := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 60).Draw(r, "pieces"), "")
		name := rapid.SampledFrom([]string{"a.md", "a.html", "a.txt"}).Draw(r, "name")
		ok := t.Run("", func(t *testing.T) { check(t, name, []byte(data)) })
		if !ok {
			r.Fatalf("%s: %q", name, data)
		}
	})
}
