package office

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/ooxml"
)

// ReadSlides builds the tree of a PowerPoint presentation: a section for each
// slide under its title, with the notes at its end.
func ReadSlides(ctx context.Context, data []byte, password string, l bounds.Limits) (doctree.Tree, error) {
	p, main, err := ooxml.Open(ctx, data, ooxml.Format{Name: "PowerPoint presentation", Ending: ".pptx", Folder: "ppt/"}, password, l)
	if err != nil {
		return doctree.Tree{}, err
	}
	parts, err := slideParts(ctx, p, main)
	if err != nil {
		return doctree.Tree{}, err
	}
	if len(parts) > l.Pages {
		return doctree.Tree{}, bounds.Refuse("the presentation has %d slides, the limit is %d (ingest.extract.pages): split it", len(parts), l.Pages)
	}
	k := deck{ctx: ctx, p: p, d: draft.New(l, false)}
	k.d.Facts = doctree.Facts{Unit: "slide", Total: len(parts)}
	for i, part := range parts {
		if err := k.slide(i+1, part); err != nil {
			return doctree.Tree{}, err
		}
	}
	if k.hidden > 0 {
		k.d.Warn(fmt.Sprintf("left out %d hidden slides", k.hidden))
	}
	title, err := coreTitle(ctx, p)
	if title == "" || strings.EqualFold(title, "PowerPoint Presentation") {
		title = k.first
	}
	if err != nil {
		return doctree.Tree{}, err
	}
	return k.d.Tree(title, nil)
}

// slideParts lists the slides in the order in which they are shown.
func slideParts(ctx context.Context, p *ooxml.Package, main string) ([]string, error) {
	rels, err := p.Relations(ctx, main)
	if err != nil {
		return nil, err
	}
	targets := map[string]string{}
	for _, r := range rels {
		targets[r.ID] = r.Target
	}
	var out []string
	err = p.Walk(ctx, main, func(e ooxml.Element) {
		if e.Start && e.Name == "sldId" && targets[e.Attr("r:id")] != "" {
			out = append(out, targets[e.Attr("r:id")])
		}
	})
	return out, err
}

type deck struct {
	ctx    context.Context
	p      *ooxml.Package
	d      *draft.Document
	first  string // title of the first slide
	hidden int
}

// slide writes one slide.
func (k *deck) slide(n int, part string) error {
	s := shapes{}
	if err := k.p.Walk(k.ctx, part, s.element); err != nil {
		return err
	}
	if s.hidden {
		k.hidden++
		k.d.Facts.Hidden = append(k.d.Facts.Hidden, fmt.Sprintf("slide %d", n))
		return nil
	}
	k.d.Facts.Covered++
	k.d.Place = fmt.Sprintf("slide=%d", n)
	title := strings.Join(s.title, " ")
	if n == 1 {
		k.first = title
	}
	if strings.TrimSpace(title) != "" {
		k.d.Heading(1, title)
	} else {
		k.d.Section(1, fmt.Sprintf("Slide %d", n))
	}
	s.write(k.d)
	rels, err := k.p.Relations(k.ctx, part)
	for _, r := range rels {
		if err != nil {
			return err
		}
		switch r.Kind {
		case "chart":
			err = writeChart(k.ctx, k.p, k.d, r.Target)
		case "diagramData":
			err = k.diagram(r.Target)
		case "notesSlide":
			err = k.notes(r.Target)
		}
	}
	if err == nil {
		err = k.d.Err()
	}
	return err
}

// diagram writes the texts of a SmartArt drawing.
func (k *deck) diagram(part string) error {
	s := shapes{all: true}
	if err := k.p.Walk(k.ctx, part, s.element); err != nil {
		return err
	}
	k.d.Break()
	for _, p := range s.loose {
		k.d.Add(doctree.Item, p)
	}
	return nil
}

func (k *deck) notes(part string) error {
	s := shapes{notes: true}
	if err := k.p.Walk(k.ctx, part, s.element); err != nil {
		return err
	}
	s.write(k.d)
	return nil
}

// shapes reads what a slide shows.
type shapes struct {
	notes  bool // of notes only the body
	all    bool // paragraphs wherever they are
	hidden bool
	title  []string
	parts  []shape
	loose  []string

	skip   int
	kind   string // of the placeholder that the open shape is
	paras  []string
	table  *grid
	text   strings.Builder
	inText bool
	inPara bool
	shape  bool
}

// shape is one shape: paragraphs or a table.
type shape struct {
	paras []string
	table *grid
}

func (s *shapes) element(e ooxml.Element) {
	if s.skip > 0 || e.Start && e.Name == "Fallback" || e.Start && e.Name == "fld" && e.Attr("type") == "slidenum" {
		if e.Start {
			s.skip++
		} else if e.End {
			s.skip--
		}
		return
	}
	switch {
	case e.Start:
		s.start(e)
	case e.End:
		s.end(e)
	case s.inText:
		s.text.WriteString(e.Text)
	}
}

func (s *shapes) start(e ooxml.Element) {
	switch e.Name {
	case "sld":
		s.hidden = e.Attr("show") == "0" || e.Attr("show") == "false"
	case "sp":
		s.kind, s.paras, s.shape = "", nil, true
	case "ph":
		if s.kind = e.Attr("type"); s.kind == "" {
			s.kind = "obj"
		}
	case "p":
		s.text.Reset()
		s.inPara = true
	case "t":
		s.inText = s.inPara
	case "br":
		s.text.WriteByte('\n')
	case "tab":
		s.text.WriteByte(' ')
	case "tbl":
		s.table = newGrid()
	case "tr":
		if s.table != nil {
			s.table.openRow()
		}
	case "tc":
		if s.table != nil {
			s.table.openCell()
			s.cell(e)
		}
	}
}

// cell reads how a cell is merged. A cell that another one covers is there,
// but empty.
func (s *shapes) cell(e ooxml.Element) {
	rows, _ := strconv.Atoi(e.Attr("rowSpan"))
	s.table.below = rows > 1 || e.Attr("vMerge") == "1" || e.Attr("vMerge") == "true"
	s.table.merged = e.Attr("vMerge") == "1" || e.Attr("vMerge") == "true"
}

func (s *shapes) end(e ooxml.Element) {
	switch e.Name {
	case "p":
		s.paragraph(strings.TrimSpace(s.text.String()))
		s.text.Reset()
		s.inPara = false
	case "t":
		s.inText = false
	case "tc":
		if s.table != nil {
			s.table.closeCell()
		}
	case "tr":
		if s.table != nil {
			s.table.closeRow()
		}
	case "tbl":
		if s.table != nil {
			s.parts = append(s.parts, shape{table: s.table})
		}
		s.table = nil
	case "sp":
		s.close()
	}
}

func (s *shapes) paragraph(text string) {
	switch {
	case text == "":
	case s.table != nil:
		s.table.cell = append(s.table.cell, text)
	case s.shape:
		s.paras = append(s.paras, text)
	case s.all:
		s.loose = append(s.loose, text)
	}
}

// close keeps a shape, unless it is a date, a footer or a number.
func (s *shapes) close() {
	s.shape = false
	switch s.kind {
	case "dt", "ftr", "sldNum", "hdr":
		return
	case "title", "ctrTitle":
		s.title = append(s.title, s.paras...)
		return
	}
	if len(s.paras) > 0 && (!s.notes || s.kind == "body") {
		s.parts = append(s.parts, shape{paras: s.paras})
	}
}

// write writes the shapes in their order: several paragraphs are a list.
func (s *shapes) write(d *draft.Document) {
	for _, p := range s.parts {
		d.Break()
		if p.table != nil {
			p.table.write(d)
			continue
		}
		kind := doctree.Item
		if len(p.paras) == 1 || s.notes {
			kind = doctree.Paragraph
		}
		for _, text := range p.paras {
			d.Add(kind, text)
		}
	}
}
