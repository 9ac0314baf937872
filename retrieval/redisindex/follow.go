package redisindex

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// A process follows a generation: it reads all of the directory and the overlay
// once, then only what the log says since.
//
// An entry of the log has the fields f, the version before, t, the token of the
// version after, which is TOKEN@ENTRY, and for the publications of the change
// o and its name, a and its name: the new overlay and the new entry of the
// directory, empty for none. One without f and t does not change what readers
// see. A version never comes again, also where the server went back to an
// earlier one: so an entry follows what is known only if its f is that version.

// pinned runs commands in one transaction with the version, and gives the state
// that the generation was in: s, or one with s's version, if nothing moved.
func (g *Generation) pinned(ctx context.Context, s *state, ask func(redis.Pipeliner)) (*state, error) {
	var version *redis.StringCmd
	var log *redis.XMessageSliceCmd
	cmds, err := g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		version, log = p.Get(ctx, g.keys.version), p.XRange(ctx, g.keys.log, after(s.at), "+")
		ask(p)
		return nil
	})
	for _, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		if f, ok := c.(*redis.FTSearchCmd); ok {
			if err := partial(f.Val()); err != nil {
				return nil, err
			}
		}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return g.follow(ctx, s, version.Val(), log.Val())
}

// after is where the log goes on after an entry.
func after(at string) string {
	if at == "" {
		return "-"
	}
	return "(" + at
}

// current is the state as it was last seen, read if there is none.
func (g *Generation) current(ctx context.Context) (*state, error) {
	if s := g.seen.Load(); s != nil {
		return s, nil
	}
	return g.fetchAfter(ctx, nil)
}

// look is the state that the generation is in now.
func (g *Generation) look(ctx context.Context) (*state, error) {
	s, err := g.current(ctx)
	if err == nil {
		s, err = g.pinned(ctx, s, func(redis.Pipeliner) {})
	}
	return s, err
}

// follow makes the next of the last state by what the log said since s. It reads
// all where the log does not reach back to s.
func (g *Generation) follow(ctx context.Context, s *state, version string, log []redis.XMessage) (*state, error) {
	if version == s.version && len(log) == 0 {
		return s, nil
	}
	next, err := g.step(version, log)
	if err != nil || next != nil {
		return next, err
	}
	return g.fetchAfter(ctx, s) // or another search came further
}

// step advances the last state to the version, nil if the log does not lead
// there.
func (g *Generation) step(version string, log []redis.XMessage) (*state, error) {
	g.following.Lock()
	defer g.following.Unlock()
	last := g.seen.Load()
	what, at, ok := gather(last, version, log)
	if !ok {
		return nil, nil
	}
	return g.advance(last, version, at, what)
}

// gather merges what the log said after the version of s. It reports false if
// that does not lead to the version.
func gather(s *state, version string, log []redis.XMessage) (all said, at string, ok bool) {
	all, at = newSaid(), s.at
	now := s.version
	if n := slices.IndexFunc(log, func(e redis.XMessage) bool { return e.ID == s.at }); n >= 0 {
		log = log[n+1:]
	}
	for _, entry := range log {
		token, versioned := entry.Values["t"].(string)
		if versioned && entry.Values["f"] != now {
			continue
		}
		at = entry.ID
		if versioned {
			now = token + "@" + entry.ID
		}
		for name, v := range entry.Values {
			v, _ := v.(string)
			switch pub := name[min(1, len(name)):]; {
			case pub == "":
			case name[0] == 'o':
				all.overlay[pub] = v
			case name[0] == 'a':
				all.directory[pub] = v
			}
		}
	}
	return all, at, now == version
}

// tell adds to the log that a publication's overlay is gone, which nobody can
// see otherwise.
func (g *Generation) tell(ctx context.Context, p redis.Pipeliner, pub string) {
	p.XAdd(ctx, &redis.XAddArgs{Stream: g.keys.log, MaxLen: logged, Approx: true, Values: []any{"o" + pub, ""}})
}

// logged is how many entries the log keeps, the same as in the scripts.
const logged = 1000

// fetchAfter reads the whole state where s is the last that was seen. Of many
// who need it one reads.
func (g *Generation) fetchAfter(ctx context.Context, s *state) (*state, error) {
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if now := g.seen.Load(); now != s {
		return now, nil
	}
	return g.fetch(ctx)
}

// fetch reads the whole state in one transaction.
func (g *Generation) fetch(ctx context.Context) (*state, error) {
	doing := "reading the state of generation " + g.manifest.Name
	var version *redis.StringCmd
	var overlays, directory *redis.MapStringStringCmd
	_, err := g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		version, overlays, directory = p.Get(ctx, g.keys.version), p.HGetAll(ctx, g.keys.overlay), p.HGetAll(ctx, g.keys.directory)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	if version.Val() == "" { // nothing was ever written, or all is lost
		if err := g.indexed(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
	}
	g.following.Lock()
	defer g.following.Unlock()
	s := g.seen.Load()
	if s == nil {
		s = newState()
	}
	_, at, _ := strings.Cut(version.Val(), "@")
	next, err := g.advance(s, version.Val(), at, whole(s, overlays.Val(), directory.Val()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return next, nil
}

// whole is the difference of all that the server has from a state.
func whole(s *state, overlays, directory map[string]string) said {
	for pub := range s.overlay {
		if _, ok := overlays[pub]; !ok {
			overlays[pub] = ""
		}
	}
	for n, d := range s.docs {
		if _, ok := directory[d.pub]; !ok && s.force[n] != gone {
			directory[d.pub] = ""
		}
	}
	return said{overlays, directory}
}

// advance makes the next state. The caller holds following, and s is the last
// one.
func (g *Generation) advance(s *state, version, at string, what said) (*state, error) {
	next, err := s.next(what)
	if err != nil {
		return nil, err
	}
	g.numbered++
	next.version, next.at, next.number = version, at, g.numbered
	g.seen.Store(next)
	return next, nil
}

// next is the state after what was said. The caller makes no other next of s.
func (s *state) next(what said) (*state, error) {
	overlays, err := changeOverlay(s.overlay, what.overlay)
	if err != nil {
		return nil, err
	}
	all := make([]news, 0, len(what.directory))
	for _, pub := range slices.Sorted(maps.Keys(what.directory)) {
		n, err := decodeNews(pub, what.directory[pub])
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	if s.worn() || slices.ContainsFunc(all, s.back) {
		s = s.renumber()
	}
	next := &state{overlay: overlays, table: s.table, docs: s.docs, force: s.force, lists: s.lists, deltas: s.deltas, visible: s.visible, chunks: s.chunks, span: s.span}
	if len(all) > 0 {
		next.force = slices.Grow(slices.Clone(s.force), len(all))
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	for _, n := range all {
		next.take(n)
	}
	return next, nil
}

func changeOverlay(now map[string]overlay, changes map[string]string) (map[string]overlay, error) {
	if len(changes) == 0 {
		return now, nil
	}
	out := maps.Clone(now)
	for pub, v := range changes {
		if v == "" {
			delete(out, pub)
			continue
		}
		o, err := decodeOverlay(v)
		if err != nil || !isPlain(pub) {
			return nil, fmt.Errorf("%w: the overlay of publication %q", retrieval.ErrCorrupt, pub)
		}
		out[pub] = o
	}
	return out, nil
}

// take puts one publication's news into a state that is being made.
func (s *state) take(n news) {
	at, known := s.places[n.pub]
	before := gone
	if known {
		before = s.force[at]
	}
	list := gone
	if !n.gone {
		list = s.listed(n)
	}
	if before == list {
		return
	}
	if !known {
		at = len(s.docs)
		s.places[n.pub] = at
		s.docs, s.force = append(s.docs, doc{n.pub, s.span, n.share}), append(s.force, gone)
		s.span += n.chunks
	}
	d := s.docs[at]
	for _, x := range []struct{ list, sign int }{{before, -1}, {list, 1}} {
		if x.list != gone {
			s.deltas = append(s.deltas, delta{x.list, x.sign, d.share})
			s.visible += x.sign
			s.chunks += x.sign * d.chunks
		}
	}
	s.force[at] = list
}

// listed is the number of an access list.
func (s *state) listed(n news) int {
	at, ok := s.numbers[n.packed]
	if !ok {
		at = len(s.lists)
		s.numbers[n.packed], s.lists = at, append(s.lists, n.list)
	}
	return at
}

// back reports news of a publication that was gone, or that is not as it was:
// what is kept of it may be incomplete. It happens where the server went back
// to an earlier version.
func (s *state) back(n news) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.places[n.pub]
	return known && !n.gone && (s.force[at] == gone || s.docs[at].share != n.share)
}

// worn reports that more is kept of what is gone than of what is there.
func (s *state) worn() bool {
	const spare = 1000
	return len(s.docs) > 2*s.visible+spare || len(s.deltas) > 4*s.visible+spare
}

// renumber is the same state, as if it had been read whole.
func (s *state) renumber() *state {
	out := newState()
	out.version, out.at, out.number, out.overlay = s.version, s.at, s.number, s.overlay
	out.id, out.before, out.moved = s.id+1, s.id, make([]int, len(s.docs))
	for n, d := range s.docs {
		if out.moved[n] = gone; s.force[n] != gone {
			list := s.lists[s.force[n]]
			out.moved[n] = len(out.docs)
			out.take(news{pub: d.pub, packed: pack(list), list: list, share: d.share})
		}
	}
	return out
}
