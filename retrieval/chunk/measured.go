package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/doctree"
)

// measured cuts the text of all sections by characters, across sections.
func measured(t *doctree.Tree, o Options) []retrieval.Chunk {
	if len(t.Sections) == 0 {
		return nil
	}
	first, last := t.Sections[0].Span, t.Sections[len(t.Sections)-1].Span
	m := cutter{t: t, o: o, to: last.ToByte}
	boundaries := strings.Contains("CDEF", string(o.Strategy))
	if boundaries {
		m.sentences = analysis.Sentences(t.Canonical[:last.ToByte])
	}
	overlap := 0
	if strings.Contains("BDF", string(o.Strategy)) {
		overlap = o.Overlap
	}
	for from := first.FromByte; from < m.to; {
		end := m.forward(from, o.Size)
		if boundaries && end < m.to {
			end = m.boundary(from, end)
		}
		m.add(from, end)
		if end >= m.to {
			break
		}
		from = max(m.back(end, overlap), m.forward(from, 1))
	}
	return m.out
}

type cutter struct {
	t         *doctree.Tree
	o         Options
	to        int
	sentences []analysis.Span
	next      int // first sentence that may begin in the window
	section   int // the section that holds the last chunk's start
	out       []retrieval.Chunk
}

// forward is the byte n characters on.
func (m *cutter) forward(from, n int) int {
	for i := range m.t.Canonical[from:m.to] {
		if n == 0 {
			return from + i
		}
		n--
	}
	return m.to
}

// back is the byte n characters before.
func (m *cutter) back(at, n int) int {
	for ; n > 0 && at > 0; n-- {
		for at--; at > 0 && m.t.Canonical[at]&0xC0 == 0x80; at-- {
		}
	}
	return at
}

// boundary moves a cut to the last end of a paragraph in the window's second
// half, else to the last beginning of a sentence, else to the last white
// space. Without any it stays.
func (m *cutter) boundary(from, end int) int {
	half := from + (end-from)/2
	if i := strings.LastIndex(m.t.Canonical[half:end], "\n\n"); i >= 0 {
		return half + i + 2
	}
	at := 0
	for ; m.next < len(m.sentences) && m.sentences[m.next].From <= end; m.next++ {
		if s := m.sentences[m.next].From; s > half {
			at = s
		}
	}
	m.next = max(m.next-1, 0)
	if at > 0 {
		return at
	}
	if i := strings.LastIndexFunc(m.t.Canonical[half:end], unicode.IsSpace); i >= 0 {
		_, n := utf8.DecodeRuneInString(m.t.Canonical[half+i:])
		return half + i + n
	}
	return end
}

func (m *cutter) add(from, to int) {
	for m.section+1 < len(m.t.Sections) && m.t.Sections[m.section+1].Span.FromByte <= from {
		m.section++
	}
	from, to = m.t.Trim(from, to)
	if from == to {
		return
	}
	s := m.t.Sections[m.section]
	c := retrieval.Chunk{Section: s.Path, Kind: "text", Span: m.t.Span(from, to), Content: m.t.Canonical[from:to], Text: m.t.Plain(from, to)}
	if c.Text == "" {
		return
	}
	if strings.Contains("EF", string(m.o.Strategy)) {
		c.Text = header(m.t.Title, s.Path) + c.Text
	}
	c.Locator = locator("", c.Span)
	c.ID.Ordinal = len(m.out)
	m.out = append(m.out, c)
}
