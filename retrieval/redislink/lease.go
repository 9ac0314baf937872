package redislink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// Lease is a key that one process holds at a time, for as long as it renews it.
type Lease struct {
	link  redis.UniversalClient
	key   string
	value string // token and name of who holds it
	term  time.Duration
}

// NewLease makes a lease that ends a term after its holder is heard of no more.
// who names this process for people.
func (l *Link) NewLease(key, who string, term time.Duration) *Lease {
	return &Lease{link: l, key: key, value: rand.Text() + " " + who, term: term}
}

// Hold runs work whenever this process holds the lease, until ctx is done. The
// context of work ends before the lease can be another's. Should the process be
// stopped for longer, so that it does not notice, what it changes with that
// context is refused (While). An error of work ends Hold, unless the lease was
// lost.
func (l *Lease) Hold(ctx context.Context, work func(context.Context) error) error {
	for {
		since := time.Now()
		// What fails is tried again like what another holds.
		if ok, err := l.link.SetNX(ctx, l.key, l.value, l.term).Result(); err == nil && ok {
			if err := l.during(ctx, since, work); err != nil && !errors.Is(err, errLost) {
				return err
			}
		}
		if !l.pause(ctx) {
			return nil
		}
	}
}

// errLost ends work under a lease that became another's.
var errLost = fmt.Errorf("%w: this process was out of touch with the Redis for so long that another may be at its work; run it again", retrieval.ErrUnavailable)

// Once waits until it holds the lease, then runs work as Hold does, once.
// waiting is called with the name of who holds it, at most once.
func (l *Lease) Once(ctx context.Context, waiting func(who string), work func(context.Context) error) error {
	for told := false; ; {
		since := time.Now()
		ok, err := l.link.SetNX(ctx, l.key, l.value, l.term).Result()
		switch {
		case err != nil:
			return Failed("asking for "+l.key, err)
		case ok:
			return l.during(ctx, since, work)
		}
		if who, err := holder(ctx, l.link, l.key); err == nil && who != "" && !told {
			told = true
			waiting(who)
		}
		if !l.pause(ctx) {
			return ctx.Err()
		}
	}
}

// pause waits about a third of the term, so that those who wait do not ask in
// step. It reports that ctx is not done.
func (l *Lease) pause(ctx context.Context) bool {
	return Pause(ctx, l.term/4+mathrand.N(l.term/6)) == nil
}

// Pause waits before a further try. It gives the error of ctx if that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// during runs work while the lease lasts. since is when it was asked for: the
// server counts from later on.
func (l *Lease) during(ctx context.Context, since time.Time, work func(context.Context) error) error {
	inside, lost := context.WithCancel(While(ctx, Condition{Key: l.key, Value: l.value}))
	defer lost()
	done := make(chan error, 1)
	go func() { done <- work(inside) }()
	for {
		select {
		case err := <-done:
			l.release(ctx)
			if inside.Err() != nil && ctx.Err() == nil {
				return errLost
			}
			return err
		case <-time.After(l.term / 4):
		}
		now := time.Now()
		held, err := l.renew(ctx, since)
		switch {
		case err == nil && held:
			since = now
		case err == nil || now.Sub(since) > l.term/2:
			lost()
		}
	}
}

var renewScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)

// renew reports whether the lease is still ours. It takes no longer than the
// lease lasts.
func (l *Lease) renew(ctx context.Context, since time.Time) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, since.Add(3*l.term/4))
	defer cancel()
	n, err := renewScript.Run(ctx, l.link, []string{l.key}, l.value, l.term.Milliseconds()).Int()
	return n == 1, err
}

var releaseScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)

// release gives the lease to whoever asks next. If it cannot, it ends by itself.
func (l *Lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.term/4)
	defer cancel()
	_ = releaseScript.Run(ctx, l.link, []string{l.key}, l.value).Err()
}

// Holder is the name of who holds the lease under the key, "" nobody.
func (l *Link) Holder(ctx context.Context, key string) (string, error) {
	return holder(ctx, l, key)
}

func holder(ctx context.Context, link redis.UniversalClient, key string) (string, error) {
	value, err := link.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking who holds %s: %w", key, err)
	}
	_, who, _ := strings.Cut(value, " ")
	return who, nil
}
