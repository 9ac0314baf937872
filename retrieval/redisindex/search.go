package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/models"
	"footnote/retrieval"
)

// attempts bounds how often a search is asked anew because the generation
// changed under it.
const attempts = 500

var errRestless = fmt.Errorf("%w: it changes too quickly to be read", retrieval.ErrUnavailable)

// errMoved says that the generation changed: ask anew.
var errMoved = errors.New("the generation changed")

// Search runs both legs inside the grant.
func (g *Generation) Search(ctx context.Context, grant acl.Grant, q retrieval.Query) (retrieval.Candidates, error) {
	if q.Vector != nil {
		if err := retrieval.CheckVector(q.Vector, g.manifest.Embedder.Dimensions); err != nil {
			return retrieval.Candidates{}, fmt.Errorf("searching: %w", err)
		}
	}
	// Comparing vectors is dear: it is not begun with a state that has moved.
	look := g.look
	if q.Vector == nil {
		look = g.current
	}
	for range attempts {
		s, err := look(ctx)
		if err != nil {
			return retrieval.Candidates{}, failed(ctx, "searching", err)
		}
		found := &search{Generation: g, state: s, grant: grant, query: q}
		c, err := found.run(ctx)
		if err == nil {
			return c, ctx.Err()
		}
		if !errors.Is(err, errMoved) {
			return retrieval.Candidates{}, failed(ctx, "searching", err)
		}
		look = g.current // as of that moment
	}
	return retrieval.Candidates{}, fmt.Errorf("searching: %w", errRestless)
}

// search is one try at one version.
type search struct {
	*Generation
	state  *state
	grant  acl.Grant
	query  retrieval.Query
	filter filter
	view   *view
	terms  map[string]*list // of the question and to be counted
}

func (s *search) run(ctx context.Context) (c retrieval.Candidates, err error) {
	if !s.move(s.state) {
		// SECURITY: no principals, no query.
		c.Missing = distinct(s.query.Terms)
		return c, ctx.Err()
	}
	near := &nearest{asked: s.depth() + margin}
	if err := s.ask(ctx, near); err != nil {
		return c, err
	}
	depth := s.depth()
	near.depth, c.Chunks, c.Holding = depth, s.view.chunks, s.holding()
	if c.Dense, err = near.hits(ctx, s); err != nil {
		return c, err
	}
	best, missing, err := s.lexical(ctx, depth)
	if err != nil {
		return c, err
	}
	c.Missing = missing
	for _, h := range best {
		c.Lexical = append(c.Lexical, retrieval.LexicalHit{ID: s.chunkID(h.place), Score: h.score})
	}
	c.Distances, err = s.distances(ctx, best, near)
	return c, err
}

// move takes the search to a state. It reports false where nothing can be
// admitted.
func (s *search) move(to *state) (ok bool) {
	s.state, s.view = to, s.views.of(to, s.grant)
	s.filter, ok = newFilter(s.grant, to)
	return ok
}

func (s *search) depth() int { return min(max(s.query.Depth, 0), s.view.chunks) }

// ask sends both legs in one transaction: the vector, and for the terms what
// is not known of them in this version. If the generation has only lost what it
// had meanwhile, the answer is one of the later version.
func (s *search) ask(ctx context.Context, near *nearest) error {
	s.terms = map[string]*list{}
	var fetches []*fetch
	now, err := s.pinned(ctx, s.state, func(p redis.Pipeliner) {
		for _, t := range distinct(slices.Concat(s.query.Terms, s.query.Count)) {
			if f := s.fetchTerm(ctx, p, t); f != nil {
				fetches = append(fetches, f)
			}
		}
		near.ask(ctx, s, p)
	})
	if err == nil && now.version != s.state.version && !(s.state.covers(now) && s.move(now)) {
		err = errMoved
	}
	if err != nil {
		return err
	}
	for _, f := range fetches {
		l, err := f.older.bring(s.state, f.got())
		if err != nil {
			return fmt.Errorf("term %q: %w", f.term, err)
		}
		s.terms[f.term] = l
		s.lists.set(token(f.term), l)
	}
	return nil
}

// fetch is what is asked of a term: all of its list, or the part since an older
// one.
type fetch struct {
	term  string
	older *list
	since []string
	part  *redis.SliceCmd
	all   *redis.MapStringStringCmd
}

// fetchTerm asks for what the list of a term lacks, nil for nothing.
func (s *search) fetchTerm(ctx context.Context, p redis.Pipeliner, term string) *fetch {
	key := s.keys.postings + token(term)
	known := s.lists.get(token(term))
	if l := known.in(s.state); l != nil {
		if l != known {
			s.lists.set(token(term), l)
		}
		switch since := s.state.since(l.docs); {
		case len(since) == 0:
			s.terms[term] = l
			return nil
		case len(since) <= maxSince:
			return &fetch{term: term, older: l, since: since, part: p.HMGet(ctx, key, since...)}
		}
	}
	return &fetch{term: term, all: p.HGetAll(ctx, key)}
}

// got is what was fetched, by publication; "" where the term is not in it.
func (f *fetch) got() map[string]string {
	if f.all != nil {
		return f.all.Val()
	}
	out := make(map[string]string, len(f.since))
	for i, pub := range f.since {
		out[pub], _ = f.part.Val()[i].(string)
	}
	return out
}

// frequency is how many admitted chunks hold the term.
func (s *search) frequency(term string) int { return s.view.frequency(s.state, s.terms[term]) }

// holding counts the admitted chunks that hold each term to be counted, where
// any does.
func (s *search) holding() map[string]int {
	var out map[string]int
	for _, t := range s.query.Count {
		if n := s.frequency(t); n > 0 {
			if out == nil {
				out = make(map[string]int, len(s.query.Count))
			}
			out[t] = n
		}
	}
	return out
}

// pin runs the commands in one transaction with the version; errMoved if the
// version is not the search's.
func (s *search) pin(ctx context.Context, ask func(redis.Pipeliner)) error {
	now, err := s.pinned(ctx, s.state, ask)
	if err == nil && now.version != s.state.version {
		return errMoved
	}
	return err
}

// partial says that a result is not whole. A server whose policy is to return
// what it has warns, on RESP3.
func partial(r redis.FTSearchResult) error {
	if len(r.Warnings) > 0 {
		return fmt.Errorf("%w: the result is partial: %s", retrieval.ErrUnavailable, r.Warnings[0])
	}
	return nil
}

// options are what every query has.
func (g *Generation) options(limit int) *redis.FTSearchOptions {
	return &redis.FTSearchOptions{Verbatim: true, Limit: limit, Timeout: int(g.o.Timeout.Milliseconds()), DialectVersion: 2}
}

// count asks for the number of chunks alone. One of them is asked for too: a
// query with LIMIT 0 0 that runs out of time gives a smaller number and no
// warning where the server's policy is to return what it has.
func (g *Generation) count(ctx context.Context, p redis.Pipeliner, query string) *redis.FTSearchCmd {
	o := g.options(1)
	o.NoContent = true
	return p.FTSearchWithArgs(ctx, g.keys.index, query, o)
}

// distinct keeps the first of equal terms.
func distinct(terms []string) []string {
	var out []string
	seen := make(map[string]bool, len(terms))
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// The engine's distances are rounded otherwise than ours: so many more are
// asked for, and the order is made by ours. Within slack they may be swapped.
const (
	margin = 16
	slack  = 2e-6
)

// nearest is the dense leg.
type nearest struct {
	depth, asked int
	cmd          *redis.FTSearchCmd
	known        map[place]float64 // distances of all that was returned
	kept         map[place]bool    // those that are hits
}

func (n *nearest) ask(ctx context.Context, s *search, p redis.Pipeliner) {
	if s.query.Vector == nil || n.asked == margin {
		return
	}
	o := s.options(n.asked)
	o.Params = map[string]any{"q": packVector(s.query.Vector)}
	o.SortBy = []redis.FTSearchSortBy{{FieldName: distance, Asc: true}}
	o.Return = []redis.FTSearchReturn{{FieldName: distance}, {FieldName: fieldVector}}
	n.cmd = p.FTSearchWithArgs(ctx, s.keys.index, s.filter.near(n.asked), o)
}

// hits are the depth nearest chunks by our distances, ties by id. More are
// asked for as long as one that was not returned could be as near.
func (n *nearest) hits(ctx context.Context, s *search) ([]retrieval.DenseHit, error) {
	for n.cmd != nil {
		places, last, err := n.read(s)
		if err != nil {
			return nil, err
		}
		if err := s.name(ctx, places); err != nil {
			return nil, err
		}
		slices.SortFunc(places, func(a, b place) int {
			return cmp.Or(cmp.Compare(n.known[a], n.known[b]), s.chunkID(a).Compare(s.chunkID(b)))
		})
		best := places[:min(n.depth, len(places))]
		whole := len(n.cmd.Val().Docs) < n.asked
		if whole || len(best) == n.depth && (n.depth == 0 || n.known[best[n.depth-1]]+slack < last) {
			return n.keep(s, best), nil
		}
		n.asked *= 4
		if err := s.pin(ctx, func(p redis.Pipeliner) { n.ask(ctx, s, p) }); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (n *nearest) keep(s *search, best []place) []retrieval.DenseHit {
	n.kept = make(map[place]bool, len(best))
	hits := make([]retrieval.DenseHit, len(best))
	for i, p := range best {
		n.kept[p] = true
		hits[i] = retrieval.DenseHit{ID: s.chunkID(p), Distance: n.known[p]}
	}
	return hits
}

// read takes what was returned: the places, with our distances in known, and
// the engine's greatest distance.
//
// SECURITY: what the view does not admit is left out, whatever the engine says.
func (n *nearest) read(s *search) (places []place, last float64, err error) {
	docs := n.cmd.Val().Docs
	n.known = make(map[place]float64, len(docs))
	for _, d := range docs {
		p, err := s.keys.placeOf(d.ID)
		if err != nil {
			return nil, 0, err
		}
		if last, err = strconv.ParseFloat(d.Fields[distance], 64); err != nil {
			return nil, 0, fmt.Errorf("the distance %q of a hit: %w", d.Fields[distance], err)
		}
		if !s.view.admits(s.state, s.state.find(p.pub)) {
			continue
		}
		v, err := unpackVector(d.Fields[fieldVector], s.manifest.Embedder.Dimensions)
		if err != nil {
			return nil, 0, err
		}
		n.known[p] = cosine(s.query.Vector, v)
		places = append(places, p)
	}
	return places, last, nil
}

// cosine is the cosine distance of two unit vectors, kept inside [0,2] against
// rounding.
func cosine(a, b []float32) float64 { return min(max(1-float64(models.Dot(a, b)), 0), 2) }

// name makes the names of the places known; errMoved if one is gone.
func (s *search) name(ctx context.Context, places []place) error {
	pubs := make([]string, len(places))
	for i, p := range places {
		pubs[i] = p.pub
	}
	ok, err := s.learn(ctx, pubs)
	if err == nil && !ok {
		return errMoved
	}
	return err
}

// distances are those of the lexical hits that are not among the dense ones;
// nil if there is none. A chunk never changes its vector, so that whatever
// version gives it, it is right.
func (s *search) distances(ctx context.Context, hits []scored, near *nearest) (map[retrieval.ChunkID]float64, error) {
	if s.query.Vector == nil {
		return nil, nil
	}
	var out map[retrieval.ChunkID]float64
	var far []place
	for _, h := range hits {
		if near.kept[h.place] {
			continue
		}
		if out == nil {
			out = make(map[retrieval.ChunkID]float64)
		}
		if d, ok := near.known[h.place]; ok {
			out[s.chunkID(h.place)] = d
		} else {
			far = append(far, h.place)
		}
	}
	if len(far) == 0 {
		return out, nil
	}
	vectors := make([]*redis.StringCmd, len(far))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, f := range far {
			vectors[i] = p.HGet(ctx, s.keys.chunk(f), fieldVector)
		}
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil, errMoved // its publication is being deleted
	}
	if err != nil {
		return nil, err
	}
	for i, f := range far {
		v, err := unpackVector(vectors[i].Val(), s.manifest.Embedder.Dimensions)
		if err != nil {
			return nil, err
		}
		out[s.chunkID(f)] = cosine(s.query.Vector, v)
	}
	return out, nil
}
