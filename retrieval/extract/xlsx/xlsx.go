// Package xlsx reads Excel workbooks with excelize.
//
// Its one idea: a row is read as it shows: numbers and dates in the format of
// the cell, formulas by the value that was saved, a merged cell in every row
// that it covers. Each visible sheet is a section; an empty row ends a table;
// the first row of a table whose cells are all words names its columns. Rows
// are placed by sheet and range: "sheet=Prices&range=A2:D9".
//
// It computes no formula, and reads no charts, comments or macros. Hidden
// sheets are left out, with a warning.
package xlsx

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/xuri/excelize/v2"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/ooxml"
)

const what = "Excel workbook"

// Read builds the tree of a workbook.
func Read(ctx context.Context, data []byte, password string, l bounds.Limits) (doctree.Tree, error) {
	merged, err := check(ctx, data, password, l)
	if err != nil {
		return doctree.Tree{}, err
	}
	f, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{
		Password: password, UnzipSizeLimit: l.Unpacked, UnzipXMLSizeLimit: min(16<<20, l.Unpacked),
		ShortDatePattern: "yyyy-mm-dd", LongDatePattern: "yyyy-mm-dd",
	})
	if err != nil {
		return doctree.Tree{}, bounds.Refuse("the %s is damaged (%v): open and save it again", what, err)
	}
	defer func() { _ = f.Close() }() // only read
	d := draft.New(l, false)
	var hidden []string
	d.Facts.Unit = "sheet"
	for _, name := range f.GetSheetList() {
		d.Facts.Total++
		if shown, err := f.GetSheetVisible(name); err == nil && !shown {
			hidden = append(hidden, name)
			continue
		}
		d.Facts.Covered++
		if err := sheet(ctx, d, f, name, merged[name]); err != nil {
			return doctree.Tree{}, err
		}
	}
	d.Facts.Hidden = hidden
	if len(hidden) > 0 {
		d.Warn(fmt.Sprintf("left out %d hidden sheets: %s", len(hidden), strings.Join(hidden, ", ")))
	}
	title := ""
	if props, err := f.GetDocProps(); err == nil {
		title = props.Title
	}
	return d.Tree(title, nil)
}

// check refuses what cannot be opened or is over a limit, and finds the merged
// cells of each sheet. Those of an encrypted workbook stay unknown.
func check(ctx context.Context, data []byte, password string, l bounds.Limits) (map[string][]merge, error) {
	p, main, err := ooxml.Open(ctx, data, ooxml.Format{Name: what, Ending: ".xlsx", Folder: "xl/"}, password, l)
	if err != nil {
		if password != "" && !bytes.HasPrefix(data, []byte("PK")) {
			if plain, err := excelize.Decrypt(data, &excelize.Options{Password: password}); err == nil && bytes.HasPrefix(plain, []byte("PK")) {
				return check(ctx, plain, "", l)
			}
		}
		return nil, err
	}
	rels, err := p.Relations(ctx, main)
	if err != nil {
		return nil, err
	}
	parts := map[string]string{}
	for _, r := range rels {
		parts[r.ID] = r.Target
	}
	out := map[string][]merge{}
	var fault error
	err = p.Walk(ctx, main, func(e ooxml.Element) {
		if e.Start && e.Name == "sheet" && fault == nil {
			var xml []byte
			xml, fault = p.Read(ctx, parts[e.Attr("r:id")])
			out[e.Attr("name")] = merges(xml)
		}
	})
	if err == nil {
		err = fault
	}
	return out, err
}

// merge is a merged range that covers several rows, columns and rows from 1.
type merge struct{ column, fromRow, toRow int }

var mergeCell = regexp.MustCompile(`<(?:\w+:)?mergeCell\s[^>]*ref="([A-Z]{1,3}[0-9]{1,7}):([A-Z]{1,3}[0-9]{1,7})"`)

// maxMerges bounds what is looked at for each row.
const maxMerges = 10_000

func merges(xml []byte) []merge {
	var out []merge
	for _, m := range mergeCell.FindAllSubmatch(xml, maxMerges) {
		column, from, err1 := excelize.CellNameToCoordinates(string(m[1]))
		_, to, err2 := excelize.CellNameToCoordinates(string(m[2]))
		if err1 == nil && err2 == nil && to > from {
			out = append(out, merge{column, from, to})
		}
	}
	return out
}

// sheet writes the rows of one sheet.
func sheet(ctx context.Context, d *draft.Document, f *excelize.File, name string, merged []merge) error {
	rows, err := f.Rows(name)
	if err != nil {
		d.Warn(fmt.Sprintf("the sheet %s cannot be read (%v)", name, err))
		return nil
	}
	defer func() { _ = rows.Close() }() // only read
	d.Section(1, name)
	t := table{d: d, sheet: escape(name), merged: merged, held: map[merge]string{}}
	for n := 1; rows.Next(); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		cells, err := rows.Columns()
		if err != nil {
			d.Warn(fmt.Sprintf("the sheet %s is damaged at row %d (%v): what follows is not read", name, n, err))
			return nil
		}
		t.row(n, cells)
		if d.Err() != nil {
			return d.Err()
		}
	}
	return rows.Error()
}

// table follows the rows of a sheet.
type table struct {
	d      *draft.Document
	sheet  string
	merged []merge
	held   map[merge]string // value of a merged cell that is open
	headed bool             // the table has its header, or none
}

func (t *table) row(n int, cells []string) {
	cells = t.fill(n, cells)
	first, last, filled := 0, 0, 0
	words := true
	for i, c := range cells {
		if strings.TrimSpace(c) == "" {
			continue
		}
		if filled++; first == 0 {
			first = i + 1
		}
		last = i + 1
		words = words && !draft.Number(c)
	}
	if filled == 0 {
		t.headed = false
		t.d.Break()
		return
	}
	t.d.Place = "sheet=" + t.sheet + "&range=" + doctree.Range(first, n, last, n)
	head := !t.headed && filled > 1 && words
	t.headed = t.headed || filled > 1
	t.d.Row(head, cells)
}

// fill repeats the values of merged cells in the rows that they cover.
func (t *table) fill(n int, cells []string) []string {
	for _, m := range t.merged {
		if n < m.fromRow || n > m.toRow {
			continue
		}
		for len(cells) < m.column {
			cells = append(cells, "")
		}
		if n == m.fromRow {
			t.held[m] = cells[m.column-1]
		} else if cells[m.column-1] == "" {
			cells[m.column-1] = t.held[m]
		}
	}
	return cells
}

// escape makes a name safe in a fragment and leaves letters readable.
func escape(s string) string {
	return strings.NewReplacer("%", "%25", "&", "%26", "=", "%3D", "#", "%23", "+", "%2B", " ", "%20").Replace(draft.Clean(s))
}
