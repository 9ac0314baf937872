package outbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/bot/outbox"
)

func TestBackoffGrowsToItsMost(t *testing.T) {
	t.Parallel()
	for random, want := range map[float64][]time.Duration{
		0: {500, 1000, 2000, 4000, 5000, 5000}, 1: {1000, 2000, 4000, 8000, 10000, 10000},
	} {
		b := outbox.Backoff{Least: time.Second, Most: 10 * time.Second, Rand: func() float64 { return random }}
		for range 2 {
			var got []time.Duration
			for range want {
				got = append(got, b.Next()/time.Millisecond)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("random %v (-want +got):\n%s", random, diff)
			}
			b.Reset()
		}
	}
}

func TestBackoffStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := outbox.Backoff{
			Least: time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "least")), Most: time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "most")),
			Rand: func() float64 { return rapid.Float64Range(0, 1).Draw(t, "random") },
		}
		most := b.Most
		if most == 0 {
			most = time.Minute
		}
		for range 100 {
			if d := b.Next(); d < 0 || d > most {
				t.Fatalf("pause %s, at most %s", d, most)
			}
		}
	})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	transient, permanent := errors.New("transient"), errors.New("bad token")
	retrying := func() outbox.Retrying {
		return outbox.Retrying{
			Backoff:   outbox.Backoff{Least: time.Second, Most: time.Minute, Rand: func() float64 { return 1 }},
			Permanent: func(err error) bool { return errors.Is(err, permanent) },
		}
	}
	for name, c := range map[string]struct {
		attempt func(n int) error
		want    error
		tries   int
		took    time.Duration
	}{
		"at once":                        {func(int) error { return nil }, nil, 1, 0},
		"after failures":                 {fail(10, transient), nil, 11, (1+2+4+8+16+32)*time.Second + 4*time.Minute},
		"a permanent one ends it":        {fail(10, permanent), permanent, 1, 0},
		"the platform says how long":     {fail(1, &outbox.Limited{After: time.Hour}), nil, 2, time.Hour},
		"never less than its own":        {fail(1, &outbox.Limited{After: time.Millisecond}), nil, 2, time.Second},
		"a server that hangs up at once": {hangsUp(8, 0), nil, 9, (1+2+4+8+16+32)*time.Second + 2*time.Minute},
		"connections that lasted":        {hangsUp(8, time.Hour), nil, 9, 8*time.Hour + 8*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, n, before := time.Now(), 0, 0
				r := retrying()
				r.Before = func(error, time.Duration) { before++ }
				err := outbox.Retry(t.Context(), r, func(context.Context) error { n++; return c.attempt(n) })
				if !errors.Is(err, c.want) || n != c.tries || time.Since(start) != c.took || before != n-1 {
					t.Errorf("%v after %d tries, %d told, and %s; want %v after %d and %s", err, n, before, time.Since(start), c.want, c.tries, c.took)
				}
			})
		})
	}
}

func fail(times int, err error) func(int) error {
	return func(n int) error {
		if n <= times {
			return err
		}
		return nil
	}
}

// hangsUp is a connection that is accepted, lasts and ends.
func hangsUp(times int, lasts time.Duration) func(int) error {
	return func(n int) error {
		if n > times {
			return nil
		}
		time.Sleep(lasts)
		return errors.New("closed by the server")
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(gone) })
		start := time.Now()
		err := outbox.Retry(ctx, outbox.Retrying{}, func(context.Context) error { return errors.New("no route") })
		if !errors.Is(err, gone) || time.Since(start) != time.Hour {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := outbox.Retry(ctx, outbox.Retrying{}, func(context.Context) error { return errors.New("x") }); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
	})
}
