// Package draft writes document trees for formats whose text does not lie in
// the file as a person reads it: office documents, PDF, mail, tables,
// captions.
//
// Its one idea: a parser says what comes next (heading, paragraph, item, row)
// and where it lies; the canonical text, the groups, the sections and the
// spans follow. Blocks are parted by an empty line, items and rows by a line
// end, cells by a tab; a row that begins with an empty cell begins with a bar,
// so that its columns stay where they are. Rows next to one another are one table, items one list.
//
// Text is cleaned on the way in: no control characters, no marks of direction,
// no invalid UTF-8. The package knows no format.
package draft

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
)

// Document is a tree in the making. It is made by New.
type Document struct {
	// Place is where the next blocks lie in the source, as a fragment.
	Place string
	// Facts go into the tree as they are.
	Facts doctree.Facts

	limits   bounds.Limits
	out      strings.Builder
	source   *doctree.Map
	last     int // source byte after the last copied one
	sections []doctree.Section
	heads    []string
	group    doctree.Kind
	open     doctree.Block
	warnings []string
	cells    int
	err      error
}

// New makes an empty document. traced says that text is copied from a source
// whose bytes the tree leads back to; else there are none.
func New(l bounds.Limits, traced bool) *Document {
	d := &Document{limits: l, source: &doctree.Map{}}
	if !traced {
		d.source.Add(0, 0, 1, 0) // no byte has a source
	}
	return d
}

// Err is the limit that was exceeded, if one was. What is added after that is
// dropped.
func (d *Document) Err() error { return d.err }

// Warn adds something that an operator should know.
func (d *Document) Warn(s string) { d.warnings = append(d.warnings, s) }

// Break ends the list or table that is open: what follows is another one.
func (d *Document) Break() { d.group = "" }

// Heading opens a section.
func (d *Document) Heading(level int, text string) {
	if text = line(text); text == "" {
		return
	}
	d.group = ""
	d.sections = append(d.sections, doctree.Section{Level: level})
	d.heads = append(d.heads, text)
	d.Add(doctree.Heading, text)
}

// Section opens a section whose heading stands nowhere in the text.
func (d *Document) Section(level int, name string) {
	d.group = ""
	d.sections = append(d.sections, doctree.Section{Level: level})
	d.heads = append(d.heads, line(name))
}

// Add adds a block of text. Blank text adds nothing.
func (d *Document) Add(kind doctree.Kind, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	d.Begin(kind)
	d.Text(text)
	d.End()
}

// Row adds a row of cells; head says that it names the columns. A row without
// any text adds nothing.
func (d *Document) Row(head bool, cells []string) {
	filled := 0
	clean := make([]string, len(cells))
	for i, c := range cells {
		if clean[i] = line(c); clean[i] != "" {
			filled = i + 1
		}
	}
	if filled == 0 {
		return
	}
	d.BeginRow(head, filled)
	for i, c := range clean[:filled] {
		d.Tab(i, c == "")
		d.put(c)
	}
	d.End()
}

// Tab goes to the cell with this number, from 0, of an open row.
func (d *Document) Tab(cell int, empty bool) {
	switch {
	case cell > 0:
		d.put("\t")
	case empty:
		d.put("|")
	}
}

func (d *Document) fail(format string, args ...any) {
	if d.err == nil {
		d.err = bounds.Refuse(format, args...)
	}
}

// Begin opens a block, to be filled by Text and Copy.
func (d *Document) Begin(kind doctree.Kind) {
	d.open = doctree.Block{Kind: kind, Place: d.Place}
	if d.out.Len() > 0 {
		d.put("\n")
		if g := group(kind); g == "" || g != d.group {
			d.put("\n")
		}
	}
	d.open.Span.FromByte = d.out.Len()
}

// Text writes what does not stand in the source like this.
func (d *Document) Text(s string) { d.put(Clean(s)) }

// Copy writes bytes of canonical source text that begin at src there.
func (d *Document) Copy(s string, src int) {
	if s == "" || d.full(s) {
		return
	}
	d.source.Add(d.out.Len(), src, 1, 1)
	d.last = src + len(s)
	d.out.WriteString(s)
}

// Stand writes characters for width bytes of the source at src that are written
// otherwise there, at most 255.
func (d *Document) Stand(s string, src, width int) {
	for _, r := range Clean(s) {
		if d.full(string(r)) {
			return
		}
		d.source.Add(d.out.Len(), src, utf8.RuneLen(r), width)
		d.out.WriteRune(r)
		src, width = src+width, 0
		d.last = src
	}
}

// put writes clean text without a source.
func (d *Document) put(s string) {
	if s == "" || d.full(s) {
		return
	}
	d.source.Add(d.out.Len(), d.last, 1, 0)
	d.out.WriteString(s)
}

func (d *Document) full(s string) bool {
	if d.out.Len()+len(s) > d.limits.Text {
		d.fail("the document holds more than %d MB of text, which is the limit (ingest.extract.text_megabytes): split it", d.limits.Text>>20)
	}
	return d.err != nil
}

// End closes a block, without the white space at its ends.
func (d *Document) End() {
	s, from := d.out.String(), d.open.Span.FromByte
	body := s[min(from, len(s)):]
	to := from + len(strings.TrimRightFunc(body, unicode.IsSpace))
	from += len(body) - len(strings.TrimLeftFunc(body, unicode.IsSpace))
	if from >= to {
		return
	}
	d.open.Span.FromByte, d.open.Span.ToByte = from, to
	d.attach(d.open)
}

// group is the kind of block that blocks of a kind are parts of.
func group(k doctree.Kind) doctree.Kind {
	switch k {
	case doctree.Item:
		return doctree.List
	case doctree.Row, doctree.HeadRow:
		return doctree.Table
	}
	return ""
}

func (d *Document) attach(b doctree.Block) {
	if len(d.sections) == 0 {
		d.sections, d.heads = append(d.sections, doctree.Section{}), append(d.heads, "")
	}
	s := &d.sections[len(d.sections)-1]
	g := group(b.Kind)
	switch n := len(s.Blocks); {
	case g == "":
		s.Blocks = append(s.Blocks, b)
	case g == d.group && n > 0:
		l := &s.Blocks[n-1]
		l.Parts, l.Span.ToByte, l.Place = append(l.Parts, b), b.Span.ToByte, doctree.Reach(l.Place, b.Place)
	default:
		s.Blocks = append(s.Blocks, doctree.Block{Kind: g, Span: b.Span, Place: b.Place, Parts: []doctree.Block{b}})
	}
	d.group = g
}

// Tree finishes. next leads on from the copied text to the file, nil: it is
// the file.
func (d *Document) Tree(title string, next *doctree.Map) (doctree.Tree, error) {
	if d.err != nil {
		return doctree.Tree{}, d.err
	}
	t := doctree.New(d.out.String(), d.source.Through(next))
	t.Title, t.Warnings, t.Facts = line(title), d.warnings, d.Facts
	o := doctree.Outline{Title: t.Title}
	for i, s := range d.sections {
		if s.Level > 0 {
			s.Path = o.Enter(s.Level, d.heads[i])
		}
		if n := len(s.Blocks); n > 0 {
			s.Span = t.Span(s.Blocks[0].Span.FromByte, s.Blocks[n-1].Span.ToByte)
			spans(&t, s.Blocks)
			t.Sections = append(t.Sections, s)
		}
	}
	return t, nil
}

func spans(t *doctree.Tree, blocks []doctree.Block) {
	for i := range blocks {
		blocks[i].Span = t.Span(blocks[i].Span.FromByte, blocks[i].Span.ToByte)
		spans(t, blocks[i].Parts)
	}
}

// Clean makes canonical text out of any string.
func Clean(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\ufffd")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			return '\n'
		case r == 0xA0 || r == 0x202F || r == 0x2007:
			return ' '
		case r == 0xAD || r == 0xFEFF || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			return -1
		case unicode.IsControl(r) || r >= 0xFFFE && r <= 0xFFFF:
			return utf8.RuneError
		}
		return r
	}, s)
}

// line is clean text on one line, without doubled white space.
func line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// BeginRow opens a row of cells, to be filled by Tab, Text and Copy.
func (d *Document) BeginRow(head bool, cells int) {
	kind := doctree.Row
	if head {
		kind = doctree.HeadRow
	}
	d.Cells(cells)
	d.Begin(kind)
}

// Cells counts cells, or values, against the limit.
func (d *Document) Cells(n int) {
	if d.cells += n; d.cells > d.limits.Cells {
		d.fail("the document holds more than %d cells, which is the limit (ingest.extract.cells): split it", d.limits.Cells)
	}
}

// Number reports that a cell holds a number, an amount or a date in digits,
// so that its row is none of column names.
func Number(cell string) bool {
	digits, letters := 0, 0
	for _, r := range cell {
		switch {
		case unicode.IsLetter(r) && digits == 0: // Q1
			return false
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		}
	}
	return digits > 0 && letters <= 3 && digits >= letters
}
