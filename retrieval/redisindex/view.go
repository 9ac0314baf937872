package redisindex

import (
	"sync"

	"footnote/acl"
)

// view is what a grant admits of a state.
type view struct {
	share          // of all admitted publications
	lists  []bool  // which access lists; a decision stays true for ever
	table  *table  // of the state
	deltas []delta // of the state: those that are in share
}

// views keeps those of recent grants by their digest.
type views struct {
	mu    sync.Mutex
	known map[string]*view
}

const maxViews = 64

// of is the grant's view of a state. It is made of the last one by what
// changed since, also where that was of a later state.
//
// SECURITY: the lexical leg, the check of the other, and all counts see only
// what it admits. Each list is decided on once.
func (vs *views) of(s *state, grant acl.Grant) *view {
	key := grant.Digest()
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v := vs.known[key]
	if v == nil || v.table != s.table {
		v = &view{table: s.table}
	}
	v = v.at(s, grant)
	if len(vs.known) >= maxViews && vs.known[key] == nil {
		clear(vs.known)
	}
	vs.known[key] = v
	return v
}

func (v *view) at(s *state, grant acl.Grant) *view {
	out := &view{v.share, v.lists, v.table, s.deltas}
	if known := len(v.lists); known < len(s.lists) {
		out.lists = append(make([]bool, 0, len(s.lists)), v.lists...)
		for _, l := range s.lists[known:] {
			out.lists = append(out.lists, grant.Admits(l))
		}
	}
	if known := len(v.deltas); known < len(s.deltas) {
		out.add(s.deltas[known:], 1)
	} else {
		out.add(v.deltas[len(s.deltas):], -1)
	}
	return out
}

func (v *view) add(changes []delta, times int) {
	for _, d := range changes {
		if v.lists[d.list] {
			v.chunks += times * d.sign * d.chunks
			v.length += times * d.sign * d.length
		}
	}
}

// admits reports that a document is visible in the state and admitted.
func (v *view) admits(s *state, doc int) bool {
	return doc != gone && doc < len(s.force) && s.force[doc] != gone && v.lists[s.force[doc]]
}
