package memindex

import (
	"math"
	"slices"
)

type item struct {
	ordinal uint32
	score   float64
}

// top keeps the best items: higher scores first, ties by chunk id. It is a
// heap with the worst at the root.
type top struct {
	s     *state
	depth int
	items []item
	floor float64 // what scores less cannot enter
}

// newTop makes a heap for scores of at least floor.
func newTop(s *state, depth int, floor float64) *top {
	t := &top{s: s, depth: depth, floor: floor}
	if depth < 1 {
		t.floor = math.Inf(1)
	}
	return t
}

// before reports that a ranks before b.
func (t *top) before(a, b item) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	// As ChunkID.Compare, but quicker: one document has one visible revision.
	docA, docB := t.s.owners[a.ordinal], t.s.owners[b.ordinal]
	if docA != docB {
		return docA.id < docB.id
	}
	return a.ordinal < b.ordinal
}

// offer adds the item if it is among the best.
func (t *top) offer(ordinal uint32, score float64) {
	it := item{ordinal, score}
	switch {
	case t.depth < 1:
		return
	case len(t.items) < t.depth:
		t.items = append(t.items, it)
		t.up(len(t.items) - 1)
	case t.before(it, t.items[0]):
		t.items[0] = it
		t.down(0)
	}
	if len(t.items) == t.depth {
		t.floor = t.items[0].score
	}
}

func (t *top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(t.items[parent], t.items[i]) {
			return
		}
		t.items[parent], t.items[i] = t.items[i], t.items[parent]
		i = parent
	}
}

func (t *top) down(i int) {
	for {
		worst := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(t.items) && t.before(t.items[worst], t.items[child]) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		t.items[i], t.items[worst] = t.items[worst], t.items[i]
		i = worst
	}
}

// sorted returns the items, best first.
func (t *top) sorted() []item {
	slices.SortFunc(t.items, func(a, b item) int {
		if t.before(a, b) {
			return -1
		}
		return 1
	})
	return t.items
}
