package extract

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	gparser "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"

	"footnote/retrieval/doctree"
)

// commonMark parses CommonMark with tables and strikethrough.
var commonMark = sync.OnceValue(func() gparser.Parser {
	p := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()
	p.AddOptions(gparser.WithBlockParsers(util.Prioritized(watchdog{}, 0)))
	return p
})

// watchdog is a block parser that never opens a block: it sees every line and
// leaves the library at the end of the context.
type watchdog struct{ gparser.BlockParser }

var watched = gparser.NewContextKey()

func (watchdog) Trigger() []byte             { return nil }
func (watchdog) CanInterruptParagraph() bool { return true }
func (watchdog) CanAcceptIndentedLine() bool { return true }
func (watchdog) Open(_ ast.Node, _ text.Reader, pc gparser.Context) (ast.Node, gparser.State) {
	if ctx, ok := pc.Get(watched).(context.Context); ok && ctx.Err() != nil {
		panic(stopped{ctx.Err()})
	}
	return nil, gparser.NoChildren
}

// markdown builds the tree of one document. The library parses a masked copy
// of equal length, so every offset it gives is one of the canonical text.
type markdown struct {
	tree    doctree.Tree
	text    string // canonical
	seen    []byte // what the library sees
	marks   []doctree.Mark
	silent  []doctree.Mark // lines that read as nothing, sorted
	heading []headingAt
}

// headingAt is where the sections begin and what their headings are.
type headingAt struct {
	level    int
	from, to int
}

func parseMarkdown(ctx context.Context, in input) (doctree.Tree, error) {
	m := mask(in.text, in.body)
	p := markdown{tree: doctree.New(in.text, in.source), text: in.text, seen: m.seen, marks: m.marks, silent: m.silent}
	pc := gparser.NewContext()
	pc.Set(watched, ctx)
	root := commonMark().Parse(text.NewReader(p.seen), gparser.WithContext(pc))
	if err := ctx.Err(); err != nil {
		return doctree.Tree{}, err
	}
	p.sections(root, in.body)
	p.tree.AddMarks(p.marks)
	p.name(in.title)
	return p.tree, nil
}

// sections cuts the top level at its headings.
func (p *markdown) sections(root ast.Node, body int) {
	s := doctree.Section{}
	from := body
	end := func(to int) {
		s.Span = p.tree.Span(from, to)
		if p.heading = append(p.heading, headingAt{level: s.Level}); len(s.Blocks) > 0 && s.Level > 0 {
			p.heading[len(p.heading)-1].from, p.heading[len(p.heading)-1].to = s.Blocks[0].Span.FromByte, s.Blocks[0].Span.ToByte
		}
		p.tree.Sections = append(p.tree.Sections, s)
	}
	for _, t := range p.tiles(root, body, len(p.text)) {
		h, ok := t.node.(*ast.Heading)
		if !ok {
			s.Blocks = append(s.Blocks, p.blocks(t)...)
			continue
		}
		if len(s.Blocks) > 0 {
			end(t.from)
			from = t.from
		}
		s = doctree.Section{Level: h.Level}
		p.prose(h, t)
		s.Blocks = p.leaf(doctree.Heading, t)
	}
	end(len(p.text))
}

// name reads the headings, chooses the title and fills the paths.
func (p *markdown) name(title string) {
	p.tree.Title = title
	for _, h := range p.heading {
		if p.tree.Title == "" && h.level == 1 {
			p.tree.Title = oneLine(p.tree.Plain(h.from, h.to))
		}
	}
	o := doctree.Outline{Title: oneLine(p.tree.Title)}
	for i, h := range p.heading {
		if h.level > 0 {
			p.tree.Sections[i].Path = o.Enter(h.level, oneLine(p.tree.Plain(h.from, h.to)))
		}
	}
}

// tile is a node with all of the text up to the next one.
type tile struct {
	node     ast.Node
	from, to int
}

// tiles divides [from, to) among the children of a node: each begins at the
// line on which it opens, the first at from. What the library keeps no node
// for belongs to the one before.
func (p *markdown) tiles(parent ast.Node, from, to int) []tile {
	var out []tile
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		at := from
		if len(out) > 0 {
			pos := position(n)
			if pos < out[len(out)-1].from || pos > to {
				continue
			}
			if at = bytes.LastIndexByte(p.seen[:pos], '\n') + 1; at <= out[len(out)-1].from {
				at = pos
			}
			out[len(out)-1].to = at
		}
		out = append(out, tile{n, at, to})
	}
	return out
}

// position is a byte on the first line of a block.
func position(n ast.Node) int {
	for ; n != nil; n = n.FirstChild() {
		if n.Kind() == east.KindTable {
			continue // it gives the paragraph that its header row ended
		}
		if n.Pos() >= 0 {
			return n.Pos()
		}
		if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			return n.Lines().At(0).Start
		}
	}
	return -1
}

// leaf makes a block without parts, or none if nothing is left of the tile.
func (p *markdown) leaf(k doctree.Kind, t tile) []doctree.Block {
	if t.from, t.to = p.trim(t.from, t.to); t.from >= t.to {
		return nil
	}
	return []doctree.Block{{Kind: k, Span: p.tree.Span(t.from, t.to)}}
}

// trim takes white space and silent lines off both ends.
func (p *markdown) trim(from, to int) (int, int) {
	for {
		from, to = p.tree.Trim(from, to)
		i := lastAt(p.silent, to-1)
		switch {
		case from >= to:
			return from, from
		case i >= 0 && p.silent[i].To >= to:
			to = max(from, p.silent[i].From)
			continue
		}
		if i = lastAt(p.silent, from); i < 0 || p.silent[i].To <= from {
			return from, to
		}
		from = min(to, p.silent[i].To)
	}
}

// blocks turns a tile into blocks of the tree. A quotation is what stands in
// it.
func (p *markdown) blocks(t tile) []doctree.Block {
	switch n := t.node.(type) {
	case *ast.Blockquote:
		if parts := p.all(t); len(parts) > 0 {
			return parts
		}
		p.hide(t.from, t.to, "") // nothing is quoted
	case *ast.List:
		return p.group(doctree.List, t, p.all(t))
	case *ast.ListItem:
		parts := p.all(t)
		if len(parts) == 1 && len(parts[0].Parts) == 0 && parts[0].Kind == doctree.Paragraph {
			return p.leaf(doctree.Item, t)
		}
		return p.group(doctree.Item, t, parts)
	case *east.Table:
		return p.group(doctree.Table, t, p.all(t))
	case *east.TableHeader:
		p.row(n, t)
		return p.leaf(doctree.HeadRow, t)
	case *east.TableRow:
		p.row(n, t)
		return p.leaf(doctree.Row, t)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		p.visible(lines(n), t)
		return p.leaf(doctree.Code, t)
	case *ast.HTMLBlock:
		return p.html(t)
	case *ast.ThematicBreak:
		p.hide(t.from, lineEnd(p.text, n.Pos()), "")
	case *ast.LinkReferenceDefinition:
		if ls := n.Lines(); !bytes.HasPrefix(n.Label, []byte("^")) {
			p.hide(ls.At(0).Start, ls.At(ls.Len()-1).Stop, "")
		}
	default:
		p.prose(n, t)
	}
	return p.leaf(doctree.Paragraph, t)
}

func (p *markdown) all(t tile) []doctree.Block {
	var out []doctree.Block
	for _, c := range p.tiles(t.node, t.from, t.to) {
		out = append(out, p.blocks(c)...)
	}
	return out
}

// group makes a block of parts; without parts it is a leaf.
func (p *markdown) group(k doctree.Kind, t tile, parts []doctree.Block) []doctree.Block {
	if len(parts) == 0 {
		return p.leaf(k, t)
	}
	span := p.tree.Span(parts[0].Span.FromByte, parts[len(parts)-1].Span.ToByte)
	return []doctree.Block{{Kind: k, Span: span, Parts: parts}}
}

func (p *markdown) hide(from, to int, as string) {
	if from < to {
		p.marks = append(p.marks, doctree.Mark{From: from, To: to, As: as})
	}
}

// segment is a stretch that reads as it stands.
type segment struct {
	from, to int
	gap      string // what stands before it when markup lies between
}

func lines(n ast.Node) []segment {
	out := make([]segment, 0, n.Lines().Len())
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		out = append(out, segment{from: s.Start, to: s.Stop})
	}
	return out
}

// prose marks the markup of a paragraph or heading: containers before it, what
// lies between its texts, and what closes it.
func (p *markdown) prose(n ast.Node, t tile) {
	if n.Lines() == nil || n.Lines().Len() == 0 {
		return
	}
	first, last := n.Lines().At(0).Start, n.Lines().At(n.Lines().Len()-1).Stop
	for i := t.from; i < first; i++ {
		if p.text[i] == '>' || p.text[i] == '#' {
			end := i + 1
			for end < first && p.text[end] == ' ' {
				end++
			}
			p.hide(i, end, "")
		}
	}
	if n.Kind() == ast.KindHeading {
		last = lineEnd(p.text, min(last, len(p.text)-1))
		if next := lineEnd(p.text, min(last+1, len(p.text))); last < next && strings.Trim(p.text[last:next], "=- \t\n>") == "" {
			last = next
		}
	}
	p.visible(p.inline(n), tile{from: first, to: min(last, t.to)})
}

func lineEnd(s string, at int) int {
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(s)
}

// row marks a table row: cells are read with a bar between them.
func (p *markdown) row(n ast.Node, t tile) {
	var out []segment
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		cell := p.inline(c)
		if len(cell) > 0 && len(out) > 0 {
			cell[0].gap = " | "
		}
		out = append(out, cell...)
	}
	p.visible(out, t)
}

// visible marks all of a tile but the segments.
func (p *markdown) visible(segments []segment, t tile) {
	if t.from >= t.to {
		return
	}
	at := t.from
	for i, s := range segments {
		if s.from < at || s.to > t.to {
			continue
		}
		as := s.gap
		if between := p.text[at:s.from]; as == "" && i > 0 && strings.Contains(between, "\n") {
			as = "\n"
		}
		if p.text[at:s.from] != as {
			p.hide(at, s.from, as)
		}
		at = s.to
	}
	if end := max(at, t.from+len(strings.TrimRightFunc(p.text[t.from:t.to], unicode.IsSpace))); at < end {
		p.hide(at, end, "")
	}
}

// inline collects the texts of a block in order.
func (p *markdown) inline(block ast.Node) []segment {
	var out []segment
	gap := ""
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			if n.Segment.Len() > 0 {
				out = append(out, segment{n.Segment.Start, n.Segment.Stop, gap})
				gap = ""
			}
			if !n.IsRaw() && n.Parent().Kind() != ast.KindCodeSpan {
				p.escapes(n.Segment.Start, n.Segment.Stop)
			}
		case *ast.AutoLink:
			if at := n.Pos(); at >= 0 {
				label := len(n.Label(p.seen))
				if at < len(p.text) && p.text[at] == '<' {
					at++
				}
				out = append(out, segment{at, min(at+label, len(p.text)), gap})
				gap = ""
			}
		case *ast.RawHTML:
			if s := n.Segments; s.Len() > 0 && !joins(string(p.seen[s.At(0).Start:s.At(s.Len()-1).Stop])) {
				gap = " "
			}
		}
		return ast.WalkContinue, nil
	})
	return out
}

// joining tags stand inside words.
const joining = " a abbr b bdi bdo code del em font i ins kbd mark s small span strike strong sub tt u var wbr "

// joins reports a tag that does not separate words.
func joins(tag string) bool {
	name := strings.TrimLeft(tag, "</")
	if i := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }); i >= 0 {
		name = name[:i]
	}
	return name != "" && strings.Contains(joining, " "+strings.ToLower(name)+" ")
}

// escapes marks backslashes before punctuation and decodes entities.
func (p *markdown) escapes(from, to int) {
	for i := from; i < to; i++ {
		switch p.seen[i] {
		case '\\':
			if i+1 < to && util.IsPunct(p.seen[i+1]) {
				p.hide(i, i+1, "")
				i++
			}
		case '&':
			if n, s := entity(p.text[i:to]); n > 0 {
				p.hide(i, i+n, s)
				i += n - 1
			}
		}
	}
}

// entity decodes the HTML entity that s begins with: its length, 0 if there is
// none, and the characters.
func entity(s string) (int, string) {
	end := strings.IndexByte(s[:min(len(s), 40)], ';')
	if end < 2 {
		return 0, ""
	}
	raw := s[:end+1]
	if d := html.UnescapeString(raw); d != raw {
		return end + 1, strings.ReplaceAll(d, "\u00a0", " ")
	}
	return 0, ""
}

// html marks the tags of a raw HTML block and what no browser shows. Each of
// its paragraphs, items and rows is a block.
func (p *markdown) html(t tile) []doctree.Block {
	z := html.NewTokenizer(strings.NewReader(p.text[t.from:t.to]))
	at, skip := t.from, ""
	first := len(p.marks)
	var cuts []int
	for {
		kind := z.Next()
		end := at + len(z.Raw())
		if kind == html.ErrorToken {
			return p.pieces(t, append(cuts, t.to), p.marks[first:])
		}
		name, _ := z.TagName()
		switch tag := string(name); {
		case kind == html.TextToken && skip == "":
			p.entities(at, end)
		case kind == html.TextToken || kind == html.CommentToken || kind == html.DoctypeToken:
			p.hide(at, end, "")
		default:
			p.hide(at, end, tagGap(tag, kind))
			if tag != "td" && tag != "th" && hasTag(blockTags, tag) {
				cuts = append(cuts, at)
			}
			if kind == html.StartTagToken && (tag == "script" || tag == "style") {
				skip = tag
			} else if kind == html.EndTagToken && tag == skip {
				skip = ""
			}
		}
		at = end
	}
}

// pieces makes a block of what lies between the cuts, where that reads as
// anything.
func (p *markdown) pieces(t tile, cuts []int, marks []doctree.Mark) []doctree.Block {
	var out []doctree.Block
	from := t.from
	for _, to := range cuts {
		for len(marks) > 0 && marks[0].To <= from {
			marks = marks[1:]
		}
		at, shown := from, false
		for _, m := range marks {
			if m.From >= to {
				break
			}
			shown = shown || strings.TrimSpace(p.text[at:max(at, m.From)]+m.As) != ""
			at = m.To
		}
		if shown = shown || at < to && strings.TrimSpace(p.text[at:to]) != ""; shown {
			out = append(out, p.leaf(doctree.Paragraph, tile{from: from, to: to})...)
			from = to
		}
	}
	return out
}

// tagGap is what a tag reads as.
func tagGap(tag string, kind html.TokenType) string {
	switch {
	case strings.Contains(joining, " "+tag+" "):
		return ""
	case kind == html.EndTagToken && (tag == "td" || tag == "th"):
		return " | "
	case tag == "br" || tag == "p" || tag == "tr" || tag == "li" || tag == "div":
		return "\n"
	}
	return " "
}

func (p *markdown) entities(from, to int) {
	for i := from; i < to; i++ {
		if p.text[i] != '&' {
			continue
		}
		if n, s := entity(p.text[i:to]); n > 0 {
			p.hide(i, i+n, s)
			i += n - 1
		}
	}
}
