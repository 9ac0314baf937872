package extract

import (
	"context"

	"footnote/retrieval/doctree"
)

func parseMarkdown(ctx context.Context, in input) (doctree.Tree, error) { return parseText(ctx, in) }
func parseHTML(ctx context.Context, in input) (doctree.Tree, error)     { return parseText(ctx, in) }
