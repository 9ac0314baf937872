package redisindex

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"footnote/retrieval"
)

// list is what was fetched of a term: its chunks by document, of those below
// docs that are visible in the state number or a later one. What is in it of a
// document never changes.
type list struct {
	runs   [2][]run // most of them; the latest, copied when some are added
	table  int
	number int
	docs   int
	size   int // items
}

type run struct {
	doc   int
	items []item
}

type item struct {
	ordinal uint32
	count   uint16 // of the term, saturated
	length  uint16 // of the chunk, saturated
}

// lists keeps what was fetched of terms by token. A list of an older state is
// brought up by what has been published since.
type lists struct {
	mu    sync.Mutex
	known map[string]*list
	size  int // items, 8 bytes each
}

const (
	maxListed = 4 << 20
	maxSince  = 100 // publications since; with more a list is fetched anew
	maxLatest = 64  // runs that are copied with each change
)

func (ls *lists) get(token string) *list {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.known[token]
}

func (ls *lists) set(token string, l *list) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if old := ls.known[token]; old != nil {
		ls.size -= old.size
	}
	if ls.size += l.size; ls.size > maxListed {
		clear(ls.known)
		ls.size = l.size
	}
	ls.known[token] = l
}

// in is the list by the numbers of a state, nil if it may lack something of it.
func (l *list) in(s *state) *list {
	switch {
	case l == nil || l.number > s.number:
		return nil
	case l.table == s.table.id:
		return l
	case l.table != s.before || l.docs > len(s.moved):
		return nil
	}
	out := &list{table: s.table.id, number: s.number}
	for _, n := range s.moved[:l.docs] {
		if n != gone {
			out.docs = n + 1
		}
	}
	for _, runs := range l.runs {
		for _, r := range runs {
			if r.doc = s.moved[r.doc]; r.doc != gone {
				out.add(0, r)
			}
		}
	}
	return out
}

func (l *list) add(part int, r run) {
	l.runs[part] = append(l.runs[part], r)
	l.size += len(r.items)
}

// bring makes the list of a state from an older one (nil: none) and what was
// fetched of the publications since, by name.
func (l *list) bring(s *state, since map[string]string) (*list, error) {
	out := &list{table: s.table.id, number: s.number, docs: len(s.docs)}
	if l != nil {
		out.runs, out.size, out.number = l.runs, l.size, l.number
		out.runs[1] = slices.Clip(l.runs[1])
	}
	for pub, packed := range since {
		n := s.find(pub)
		if n == gone || packed == "" {
			continue
		}
		r := run{doc: n}
		beyond := false
		err := decodePostings(packed, func(ordinal, count, length int) {
			beyond = beyond || ordinal >= s.docs[n].chunks
			r.items = append(r.items, item{uint32(ordinal), uint16(count), uint16(length)})
		})
		if err != nil || beyond {
			return nil, fmt.Errorf("%w: a term's postings in publication %s", retrieval.ErrCorrupt, pub)
		}
		out.add(1, r)
	}
	if len(out.runs[1]) > maxLatest {
		out = out.merge(s)
	}
	return out, nil
}

// merge leaves out what is gone from a state.
func (l *list) merge(s *state) *list {
	out := &list{table: l.table, number: s.number, docs: l.docs}
	for _, runs := range l.runs {
		for _, r := range runs {
			if s.force[r.doc] != gone {
				out.add(0, r)
			}
		}
	}
	return out
}

// encodePostings packs the chunks of one publication that hold a term: for each
// the difference to the ordinal before (the first: to -1), the count, the
// length, as varints.
func encodePostings(b []byte, last, ordinal, count, length int) []byte {
	b = binary.AppendUvarint(b, uint64(ordinal-last))
	b = binary.AppendUvarint(b, uint64(min(count, saturated)))
	return binary.AppendUvarint(b, uint64(length))
}

// decodePostings calls visit with what encodePostings packed.
func decodePostings(s string, visit func(ordinal, count, length int)) error {
	last := -1
	for b := []byte(s); len(b) > 0; {
		var field [3]uint64
		for i := range field {
			n, size := binary.Uvarint(b)
			if size <= 0 {
				return errors.New("the postings are cut short")
			}
			field[i], b = n, b[size:]
		}
		if field[0] < 1 || field[0] > math.MaxInt32 || field[1] < 1 || field[1] > saturated || field[2] < field[1] || field[2] > saturated {
			return errors.New("the postings hold numbers that cannot be")
		}
		last += int(field[0])
		visit(last, int(field[1]), int(field[2]))
	}
	return nil
}

// frequency is how many admitted chunks hold the term.
func (v *view) frequency(s *state, l *list) (n int) {
	for _, runs := range l.runs {
		for _, r := range runs {
			if v.admits(s, r.doc) {
				n += len(r.items)
			}
		}
	}
	return n
}

const (
	k1 = 1.2
	b  = 0.75
)

// idf = ln(1 + (N − n + 0.5)/(n + 0.5)).
func idf(chunks, holding int) float64 {
	return math.Log1p((float64(chunks-holding) + 0.5) / (float64(holding) + 0.5))
}

// accumulate adds a term's share, weight·count/(count + K), to the admitted
// chunks that hold it; K = k1·(1 − b + b·length/average).
func (v *view) accumulate(scores []float64, s *state, l *list, weight float64) {
	average := float64(v.length) / float64(v.chunks)
	for _, runs := range l.runs {
		for _, r := range runs {
			if !v.admits(s, r.doc) {
				continue
			}
			base := s.docs[r.doc].base
			for _, it := range r.items {
				count := float64(it.count)
				scores[base+int(it.ordinal)] += weight * count / (count + k1*(1-b+b*float64(it.length)/average))
			}
		}
	}
}

// scored is a chunk with its BM25.
type scored struct {
	place place
	score float64
}

// lexical are the depth best admitted chunks, best first, ties by id. It names
// the terms that none holds.
func (s *search) lexical(ctx context.Context, depth int) (best []scored, missing []string, err error) {
	times := map[string]int{}
	for _, t := range s.query.Terms {
		times[t]++
	}
	scores := make([]float64, s.state.span)
	for _, t := range distinct(s.query.Terms) {
		n := s.frequency(t)
		if n == 0 {
			missing = append(missing, t)
			continue
		}
		s.view.accumulate(scores, s.state, s.terms[t], float64(times[t])*idf(s.view.chunks, n)*(k1+1))
	}
	best = s.best(scores, depth)
	if err := s.name(ctx, placesOf(best)); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), s.chunkID(a.place).Compare(s.chunkID(b.place)))
	})
	return best[:min(depth, len(best))], missing, nil
}

// best are the chunks that score no less than the depth-th, in no order.
func (s *search) best(scores []float64, depth int) (out []scored) {
	if depth < 1 {
		return nil
	}
	floor := floor(scores, depth)
	for _, d := range s.state.docs {
		for i, x := range scores[d.base : d.base+d.chunks] {
			if x >= floor {
				out = append(out, scored{place{d.pub, i}, x})
			}
		}
	}
	return out
}

// floor is the depth-th greatest score, or the least above 0 where there are
// fewer.
func floor(scores []float64, depth int) float64 {
	least := math.SmallestNonzeroFloat64
	top := make([]float64, 0, 2*depth)
	for _, x := range scores {
		if x < least {
			continue
		}
		if top = append(top, x); len(top) == cap(top) {
			slices.Sort(top)
			top = append(top[:0], top[depth:]...)
			least = top[0]
		}
	}
	if len(top) < depth {
		return least
	}
	slices.Sort(top)
	return top[len(top)-depth]
}

func placesOf(all []scored) []place {
	out := make([]place, len(all))
	for i, c := range all {
		out[i] = c.place
	}
	return out
}
