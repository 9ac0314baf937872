package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// Report is what Verify found.
type Report struct {
	Counts   retrieval.Counts
	Problems []string // each says what is wrong, by document
	Hidden   int      // publications being written or left over; Sweep deletes old ones
	Pending  int      // access lists that tags have not followed yet
}

// Verify compares the statistics with the documents and the documents with
// what the engine has indexed. It counts at one version and starts again if
// the generation changes meanwhile.
func (g *Generation) Verify(ctx context.Context) (Report, error) {
	for range attempts {
		s, err := g.fetch(ctx)
		if err != nil {
			return Report{}, failed(ctx, "verifying generation "+g.manifest.Name, err)
		}
		r, err := g.verify(ctx, s)
		if err == nil || !errors.Is(err, errMoved) {
			return r, failed(ctx, "verifying generation "+g.manifest.Name, err)
		}
	}
	return Report{}, fmt.Errorf("verifying generation %s: %w", g.manifest.Name, errRestless)
}

func (g *Generation) verify(ctx context.Context, s *state) (Report, error) {
	records, err := g.recordsAt(ctx, s)
	if err != nil {
		return Report{}, err
	}
	r := Report{Counts: retrieval.Counts{Documents: len(records)}}
	for _, o := range s.overlay {
		if o.hidden {
			r.Hidden++
		} else {
			r.Pending++
		}
	}
	r.Problems = drift(s, records)
	for _, id := range sortedIDs(records) {
		r.Counts.Chunks += records[id].Chunks
		wrong, err := g.verifyDocument(ctx, s, id, records[id])
		if err != nil {
			return r, err
		}
		r.Problems = append(r.Problems, wrong...)
	}
	info, err := g.client.FTInfo(ctx, g.keys.index).Result()
	if err != nil {
		return r, err
	}
	if info.HashIndexingFailures > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("the engine could not index %d chunks, the last because %q", info.HashIndexingFailures, info.IndexErrors.LastIndexingError))
	}
	return r, nil
}

// recordsAt reads all records at the state's version.
func (g *Generation) recordsAt(ctx context.Context, s *state) (map[string]*record, error) {
	var all *redis.MapStringStringCmd
	now, err := g.pinned(ctx, s, func(p redis.Pipeliner) { all = p.HGetAll(ctx, g.keys.documents) })
	if err != nil {
		return nil, err
	}
	if now.version != s.version {
		return nil, errMoved
	}
	out := make(map[string]*record, len(all.Val()))
	for id, raw := range all.Val() {
		r, err := decodeRecord(raw)
		if err != nil || r == nil {
			return nil, fmt.Errorf("%s: %w", id, cmp.Or(err, retrieval.ErrCorrupt))
		}
		out[id] = r
	}
	return out, nil
}

func sortedIDs(records map[string]*record) []string {
	ids := make([]string, 0, len(records))
	for id := range records {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// drift compares the directory, which the statistics come from, with the
// documents.
func drift(s *state, records map[string]*record) []string {
	var out []string
	seen := map[string]bool{}
	for _, id := range sortedIDs(records) {
		r := records[id]
		seen[r.pub] = true
		n := s.find(r.pub)
		if n == gone {
			out = append(out, id+": it is not in the directory")
			continue
		}
		if d, list := s.docs[n], s.lists[s.force[n]]; d.share != r.share() || !list.Equal(r.list) {
			out = append(out, fmt.Sprintf("%s: the directory says %+v for [%s] instead of %+v for [%s]", id, d.share, list, r.share(), r.list))
		}
	}
	for _, pub := range s.since(0) {
		if !seen[pub] {
			out = append(out, fmt.Sprintf("the directory holds publication %s, which no document has", pub))
		}
	}
	return out
}

// verifyDocument compares a document with its keys, with the index and with the
// lists of its terms, and the tags of its chunks with its access list, unless
// the overlay says that they lag.
func (g *Generation) verifyDocument(ctx context.Context, s *state, id string, r *record) ([]string, error) {
	chunks, tokens, err := g.contents(ctx, r.pub)
	if err != nil {
		return nil, err
	}
	var indexed *redis.FTSearchCmd
	var passages, text *redis.IntCmd
	tags := make([]*redis.SliceCmd, r.Chunks)
	lists := make([]*redis.StringCmd, len(tokens))
	now, err := g.pinned(ctx, s, func(p redis.Pipeliner) {
		indexed = g.count(ctx, p, "@"+fieldPublication+":{"+r.pub+"} @"+fieldState+":{"+live+"}")
		passages, text = p.HLen(ctx, g.keys.passages+r.pub), p.Exists(ctx, g.keys.texts+r.pub)
		for i := range tags {
			tags[i] = p.HMGet(ctx, g.keys.chunk(place{r.pub, i}), fieldPublication, fieldState, fieldAccess)
		}
		for i, t := range tokens {
			lists[i] = p.HGet(ctx, g.keys.postings+t, r.pub)
		}
	})
	if err == nil && now.version != s.version {
		err = errMoved
	}
	if err != nil {
		return nil, err
	}
	_, pending := s.overlay[r.pub]
	present, right := tagged(tags, r, pending)
	var out []string
	check := func(what string, got, want int) {
		if got != want {
			out = append(out, fmt.Sprintf("%s: %s: %d instead of %d", id, what, got, want))
		}
	}
	check("chunks in the contents", chunks, r.Chunks)
	check("terms in the lists", listed(lists), r.Length)
	check("chunks", present, r.Chunks)
	check("chunks with the access list", right, r.Chunks)
	check("passages", int(passages.Val()), r.Chunks)
	check("texts", int(text.Val()), 1)
	check("chunks in the index", indexed.Val().Total, r.Chunks)
	return out, nil
}

// tagged counts the chunks of the publication, and those of them that have the
// tags of its list or lag.
func tagged(tags []*redis.SliceCmd, r *record, lag bool) (present, right int) {
	for _, t := range tags {
		v := t.Val()
		if v[0] == r.pub && v[1] == live {
			present++
			if lag || v[2] == accessTags(r.list) {
				right++
			}
		}
	}
	return present, right
}

// listed sums the occurrences in the lists of terms, of each chunk at most what
// its length can say.
func listed(lists []*redis.StringCmd) (sum int) {
	chunks := map[int]int{}
	for _, l := range lists {
		_ = decodePostings(l.Val(), func(ordinal, count, length int) { // what cannot be read is missing in the sum
			chunks[ordinal] = min(chunks[ordinal]+count, saturated)
		})
	}
	for _, n := range chunks {
		sum += n
	}
	return sum
}

// abandoned is how old a hidden publication must be for nobody to be writing
// it any more.
const abandoned = time.Hour

// Sweep finishes what processes that ended in the middle of it left: hidden
// publications of an hour ago are deleted, chunks get the tags of the access
// list that is in force.
func (g *Generation) Sweep(ctx context.Context) error {
	s, err := g.look(ctx)
	if err != nil {
		return failed(ctx, "sweeping generation "+g.manifest.Name, err)
	}
	kept, err := g.keptTexts(ctx)
	if err != nil {
		return failed(ctx, "sweeping generation "+g.manifest.Name, err)
	}
	for pub, o := range s.overlay {
		switch {
		case !o.hidden:
			err = g.retag(ctx, pub, o.list)
		case g.o.now().Sub(o.since) > abandoned:
			g.discard(ctx, pub, !kept[pub])
		}
		if err != nil {
			return failed(ctx, "sweeping generation "+g.manifest.Name, err)
		}
	}
	return ctx.Err()
}

// keptTexts are the publications whose texts a document still offers.
func (g *Generation) keptTexts(ctx context.Context) (map[string]bool, error) {
	raw, err := g.client.HGetAll(ctx, g.keys.documents).Result()
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, v := range raw {
		r, err := decodeRecord(v)
		if err != nil {
			return nil, err
		}
		kept[r.pub] = true
		for _, p := range r.Past {
			kept[p.Publication] = true
		}
	}
	return kept, nil
}
