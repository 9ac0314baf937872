package redisindex

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// list is a term of the question and the admitted chunks that hold it, of a
// long list the first only.
type list struct {
	term   string
	times  int // in the question
	total  int // chunks
	weight float64
	counts map[place]int // occurrences in a chunk, saturated
	whole  bool          // counts has all chunks
	most   int           // occurrences in a chunk that is not in counts, at most

	cmd *redis.FTSearchCmd
}

// lists are the terms of a question, each once in order.
type lists []*list

func newLists(terms []string) lists {
	times := make(map[string]int, len(terms))
	for _, t := range terms {
		times[t]++
	}
	var out lists
	for _, t := range distinct(terms) {
		out = append(out, &list{term: t, times: times[t], counts: map[place]int{}})
	}
	return out
}

func (ls lists) of(term string) *list {
	i := slices.IndexFunc(ls, func(l *list) bool { return l.term == term })
	if i < 0 {
		return nil
	}
	return ls[i]
}

// ask fetches the chunks with the most occurrences of each term, or their
// number alone if no hits are wanted.
func (ls lists) ask(ctx context.Context, s *search, p redis.Pipeliner, depth int) {
	for _, l := range ls {
		if depth == 0 {
			l.cmd = s.count(ctx, p, s.filter.holds(l.term))
		} else {
			l.ask(ctx, s, p, s.o.Whole, nil)
		}
	}
}

// ask fetches at most limit chunks, of the keys given if there are any.
func (l *list) ask(ctx context.Context, s *search, p redis.Pipeliner, limit int, keys []any) {
	o := s.options(limit)
	o.NoContent, o.WithScores, o.Scorer, o.InKeys = true, true, "DISMAX", keys
	l.cmd = p.FTSearchWithArgs(ctx, s.keys.index, s.filter.holds(l.term), o)
}

func (ls lists) read(s *search) error {
	for _, l := range ls {
		r := l.cmd.Val()
		l.total = r.Total
		if err := l.take(s, r.Docs); err != nil {
			return err
		}
		l.whole = len(l.counts) >= l.total
		if l.total > 0 {
			l.weight = float64(l.times) * idf(s.within.chunks, l.total) * (k1 + 1)
		}
	}
	return nil
}

// take notes occurrences. They come most first.
func (l *list) take(s *search, docs []redis.Document) error {
	for _, d := range docs {
		p, err := s.keys.placeOf(d.ID)
		if err != nil {
			return err
		}
		if d.Score == nil || *d.Score < 1 || *d.Score != math.Trunc(*d.Score) {
			return fmt.Errorf("the engine counts a term otherwise than expected in %s: its client must speak RESP3, its scorer DISMAX give the number of occurrences", d.ID)
		}
		l.most = int(min(*d.Score, saturated))
		l.counts[p] = l.most
	}
	return nil
}

// bound is the greatest share that the term can have in a chunk that is not in
// counts.
func (l *list) bound() float64 {
	if l.whole {
		return 0
	}
	const rounding = 1 + 1e-12 // sums in another order may differ by less
	return share(l.weight, l.most, k1*(1-b)) * rounding
}

const (
	k1 = 1.2
	b  = 0.75
)

// idf = ln(1 + (N − n + 0.5)/(n + 0.5)).
func idf(chunks, holding int) float64 {
	return math.Log1p((float64(chunks-holding) + 0.5) / (float64(holding) + 0.5))
}

// norm = k1·(1 − b + b·length/average), of chunks chunks with length terms in
// all.
func (s *statistics) norm(length int) float64 {
	return k1 * (1 - b + b*float64(length)/(float64(s.length)/float64(s.chunks)))
}

// share is a term's part of a score: weight·count/(count + norm).
func share(weight float64, count int, norm float64) float64 {
	return weight * float64(count) / (float64(count) + norm)
}

// scored is a chunk with its BM25, or with as much of it as is known.
type scored struct {
	place place
	score float64
}

// lexical are the depth best chunks, best first, ties by id.
//
// Short lists are there whole. Of the others only the chunks with the most
// occurrences are, so that a chunk that no list has shown scores at most the
// sum of the bounds. If depth known chunks have more, it is none of the best
// (MaxScore; Turtle and Flood 1995): then what is missing of the known ones is
// looked up by their keys. Otherwise the shortest of the long lists are fetched
// whole first.
func (s *search) lexical(ctx context.Context, ls lists, depth int) ([]scored, error) {
	long := slices.DeleteFunc(slices.Clone(ls), func(l *list) bool { return l.whole })
	slices.SortStableFunc(long, func(a, b *list) int { return cmp.Compare(a.total, b.total) })
	for len(long) > 0 {
		known := s.score(ls)
		floor := nth(known, depth)
		n := needed(long, floor)
		if n == 0 {
			if err := s.lookUp(ctx, ls, long, known, floor); err != nil {
				return nil, err
			}
			break
		}
		if err := s.complete(ctx, long[:n]); err != nil {
			return nil, err
		}
		long = long[n:]
	}
	all := s.score(ls)
	floor := nth(all, depth)
	best := slices.DeleteFunc(all, func(c scored) bool { return c.score < floor })
	if err := s.name(ctx, placesOf(best)); err != nil {
		return nil, err
	}
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), s.chunkID(a.place).Compare(s.chunkID(b.place)))
	})
	return best[:min(depth, len(best))], nil
}

// score sums the shares of every chunk that a list has shown, in the order of
// the question's terms.
func (s *search) score(ls lists) []scored {
	at := map[place]int{}
	var out []scored
	for _, l := range ls {
		for p, count := range l.counts {
			i, ok := at[p]
			if !ok {
				i = len(out)
				at[p], out = i, append(out, scored{place: p})
			}
			out[i].score += share(l.weight, count, s.within.norm(p.length))
		}
	}
	return out
}

// nth is the n-th greatest score, 0 where there are fewer.
func nth(all []scored, n int) float64 {
	if len(all) < n {
		return 0
	}
	scores := make([]float64, len(all))
	for i, c := range all {
		scores[i] = c.score
	}
	slices.Sort(scores)
	return scores[len(scores)-n]
}

// needed is how many of the long lists, shortest first, must be whole for the
// bounds of the others to stay under floor.
func needed(long []*list, floor float64) int {
	rest, n := 0.0, len(long)
	for n > 0 {
		if rest += long[n-1].bound(); rest >= floor {
			return n
		}
		n--
	}
	return 0
}

// complete fetches the lists whole.
func (s *search) complete(ctx context.Context, ls []*list) error {
	err := s.pin(ctx, func(p redis.Pipeliner) {
		for _, l := range ls {
			l.ask(ctx, s, p, l.total, nil)
		}
	})
	if err != nil {
		return err
	}
	for _, l := range ls {
		if err := l.take(s, l.cmd.Val().Docs); err != nil {
			return err
		}
		if len(l.counts) != l.total {
			return fmt.Errorf("%w: the engine returned %d of %d chunks", retrieval.ErrUnavailable, len(l.counts), l.total)
		}
		l.whole = true
	}
	return nil
}

// lookUp fetches the occurrences that are not known of the chunks that can
// still come to floor.
func (s *search) lookUp(ctx context.Context, ls lists, long []*list, known []scored, floor float64) error {
	asked := make(map[*list][]any, len(long))
	for _, c := range known {
		rest := 0.0
		for _, l := range long {
			if _, ok := l.counts[c.place]; !ok {
				rest += l.bound()
			}
		}
		if rest == 0 || c.score+rest < floor {
			continue
		}
		for _, l := range long {
			if _, ok := l.counts[c.place]; !ok {
				asked[l] = append(asked[l], s.keys.chunk(c.place))
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	err := s.pin(ctx, func(p redis.Pipeliner) {
		for l, keys := range asked {
			l.ask(ctx, s, p, len(keys), keys)
		}
	})
	if err != nil {
		return err
	}
	for l := range asked {
		if err := l.take(s, l.cmd.Val().Docs); err != nil {
			return err
		}
	}
	return nil
}

func placesOf(all []scored) []place {
	out := make([]place, len(all))
	for i, c := range all {
		out[i] = c.place
	}
	return out
}
