package render

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"footnote/adapters/slack/event"
	"footnote/bot"
	"footnote/bot/cite"
)

// Actions that buttons come back with. A source's is SourceAction plus its
// number.
const (
	SourceAction = "source_"
	Helpful      = "helpful"
	NotHelpful   = "not_helpful"
	ReasonAction = "reason_"
	Human        = "human"
	Direct       = "direct"
	Share        = "share"
	OpenLink     = "open" // a link button: nothing to do
)

// Reasons are what may be wrong with an answer: codes and what people read.
var Reasons = [][2]string{
	{"wrong", "It is wrong"}, {"outdated", "It is out of date"}, {"incomplete", "Something is missing"}, {"off_topic", "Not what I asked"},
}

// Options of a reply.
type Options struct {
	ID     string                   // of the answer, opaque
	Viewer func(cite.Source) string // address of the source in a viewer, "" for none; nil: none
	Room   bool                     // others read it
	Share  bool                     // offer to post it to the thread
	Note   string                   // said above, "" nothing
}

// Reply is what a reply says, in order, in one to three messages. Only the last has
// buttons.
func Reply(r bot.Reply, o Options) []Message {
	if r.Outcome != bot.Answered {
		return []Message{refusal(r, o)}
	}
	var l layout
	if o.Note != "" {
		l.add(o.Note, section(text(line(o.Note)+"\n", "italic")))
	}
	for _, p := range pieces(r.Sentences) {
		p.lay(&l)
	}
	tail := sources(r.Sources, o)
	parts := l.parts(tail.size(), len(tail.Blocks))
	last := &parts[len(parts)-1]
	last.Blocks = append(last.Blocks, tail.Blocks...)
	last.Text = escapedJoin(last.Text, tail.Text)
	return parts
}

// escapedJoin keeps both texts within the limit, the second one whole.
func escapedJoin(first, second string) string {
	room := maxText - units(second) - 2
	if units(first) > room {
		first = escaped(event.Unescape(first), max(room, 40))
	}
	return first + "\n\n" + second
}

// Plain is a reply without blocks, for when Slack refuses them: escaped, with
// its sources, and saying that it is shortened.
func Plain(r bot.Reply) string {
	if r.Outcome != bot.Answered {
		return escaped(r.Text, maxPlain)
	}
	list := []string{"Sources (shown as plain text):"}
	for _, s := range r.Sources {
		list = append(list, sourceLine(s))
	}
	end := escaped(strings.Join(list, "\n"), maxPlain/2)
	var said []string
	for _, p := range pieces(r.Sentences) {
		said = append(said, p.said())
	}
	return escaped(strings.Join(said, "\n"), maxPlain-units(end)-2) + "\n\n" + end
}

// piece is what is laid out as one: prose, a table, or code.
type piece struct {
	kind  string
	lead  string
	text  string
	marks string
}

// pieces joins table rows that have one header.
func pieces(sentences []cite.Sentence) []piece {
	var out []piece
	header := ""
	for _, s := range sentences {
		p := piece{kind: s.Kind, lead: line(s.Lead), text: strings.TrimSpace(clean(s.Plain)), marks: marks(s.Cites)}
		switch s.Kind {
		case cite.Table:
			p.text = strings.TrimRight(clean(s.Text), "\n")
			h := head(p.text)
			if n := len(out); n > 0 && h != "" && h == header && out[n-1].kind == cite.Table {
				out[n-1].text += "\n" + strings.TrimPrefix(p.text, h)
				if !strings.Contains(out[n-1].marks, p.marks) {
					out[n-1].marks += p.marks
				}
				continue
			}
			header = h
		case cite.Code:
			p.text = unfence(clean(s.Text))
		}
		out = append(out, p)
	}
	return out
}

// head is what stands before the last row of a table.
func head(table string) string {
	i := strings.LastIndex(table, "\n")
	return table[:i+1]
}

// unfence takes the fence off code.
func unfence(s string) string {
	s = strings.Trim(s, "\n")
	if rows := strings.Split(s, "\n"); len(rows) > 1 && strings.HasPrefix(strings.TrimSpace(rows[0]), "```") {
		rows = rows[1:]
		if strings.HasPrefix(strings.TrimSpace(rows[len(rows)-1]), "```") {
			rows = rows[:len(rows)-1]
		}
		s = strings.Join(rows, "\n")
	}
	return s
}

func marks(cites []int) string {
	var b strings.Builder
	for _, n := range cites {
		b.WriteString("[" + strconv.Itoa(n) + "]")
	}
	return b.String()
}

// said is the piece as text.
func (p piece) said() string {
	t := p.text
	if p.kind == cite.Table {
		t = cite.Grid(t)
	}
	if p.lead != "" && p.kind != cite.Text {
		t = p.lead + "\n" + t
	}
	return t + " " + p.marks
}

// lay lays the piece out. Prose that is too long for a block goes on in the
// next; its numbers stay with its end.
func (p piece) lay(l *layout) {
	if p.lead != "" && p.kind != cite.Text {
		l.add(p.lead, section(text(p.lead+"\n")))
	}
	body := p.text
	if p.kind == cite.Table {
		body = cite.Grid(body)
	}
	for body != "" {
		part, rest := split(body, maxRich-200)
		body = rest
		end := ""
		if rest == "" {
			end = p.marks
		}
		if p.kind != cite.Text {
			l.add(part, preformatted(strings.TrimRight(part, "\n")))
			if end != "" {
				l.add(end, section(text(end+"\n", "bold")))
			}
			continue
		}
		if item, ok := strings.CutPrefix(part, "- "); ok && item != "" && end != "" && !strings.Contains(item, "\n") {
			l.add(part+" "+end, Object{"type": "rich_text_list", "style": "bullet", "elements": []Object{section(text(item+" "), text(end, "bold"))}})
			continue
		}
		in := []Object{text(part)}
		if end != "" {
			in = append(in, text(" "+end, "bold"))
		}
		l.add(part+" "+end, section(append(in, text("\n"))...))
	}
}

// layout collects elements in order.
type layout struct {
	elements []Object
	said     []string
}

func (l *layout) add(said string, e Object) {
	l.elements, l.said = append(l.elements, e), append(l.said, said)
}

const shortened = "The answer is longer than fits here and was shortened. Ask about one part of it, or open the sources."

// parts fills messages. The last leaves room for a tail of so many units and
// blocks.
func (l *layout) parts(tail, tailBlocks int) []Message {
	var out []Message
	var block []Object
	var said []string
	inBlock, inMessage := 0, 0
	var m Message
	closeBlock := func() {
		if len(block) > 0 {
			m.Blocks, block, inBlock = append(m.Blocks, rich(block...)), nil, 0
		}
	}
	closeMessage := func() {
		closeBlock()
		m.Text = escaped(strings.Join(said, "\n"), maxText)
		out, m, said, inMessage = append(out, m), Message{}, nil, 0
	}
	for i, e := range l.elements {
		n := size(e)
		room, blocks := maxMessage, maxBlocks
		if len(out) == maxParts-1 {
			room, blocks = room-tail-units(shortened), blocks-tailBlocks-1
		}
		if inMessage+n > room || len(m.Blocks)+1 >= blocks {
			if len(out) == maxParts-1 {
				l.shorten(&block, &said, len(l.elements)-i)
				break
			}
			closeMessage()
		}
		if inBlock+n > maxRich {
			closeBlock()
		}
		block, said = append(block, e), append(said, l.said[i])
		inBlock, inMessage = inBlock+n, inMessage+n
	}
	if inMessage+tail > maxMessage || len(m.Blocks)+1+tailBlocks > maxBlocks {
		if len(out) < maxParts-1 {
			closeMessage()
		}
	}
	closeMessage()
	return out
}

func (l *layout) shorten(block *[]Object, said *[]string, _ int) {
	*block = append(*block, section(text("\n"+shortened, "italic")))
	*said = append(*said, shortened)
}

// size is the number of units of all texts in an object.
func size(v any) int {
	n := 0
	switch v := v.(type) {
	case Object:
		for k, e := range v {
			if s, ok := e.(string); ok && (k == "text" || k == "url") {
				n += units(s)
			} else {
				n += size(e)
			}
		}
	case []Object:
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

func (m Message) size() int { return size(m.Blocks) }

// sources is the list of footnotes with a button each.
func sources(list []cite.Source, o Options) Message {
	rows := []Object{section(text("Sources\n", "bold"))}
	said := []string{"Sources"}
	var buttons []Object
	for _, s := range list {
		in := []Object{text("["+strconv.Itoa(s.N)+"] ", "bold"), text(cut(place(s), 300))}
		if day := date(s); day != "" {
			in = append(in, text(" · "+day, "italic"))
		}
		for _, l := range []Object{viewerLink(s, o), link(cmp.Or(s.Link, s.Path), "original")} {
			if l != nil {
				in = append(in, text(" · "), l)
			}
		}
		rows = append(rows, section(append(in, text("\n"))...))
		said = append(said, sourceLine(s))
		if len(buttons) < 20 {
			buttons = append(buttons, button(SourceAction+strconv.Itoa(s.N), fmt.Sprintf("[%d] %s", s.N, line(s.Title)), o.ID))
		}
	}
	m := Message{Text: escaped(strings.Join(said, "\n"), maxText/2), Blocks: []Object{rich(rows...)}}
	if len(buttons) > 0 {
		m.Blocks = append(m.Blocks, actions("sources", buttons...))
	}
	m.Blocks = append(m.Blocks, feedback(o))
	return m
}

func viewerLink(s cite.Source, o Options) Object {
	if o.Viewer == nil {
		return nil
	}
	return link(o.Viewer(s), "open")
}

func feedback(o Options) Object {
	b := []Object{button(Helpful, "Helpful", o.ID), button(NotHelpful, "Not helpful", o.ID), button(Human, "Ask a human", o.ID)}
	if o.Share {
		b = append(b, button(Share, "Post to thread", o.ID))
	}
	return actions("feedback", b...)
}

// place is "title > section > subsection".
func place(s cite.Source) string {
	parts := []string{line(s.Title)}
	for _, h := range s.Section {
		parts = append(parts, line(h))
	}
	return strings.Join(parts, " > ")
}

func date(s cite.Source) string {
	if s.Modified.IsZero() {
		return ""
	}
	return s.Modified.UTC().Format("2006-01-02")
}

func sourceLine(s cite.Source) string {
	l := "[" + strconv.Itoa(s.N) + "] " + cut(place(s), 300)
	if d := date(s); d != "" {
		l += " · " + d
	}
	return l
}

// refusal says what was not found. In a room it always offers a direct
// message.
func refusal(r bot.Reply, o Options) Message {
	said := r.Text
	if o.Note != "" {
		said = line(o.Note) + "\n" + said
	}
	m := Literal(said)
	var b []Object
	if o.Room {
		b = append(b, button(Direct, "Ask in a direct message", o.ID))
	}
	m.Blocks = append(m.Blocks, actions("refusal", append(b, button(Human, "Ask a human", o.ID))...))
	return m
}
