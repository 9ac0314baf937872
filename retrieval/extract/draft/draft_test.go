package draft_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
)

// outline writes a tree as lines: kind, place and text of each block.
func outline(t doctree.Tree) string {
	var b strings.Builder
	var write func(blocks []doctree.Block, indent string)
	write = func(blocks []doctree.Block, indent string) {
		for _, x := range blocks {
			b.WriteString(indent + string(x.Kind) + " " + x.Place + " " + strings.ReplaceAll(t.Canonical[x.Span.FromByte:x.Span.ToByte], "\n", "/") + "\n")
			write(x.Parts, indent+"  ")
		}
	}
	for _, s := range t.Sections {
		b.WriteString("# " + strings.Join(s.Path, " > ") + "\n")
		write(s.Blocks, "")
	}
	return b.String()
}

func TestWhatIsWrittenBecomesATree(t *testing.T) {
	t.Parallel()
	d := draft.New(bounds.Limits{}.Filled(), false)
	d.Place = "page=1"
	d.Heading(1, "Guide")
	d.Add(doctree.Paragraph, "  One\u00a0two \n three ")
	d.Add(doctree.Paragraph, " \n ")
	d.Heading(2, "Prices")
	d.Row(true, []string{"", "A", "B"})
	d.Place = "page=2"
	d.Row(false, []string{"x", "1 \n 2", "", ""})
	d.Row(false, []string{"", ""})
	d.Break()
	d.Row(false, []string{"other"})
	d.Add(doctree.Item, "i")
	d.Add(doctree.Item, "j")
	tree, err := d.Tree("Guide", nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# 
heading page=1 Guide
paragraph page=1 One two / three
# Prices
heading page=1 Prices
table page=1 |	A	B/x	1 2
  headrow page=1 |	A	B
  row page=2 x	1 2
table page=2 other
  row page=2 other
list page=2 i/j
  item page=2 i
  item page=2 j
`
	if diff := cmp.Diff(want, outline(tree)); diff != "" {
		t.Error(diff)
	}
	if s := tree.Sections[1].Span; s.SourceTo != 0 {
		t.Errorf("source bytes of what has none: %+v", s)
	}
}

func TestCopiedTextLeadsToItsSource(t *testing.T) {
	t.Parallel()
	const source = `"a ""b""", c`
	d := draft.New(bounds.Limits{}.Filled(), true)
	d.Begin(doctree.Paragraph)
	d.Copy(source[1:4], 1)
	d.Copy(source[5:7], 5)
	d.Text("\t")
	d.Copy(source[11:12], 11)
	d.End()
	tree, err := d.Tree("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Canonical != "a \"b\"\tc" {
		t.Fatalf("%q", tree.Canonical)
	}
	if s := tree.Span(6, 7); source[s.SourceFrom:s.SourceTo] != "c" {
		t.Errorf("%+v", s)
	}
	if s := tree.Span(0, 4); source[s.SourceFrom:s.SourceTo] != `a ""b` {
		t.Errorf("%+v", s)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	d := draft.New(bounds.Limits{Cells: 3}.Filled(), false)
	d.Row(false, []string{"a", "b"})
	d.Row(false, []string{"c", "d"})
	if _, err := d.Tree("", nil); err == nil || !strings.Contains(err.Error(), "more than 3 cells") {
		t.Error(err)
	}
	d = draft.New(bounds.Limits{Text: 10}.Filled(), false)
	d.Add(doctree.Paragraph, "more than ten bytes")
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), "of text, which is the limit") {
		t.Error(err)
	}
}

func TestCleanTextHoldsNothingThatCommands(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := draft.Clean(string(rapid.SliceOf(rapid.Byte()).Draw(r, "bytes")) + rapid.String().Draw(r, "text"))
		if strings.ContainsFunc(s, func(c rune) bool {
			return unicode.IsControl(c) && c != '\n' && c != '\t' || c >= 0x202A && c <= 0x202E
		}) || strings.ToValidUTF8(s, "") != s {
			r.Fatalf("%q", s)
		}
	})
}

func TestNumbersAreNoNamesOfColumns(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"12": true, "€ 4.50": true, "2024-01-05": true, "10%": true, "12 kg": true, "(3)": true,
		"Name": false, "Q1": false, "Phone 1": false, "": false, "Address line 2": false,
	} {
		if draft.Number(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
