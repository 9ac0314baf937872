package discord

import (
	"context"
	"fmt"
)

// Load reads who the bot is and all that is known of channels from the API, for
// commands of an operator, which do not Run.
func (a *Adapter) Load(ctx context.Context) error {
	if err := a.load(ctx); err != nil {
		return fmt.Errorf("asking Discord who can see what: %w", err)
	}
	return nil
}
