package redisindex

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
)

// Fields of a chunk, as the Query Engine indexes them.
const (
	fieldVector      = "v"
	fieldAccess      = "acl"
	fieldPublication = "pub"
	fieldState       = "state"

	live     = "live" // the only state so far; a clause that is always there
	nobody   = "none" // a publication that never is; keeps the exclusion from being empty
	distance = "d"
)

// filter is the part of a query that keeps it inside a grant. newFilter alone
// makes one; the zero filter makes no query.
type filter struct{ text string }

// newFilter renders a grant for one state of the overlay. It reports false
// where nothing can be admitted: then there is no query to send.
//
// SECURITY: the access filter of both legs. Every clause of the grant is
// rendered or there is no filter. A publication in the overlay is decided here
// by the list that is in force, never by the tags of its chunks.
func newFilter(grant acl.Grant, s *state) (filter, bool) {
	clauses := grant.Clauses()
	if !grant.System() && len(clauses) == 0 {
		return filter{}, false
	}
	out, in := []string{nobody}, []string(nil)
	for pub, o := range s.overlay {
		out = append(out, pub)
		if !o.hidden && grant.Admits(o.list) {
			in = append(in, pub)
		}
	}
	slices.Sort(out)
	slices.Sort(in)
	text := "@" + fieldState + ":{" + live + "}"
	for _, c := range clauses {
		tags := make([]string, len(c))
		for i, p := range c {
			tags[i] = principalTag(p)
		}
		if !plain(tags) {
			return filter{}, false
		}
		text += " @" + fieldAccess + ":{" + strings.Join(tags, "|") + "}"
	}
	if !plain(out) {
		return filter{}, false
	}
	text += " -@" + fieldPublication + ":{" + strings.Join(out, "|") + "}"
	if plain(in) {
		text = "(" + text + ") | (@" + fieldState + ":{" + live + "} @" + fieldPublication + ":{" + strings.Join(in, "|") + "})"
	}
	return filter{text}, true
}

// plain reports that there are words and that no byte of them means anything
// to the query language.
func plain(words []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !isPlain(w) })
}

func isPlain(w string) bool {
	for _, c := range []byte(w) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return w != ""
}

// near is the query for the admitted chunks nearest to the vector in $q. The
// policy compares every admitted chunk, also where the index is HNSW: its
// graph misses up to two thirds of the hits under a filter.
func (f filter) near(k int) string {
	return fmt.Sprintf("(%s)=>[KNN %d @%s $q HYBRID_POLICY ADHOC_BF AS %s]", f.text, k, fieldVector, distance)
}

// base32Lower is base32 in the alphabet of the query language.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// token is a term as it stands in keys: t and the term where it is of [a-z0-9],
// b and its base32 otherwise, h and its hash where it is long.
func token(term string) string {
	switch {
	case len(term) > 64:
		h := sha256.Sum256([]byte(term))
		return "h" + hex.EncodeToString(h[:20])
	case term == "" || isPlain(term):
		return "t" + term
	}
	return "b" + base32Lower.EncodeToString([]byte(term))
}

// principalTag is a principal as it stands in the index.
func principalTag(p acl.Principal) string {
	h := sha256.Sum256([]byte(p))
	return "p" + hex.EncodeToString(h[:16])
}

// accessTags are the principals of a list as a chunk carries them.
func accessTags(l acl.List) string {
	var tags []string
	for _, p := range l.Principals() {
		tags = append(tags, principalTag(p))
	}
	return strings.Join(tags, ",")
}

// schema is the index over the chunks of a generation.
func schema(dims int, hnsw bool) []*redis.FieldSchema {
	vector := &redis.FTVectorArgs{FlatOptions: &redis.FTFlatOptions{Type: "FLOAT32", Dim: dims, DistanceMetric: "COSINE"}}
	if hnsw {
		vector = &redis.FTVectorArgs{HNSWOptions: &redis.FTHNSWOptions{Type: "FLOAT32", Dim: dims, DistanceMetric: "COSINE",
			MaxEdgesPerNode: 16, MaxAllowedEdgesPerNode: 200}}
	}
	tag := func(name string) *redis.FieldSchema {
		return &redis.FieldSchema{FieldName: name, FieldType: redis.SearchFieldTypeTag, CaseSensitive: true, Separator: ","}
	}
	return []*redis.FieldSchema{
		tag(fieldAccess), tag(fieldPublication), tag(fieldState),
		{FieldName: fieldVector, FieldType: redis.SearchFieldTypeVector, VectorArgs: vector},
	}
}
