package extract

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"footnote/retrieval/doctree"
)

// Elements by what they do. Each list is searched with hasTag.
const (
	// unseen elements hold no readable text.
	unseen = " audio button canvas datalist dialog head iframe input math-field noembed noframes noscript object option script select style svg template textarea video "
	// around are the parts of a page around its content.
	around = " aside footer form header nav "
	// aroundRoles are the same said with ARIA.
	aroundRoles = " banner complementary contentinfo dialog navigation search "
	void        = " area base br col embed hr img input link meta param source track wbr "
	blockTags   = " address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul caption xmp listing plaintext "
	endless     = " dd dt p " // end tags are often left out
	anchors     = " anchor-link hash-link headerlink heading-anchor permalink "
)

func hasTag(list, tag string) bool { return tag != "" && strings.Contains(list, " "+tag+" ") }

// parseHTML reads the text that a browser shows of the main part of a page.
// It works on the stream of tags and keeps no tree, so that neither depth nor
// missing end tags can hurt, and every character knows its source.
func parseHTML(ctx context.Context, in input) (doctree.Tree, error) {
	s, err := survey(ctx, in)
	if err != nil {
		return doctree.Tree{}, err
	}
	var best *page
	for _, scope := range s.scopes(in) {
		p, err := read(ctx, in, s, scope)
		if err != nil {
			return doctree.Tree{}, err
		}
		if best == nil || best.w.out.Len() == 0 || best.readable < 200 && p.readable > 4*best.readable {
			best = p
		}
		if best.readable >= 200 {
			break
		}
	}
	return best.tree(in, s.title), nil
}

// scope is the part of a page that is read.
type scope struct {
	from, to int
	all      bool // with what stands around the content
}

// overview is what a first pass learns of a page.
type overview struct {
	title    string
	main     []scope
	articles []scope
	wrapping map[int]bool // forms and headers, by offset, that hold the content
	clutter  map[int]bool // elements, by offset, that are none of the content
	layout   map[int]bool // tables, by offset, that only arrange the page
}

// scopes are the parts to try: main, a lone article, the body, everything.
func (o *overview) scopes(in input) []scope {
	body := scope{from: in.body, to: len(in.text)}
	all := body
	all.all = true
	switch {
	case len(o.main) > 0:
		return []scope{o.main[0], body, all}
	case len(o.articles) == 1:
		return []scope{o.articles[0], body, all}
	}
	return []scope{body, all}
}

// tag is one token of the stream.
type tag struct {
	kind     html.TokenType
	name     string
	from, to int // of the raw token in the decoded text
	attr     map[string]string
}

// stream calls f for each token in order.
func stream(ctx context.Context, in input, f func(tag)) error {
	z := html.NewTokenizer(strings.NewReader(in.text[in.body:]))
	at := in.body
	for n := 0; ; n++ {
		kind := z.Next()
		if kind == html.ErrorToken {
			return ctx.Err()
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t := tag{kind: kind, from: at, to: at + len(z.Raw())}
		at = t.to
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			name, more := z.TagName()
			t.name = string(name)
			for i := 0; more && i < 100; i++ {
				var k, v []byte
				k, v, more = z.TagAttr()
				if t.attr == nil {
					t.attr = map[string]string{}
				}
				t.attr[string(k)] = string(v)
			}
		}
		f(t)
	}
}

// survey makes the first pass.
func survey(ctx context.Context, in input) (*overview, error) {
	o := &overview{wrapping: map[int]bool{}, layout: map[int]bool{}}
	open := map[string][]int{} // offsets of the open main, article, form, header, table
	titled, inTitle := false, false
	var c clutter
	err := stream(ctx, in, func(t tag) {
		c.see(in, t)
		start := t.kind == html.StartTagToken
		switch {
		case t.kind == html.TextToken && inTitle && !titled:
			o.title, titled = oneLine(html.UnescapeString(in.text[t.from:t.to])), true
		case t.name == "title":
			inTitle = start && len(open["svg"]) == 0
		case start && len(t.name) == 2 && t.name[0] == 'h' && t.name[1] >= '1' && t.name[1] <= '6':
			o.holds(open, t.name == "h1")
		case hasTag(" main article form header table svg ", t.name) || start && t.attr["role"] == "main":
			o.nest(open, t, start)
		}
	})
	o.clutter = c.found()
	for _, from := range open["main"] {
		o.main = append(o.main, scope{from: from, to: len(in.text)})
	}
	return o, err
}

// holds notes that the open elements hold a heading.
func (o *overview) holds(open map[string][]int, h1 bool) {
	if n := len(open["table"]); n > 0 {
		o.layout[open["table"][n-1]] = true
	}
	for _, name := range []string{"form", "header"} {
		if n := len(open[name]); h1 && n > 0 {
			o.wrapping[open[name][n-1]] = name == "form" || len(open["main"])+len(open["article"]) > 0
		}
	}
}

// nest keeps the open elements.
func (o *overview) nest(open map[string][]int, t tag, start bool) {
	name := t.name
	if t.attr["role"] == "main" && name != "main" {
		o.main = append(o.main, scope{from: t.from, to: 1 << 62})
		return
	}
	n := len(open[name])
	switch {
	case start:
		open[name] = append(open[name], t.from)
		if name == "main" || name == "article" {
			for _, form := range open["form"] {
				o.wrapping[form] = true
			}
		}
		if name == "table" && t.attr["role"] == "presentation" {
			o.layout[t.from] = true
		}
	case n > 0 && t.kind == html.EndTagToken:
		s := scope{from: open[name][n-1], to: t.to}
		open[name] = open[name][:n-1]
		if n == 1 && name == "main" {
			o.main = append(o.main, s)
		} else if n == 1 && name == "article" {
			o.articles = append(o.articles, s)
		}
	}
}

// page is the second pass: it writes the canonical text.
type page struct {
	in    input
	o     *overview
	scope scope
	w     writer

	skip     string // the element that is skipped, "" none
	depth    int    // of elements of that name within it
	inside   int    // open main and article elements
	pre      int
	list     int
	tables   []tableUse
	level    int  // of the open heading
	cells    int  // bars to write before the next text of the row
	headRow  bool // only th so far
	spaceAt  int  // source of the space to write, -1 none
	from     int  // where the open block begins, -1 none
	last     int  // source of the last text
	readable int  // letters written

	group doctree.Kind // of the last block if it may grow: List or Table
	heads []headingAt  // of each section
	out   []doctree.Section
}

// tableUse says how an open table is read.
type tableUse int

const (
	arranging tableUse = iota // it arranges the page: cells are blocks
	rows                      // it holds data
	nested                    // it lies in a cell of data: it reads as part of it
)

func read(ctx context.Context, in input, o *overview, s scope) (*page, error) {
	p := &page{in: in, o: o, scope: s, w: writer{m: &doctree.Map{}, raw: true}, from: -1, spaceAt: -1}
	err := stream(ctx, in, p.token)
	p.flush()
	return p, err
}

func (p *page) token(t tag) {
	if t.from < p.scope.from || t.from >= p.scope.to {
		return
	}
	if p.skip != "" && !p.resumes(t) {
		return
	}
	switch t.kind {
	case html.TextToken:
		p.characters(t.from, t.to)
	case html.StartTagToken, html.SelfClosingTagToken:
		if p.unwanted(t) {
			if hasTag(blockTags, t.name) {
				p.flush()
			}
			if !hasTag(void, t.name) && t.kind == html.StartTagToken {
				p.skip, p.depth = t.name, 1
			}
			return
		}
		p.open(t)
	case html.EndTagToken:
		p.close(t)
	}
}

// resumes reports that a token ends what is skipped and is to be read itself.
func (p *page) resumes(t tag) bool {
	start := t.kind == html.StartTagToken
	switch {
	case hasTag(endless, p.skip) && t.name != p.skip && hasTag(blockTags, t.name), start && hasTag(endless, p.skip) && t.name == p.skip, start && p.skip == "head" && t.name == "body":
		p.skip = ""
		return true
	case start && t.name == p.skip:
		p.depth++
	case t.kind == html.EndTagToken && t.name == p.skip:
		if p.depth--; p.depth == 0 {
			p.skip = ""
		}
	}
	return false
}

// unwanted reports elements that are not read: what no browser shows and, but
// for the last resort, what stands around the content.
func (p *page) unwanted(t tag) bool {
	_, hidden := t.attr["hidden"]
	style := strings.ToLower(strings.ReplaceAll(t.attr["style"], " ", ""))
	switch {
	case hasTag(unseen, t.name):
		return t.name != "dialog" || !has(t.attr, "open")
	case hidden && t.attr["hidden"] != "until-found", t.attr["aria-hidden"] == "true" && t.name != "body":
		return true
	case strings.Contains(style, "display:none"), strings.Contains(style, "visibility:hidden"):
		return true
	case p.scope.all:
		return false
	case p.o.clutter[t.from]:
		return true
	case t.name == "header":
		return p.inside == 0 && !p.o.wrapping[t.from]
	case hasTag(around, t.name):
		return !p.o.wrapping[t.from]
	case t.name == "a":
		for class := range strings.FieldsSeq(t.attr["class"]) {
			if hasTag(anchors, class) {
				return true
			}
		}
	}
	return hasTag(aroundRoles, t.attr["role"])
}

func has(m map[string]string, key string) bool { _, ok := m[key]; return ok }

// dataTable reports that the innermost table is one of data.
func (p *page) dataTable() bool { return p.table() != arranging }

func (p *page) table() tableUse {
	if len(p.tables) == 0 {
		return arranging
	}
	return p.tables[len(p.tables)-1]
}

func (p *page) openTable(at int) {
	switch {
	case p.dataTable():
		p.space(at)
		p.tables = append(p.tables, nested)
	case p.o.layout[at]:
		p.flush()
		p.tables = append(p.tables, arranging)
	default:
		p.flush()
		p.tables = append(p.tables, rows)
	}
}

func (p *page) open(t tag) {
	switch name := t.name; {
	case name == "br":
		p.breakLine(t.from)
		return
	case name == "table":
		p.openTable(t.from)
		return
	case p.table() == rows && name == "tr":
		p.flush()
		p.headRow, p.cells = true, 0
		return
	case p.table() == rows && (name == "td" || name == "th"):
		p.cells++
		p.spaceAt = -1
		p.headRow = p.headRow && name == "th"
		return
	case p.dataTable() && name != "caption" && hasTag(blockTags, name):
		p.space(t.from)
		return
	case name == "main" || name == "article":
		p.inside++
	case name == "ul" || name == "ol" || name == "menu" || name == "dl":
		p.flush()
		p.list++
		return
	}
	if hasTag(blockTags, t.name) {
		p.flush()
		if t.name != "div" {
			p.level = 0
		}
		switch {
		case t.name == "pre" || t.name == "xmp" || t.name == "listing":
			p.pre++
		case t.name[0] == 'h' && len(t.name) == 2 && t.name[1] >= '1' && t.name[1] <= '6':
			p.level = int(t.name[1] - '0')
		}
	} else if !joins(t.name) {
		p.space(t.from)
	}
}

func (p *page) close(t tag) {
	switch name := t.name; {
	case name == "table" && p.table() == nested:
		p.space(t.from)
		p.tables = p.tables[:len(p.tables)-1]
		return
	case name == "table" && len(p.tables) > 0:
		p.flush()
		p.tables = p.tables[:len(p.tables)-1]
		p.group, p.cells = "", 0
		return
	case p.table() == rows && name == "tr":
		p.flush()
		return
	case p.dataTable() && name != "caption" && hasTag(blockTags, name):
		p.space(t.from)
		return
	case name == "main" || name == "article":
		p.inside = max(p.inside-1, 0)
	case name == "ul" || name == "ol" || name == "menu" || name == "dl":
		p.flush()
		if p.list = max(p.list-1, 0); p.list == 0 {
			p.group = ""
		}
		return
	}
	if !hasTag(blockTags, t.name) {
		return
	}
	p.flush()
	if t.name == "pre" || t.name == "xmp" || t.name == "listing" {
		p.pre = max(p.pre-1, 0)
	}
	if t.name[0] == 'h' && len(t.name) == 2 {
		p.level = 0
	}
}

// space asks for one space before the next text.
func (p *page) space(at int) {
	if p.from >= 0 && p.spaceAt < 0 {
		p.spaceAt = at
	}
}

func (p *page) breakLine(at int) {
	if p.from >= 0 && !p.dataTable() {
		p.w.write('\n', at, 0)
		p.spaceAt = -1
		return
	}
	p.space(at)
}

// characters writes a text token: white space closed up, entities decoded.
func (p *page) characters(from, to int) {
	for i := from; i < to; {
		r, n := utf8.DecodeRuneInString(p.in.text[i:to])
		if r == '&' {
			if w, s := reference(p.in.text[i:to]); w > 0 {
				for _, d := range s {
					p.character(canonical(d), i, w)
					i, w = i+w, 0
				}
				continue
			}
		}
		p.character(r, i, n)
		i += n
	}
}

func (p *page) character(r rune, at, width int) {
	if r == '\u00a0' {
		r = ' '
	}
	if unicode.IsSpace(r) && p.pre == 0 {
		p.space(at)
		return
	}
	if p.from < 0 {
		if unicode.IsSpace(r) {
			return
		}
		p.begin(at)
	}
	p.cell(at)
	if p.spaceAt >= 0 {
		p.w.write(' ', p.spaceAt, 0)
		p.spaceAt = -1
	}
	p.w.write(r, at, width)
	p.last = at + width
	if !unicode.IsSpace(r) {
		p.readable++
	}
}

// cell writes the bars between the cells of a row; one that begins with an
// empty cell begins with a bar.
func (p *page) cell(at int) {
	bars := p.cells
	if p.from == p.w.out.Len() {
		bars--
	}
	for p.cells = 0; bars > 0; bars-- {
		bar := " | "
		if p.from == p.w.out.Len() {
			bar = "| "
		}
		p.synthetic(bar, at)
		p.spaceAt = -1
	}
}

func (p *page) synthetic(s string, at int) {
	for _, r := range s {
		p.w.write(r, at, 0)
	}
}

// begin opens a block: an empty line before it, one line end between items
// and between rows.
func (p *page) begin(at int) {
	if p.w.out.Len() > 0 {
		p.w.write('\n', p.last, 0)
		if p.member() == "" || p.member() != p.group {
			p.w.write('\n', p.last, 0)
		}
	}
	p.from, p.spaceAt = p.w.out.Len(), -1
}

// member is the kind of group that the open block belongs to.
func (p *page) member() doctree.Kind {
	switch {
	case p.level > 0 || p.pre > 0:
		return ""
	case p.dataTable():
		return doctree.Table
	case p.list > 0:
		return doctree.List
	}
	return ""
}

// flush closes the open block.
func (p *page) flush() {
	p.spaceAt = -1
	if p.from < 0 {
		return
	}
	from, to := p.from, p.w.out.Len()
	p.from = -1
	s := p.w.out.String()[from:to]
	to = from + len(strings.TrimRightFunc(s, unicode.IsSpace))
	b := doctree.Block{Kind: p.kind()}
	b.Span.FromByte, b.Span.ToByte = from, to
	if b.Kind == doctree.Heading {
		p.enter(from, to)
	}
	p.append(b)
}

func (p *page) kind() doctree.Kind {
	switch {
	case p.level > 0:
		return doctree.Heading
	case p.pre > 0:
		return doctree.Code
	case p.dataTable() && p.headRow:
		return doctree.HeadRow
	case p.dataTable():
		return doctree.Row
	case p.list > 0:
		return doctree.Item
	}
	return doctree.Paragraph
}

// enter begins the section of a heading.
func (p *page) enter(from, to int) {
	if len(p.out) == 0 || len(p.out[len(p.out)-1].Blocks) > 0 {
		p.out = append(p.out, doctree.Section{})
		p.heads = append(p.heads, headingAt{})
	}
	p.out[len(p.out)-1].Level = p.level
	p.heads[len(p.heads)-1] = headingAt{p.level, from, to}
	p.group = ""
}

// append adds a block to the section, into the group that is open.
func (p *page) append(b doctree.Block) {
	if len(p.out) == 0 {
		p.out, p.heads = append(p.out, doctree.Section{}), append(p.heads, headingAt{})
	}
	s := &p.out[len(p.out)-1]
	g := p.member()
	switch {
	case g == "":
		s.Blocks = append(s.Blocks, b)
	case g == p.group && len(s.Blocks) > 0:
		l := &s.Blocks[len(s.Blocks)-1]
		l.Parts, l.Span.ToByte = append(l.Parts, b), b.Span.ToByte
	default:
		s.Blocks = append(s.Blocks, doctree.Block{Kind: g, Span: b.Span, Parts: []doctree.Block{b}})
	}
	p.group = g
}

// tree finishes: spans, titles and paths.
func (p *page) tree(in input, title string) doctree.Tree {
	t := doctree.New(p.w.out.String(), p.w.m.Through(in.source))
	t.Title = chooseTitle(&t, in.title, title, p.heads)
	o := doctree.Outline{Title: t.Title}
	for i := range p.out {
		s := &p.out[i]
		if len(s.Blocks) > 0 {
			s.Span = t.Span(s.Blocks[0].Span.FromByte, s.Blocks[len(s.Blocks)-1].Span.ToByte)
		}
		if h := p.heads[i]; h.level > 0 {
			s.Path = o.Enter(h.level, heading(&t, h))
		}
		spans(&t, s.Blocks)
	}
	t.Sections = p.out
	return t
}

func heading(t *doctree.Tree, h headingAt) string {
	return strings.TrimRight(oneLine(t.Plain(h.from, h.to)), " ¶#")
}

func spans(t *doctree.Tree, blocks []doctree.Block) {
	for i := range blocks {
		blocks[i].Span = t.Span(blocks[i].Span.FromByte, blocks[i].Span.ToByte)
		spans(t, blocks[i].Parts)
	}
}

// chooseTitle takes the front matter, then the first h1 if the page's title
// only adds the name of the site to it, then the page's title, then the h1.
func chooseTitle(t *doctree.Tree, front, title string, heads []headingAt) string {
	h1 := ""
	for _, h := range heads {
		if h.level == 1 {
			h1 = heading(t, h)
			break
		}
	}
	switch {
	case front != "":
		return oneLine(front)
	case h1 != "" && (title == "" || strings.Contains(strings.ToLower(title), strings.ToLower(h1))):
		return h1
	}
	return title
}

// reference decodes the character reference that s begins with, with or
// without its semicolon: its length, 0 if there is none, and the characters.
func reference(s string) (int, string) {
	end := 1
	for end < len(s) && end < 40 && (s[end] == '#' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z' || s[end] >= '0' && s[end] <= '9') {
		end++
	}
	if end < len(s) && s[end] == ';' {
		end++
	}
	if d := html.UnescapeString(s[:end]); d != s[:end] {
		return end, d
	}
	return 0, ""
}
