package redislink_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"footnote/retrieval"
	"footnote/retrieval/redislink"
)

// term leaves a busy machine the time to stop work.
const term = 2 * time.Second

// One of any number works at a time. Who ends hands over, who is cut off stops
// before another begins.
func TestLease(t *testing.T) {
	t.Parallel()
	p, cut := proxied(t)
	_, other := proxied(t)
	const key = "redislink:lease"
	other.Del(context.Background(), key)
	var working, most atomic.Int32
	turns := make(chan string, 100)
	work := func(who string) func(context.Context) error {
		return func(ctx context.Context) error {
			if n := working.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer working.Add(-1)
			turns <- who
			<-ctx.Done()
			return ctx.Err()
		}
	}
	var wg sync.WaitGroup
	hold := func(who string, l *redislink.Link) context.CancelFunc {
		ctx, cancel := context.WithCancel(context.Background())
		wg.Go(func() {
			if err := l.NewLease(key, who, term).Hold(ctx, work(who)); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", who, err)
			}
		})
		return cancel
	}
	turn := func(want string) {
		t.Helper()
		select {
		case got := <-turns:
			if got != want {
				t.Fatalf("the turn is %s's, want %s's", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s never gets its turn", want)
		}
	}
	stopA := hold("a", cut)
	turn("a")
	if who, err := other.Holder(context.Background(), key); err != nil || who != "a" {
		t.Errorf("the holder is %q (%v), want a", who, err)
	}
	stopB := hold("b", other)
	p.Stall()
	turn("b")
	p.Heal()
	stopB()
	turn("a")
	stopA()
	wg.Wait()
	if who, err := other.Holder(context.Background(), key); err != nil || who != "" {
		t.Errorf("in the end the holder is %q (%v), want nobody", who, err)
	}
	if most.Load() != 1 {
		t.Errorf("%d worked at once", most.Load())
	}
}

// What ends by itself with an error is not tried again.
func TestLease_WorkFails(t *testing.T) {
	t.Parallel()
	_, l := proxied(t)
	broken := errors.New("broken")
	err := l.NewLease("redislink:lease:fails", "a", term).Hold(context.Background(), func(context.Context) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("it gives %v", err)
	}
}

// Who comes second waits, is told for whom, and works once.
func TestLease_Once(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, l := proxied(t)
	const key = "redislink:lease:once"
	l.Del(ctx, key)
	var order []string
	begun, end := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		err := l.NewLease(key, "first", term).Once(ctx, func(who string) { t.Errorf("it waits for %q", who) }, func(context.Context) error {
			close(begun)
			<-end
			order = append(order, "first")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	err := l.NewLease(key, "second", term).Once(ctx, func(who string) {
		order = append(order, "waits for "+who)
		close(end)
	}, func(context.Context) error {
		order = append(order, "second")
		return nil
	})
	first.Wait()
	if want := []string{"waits for first", "first", "second"}; err != nil || !slices.Equal(order, want) {
		t.Errorf("it gives %q (%v), want %q", order, err, want)
	}
}

// Work that another may be at ends, and says so.
func TestLease_OnceLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, l := proxied(t)
	const key = "redislink:lease:lost"
	l.Del(ctx, key)
	err := l.NewLease(key, "a", term).Once(ctx, func(string) {}, func(inside context.Context) error {
		if err := l.Set(ctx, key, "b's", 0).Err(); err != nil {
			t.Error(err)
		}
		<-inside.Done()
		return inside.Err()
	})
	if !redislink.Unavailable(err) && !errors.Is(err, retrieval.ErrUnavailable) {
		t.Errorf("it gives %v", err)
	}
	l.Del(ctx, key)
}
