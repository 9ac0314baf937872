package redislink

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// receiving is how long a replica is waited for.
const receiving = 1200 * time.Millisecond

// ErrAlone says that the server that was written to is not, or no longer, one
// whose writes last. It is an ErrUnavailable.
var ErrAlone = fmt.Errorf("%w: no replica has what was written", retrieval.ErrUnavailable)

// Received waits until a replica has what was written to the server, if one
// follows it: should that take over, it is not lost. It reports that one has it,
// or that none follows. touch is a key that is written for this; "" where tx has
// written.
//
// ErrAlone: the server became a replica itself, or must have one
// (min-replicas-to-write) and none has it. That is how an old master shows: it
// takes writes for a moment after its replica took over.
func Received(ctx context.Context, tx *redis.Tx, touch string) (bool, error) {
	about, err := tx.Info(ctx, "replication").Result()
	must := strings.Contains(about, "min_slaves_good_slaves:")
	switch {
	case err != nil:
		return false, err
	case strings.Contains(about, "role:slave"):
		return false, ErrAlone
	case !must && !strings.Contains(about, ",state=online,"):
		return true, nil
	}
	if touch != "" {
		if err := tx.Set(ctx, touch, 1, 0).Err(); err != nil {
			return false, err
		}
	}
	n, err := tx.Do(ctx, "WAIT", 1, receiving.Milliseconds()).Int()
	if err == nil && n == 0 && must {
		err = ErrAlone
	}
	return n > 0, err
}
