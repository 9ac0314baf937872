package retrieval_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/retrieval"
)

// engine is the same handbook in the Query Engine's own text index, as it would
// be if its score were used.
type engine struct{ client *redis.Client }

const engineIndex = "engine"

func newEngine(t *testing.T, client *redis.Client, documents int) engine {
	t.Helper()
	ctx, e := t.Context(), engine{client}
	err := client.FTCreate(ctx, engineIndex, &redis.FTCreateOptions{OnHash: true, Prefix: []any{engineIndex + ":"}, NoOffsets: true, NoHL: true, StopWords: []any{}},
		&redis.FieldSchema{FieldName: "text", FieldType: redis.SearchFieldTypeText, NoStem: true},
		&redis.FieldSchema{FieldName: "acl", FieldType: redis.SearchFieldTypeTag, CaseSensitive: true},
		&redis.FieldSchema{FieldName: "state", FieldType: redis.SearchFieldTypeTag}).Err()
	if err != nil {
		t.Fatal(err)
	}
	before, start, h := used(t, client), time.Now(), newHandbook()
	for n := range documents {
		if err := e.add(ctx, h.publication(n)); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("\nthe engine's text index loads %.0f chunks/s, takes %d B a chunk with its text\n",
		float64(documents*handbookPer)/time.Since(start).Seconds(), (used(t, client)-before)/(documents*handbookPer))
	fmt.Printf("%-9s %14s  %14s  %5s  %s\n", "filter", "our text", "its BM25STD", "ratio", "p50 / p95 in ms, the 100 best of each; of our 20 best it has, mean (least)")
	return e
}

func (e engine) add(ctx context.Context, p retrieval.Publication) error {
	var tags []string
	for _, g := range p.Access.Principals() {
		tags = append(tags, strings.TrimPrefix(string(g), "group:"))
	}
	_, err := e.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, c := range p.Chunks {
			pipe.HSet(ctx, engineIndex+":"+c.Chunk.ID.String(), "text", strings.Join(c.Terms, " "), "acl", strings.Join(tags, ","), "state", "live")
		}
		return nil
	})
	return err
}

// search is the form in which the filter adds nothing to the score.
func (e engine) search(t *testing.T, holds []string, q retrieval.Query) (ids []string) {
	t.Helper()
	text := "(@text:(" + strings.Join(q.Terms, "|") + "))=>{$weight:1} (@state:{live} @acl:{" + strings.Join(holds, "|") + "})=>{$weight:0}"
	r, err := e.client.FTSearchWithArgs(t.Context(), engineIndex, text, &redis.FTSearchOptions{
		NoContent: true, Verbatim: true, WithScores: true, Scorer: "BM25STD", Limit: q.Depth, Timeout: 60_000, DialectVersion: 2}).Result()
	if err != nil || len(r.Warnings) > 0 {
		t.Fatal(r.Warnings, err)
	}
	slices.SortFunc(r.Docs, func(a, b redis.Document) int {
		return cmp.Or(cmp.Compare(*b.Score, *a.Score), cmp.Compare(a.ID, b.ID))
	})
	for _, d := range r.Docs {
		ids = append(ids, strings.TrimPrefix(d.ID, engineIndex+":"))
	}
	return ids
}

// compare prints the time of both text legs and how many of the 20 best hits
// are the same.
func (e engine) compare(t *testing.T, g retrieval.Generation, principals int, grant acl.Grant, questions []retrieval.Query) {
	t.Helper()
	var ours, its []time.Duration
	same, least := 0, 20
	for _, q := range questions {
		q.Vector = nil
		start := time.Now()
		c, err := g.Search(t.Context(), grant, q)
		if err != nil {
			t.Fatal(err)
		}
		between := time.Now()
		ids := e.search(t, holds(principals), q)
		ours, its = append(ours, between.Sub(start)), append(its, time.Since(between))
		n := 0
		for _, h := range c.Lexical[:min(20, len(c.Lexical))] {
			if slices.Contains(ids[:min(20, len(ids))], h.ID.String()) {
				n++
			}
		}
		same, least = same+n, min(least, n)
	}
	fmt.Printf("%-9d %6.1f /%6.1f  %6.1f /%6.1f  %5.1f  %.1f (%d)\n", principals, quantile(ours, .5), quantile(ours, .95), quantile(its, .5), quantile(its, .95),
		quantile(its, .5)/quantile(ours, .5), float64(same)/float64(len(questions)), least)
}
