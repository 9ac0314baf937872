package ingest

import (
	"context"
	"errors"
	"fmt"

	"footnote/retrieval"
)

// compactable is a generation that keeps what was removed or replaced until it
// is told to write itself anew.
type compactable interface {
	// Dead is how many bytes of the total are of no use any more.
	Dead() (dead, total int64)
	Compact(ctx context.Context) error
}

const (
	leastDead = 1 << 20 // bytes below which nothing is written anew
	deadShare = 4       // the dead bytes are at least total/deadShare
)

// Compact writes the current generation anew if a quarter of it is dead, so
// that the bytes of removed documents leave the disk. Searches go on; what
// would change the generation waits.
func (p *Pipeline) Compact(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	g, err := p.store.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	c, can := g.(compactable)
	if !can {
		return nil
	}
	if dead, total := c.Dead(); dead < leastDead || dead < total/deadShare {
		return nil
	}
	if err := c.Compact(ctx); err != nil {
		return fmt.Errorf("compacting the index: %w", err)
	}
	return nil
}
