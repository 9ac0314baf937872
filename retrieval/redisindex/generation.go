package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/retrieval"
)

// Generation is one generation, open for reading and writing. It is safe for
// concurrent use, by any number of processes.
type Generation struct {
	client   redis.UniversalClient
	o        Options
	manifest retrieval.Manifest
	keys     keys

	seen  atomic.Pointer[state] // as of the last look, nil before the first
	names names
	lists lists
	views views

	reading   chan struct{} // holds one who reads the state whole
	following sync.Mutex    // of who changes seen
	numbered  int
}

func newGeneration(client redis.UniversalClient, o Options, m retrieval.Manifest) *Generation {
	return &Generation{client: client, o: o, manifest: m, keys: newKeys(o.Prefix, m.Name), names: names{known: map[string]name{}}, lists: lists{known: map[string]*list{}}, views: views{known: map[string]*view{}}, reading: make(chan struct{}, 1)}
}

// indexed is nil where the server has the generation's index.
func (g *Generation) indexed(ctx context.Context) error {
	_, err := g.client.FTInfo(ctx, g.keys.index).Result()
	if noIndex(err) {
		return fmt.Errorf("%w: its index is gone; restore the Redis from a backup, or %s", retrieval.ErrCorrupt, rebuild)
	}
	return err
}

// Manifest says what made the generation.
func (g *Generation) Manifest() retrieval.Manifest { return g.manifest }

// Counts says what lies in the generation now; what it last knew where the
// server does not answer within two seconds.
func (g *Generation) Counts() retrieval.Counts {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := g.look(ctx)
	if err != nil {
		if s = g.seen.Load(); s == nil {
			return retrieval.Counts{}
		}
	}
	return retrieval.Counts{Documents: s.visible, Chunks: s.chunks}
}

// part is what loadScript gives for a chunk.
type part struct {
	record *record
	raw    string
}

// load reads one part of each chunk that the grant admits and that its
// document has in its visible revision, from one moment; nil for the others.
//
// SECURITY: access is decided anew on the document's list; every passage and
// all token states pass here.
func (g *Generation) load(ctx context.Context, grant acl.Grant, prefix string, ids []retrieval.ChunkID) ([]*part, error) {
	out := make([]*part, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	args := []any{prefix}
	for _, id := range ids {
		args = append(args, string(id.Document), id.Ordinal)
	}
	raw, err := loadScript.Run(ctx, g.client, []string{g.keys.documents}, args...).StringSlice()
	if err != nil {
		return nil, err
	}
	if len(raw) != 2*len(ids) {
		return nil, fmt.Errorf("%w: %d parts for %d chunks", retrieval.ErrCorrupt, len(raw), len(ids))
	}
	for i, id := range ids {
		r, err := decodeRecord(raw[2*i])
		if err != nil {
			return nil, err
		}
		if r == nil || !grant.Admits(r.list) || r.Revision != id.Revision || id.Ordinal < 0 || id.Ordinal >= r.Chunks {
			continue
		}
		out[i] = &part{r, raw[2*i+1]}
	}
	return out, nil
}

// Passages loads chunks in the order asked.
func (g *Generation) Passages(ctx context.Context, grant acl.Grant, ids []retrieval.ChunkID) ([]retrieval.Passage, error) {
	parts, err := g.load(ctx, grant, g.keys.passages, ids)
	if err := failed(ctx, "loading passages", cmp.Or(err, ctx.Err())); err != nil {
		return nil, err
	}
	out := make([]retrieval.Passage, 0, len(ids))
	for i, p := range parts {
		if p == nil {
			continue
		}
		c, err := decodePassage(p.raw, ids[i])
		if err != nil {
			return nil, fmt.Errorf("loading passages: %w", err)
		}
		r := p.record
		out = append(out, retrieval.Passage{Chunk: c, Title: r.Title, Path: r.Path, Link: r.Link, Format: r.Format, Language: r.Language, Modified: r.Modified})
	}
	return out, nil
}

// States loads the token states of chunks in the order asked.
func (g *Generation) States(ctx context.Context, grant acl.Grant, ids []retrieval.ChunkID) ([][]byte, error) {
	parts, err := g.load(ctx, grant, g.keys.states, ids)
	if err := failed(ctx, "loading token states", cmp.Or(err, ctx.Err())); err != nil {
		return nil, err
	}
	out := make([][]byte, len(ids))
	for i, p := range parts {
		if p != nil && p.raw != "" {
			out[i] = []byte(p.raw)
		}
	}
	return out, nil
}

// record reads a document's record; nil if it is absent.
func (g *Generation) record(ctx context.Context, id retrieval.DocumentID) (*record, error) {
	raw, err := g.client.HGet(ctx, g.keys.documents, string(id)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return decodeRecord(raw)
}

// Document loads one revision with its canonical text. It is read anew if it
// was superseded and deleted meanwhile.
func (g *Generation) Document(ctx context.Context, grant acl.Grant, id retrieval.DocumentID, rev retrieval.Revision) (retrieval.Document, error) {
	const doing = "loading a document"
	for before := ""; ; {
		r, err := g.record(ctx, id)
		if err != nil {
			return retrieval.Document{}, failed(ctx, doing, err)
		}
		// SECURITY: absent and forbidden are one answer.
		if r == nil || !grant.Admits(r.list) {
			return retrieval.Document{}, cmp.Or(ctx.Err(), retrieval.ErrNotFound)
		}
		pub, m, ok := r.find(rev)
		if !ok {
			return retrieval.Document{}, cmp.Or(ctx.Err(), retrieval.ErrNotFound)
		}
		text, err := g.client.Get(ctx, g.keys.texts+pub).Result()
		switch {
		case err == nil:
			return retrieval.Document{ID: id, Revision: m.Revision, Path: m.Path, Title: m.Title, Link: m.Link,
				Format: m.Format, Language: m.Language, Modified: m.Modified, Canonical: text}, nil
		case !errors.Is(err, redis.Nil):
			return retrieval.Document{}, failed(ctx, doing, err)
		case before == r.raw:
			return retrieval.Document{}, fmt.Errorf("%s: %w: the text of %s is gone; %s", doing, retrieval.ErrCorrupt, id, rebuild)
		}
		before = r.raw
	}
}

// find returns the publication of the revision asked for, "" for the visible
// one.
func (r *record) find(rev retrieval.Revision) (pub string, m meta, ok bool) {
	if rev == "" || rev == r.Revision {
		return r.pub, r.meta, true
	}
	i := slices.IndexFunc(r.Past, func(p past) bool { return p.Revision == rev })
	if i < 0 {
		return "", meta{}, false
	}
	return r.Past[i].Publication, r.Past[i].meta, true
}

// Documents lists what the grant admits, ordered by path.
func (g *Generation) Documents(ctx context.Context, grant acl.Grant) ([]retrieval.DocumentInfo, error) {
	raw, err := g.client.HGetAll(ctx, g.keys.documents).Result()
	if err := failed(ctx, "listing documents", err); err != nil {
		return nil, err
	}
	out := []retrieval.DocumentInfo{}
	for id, v := range raw {
		r, err := decodeRecord(v)
		if err != nil || r == nil {
			return nil, fmt.Errorf("listing documents: %s: %w", id, cmp.Or(err, retrieval.ErrCorrupt))
		}
		// SECURITY: the decision of Grant.Admits on the document's list.
		if !grant.Admits(r.list) {
			continue
		}
		out = append(out, retrieval.DocumentInfo{
			ID: retrieval.DocumentID(id), Revision: r.Revision, Path: r.Path, Title: r.Title, Format: r.Format,
			Modified: r.Modified, Chunks: r.Chunks, Runes: r.Runes, Access: r.list,
		})
	}
	slices.SortFunc(out, func(a, b retrieval.DocumentInfo) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID))
	})
	return out, ctx.Err()
}

// ready waits until the engine has indexed every chunk, and says if it never
// will.
func (g *Generation) ready(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := g.client.FTInfo(ctx, g.keys.index).Result()
		if err != nil {
			return failed(ctx, "asking for the index", err)
		}
		if info.HashIndexingFailures > 0 {
			return fmt.Errorf("%w: %d chunks could not be indexed, the last because %q; %s", retrieval.ErrCorrupt,
				info.HashIndexingFailures, info.IndexErrors.LastIndexingError, rebuild)
		}
		if info.Indexing == 0 && info.PercentIndexed == 1 {
			return g.complete(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// complete compares the number of chunks that can be found with the
// statistics.
func (g *Generation) complete(ctx context.Context) error {
	const doing = "counting the chunks"
	s, err := g.fetch(ctx)
	if err != nil {
		return failed(ctx, doing, err)
	}
	for range attempts {
		shown := []string{nobody}
		for pub, o := range s.overlay {
			if o.hidden {
				shown = append(shown, pub)
			}
		}
		var found *redis.FTSearchCmd
		now, err := g.pinned(ctx, s, func(p redis.Pipeliner) {
			found = g.count(ctx, p, "@"+fieldState+":{"+live+"} -@"+fieldPublication+":{"+strings.Join(shown, "|")+"}")
		})
		if err != nil {
			return failed(ctx, doing, err)
		}
		if now.version == s.version {
			if found.Val().Total != s.chunks {
				return fmt.Errorf("%w: %d chunks are indexed instead of %d; %s", retrieval.ErrCorrupt, found.Val().Total, s.chunks, rebuild)
			}
			return nil
		}
		s = now
	}
	return fmt.Errorf("%s: %w", doing, errRestless)
}

// name is what a publication is called outside.
type name struct {
	document retrieval.DocumentID
	revision retrieval.Revision
}

// names keeps the names of publications. A publication never changes its name,
// so that none is ever wrong.
type names struct {
	mu    sync.Mutex
	known map[string]name
}

const maxNames = 200_000

func (n *names) get(pub string) (name, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found, ok := n.known[pub]
	return found, ok
}

func (n *names) set(pub string, to name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= maxNames {
		clear(n.known)
	}
	n.known[pub] = to
}

// encodeName joins the two after the length of the first.
func encodeName(id retrieval.DocumentID, rev retrieval.Revision) string {
	return fmt.Sprintf("%d:%s%s", len(id), id, rev)
}

func decodeName(s string) (name, bool) {
	var n int
	head, rest, ok := strings.Cut(s, ":")
	if _, err := fmt.Sscanf(head, "%d", &n); !ok || err != nil || n < 0 || n > len(rest) {
		return name{}, false
	}
	return name{retrieval.DocumentID(rest[:n]), retrieval.Revision(rest[n:])}, true
}

// learn fetches the names of publications that are not known yet. It reports
// false if one of them is gone.
func (g *Generation) learn(ctx context.Context, pubs []string) (bool, error) {
	unknown := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(pubs))), func(p string) bool {
		_, ok := g.names.get(p)
		return ok
	})
	if len(unknown) == 0 {
		return true, nil
	}
	raw, err := g.client.HMGet(ctx, g.keys.names, unknown...).Result()
	if err != nil {
		return false, err
	}
	for i, v := range raw {
		s, _ := v.(string)
		n, ok := decodeName(s)
		if !ok {
			return false, nil
		}
		g.names.set(unknown[i], n)
	}
	return true, nil
}

func (g *Generation) chunkID(p place) retrieval.ChunkID {
	n, _ := g.names.get(p.pub)
	return retrieval.ChunkID{Document: n.document, Revision: n.revision, Ordinal: p.ordinal}
}
