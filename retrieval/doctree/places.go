package doctree

import (
	"sort"
	"unicode/utf8"
)

// Map leads from canonical bytes back to source bytes. It is a list of runs:
// within a run every character has the same width in both texts. The zero Map
// is the identity.
type Map struct {
	runs []run
	next *Map // from this map's source to the file, nil: it is the file
}

type run struct {
	at, src int   // first canonical and source byte
	cw, sw  uint8 // bytes per character; sw 0: made by the parser, not in the source
}

// Add says that one character (or, if both widths are 1, any number of equal
// bytes) begins at canonical byte at and at source byte src. Calls come in
// order of at.
func (m *Map) Add(at, src, canonicalWidth, sourceWidth int) {
	if n := len(m.runs); n > 0 {
		l := m.runs[n-1]
		if int(l.cw) == canonicalWidth && int(l.sw) == sourceWidth && l.src+(at-l.at)/canonicalWidth*sourceWidth == src {
			return
		}
	}
	m.runs = append(m.runs, run{at, src, uint8(canonicalWidth), uint8(sourceWidth)})
}

// Through returns m followed by next: next leads on from m's source. m must
// not be used afterwards.
func (m *Map) Through(next *Map) *Map {
	if next != nil && len(next.runs) > 0 {
		m.next = next
	}
	return m
}

// Range returns the source bytes from which the canonical bytes [from, to)
// came. An empty range gives an empty one.
func (m *Map) Range(from, to int) (int, int) {
	if m == nil {
		return from, to
	}
	if len(m.runs) > 0 {
		start, end := m.at(from, false), 0
		if end = start; to > from {
			end = m.at(to-1, true)
		}
		from, to = start, end
	}
	return m.next.Range(from, max(from, to))
}

// at returns the source byte of a canonical byte, or the one after its
// character.
func (m *Map) at(b int, end bool) int {
	i := sort.Search(len(m.runs), func(i int) bool { return m.runs[i].at > b }) - 1
	if i < 0 {
		return b
	}
	r := m.runs[i]
	chars := (b - r.at) / int(r.cw)
	if end {
		chars++
	}
	return r.src + chars*int(r.sw)
}

// stride is the distance of the rune checkpoints in bytes.
const stride = 512

// index counts code points before a byte, and knows the source.
type index struct {
	points []int // code points that begin before byte i*stride; nil: ASCII
	source *Map
}

func newIndex(s string, m *Map) index {
	x := index{source: m}
	if ascii(s) {
		return x
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if i%stride == 0 {
			x.points = append(x.points, n)
		}
		if utf8.RuneStart(s[i]) {
			n++
		}
	}
	return x
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// runes counts the code points that begin before byte b.
func (x index) runes(s string, b int) int {
	if x.points == nil {
		return b
	}
	i := min(b/stride, len(x.points)-1)
	n := x.points[i]
	for j := i * stride; j < b; j++ {
		if utf8.RuneStart(s[j]) {
			n++
		}
	}
	return n
}
