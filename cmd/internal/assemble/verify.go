package assemble

import (
	"context"
	"fmt"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redisindex"
)

// verifiable is a generation that keeps statistics which could drift.
type verifiable interface {
	Verify(ctx context.Context) (redisindex.Report, error)
}

// Recount looks for what a generation lacks, or holds too much of. It returns what
// is wrong, a sentence each.
func Recount(ctx context.Context, g retrieval.Generation) ([]string, error) {
	v, can := g.(verifiable)
	if !can {
		return nil, nil // it checks itself when it is opened
	}
	r, err := v.Verify(ctx)
	return r.Problems, err
}

// Verify recounts a generation and compares it with the catalog. It returns
// what is wrong, a sentence each.
func Verify(ctx context.Context, g retrieval.Generation, c *catalog.Catalog) ([]string, error) {
	out, err := Recount(ctx, g)
	if err != nil {
		return nil, err
	}
	all, err := ingest.Compare(ctx, g, c)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		out = append(out, fmt.Sprintf("%s %s: %s", d.ID, d.Path, d.What))
	}
	return out, nil
}
