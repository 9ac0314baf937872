package redisindex

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/retrieval"
)

// state is what a search must know before it asks, of one version of a
// generation, and what was worked out for that version. The first part never
// changes.
type state struct {
	version string
	number  int                // counts the states that this process has seen
	overlay map[string]overlay // by publication
	docs    []doc              // visible publications, by name
	places  map[string]int     // publication -> docs
	lists   []acl.List         // distinct access lists
	chunks  int

	mu       sync.Mutex
	postings map[string]*postings // by token
	views    map[string]*view     // by digest of the grant
}

// doc is a visible publication. Its chunks have the consecutive numbers from
// base on.
type doc struct {
	pub  string
	list int
	base int
	born int // number of the state in which this process first saw it
	share
}

// share is what a publication adds to the statistics.
type share struct {
	chunks int
	length int // terms of all chunks, each chunk's saturated
}

// overlay is a publication whose chunks do not say what is in force.
type overlay struct {
	hidden bool // being written or being deleted
	since  time.Time
	list   acl.List // in force, where it is not hidden
}

// view is what a grant admits of a state.
type view struct {
	lists []bool // which access lists
	share        // of all admitted publications
}

const maxViews = 64 // kept for a version

// of decides on every list once.
//
// SECURITY: the lexical leg and all counts see only what it admits.
func (s *state) of(grant acl.Grant) *view {
	key := grant.Digest()
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.views[key]; v != nil {
		return v
	}
	v := &view{lists: make([]bool, len(s.lists))}
	for i, l := range s.lists {
		v.lists[i] = grant.Admits(l)
	}
	for _, d := range s.docs {
		if v.lists[d.list] {
			v.chunks += d.chunks
			v.length += d.length
		}
	}
	if len(s.views) >= maxViews {
		clear(s.views)
	}
	s.views[key] = v
	return v
}

// known returns the list of a token if it was made for this version.
func (s *state) known(token string) *postings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.postings[token]
}

func (s *state) keep(token string, p *postings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.postings[token] = p
}

// since are the publications that this process saw after a state.
func (s *state) since(number int) (pubs []string) {
	for _, d := range s.docs {
		if d.born > number {
			pubs = append(pubs, d.pub)
		}
	}
	return pubs
}

// current is the state as it was last seen, fetched if there is none.
func (g *Generation) current(ctx context.Context) (*state, error) {
	if s := g.seen.Load(); s != nil {
		return s, nil
	}
	return g.fetch(ctx)
}

// fetch reads the state in one transaction.
func (g *Generation) fetch(ctx context.Context) (*state, error) {
	var version *redis.StringCmd
	var overlays, directory *redis.MapStringStringCmd
	_, err := g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		version, overlays, directory = p.Get(ctx, g.keys.version), p.HGetAll(ctx, g.keys.overlay), p.HGetAll(ctx, g.keys.directory)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed(ctx, "reading the state of generation "+g.manifest.Name, err)
	}
	s, err := newState(version.Val(), overlays.Val(), directory.Val())
	if err != nil {
		return nil, fmt.Errorf("reading the state of generation %s: %w", g.manifest.Name, err)
	}
	g.follow(s)
	return s, nil
}

// follow numbers a state and remembers since when its publications are known.
func (g *Generation) follow(s *state) {
	g.following.Lock()
	defer g.following.Unlock()
	g.numbered++
	s.number = g.numbered
	for i := range s.docs {
		d := &s.docs[i]
		d.born = s.number
		if g.last != nil {
			if n, ok := g.last.places[d.pub]; ok {
				d.born = g.last.docs[n].born
			}
		}
	}
	g.last = s
	g.seen.Store(s)
}

func newState(version string, overlays, directory map[string]string) (*state, error) {
	s := &state{version: version, places: make(map[string]int, len(directory)), postings: map[string]*postings{}, views: map[string]*view{}}
	var err error
	if s.overlay, err = decodeOverlays(overlays); err != nil {
		return nil, err
	}
	numbers := map[string]int{} // of the packed lists
	for pub, v := range directory {
		sh, packed, err := decodeEntry(v)
		if err != nil || !isPlain(pub) {
			return nil, fmt.Errorf("%w: the directory's entry of publication %q", retrieval.ErrCorrupt, pub)
		}
		n, ok := numbers[packed]
		if !ok {
			list, err := unpack(packed)
			if err != nil {
				return nil, fmt.Errorf("%w: the access list of publication %q: %w", retrieval.ErrCorrupt, pub, err)
			}
			n = len(s.lists)
			numbers[packed], s.lists = n, append(s.lists, list)
		}
		s.docs = append(s.docs, doc{pub: pub, list: n, share: sh})
	}
	slices.SortFunc(s.docs, func(a, b doc) int { return compare(a.pub, b.pub) })
	for i := range s.docs {
		d := &s.docs[i]
		d.base, s.places[d.pub] = s.chunks, i
		s.chunks += d.chunks
	}
	return s, nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// The overlay's values are h and the time of hiding in Unix milliseconds, or a
// and the packed list.
func hidden(at time.Time) string         { return "h" + strconv.FormatInt(at.UnixMilli(), 10) }
func accessOverlay(list acl.List) string { return "a" + pack(list) }

func decodeOverlays(raw map[string]string) (map[string]overlay, error) {
	out := make(map[string]overlay, len(raw))
	for pub, v := range raw {
		o, err := decodeOverlay(v)
		if err != nil || !isPlain(pub) {
			return nil, fmt.Errorf("%w: the overlay of publication %q", retrieval.ErrCorrupt, pub)
		}
		out[pub] = o
	}
	return out, nil
}

func decodeOverlay(v string) (overlay, error) {
	switch {
	case v != "" && v[0] == 'h':
		ms, err := strconv.ParseInt(v[1:], 10, 64)
		return overlay{hidden: true, since: time.UnixMilli(ms)}, err
	case v != "" && v[0] == 'a':
		list, err := unpack(v[1:])
		return overlay{list: list}, err
	}
	return overlay{}, errors.New("neither hidden nor a list")
}

// An entry of the directory is the share of a visible publication, two
// varints, and its packed access list.
func encodeEntry(s share, list acl.List) string {
	b := binary.AppendUvarint(nil, uint64(s.chunks))
	b = binary.AppendUvarint(b, uint64(s.length))
	return string(b) + pack(list)
}

func decodeEntry(v string) (s share, packed string, err error) {
	b := []byte(v)
	for _, to := range []*int{&s.chunks, &s.length} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<40 {
			return share{}, "", errors.New("the entry is cut short")
		}
		*to, b = int(n), b[size:]
	}
	if s.chunks < 1 {
		return share{}, "", errors.New("the entry has no chunks")
	}
	return s, string(b), nil
}
