package redisindex

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redislink"
)

// failed says what was being done when the client gave an error, and whether
// trying again can help.
func failed(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	return redislink.Failed(doing, err)
}

// noIndex reports the answer for an index or alias that is not there.
func noIndex(err error) bool {
	answer, ok := errors.AsType[redis.Error](err)
	return ok && (strings.Contains(answer.Error(), "no such index") || strings.Contains(answer.Error(), "Unknown index name") || strings.Contains(answer.Error(), "Unknown Index name"))
}
