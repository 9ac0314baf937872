// Package chunk cuts a document tree into the pieces that are indexed.
//
// Its one idea: a chunk is a range of the canonical text, found there and
// never rebuilt. Content is that range verbatim, to be quoted; Text is the
// same range read without markup, under a header that says where it stands,
// to be embedded, reranked and analysed.
//
//	[title > section > subsection]
//	plain text …
//
// The default strategy packs whole blocks greedily up to a budget of tokens
// and never crosses a section. A block is taken apart only if it alone is over
// the budget: lists into items, tables into rows, code into lines, text into
// sentences, and only what is still too long into words. Six simpler
// strategies are there to measure it against.
//
// The package knows no format and no model: the tree reads its own markup,
// Options.Count counts tokens.
package chunk

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"footnote/retrieval"
	"footnote/retrieval/doctree"
)

// Version changes whenever the same tree would give other chunks.
const Version = "1"

// Strategy is a way to cut.
type Strategy string

// The strategies. A to F cut by characters: A blindly, B with overlap, C at
// boundaries, D at boundaries with overlap, E at boundaries with header, F all
// three.
const (
	Structural Strategy = "structural"
	A          Strategy = "A"
	B          Strategy = "B"
	C          Strategy = "C"
	D          Strategy = "D"
	E          Strategy = "E"
	F          Strategy = "F"
)

// Defaults of Options.
const (
	DefaultBudget  = 500 // tokens
	DefaultSize    = 512 // characters, strategies A to F
	DefaultOverlap = 64  // characters
)

// Options choose how a tree is cut. The zero value of a field is its default.
type Options struct {
	Strategy Strategy         // Structural
	Budget   int              // tokens of Text at most, header included; Structural only
	Count    func(string) int // tokens of a text; Structural needs it
	// Size is the number of characters aimed at. For Structural it is a second
	// limit beside Budget, 0 for none; for A to F the length of a cut.
	Size    int
	Overlap int // characters that B, D and F repeat from the cut before
	// Join is the number of tokens under which a chunk is joined with the one
	// before, across the wall of their sections, if these share a parent and
	// the budget allows; the header then names what they share. 0: never.
	Join int
}

func (o Options) filled() (Options, error) {
	if o.Strategy == "" {
		o.Strategy = Structural
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Overlap == 0 {
		o.Overlap = DefaultOverlap
	}
	if o.Strategy != Structural && o.Size == 0 {
		o.Size = DefaultSize
	}
	switch {
	case !strings.Contains("A B C D E F structural", string(o.Strategy)):
		return o, fmt.Errorf("chunk strategy %q is unknown: use structural or A to F", o.Strategy)
	case o.Strategy == Structural && o.Count == nil:
		return o, errors.New("chunk: the structural strategy needs a token counter")
	case o.Strategy == Structural && o.Budget < 16:
		return o, fmt.Errorf("chunk budget %d is too small: use at least 16 tokens", o.Budget)
	case o.Size < 0 || o.Overlap < 0 || o.Strategy != Structural && o.Overlap >= o.Size:
		return o, fmt.Errorf("chunk size %d with overlap %d: the overlap must be smaller", o.Size, o.Overlap)
	}
	return o, nil
}

// Split cuts a tree into chunks in reading order. It sets everything but the
// document and revision of the ids. In no chunk are only white space, markup
// that reads as nothing, and what stands outside the tree's sections.
func Split(t doctree.Tree, o Options) ([]retrieval.Chunk, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	if o.Strategy == Structural {
		return structural(&t, o), nil
	}
	return measured(&t, o), nil
}

// header names the place of a chunk.
func header(title string, path []string) string {
	return "[" + strings.Join(append([]string{title}, path...), " > ") + "]\n"
}

// shortHeader keeps the header to a quarter of the budget: the outer sections
// go first, then the ends of the names.
func shortHeader(title string, path []string, o Options) string {
	limit := o.Budget / 4
	for {
		h := header(title, path)
		if o.Count(h) <= limit {
			return h
		}
		switch {
		case len(path) > 1:
			path = path[1:]
		case len(path) == 1 && utf8.RuneCountInString(path[0]) > 8:
			path = []string{half(path[0])}
		case utf8.RuneCountInString(title) > 8:
			title = half(title)
		case len(path) == 1:
			path = nil
		default:
			return ""
		}
	}
}

func half(s string) string {
	r := []rune(s)
	return strings.TrimSpace(string(r[:len(r)/2])) + "…"
}

// kinds maps the kinds of leaves to those of chunks.
func kindOf(k doctree.Kind) string {
	switch k {
	case doctree.Code:
		return "code"
	case doctree.Row, doctree.HeadRow, doctree.Table:
		return "table"
	}
	return "text"
}

// locator opens the source at the place: RFC 5147 for text, behind the place
// that doctree.Reach describes where the source has pages, times or cells:
// "#page=3&char=10,90". The characters are those of the canonical text.
func locator(place string, s retrieval.Span) string {
	l := fmt.Sprintf("#char=%d,%d", s.From, s.To)
	if place != "" {
		l = "#" + place + "&" + l[1:]
	}
	return l
}
