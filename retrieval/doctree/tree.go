// Package doctree is the one form that every document has after extraction:
// a canonical text and a tree of sections and blocks over it.
//
//	source bytes -> extract -> Tree -> chunk
//
// Its one idea: the tree holds no text of its own. Every node is a range of
// the canonical text, so that whatever is cut from it can be found again
// there, and through the Map also in the source file.
//
// The canonical text is valid UTF-8 with LF line ends. Marks name the ranges
// that are markup; Plain reads a range without them. The package knows no
// format: parsers (package extract) build trees, the chunker (package chunk)
// reads them.
package doctree

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval"
)

// Kind says what a block is.
type Kind string

// The kinds of blocks. A list has items as parts and a table rows; what is
// inside an item are its parts again.
const (
	Heading   Kind = "heading"
	Paragraph Kind = "paragraph"
	List      Kind = "list"
	Item      Kind = "item"
	Table     Kind = "table"
	HeadRow   Kind = "headrow"
	Row       Kind = "row"
	Code      Kind = "code"
)

// Tree is one extracted document.
type Tree struct {
	Title     string
	Format    string         // markdown, html, text, …
	Language  string         // ISO 639-1, "" unknown
	Canonical string         // valid UTF-8, LF line ends
	Front     map[string]any // front matter, nil if there is none
	// Access is the raw access list of the front matter. SECURITY: nil means
	// that none was given; empty and not nil means that one was given and
	// names nobody. Callers must not treat the second as the first.
	Access   []string
	Sections []Section // in reading order
	Marks    []Mark    // sorted, not overlapping
	Warnings []string  // what an operator should know, for example lost bytes
	Facts    Facts     // pages read of all, and the like

	places index
}

// Section is what stands under one heading up to the next heading of any
// level. The text before the first heading is a section too.
type Section struct {
	Path   []string // headings from the outside in, plain, without the title
	Level  int      // of the heading, 0 for text before the first one
	Span   retrieval.Span
	Blocks []Block
}

// Block is a node of the tree. Blocks of one section, and parts of one block,
// follow one another without overlap, and only white space lies between them.
type Block struct {
	Kind  Kind
	Span  retrieval.Span
	Place string // where it lies in a paged source, as a fragment: "page=3"; "" none
	Parts []Block
}

// Mark is a range of canonical bytes that is markup. Plain reads As in its
// place.
type Mark struct {
	From, To int
	As       string
}

// New makes a tree without sections over a canonical text. m may be nil: the
// canonical bytes are the source bytes.
func New(canonical string, m *Map) Tree {
	return Tree{Canonical: canonical, places: newIndex(canonical, m)}
}

// Span describes the canonical bytes [from, to) in all units. It takes time
// logarithmic in the document.
func (t *Tree) Span(from, to int) retrieval.Span {
	s := retrieval.Span{FromByte: from, ToByte: to, From: t.places.runes(t.Canonical, from), To: t.places.runes(t.Canonical, to)}
	s.SourceFrom, s.SourceTo = t.places.source.Range(from, to)
	return s
}

// Plain reads the canonical bytes [from, to) as a person would: without
// marks, without control characters, with no more than one empty line in a
// row, trimmed.
func (t *Tree) Plain(from, to int) string {
	var b strings.Builder
	i := sort.Search(len(t.Marks), func(i int) bool { return t.Marks[i].To > from })
	for ; i < len(t.Marks) && t.Marks[i].From < to; i++ {
		if m := t.Marks[i]; m.From >= from {
			b.WriteString(t.Canonical[from:m.From])
			b.WriteString(m.As)
		}
		from = min(t.Marks[i].To, to)
	}
	b.WriteString(t.Canonical[from:to])
	return tidy(b.String())
}

// AddMarks adds marks in any order. Of overlapping ones the earlier and longer
// stays.
func (t *Tree) AddMarks(ms []Mark) {
	all := append(t.Marks, ms...)
	slices.SortStableFunc(all, func(a, b Mark) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return b.To - a.To
	})
	end, kept := 0, all[:0]
	for _, m := range all {
		if m.From >= end && m.To > m.From {
			kept, end = append(kept, m), m.To
		}
	}
	t.Marks = kept
}

// Trim narrows a range so that it begins and ends with no white space.
func (t *Tree) Trim(from, to int) (int, int) {
	s := t.Canonical[from:to]
	left := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	return from + left, from + max(left, len(strings.TrimRightFunc(s, unicode.IsSpace)))
}

// tidy drops what is no readable character and closes up empty lines.
func tidy(s string) string {
	out, lines := make([]byte, 0, len(s)), 0
	for _, r := range s {
		switch {
		case r == '\n':
			for len(out) > 0 && (out[len(out)-1] == ' ' || out[len(out)-1] == '\t') {
				out = out[:len(out)-1]
			}
			if lines++; lines > 2 {
				continue
			}
		case r == ' ' || r == '\t':
		case unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c':
			continue
		default:
			lines = 0
		}
		out = utf8.AppendRune(out, r)
	}
	return strings.TrimSpace(string(out))
}
