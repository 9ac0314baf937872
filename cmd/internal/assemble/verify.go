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

// Verify recounts a generation and compares it with the catalog. It returns
// what is wrong, a sentence each.
func Verify(ctx context.Context, g retrieval.Generation, c *catalog.Catalog) ([]string, error) {
	var out []string
	if v, can := g.(verifiable); can {
		r, err := v.Verify(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, r.Problems...)
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
