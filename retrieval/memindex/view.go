package memindex

import (
	"slices"
	"sync"

	"footnote/acl"
)

// span is a half-open range of ordinals.
type span struct{ from, to int }

// view is what one grant admits of one version of the state, with the lexical
// statistics of just that. It is never changed, but for its caches.
type view struct {
	version uint64
	classes []bool // class -> admitted; a decision stays true for ever
	spans   []span // admitted ordinals, ascending, merged
	chunks  int    // N
	norms   []float64

	mu    sync.Mutex
	bits  []uint64       // admitted ordinals; nil until asked
	found map[uint32]int // term number -> n
}

// newView decides on the classes that known does not cover and collects the
// ordinals that the grant admits.
//
// SECURITY: both legs of every search see only view.spans.
func newView(s *state, grant acl.Grant, known []bool) *view {
	v := &view{version: s.version, classes: slices.Clone(known), found: map[uint32]int{},
		spans: make([]span, 0, 8+len(s.live)/4)}
	for _, list := range s.classes[len(known):] {
		v.classes = append(v.classes, grant.Admits(list))
	}
	length := 0
	for _, doc := range s.live {
		if !v.classes[doc.class] {
			continue
		}
		v.chunks += doc.chunks
		length += doc.length
		if n := len(v.spans); n > 0 && v.spans[n-1].to == doc.base {
			v.spans[n-1].to += doc.chunks
		} else {
			v.spans = append(v.spans, span{doc.base, doc.base + doc.chunks})
		}
	}
	v.norms = lengthNorms(v.chunks, length, s.longest)
	return v
}

// whole reports that the view admits every ordinal, dead ones included.
func (v *view) whole(s *state) bool { return v.chunks == len(s.owners) }

// frequency counts the admitted chunks that hold the term.
func (v *view) frequency(s *state, term uint32) int {
	if v.whole(s) {
		return len(s.lists[term])
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n, ok := v.found[term]
	if !ok {
		admitted := v.bitmap(len(s.owners))
		for _, p := range s.lists[term] {
			n += int(admitted[p.ordinal>>6] >> (p.ordinal & 63) & 1)
		}
		v.found[term] = n
	}
	return n
}

// bitmap has a bit for each admitted ordinal. The caller holds mu.
func (v *view) bitmap(n int) []uint64 {
	if v.bits == nil {
		v.bits = make([]uint64, (n+63)/64)
		for _, r := range v.spans {
			for o := r.from; o < r.to; {
				word := o >> 6
				end := min(r.to, (word+1)<<6)
				v.bits[word] |= (1<<(end-o) - 1) << (o & 63) // 64 ones if a word is filled
				o = end
			}
		}
	}
	return v.bits
}

// views keeps the views of recent grants by their digest.
type views struct {
	mu     sync.Mutex
	byKey  map[string]*view
	recent []string // least recent first
}

const maxViews = 64

// of returns the grant's view of the state. The caller holds the state's read
// lock.
func (c *views) of(s *state, grant acl.Grant) *view {
	key := grant.Digest()
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.byKey[key]
	if v == nil || v.version != s.version {
		var known []bool
		if v != nil {
			known = v.classes
		}
		v = newView(s, grant, known)
	}
	c.keep(key, v)
	return v
}

func (c *views) keep(key string, v *view) {
	if i := slices.Index(c.recent, key); i >= 0 {
		c.recent = slices.Delete(c.recent, i, i+1)
	}
	c.recent = append(c.recent, key)
	if len(c.recent) > maxViews {
		delete(c.byKey, c.recent[0])
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	if c.byKey == nil {
		c.byKey = map[string]*view{}
	}
	c.byKey[key] = v
}
