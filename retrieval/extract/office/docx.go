package office

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/ooxml"
)

// ReadWord builds the tree of a Word document. Notes stand below the paragraph
// or table that refers to them, headers and footers once at the end.
func ReadWord(ctx context.Context, data []byte, password string, l bounds.Limits) (doctree.Tree, error) {
	p, main, err := ooxml.Open(ctx, data, ooxml.Format{Name: "Word document", Ending: ".docx", Folder: "word/"}, password, l)
	if err != nil {
		return doctree.Tree{}, err
	}
	w := word{ctx: ctx, p: p, d: draft.New(l, false), notes: map[string]string{}, charts: map[string]string{}, addresses: map[string]string{}}
	if err := w.read(main); err != nil {
		return doctree.Tree{}, err
	}
	return w.d.Tree(w.title, nil)
}

// word reads one document.
type word struct {
	ctx       context.Context
	p         *ooxml.Package
	d         *draft.Document
	styles    map[string]style
	notes     map[string]string // text by kind and id
	charts    map[string]string // parts by the ids of their relations
	addresses map[string]string // of links, by the ids of their relations
	links     []string          // addresses behind words, with the words
	title     string
}

// read reads the styles and notes, then the text.
func (w *word) read(main string) error {
	rels, err := w.p.Relations(w.ctx, main)
	if err != nil {
		return err
	}
	if w.title, err = coreTitle(w.ctx, w.p); err != nil {
		return err
	}
	var around []string // parts of headers and footers
	for _, r := range rels {
		switch r.Kind {
		case "styles":
			w.styles, err = readStyles(w.ctx, w.p, r.Target)
		case "footnotes", "endnotes":
			err = w.readNotes(r.Kind, r.Target)
		case "header", "footer":
			around = append(around, r.Target)
		case "chart":
			w.charts[r.ID] = r.Target
		case "hyperlink":
			w.addresses[r.ID] = r.Target
		case "aFChunk":
			w.d.Warn("an embedded document is not read: " + r.Target)
		}
		if err != nil {
			return err
		}
	}
	f := flow{w: w, out: w.d}
	if err := w.p.Walk(w.ctx, main, f.element); err != nil {
		return err
	}
	w.d.Add(doctree.Paragraph, f.begun)
	if err := w.around(around); err != nil {
		return err
	}
	w.writeLinks()
	return nil
}

// readNotes keeps the notes of a part by their ids.
func (w *word) readNotes(kind, part string) error {
	id, f := "", flow{w: w}
	return w.p.Walk(w.ctx, part, func(e ooxml.Element) {
		if note := e.Name == "footnote" || e.Name == "endnote"; note && e.Start {
			if id = ""; e.Attr("type") == "" || e.Attr("type") == "normal" {
				id = kind + e.Attr("id")
			}
			f = flow{w: w}
			return
		} else if note {
			if id != "" {
				w.notes[id] = strings.Join(f.said, " ")
			}
			return
		}
		f.element(e)
	})
}

// around writes headers and footers, each text once.
func (w *word) around(parts []string) error {
	seen := map[string]bool{}
	for _, part := range parts {
		f := flow{w: w}
		if err := w.p.Walk(w.ctx, part, f.element); err != nil {
			return err
		}
		for _, s := range f.said {
			if s = strings.TrimSpace(s); s == "" || seen[s] || pageNumber.MatchString(s) {
				continue
			}
			if len(seen) == 0 {
				w.d.Section(1, "Page header and footer")
			}
			seen[s] = true
			w.d.Add(doctree.Paragraph, s)
		}
	}
	return nil
}

// pageNumber is what is left of a footer that only counts pages.
var pageNumber = regexp.MustCompile(`^[–-]?\s*\p{L}{0,8}[\s.]*\d+(\s*(\p{L}{1,4}|[/|–-])\s*\d+)?\s*[–-]?$`)

// style is what a paragraph style says.
type style struct {
	name    string
	level   int // of the heading, 0 none
	list    bool
	basedOn string
}

var headingName = regexp.MustCompile(`(?i)^heading ([1-9])$`)

func readStyles(ctx context.Context, p *ooxml.Package, part string) (map[string]style, error) {
	all := map[string]style{}
	id, s := "", style{}
	err := p.Walk(ctx, part, func(e ooxml.Element) {
		switch {
		case e.Name == "style" && e.Start:
			id, s = e.Attr("styleId"), style{}
		case e.Name == "style" && e.End:
			all[id] = s
		case !e.Start:
		case e.Name == "name":
			s.name = strings.ToLower(e.Attr("val"))
			if m := headingName.FindStringSubmatch(s.name); m != nil {
				s.level, _ = strconv.Atoi(m[1])
			}
		case e.Name == "basedOn":
			s.basedOn = e.Attr("val")
		case e.Name == "outlineLvl" && s.level == 0:
			s.level = outline(e)
		case e.Name == "numPr":
			s.list = true
		}
	})
	return all, err
}

// outline is the level of a heading, 0 for body text.
func outline(e ooxml.Element) int {
	if n, err := strconv.Atoi(e.Attr("val")); err == nil && n >= 0 && n < 9 {
		return n + 1
	}
	return 0
}

// resolve follows a style to those that it is based on.
func (w *word) resolve(id string) style {
	out := w.styles[id]
	for s, n := out, 0; s.basedOn != "" && n < 10; n++ {
		s = w.styles[s.basedOn]
		if out.level == 0 && !strings.HasPrefix(out.name, "toc ") {
			out.level = s.level
		}
		out.list = out.list || s.list
	}
	return out
}

// flow reads paragraphs and tables in order. Without out it only keeps what is
// said.
type flow struct {
	w    *word
	out  *draft.Document
	said []string // paragraphs, where there is no out

	skip    int          // depth inside what is not read
	inRow   bool         // inside the properties of a row
	inMark  bool         // inside those of a paragraph
	begun   string       // of paragraphs whose end was deleted: the next goes on
	paras   []*paragraph // open ones: a text box lies inside a paragraph
	tables  []*grid      // open ones
	inText  bool
	hidden  bool            // the run is
	after   []string        // text boxes and notes that follow the open paragraph or table
	charts  []string        // parts of the charts that do
	address string          // of the open link
	linked  strings.Builder // its words
}

// paragraph is an open paragraph.
type paragraph struct {
	text   strings.Builder
	style  string
	level  int  // of its own, -1 none
	list   int  // 1 yes, 2 no, 0 as the style says
	tables int  // tables open when it began
	joined bool // its end was deleted
}

// skipped are elements whose text is not part of the final text, or stands a
// second time.
var skipped = map[string]bool{
	"Fallback": true, "del": true, "moveFrom": true, "instrText": true, "delText": true, "delInstrText": true,
	"pPrChange": true, "rPrChange": true, "tblPrChange": true, "trPrChange": true, "tcPrChange": true, "sectPrChange": true, "numberingChange": true,
	"annotation": true, "rubyPr": true, "rt": true,
}

func (f *flow) element(e ooxml.Element) {
	switch e.Name {
	case "trPr":
		f.inRow = e.Start
	case "pPr":
		f.inMark = e.Start
	}
	if e.Start && e.Name == "del" && f.skip == 0 && f.markDeleted() {
		f.skip++
		return
	}
	if f.skip > 0 || e.Start && skipped[e.Name] {
		if e.Start {
			f.skip++
		} else if e.End {
			f.skip--
		}
		return
	}
	switch {
	case e.Start:
		f.start(e)
	case e.End:
		f.end(e)
	case f.inText && !f.hidden:
		f.write(e.Text)
	}
}

// markDeleted notes what a deletion in properties deletes: a row, or the end of
// a paragraph. Others hold text.
func (f *flow) markDeleted() bool {
	switch n := len(f.paras); {
	case f.inRow && len(f.tables) > 0:
		f.tables[len(f.tables)-1].gone = true
	case n > 0 && f.inMark:
		f.paras[n-1].joined = true
	default:
		return false
	}
	return true
}

func (f *flow) write(s string) {
	if f.address != "" {
		f.linked.WriteString(s)
	}
	if n := len(f.paras); n > 0 {
		f.paras[n-1].text.WriteString(s)
	}
}

func (f *flow) start(e ooxml.Element) {
	switch e.Name {
	case "p":
		f.paras = append(f.paras, &paragraph{level: -1, tables: len(f.tables)})
	case "tbl":
		f.tables = append(f.tables, newGrid())
	case "r":
		f.hidden = false
	case "vanish":
		f.hidden = e.On()
	case "t":
		f.inText = true
	case "tab", "ptab":
		if !f.hidden {
			f.write("\t")
		}
	case "br", "cr":
		f.write("\n")
	case "noBreakHyphen":
		f.write("-")
	case "hyperlink":
		f.address = f.w.addresses[e.Attr("r:id")]
		f.linked.Reset()
	case "chart":
		if part := f.w.charts[e.Attr("r:id")]; part != "" {
			f.charts = append(f.charts, part)
		}
	case "footnoteReference", "endnoteReference":
		if note := f.w.notes[strings.TrimSuffix(e.Name, "Reference")+"s"+e.Attr("id")]; note != "" {
			f.after = append(f.after, note)
		}
	default:
		f.property(e)
	}
}

// property reads what says how the open paragraph, row or cell is meant.
func (f *flow) property(e ooxml.Element) {
	if n := len(f.paras); n > 0 {
		p := f.paras[n-1]
		switch e.Name {
		case "pStyle":
			p.style = e.Attr("val")
		case "outlineLvl":
			p.level = outline(e)
		case "numId":
			if p.list = 1; e.Attr("val") == "0" {
				p.list = 2
			}
		}
	}
	if len(f.tables) == 0 {
		return
	}
	g := f.tables[len(f.tables)-1]
	switch e.Name {
	case "tr":
		g.openRow()
	case "tc":
		g.openCell()
	case "gridBefore":
		n, _ := strconv.Atoi(e.Attr("val"))
		g.row = make([]string, min(max(n, 0), maxSpan))
	case "tblHeader":
		g.head = e.On()
	case "gridSpan":
		g.span, _ = strconv.Atoi(e.Attr("val"))
	case "vMerge":
		g.below = true
		g.merged = e.Attr("val") != "restart"
	}
}

func (f *flow) end(e ooxml.Element) {
	switch e.Name {
	case "p":
		if n := len(f.paras); n > 0 {
			p := f.paras[n-1]
			f.paras = f.paras[:n-1]
			f.close(p)
		}
	case "t":
		f.inText = false
	case "hyperlink":
		f.link()
	case "tc":
		if len(f.tables) > 0 {
			f.tables[len(f.tables)-1].closeCell()
		}
	case "tr":
		if len(f.tables) > 0 {
			f.tables[len(f.tables)-1].closeRow()
		}
	case "tbl":
		f.closeTable()
	}
}

// link keeps the address of a link that its words do not show.
func (f *flow) link() {
	words, address := strings.TrimSpace(f.linked.String()), strings.TrimSpace(f.address)
	f.address = ""
	scheme, bare, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
	default:
		return
	}
	if bare = strings.Trim(bare, "/"); words == "" || bare == "" || strings.Contains(words, bare) {
		return
	}
	if l := words + ": " + address; len(f.w.links) < maxLinks && !slices.Contains(f.w.links, l) {
		f.w.links = append(f.w.links, l)
	}
}

// maxLinks bounds the links that are listed.
const maxLinks = 500

// writeLinks lists the addresses at the end, where they tear no sentence.
func (w *word) writeLinks() {
	for i, l := range w.links {
		if i == 0 {
			w.d.Section(1, "Links")
		}
		w.d.Add(doctree.Item, l)
	}
}

// close writes a paragraph: into the cell or the box that it lies in, or to
// the document.
func (f *flow) close(p *paragraph) {
	text := strings.TrimSpace(f.begun + p.text.String())
	if p.joined && p.tables == 0 && len(f.paras) == 0 {
		f.begun += p.text.String()
		return
	}
	f.begun = ""
	switch {
	case p.tables > 0 && len(f.tables) >= p.tables:
		if text != "" {
			g := f.tables[p.tables-1]
			g.cell = append(g.cell, text)
		}
		return
	case len(f.paras) > 0: // in a text box
		if text != "" {
			f.after = append(f.after, text)
		}
		return
	case f.out == nil:
		f.said = append(f.said, text)
		return
	}
	f.block(p, text)
	f.follow()
}

// block writes a paragraph to the document as what its style says.
func (f *flow) block(p *paragraph, text string) {
	s := f.w.resolve(p.style)
	level := p.level
	if level < 0 {
		level = s.level
	}
	switch {
	case strings.HasPrefix(s.name, "toc ") && s.name != "toc heading":
		return // the table of contents says again what the headings say
	case s.name == "title" && text != "":
		f.w.title = text
		f.out.Heading(1, text)
	case level > 0:
		f.out.Heading(level, text)
	case p.list == 1 || p.list == 0 && s.list:
		f.out.Add(doctree.Item, text)
	default:
		f.out.Add(doctree.Paragraph, text)
	}
}

// follow writes what belongs below a paragraph or table.
func (f *flow) follow() {
	for _, s := range f.after {
		f.out.Add(doctree.Paragraph, s)
	}
	f.after = nil
	for _, part := range f.charts {
		if err := writeChart(f.w.ctx, f.w.p, f.out, part); err != nil {
			f.w.d.Warn("a chart is damaged and not read")
		}
	}
	f.charts = nil
}

// closeTable writes a table, or its text into the cell that it lies in.
func (f *flow) closeTable() {
	n := len(f.tables)
	if n == 0 {
		return
	}
	g := f.tables[n-1]
	f.tables = f.tables[:n-1]
	var flat []string
	for _, row := range g.rows {
		flat = append(flat, strings.Join(row, " "))
	}
	switch {
	case n > 1:
		f.tables[n-2].cell = append(f.tables[n-2].cell, flat...)
	case len(f.paras) > 0:
		f.after = append(f.after, flat...)
	case f.out == nil:
		f.said = append(f.said, flat...)
	default:
		g.write(f.out)
		f.follow()
	}
}
