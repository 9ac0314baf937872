// Package office reads Word and PowerPoint files.
//
// Its one idea: a file is read as it prints or shows. Of tracked changes the
// final text counts, of a text box with a fallback the box; comments, hidden
// text, hidden slides and the numbers of pages are left out. Headings follow
// the styles, whatever they are called; a merged cell reads in every row that
// it covers.
//
// Slides are placed by their number, "slide=2", their notes too. Word files
// have no pages before somebody lays them out, and so no places.
package office

import (
	"context"
	"strings"

	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/ooxml"
)

// coreTitle is the title that the file's properties name.
func coreTitle(ctx context.Context, p *ooxml.Package) (string, error) {
	title, inTitle := "", false
	rels, err := p.Relations(ctx, "")
	for _, r := range rels {
		if r.Kind != "core-properties" || err != nil {
			continue
		}
		err = p.Walk(ctx, r.Target, func(e ooxml.Element) {
			if e.Name == "title" {
				inTitle = e.Start
			}
			if inTitle {
				title += e.Text
			}
		})
	}
	return title, err
}

// grid is a table in the making.
type grid struct {
	rows   [][]string
	heads  []bool // rows that the file calls headers
	row    []string
	head   bool
	held   map[int]string // values of the cells above that are merged downwards
	cell   []string       // paragraphs of the open cell
	span   int            // columns that the open cell covers
	below  bool           // it goes on in the rows below
	merged bool           // it continues the cell above
	gone   bool           // the open row is a deleted one
}

func newGrid() *grid { return &grid{held: map[int]string{}} }

func (g *grid) openRow()  { g.row, g.head, g.gone = nil, false, false }
func (g *grid) openCell() { g.cell, g.span, g.below, g.merged = nil, 1, false, false }

// maxSpan bounds the columns that one cell may claim.
const maxSpan = 1024

func (g *grid) closeCell() {
	at, value := len(g.row), strings.Join(g.cell, " ")
	switch {
	case g.merged && strings.TrimSpace(value) == "":
		value = g.held[at]
	case g.below:
		g.held[at] = value
	default:
		delete(g.held, at)
	}
	g.row = append(g.row, value)
	for range min(max(g.span, 1), maxSpan) - 1 {
		g.row = append(g.row, "")
	}
}

func (g *grid) closeRow() {
	if g.gone {
		return
	}
	g.rows, g.heads = append(g.rows, g.row), append(g.heads, g.head)
}

// write writes the rows as one table.
func (g *grid) write(d *draft.Document) {
	d.Break()
	for i, row := range g.rows {
		d.Row(i == 0 && len(g.rows) > 1 && (g.heads[i] || words(row)), row)
	}
	d.Break()
}

// words reports a row of several cells without numbers, as names of columns
// are.
func words(row []string) bool {
	filled := 0
	for _, c := range row {
		if strings.TrimSpace(c) != "" {
			filled++
		}
		if draft.Number(c) {
			return false
		}
	}
	return filled > 1
}
