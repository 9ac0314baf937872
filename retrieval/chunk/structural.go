package chunk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/doctree"
)

// perToken bounds a chunk by characters as well: no natural text has more of
// them per token. It keeps text of which a tokenizer makes nothing (encoded
// data is one unknown token) out of huge chunks, and bounds what is counted.
const perToken = 12

// unit is a range that is not taken apart any further.
type unit struct {
	from, to int
	kind     doctree.Kind
	place    string
	tokens   int    // of its plain text
	runes    int    // of its plain text
	head     string // plain header row of the table it is a row of
	glue     bool   // belongs with what follows: a heading, a lone tag
}

// packer cuts one tree.
type packer struct {
	t      *doctree.Tree
	o      Options
	title  string
	room   int // tokens a chunk has beside the header
	runes  int // characters a chunk has
	path   []string
	header string
	out    []retrieval.Chunk
	tokens []int  // of each chunk's text
	last   []unit // of the last chunk
}

func structural(t *doctree.Tree, o Options) []retrieval.Chunk {
	p := &packer{t: t, o: o, title: t.Title}
	var waiting []unit
	for i, s := range t.Sections {
		p.enter(s.Path)
		units := append(waiting, p.units(s.Blocks)...)
		if waiting = nil; i+1 < len(t.Sections) && onlyGlue(units) && t.Sections[i+1].Level > s.Level {
			waiting = units // a heading alone opens its first subsection
			continue
		}
		p.pack(units)
	}
	return p.out
}

func onlyGlue(units []unit) bool {
	for _, u := range units {
		if !u.glue {
			return false
		}
	}
	return true
}

// enter prepares header and room for a section.
func (p *packer) enter(path []string) {
	p.path = path
	p.header = shortHeader(p.title, path, p.o)
	p.room = p.o.Budget - p.o.Count(p.header)
	if p.runes = p.o.Budget * perToken; p.o.Size > 0 {
		p.runes = min(p.runes, p.o.Size)
	}
}

// units takes blocks apart as far as needed.
func (p *packer) units(blocks []doctree.Block) []unit {
	var out []unit
	for _, b := range blocks {
		out = append(out, p.block(b, "")...)
	}
	return out
}

// block makes one unit of a block that fits, or the units of its parts. A
// table that fits a chunk is not torn; a list may be, between items.
func (p *packer) block(b doctree.Block, head string) []unit {
	if len(b.Parts) == 0 {
		return p.leaf(unit{from: b.Span.FromByte, to: b.Span.ToByte, kind: b.Kind, place: b.Place, head: head})
	}
	var out []unit
	for _, part := range b.Parts {
		if part.Kind == doctree.HeadRow {
			head = p.t.Plain(part.Span.FromByte, part.Span.ToByte)
			if utf8.RuneCountInString(head) > p.runes/8 || p.o.Count(head) > p.room/4 {
				head = ""
			}
		}
		out = append(out, p.block(part, head)...)
	}
	if tokens, runes := total(out); b.Kind == doctree.Table && tokens <= p.room && runes <= p.runes {
		return []unit{{from: b.Span.FromByte, to: b.Span.ToByte, kind: b.Kind, place: b.Place, tokens: tokens, runes: runes}}
	}
	return out
}

func total(units []unit) (tokens, runes int) {
	for _, u := range units {
		tokens += u.tokens
		runes += u.runes + 1
	}
	return tokens, runes
}

// leaf measures a unit, and splits it if it alone is over budget.
func (p *packer) leaf(u unit) []unit {
	if !p.measure(&u) {
		return p.pieces(u)
	}
	u.glue = u.kind == doctree.Heading || u.kind == doctree.HeadRow || u.runes == 0
	return []unit{u}
}

// measure counts a unit and reports whether it fits a chunk of its own. What
// is beyond the limit of characters is not counted.
func (p *packer) measure(u *unit) bool {
	if u.to-u.from > 16*utf8.UTFMax*p.runes { // mostly markup, or far too long
		return false
	}
	plain := p.t.Plain(u.from, u.to)
	if u.runes = utf8.RuneCountInString(plain); u.runes > p.runes {
		return false
	}
	u.tokens = p.o.Count(plain)
	return u.tokens+p.headTokens(u.head) <= p.room
}

func (p *packer) headTokens(head string) int {
	if head == "" {
		return 0
	}
	return p.o.Count(head) + 1
}

// pieces splits a leaf at sentences (code at lines), and those still too long
// at words.
func (p *packer) pieces(u unit) []unit {
	var out []unit
	for _, cut := range p.cuts(u) {
		piece := u
		piece.from, piece.to = cut.From, cut.To
		if p.measure(&piece) {
			out = append(out, piece)
			continue
		}
		out = append(out, p.halves(piece)...)
	}
	return out
}

// cuts tiles a leaf: each range begins where a sentence or line begins.
func (p *packer) cuts(u unit) []analysis.Span {
	s := p.t.Canonical[u.from:u.to]
	var starts []int
	if u.kind == doctree.Code {
		for i := 0; i < len(s); i++ {
			if i == 0 || s[i-1] == '\n' {
				starts = append(starts, i)
			}
		}
	} else {
		for _, span := range analysis.Sentences(s) {
			starts = append(starts, span.From)
		}
	}
	var out []analysis.Span
	for i, at := range starts {
		from, end := u.from, u.to
		if i > 0 {
			from = u.from + at
		}
		if i+1 < len(starts) {
			end = u.from + starts[i+1]
		}
		if from, end = p.t.Trim(from, end); from < end {
			out = append(out, analysis.Span{From: from, To: end})
		}
	}
	return out
}

// halves cuts a range at the white space nearest its middle, or at a rune if
// there is none near, until every piece fits. One character always fits.
func (p *packer) halves(u unit) []unit {
	at := middle(p.t.Canonical, u.from, u.to)
	if at <= u.from || at >= u.to {
		p.measure(&u)
		return []unit{u}
	}
	var out []unit
	for _, r := range [2][2]int{{u.from, at}, {at, u.to}} {
		from, to := p.t.Trim(r[0], r[1])
		if from == to {
			continue
		}
		piece := u
		piece.from, piece.to = from, to
		if p.measure(&piece) {
			out = append(out, piece)
		} else {
			out = append(out, p.halves(piece)...)
		}
	}
	return out
}

// middle finds where to cut [from, to) in two: at white space within the
// middle half, else at the rune in the middle.
func middle(s string, from, to int) int {
	mid := from + (to-from)/2
	for mid > from && !utf8.RuneStart(s[mid]) {
		mid--
	}
	quarter := min((to-from)/4, 4096)
	left := strings.LastIndexFunc(s[mid-min(quarter, mid-from):mid], unicode.IsSpace)
	if left >= 0 {
		return mid - min(quarter, mid-from) + left
	}
	if mid > from {
		return mid
	}
	_, n := utf8.DecodeRuneInString(s[from:])
	return from + n
}

// pack fills chunks greedily. A heading at the end of a full chunk moves on.
func (p *packer) pack(units []unit) {
	for len(units) > 0 {
		n := p.fill(units)
		for n > 1 && n < len(units) && units[n-1].glue && !onlyGlue(units[:n]) {
			n--
		}
		took, over := p.emit(units[:n])
		if units = units[took:]; over {
			units = append(p.halves(units[0]), units[1:]...)
		}
	}
}

// fill says how many units the next chunk takes by the sums of their sizes.
func (p *packer) fill(units []unit) int {
	tokens, runes := p.headTokens(p.headFor(units)), 0
	for i, u := range units {
		tokens, runes = tokens+u.tokens, runes+u.runes+1
		if i > 0 && (tokens > p.room || runes > p.runes+1) {
			return i
		}
	}
	return len(units)
}

// headFor is the table header that a chunk beginning with these units repeats
// in its text.
func (p *packer) headFor(units []unit) string {
	if units[0].kind == doctree.Row {
		return units[0].head
	}
	return ""
}

// emit makes a chunk of units that fit, fewer if the exact count says so, and
// returns how many it took; none if the first alone is over and can be halved.
func (p *packer) emit(units []unit) (took int, over bool) {
	for n := len(units); ; n-- {
		from, to := readable(units[:n])
		body := p.t.Plain(from, to)
		if body == "" {
			return n, false // markup alone is no chunk
		}
		if head := p.headFor(units); head != "" {
			body = head + "\n" + body
		}
		text := p.header + body
		tokens := p.o.Count(text)
		if tokens > p.o.Budget {
			if n > 1 {
				continue
			}
			if _, size := utf8.DecodeRuneInString(p.t.Canonical[from:to]); size < to-from {
				return 0, true
			}
		}
		if !p.join(units[:n], to, tokens) {
			p.add(units[:n], from, to, text, tokens)
		}
		return n, false
	}
}

// readable is the range of units without those at its ends that read as
// nothing.
func readable(units []unit) (from, to int) {
	for len(units) > 1 && units[0].runes == 0 {
		units = units[1:]
	}
	for len(units) > 1 && units[len(units)-1].runes == 0 {
		units = units[:len(units)-1]
	}
	return units[0].from, units[len(units)-1].to
}

func (p *packer) add(units []unit, from, to int, text string, tokens int) {
	p.out, p.tokens = append(p.out, p.chunk(units, p.path, from, to, text)), append(p.tokens, tokens)
	p.out[len(p.out)-1].ID.Ordinal = len(p.out) - 1
	p.last = units
}

func (p *packer) chunk(units []unit, path []string, from, to int, text string) retrieval.Chunk {
	span := p.t.Span(from, to)
	return retrieval.Chunk{Section: path, Kind: mostly(units), Locator: locator(doctree.Reach(units[0].place, units[len(units)-1].place), span), Span: span, Content: p.t.Canonical[from:to], Text: text}
}

// join adds units to the last chunk if one of both is small, their sections
// share a parent and both fit.
func (p *packer) join(units []unit, to, tokens int) bool {
	last := len(p.out) - 1
	if last < 0 || min(p.tokens[last], tokens) >= p.o.Join || p.headFor(p.last) != "" || p.headFor(units) != "" || p.last[0].place != units[0].place {
		return false
	}
	c := p.out[last]
	path := shared(c.Section, p.path)
	if len(path) < max(len(c.Section), len(p.path))-1 {
		return false
	}
	body := p.t.Plain(c.Span.FromByte, to)
	text := shortHeader(p.title, path, p.o) + body
	n := p.o.Count(text)
	if n > p.o.Budget || utf8.RuneCountInString(body) > p.runes {
		return false
	}
	p.last = slices.Concat(p.last, units)
	p.out[last], p.tokens[last] = p.chunk(p.last, path, c.Span.FromByte, to, text), n
	p.out[last].ID.Ordinal = last
	return true
}

// shared is the common beginning of two paths.
func shared(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n:n]
}

// mostly names the kind that most of the bytes have, text on a tie.
func mostly(units []unit) string {
	size := map[string]int{}
	for _, u := range units {
		size[kindOf(u.kind)] += u.to - u.from
	}
	best := "text"
	for _, k := range []string{"table", "code"} {
		if size[k] > size[best] {
			best = k
		}
	}
	return best
}
