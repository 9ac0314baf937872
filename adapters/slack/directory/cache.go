package directory

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// cache keeps values for a maximum age. What is older is fetched anew, and a
// fetch that fails is an error: nothing old is ever served.
type cache[T any] struct {
	maxAge time.Duration
	most   int
	now    func() time.Time
	flight singleflight.Group

	mu    sync.Mutex
	kept  map[string]kept[T]
	epoch int // changes with every drop
}

type kept[T any] struct {
	value T
	at    time.Time
}

func newCache[T any](maxAge time.Duration, now func() time.Time) *cache[T] {
	return &cache[T]{maxAge: maxAge, most: 50_000, now: now, kept: map[string]kept[T]{}}
}

func (c *cache[T]) peek(key string) (kept[T], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[key]
	return k, ok && c.now().Sub(k.at) <= c.maxAge
}

var errMoving = errors.New("the data changed during every attempt to read it")

// get returns the value and when it was fetched. Callers of one key share a
// fetch, which goes on when one of them leaves.
func (c *cache[T]) get(ctx context.Context, key string, fetch func(context.Context) (T, error)) (kept[T], error) {
	if k, ok := c.peek(key); ok {
		return k, nil
	}
	ch := c.flight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
		defer cancel()
		return c.load(ctx, key, fetch)
	})
	select {
	case r := <-ch:
		k, _ := r.Val.(kept[T])
		return k, r.Err
	case <-ctx.Done():
		return kept[T]{}, context.Cause(ctx)
	}
}

// load fetches until nothing was dropped meanwhile: what was read before an
// event must not be kept after it.
func (c *cache[T]) load(ctx context.Context, key string, fetch func(context.Context) (T, error)) (kept[T], error) {
	for range 3 {
		c.mu.Lock()
		epoch := c.epoch
		c.mu.Unlock()
		at := c.now()
		v, err := fetch(ctx)
		if err != nil {
			return kept[T]{}, err
		}
		if k := (kept[T]{v, at}); c.put(key, k, epoch) {
			return k, nil
		}
	}
	return kept[T]{}, errMoving
}

// put keeps a value unless something was dropped since the epoch.
func (c *cache[T]) put(key string, k kept[T], epoch int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return false
	}
	if len(c.kept) >= c.most {
		clear(c.kept)
	}
	c.kept[key] = k
	return true
}

func (c *cache[T]) current() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// drop forgets keys; none given: all.
func (c *cache[T]) drop(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	if len(keys) == 0 {
		clear(c.kept)
	}
	for _, k := range keys {
		delete(c.kept, k)
		c.flight.Forget(k)
	}
}
