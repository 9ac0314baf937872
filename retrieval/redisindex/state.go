package redisindex

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/retrieval"
)

// state is what a search must know before it asks, of one version of a
// generation. It is never changed.
type state struct {
	version string
	overlay map[string]overlay // by publication
	classes []class
}

// overlay is a publication whose chunks do not say what is in force.
type overlay struct {
	hidden bool // being written or being deleted
	since  time.Time
	list   acl.List // in force, where it is not hidden
}

// class is the share of one access list in a generation.
type class struct {
	list acl.List
	statistics
}

type statistics struct {
	chunks    int
	length    int // terms of all chunks, each chunk's saturated
	documents int
}

func (s *statistics) add(o statistics) {
	s.chunks += o.chunks
	s.length += o.length
	s.documents += o.documents
}

// within sums the statistics of what the grant admits.
//
// SECURITY: the counts behind every score; nothing outside the grant is in them.
func (s *state) within(grant acl.Grant) (sum statistics) {
	for _, c := range s.classes {
		if grant.Admits(c.list) {
			sum.add(c.statistics)
		}
	}
	return sum
}

func (s *state) all() (sum statistics) {
	for _, c := range s.classes {
		sum.add(c.statistics)
	}
	return sum
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
	var overlays, classes *redis.MapStringStringCmd
	_, err := g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		version, overlays, classes = p.Get(ctx, g.keys.version), p.HGetAll(ctx, g.keys.overlay), p.HGetAll(ctx, g.keys.classes)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed(ctx, "reading the state of generation "+g.manifest.Name, err)
	}
	s := &state{version: version.Val()}
	if s.overlay, err = decodeOverlays(overlays.Val()); err == nil {
		s.classes, err = decodeClasses(classes.Val())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of generation %s: %w", g.manifest.Name, err)
	}
	g.seen.Store(s)
	return s, nil
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

// The statistics of a list are three fields: one of these and the packed list.
const (
	classChunks    = "c"
	classLength    = "l"
	classDocuments = "d"
)

// fields are the changes of a list's statistics as the change script takes
// them.
func (s statistics) fields(list acl.List, sign int) []any {
	key := pack(list)
	return []any{classChunks + key, sign * s.chunks, classLength + key, sign * s.length, classDocuments + key, sign * s.documents}
}

func decodeClasses(raw map[string]string) ([]class, error) {
	byList := map[string]*class{}
	var order []string
	for field, v := range raw {
		n, err := strconv.Atoi(v)
		if err != nil || field == "" {
			return nil, fmt.Errorf("%w: the statistics hold %q for %q", retrieval.ErrCorrupt, v, field)
		}
		c := byList[field[1:]]
		if c == nil {
			list, err := unpack(field[1:])
			if err != nil {
				return nil, fmt.Errorf("%w: the statistics of %q: %w", retrieval.ErrCorrupt, field, err)
			}
			c = &class{list: list}
			byList[field[1:]] = c
			order = append(order, field[1:])
		}
		switch field[:1] {
		case classChunks:
			c.chunks = n
		case classLength:
			c.length = n
		case classDocuments:
			c.documents = n
		}
	}
	out := make([]class, len(order))
	for i, key := range order {
		out[i] = *byList[key]
	}
	return out, nil
}
