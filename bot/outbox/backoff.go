package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff is a growing, jittered pause between attempts: the n-th is between
// a half and the whole of Least doubled n times, at most Most. Zero values
// mean 1 s and 1 min. It is for one goroutine.
type Backoff struct {
	Least, Most time.Duration
	Rand        func() float64 // 0 to 1; nil: a random one

	n int
}

// Next is the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	least, most := cmp.Or(b.Least, time.Second), b.most()
	whole := most
	if b.n < 62 && least<<b.n>>b.n == least {
		whole = min(most, least<<b.n)
	}
	b.n++
	random := b.Rand
	if random == nil {
		random = rand.Float64
	}
	return min(whole, whole/2+time.Duration(random()*float64(whole-whole/2)))
}

// Reset makes the next pause the shortest.
func (b *Backoff) Reset() { b.n = 0 }

func (b *Backoff) most() time.Duration { return cmp.Or(b.Most, time.Minute) }

// Retrying says what to do between attempts.
type Retrying struct {
	Backoff Backoff
	// Permanent reports that no further attempt can succeed. nil: never.
	Permanent func(error) bool
	// Before is told of each failure and the pause that follows. May be nil.
	Before func(err error, pause time.Duration)
}

// Retry makes attempts until one returns nil, fails for good, or ctx is done.
// An attempt may be a connection that lasts: the pauses grow with each failure,
// and are short again only after an attempt that lasted longer than the
// longest pause, so that a server which accepts and hangs up is not stormed. A
// *Limited error is waited for at least as long as it says.
func Retry(ctx context.Context, r Retrying, attempt func(ctx context.Context) error) error {
	for {
		start := time.Now()
		err := attempt(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.Permanent != nil && r.Permanent(err):
			return err
		}
		if time.Since(start) > r.Backoff.most() {
			r.Backoff.Reset()
		}
		pause := r.Backoff.Next()
		var limited *Limited
		if errors.As(err, &limited) {
			pause = max(pause, limited.After)
		}
		if r.Before != nil {
			r.Before(err, pause)
		}
		if err := Pause(ctx, pause); err != nil {
			return fmt.Errorf("waiting to try again: %w", err)
		}
	}
}

// Pause waits, or returns the cause of ctx's end.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
