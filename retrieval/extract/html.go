package extract

import (
	"context"

	"footnote/retrieval/doctree"
)

func parseHTML(ctx context.Context, in input) (doctree.Tree, error) { return parseText(ctx, in) }
