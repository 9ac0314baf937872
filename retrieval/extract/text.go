package extract

import (
	"context"
	"regexp"

	"footnote/retrieval/doctree"
)

// blankLine separates paragraphs.
var blankLine = regexp.MustCompile(`\n\s*\n`)

// parseText makes one section of paragraphs. Plain text names no headings; a
// title is taken from the front matter or the file name.
func parseText(_ context.Context, in input) (doctree.Tree, error) {
	t := doctree.New(in.text, in.source)
	t.Title = in.title
	s := doctree.Section{Span: t.Span(in.body, len(in.text))}
	from := in.body
	for _, gap := range append(blankLine.FindAllStringIndex(in.text[in.body:], -1), []int{len(in.text) - in.body, len(in.text) - in.body}) {
		if a, b := t.Trim(from, in.body+gap[0]); a < b {
			s.Blocks = append(s.Blocks, doctree.Block{Kind: doctree.Paragraph, Span: t.Span(a, b)})
		}
		from = in.body + gap[1]
	}
	t.Sections = []doctree.Section{s}
	return t, nil
}
