package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/bot/outbox"
)

// log notes what was called when, in seconds since the start.
type log struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func newLog() *log { return &log{start: time.Now()} }

func (l *log) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%.0f %s", time.Since(l.start).Seconds(), what))
}

func (l *log) want(t *testing.T, lines ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(lines, l.lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// perSecond is one call a second.
var perSecond = outbox.Limit{Every: time.Second}

// send makes calls in the background, in the order given, and waits for them.
func send(t *testing.T, o *outbox.Outbox, calls ...outbox.Call) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range calls {
		wg.Go(func() {
			if err := o.Do(t.Context(), c); err != nil {
				t.Errorf("lane %s: %v", c.Lane, err)
			}
		})
		synctest.Wait()
	}
	wg.Wait()
}

func (l *log) call(lane, what string, p outbox.Priority) outbox.Call {
	return outbox.Call{Lane: lane, Limit: perSecond, Priority: p, Make: func(context.Context) error { l.note(what); return nil }}
}

func TestLaneKeepsOrderAndSpacing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		send(t, o,
			l.call("a", "a1", outbox.Final), l.call("a", "a status", outbox.Status), l.call("a", "a2", outbox.Final),
			l.call("b", "b1", outbox.Final), l.call("a", "a3", outbox.Final))
		l.want(t, "0 a1", "0 b1", "1 a2", "2 a3", "3 a status")
	})
}

// L3: Retry-After is honoured to the second, by this lane only, and the call
// is made again.
func TestCase_L3_RetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		tries := 0
		limited := outbox.Call{Lane: "a", Limit: perSecond, Priority: outbox.Final, Make: func(context.Context) error {
			l.note("a try")
			if tries++; tries < 3 {
				return fmt.Errorf("posting: %w", &outbox.Limited{After: 7 * time.Second})
			}
			return nil
		}}
		send(t, o, limited, l.call("a", "a behind", outbox.Final), l.call("b", "b", outbox.Final))
		l.want(t, "0 a try", "0 b", "7 a try", "14 a try", "15 a behind")
		if h := o.Health(); h.Limited != 2 || h.Waiting != 0 {
			t.Errorf("health: %+v", h)
		}
	})
}

func TestLimitWithoutATime(t *testing.T) {
	t.Parallel()
	for random, want := range map[float64]string{0: "30 again", 1: "60 again"} {
		synctest.Test(t, func(t *testing.T) {
			o, l := outbox.New(outbox.Options{Rand: func() float64 { return random }}), newLog()
			tries := 0
			send(t, o, outbox.Call{Lane: "a", Make: func(context.Context) error {
				if tries++; tries == 1 {
					return &outbox.Limited{}
				}
				l.note("again")
				return nil
			}})
			l.want(t, want)
		})
	}
}

func TestLimitEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		tries := 0
		send(t, o, outbox.Call{Lane: "a", Make: func(context.Context) error {
			if tries++; tries == 1 {
				return &outbox.Limited{After: 5 * time.Second, Everywhere: true}
			}
			l.note("a")
			return nil
		}}, l.call("b", "b", outbox.Final))
		if l.lines[0][0] != '5' || l.lines[1][0] != '5' {
			t.Errorf("calls at %v, want all after 5 s", l.lines)
		}
	})
}

// Signs of progress never take what final answers need.
func TestReserveForFinalCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{Limit: outbox.Limit{Every: 10 * time.Second, Burst: 4, Reserve: 2}}), newLog()
		var calls []outbox.Call
		for i := range 4 {
			calls = append(calls, l.call(fmt.Sprint("s", i), "status", outbox.Status))
		}
		for i := range 3 {
			calls = append(calls, l.call(fmt.Sprint("f", i), "final", outbox.Final))
		}
		send(t, o, calls...)
		l.want(t, "0 status", "0 status", "0 final", "0 final", "10 final", "40 status", "50 status")
	})
}

func TestFullLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := outbox.New(outbox.Options{Finals: 2, Statuses: 1})
		gate := make(chan struct{})
		block := func(p outbox.Priority) outbox.Call {
			return outbox.Call{Lane: "a", Priority: p, Make: func(context.Context) error { <-gate; return nil }}
		}
		ctx := t.Context()
		for _, c := range []struct {
			p    outbox.Priority
			full bool
		}{{outbox.Final, false}, {outbox.Final, false}, {outbox.Final, false}, {outbox.Final, true}, {outbox.Status, false}, {outbox.Status, true}} {
			done := make(chan error, 1)
			go func() { done <- o.Do(ctx, block(c.p)) }()
			synctest.Wait()
			select {
			case err := <-done:
				if !c.full || !errors.Is(err, outbox.ErrFull) {
					t.Errorf("priority %d gives %v", c.p, err)
				}
			default:
				if c.full {
					t.Errorf("priority %d waits in a full lane", c.p)
				}
			}
		}
		if h := o.Health(); h.Waiting != 3 || h.Full != 2 {
			t.Errorf("health: %+v", h)
		}
		close(gate)
	})
}

// A call whose turn cannot come in time is given up at once, not at its
// deadline, so that there is time to say so.
func TestGivesUpEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		made := 0
		call := outbox.Call{Lane: "a", Make: func(context.Context) error { made++; return &outbox.Limited{After: time.Minute} }}
		for range 2 {
			err := o.Do(ctx, call)
			l.note("gave up")
			if !errors.Is(err, outbox.ErrLate) || made != 1 {
				t.Errorf("%v after %d calls", err, made)
			}
		}
		l.want(t, "0 gave up", "0 gave up")
		time.Sleep(time.Minute)
		send(t, o, l.call("a", "open again", outbox.Final))
	})
}

func TestGoneCallerLeavesTheLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		send(t, o, l.call("a", "first", outbox.Final))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- o.Do(ctx, l.call("a", "never", outbox.Final)) }()
		synctest.Wait()
		gone := errors.New("gone")
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		send(t, o, l.call("a", "second", outbox.Final))
		l.want(t, "0 first", "1 second")
		if h := o.Health(); h.Waiting != 0 {
			t.Errorf("health: %+v", h)
		}
	})
}

func TestFailureAndPanicOpenTheLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		boom := errors.New("boom")
		if err := o.Do(t.Context(), outbox.Call{Lane: "a", Make: func(context.Context) error { return boom }}); !errors.Is(err, boom) {
			t.Error(err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = o.Do(t.Context(), outbox.Call{Lane: "a", Make: func(context.Context) error { panic("boom") }})
			t.Error("the panic was swallowed")
		}()
		send(t, o, outbox.Call{Lane: "a", Make: func(context.Context) error { l.note("goes on"); return nil }})
		l.want(t, "0 goes on")
	})
}

// Whatever is called, calls of a lane keep their order and their distance, and
// no call is lost or made twice.
func TestLanesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(rt, "calls")
		lanes := rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(rt, "lanes")
		limits := rapid.SliceOfN(rapid.IntRange(0, 4), n, n).Draw(rt, "limited")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 1500), n, n).Draw(rt, "pauses")
		synctest.Test(t, func(t *testing.T) {
			o := outbox.New(outbox.Options{})
			var mu sync.Mutex
			made := map[int]int{}
			last := map[int]time.Time{}
			next := map[int]int{}
			var wg sync.WaitGroup
			for i, lane := range lanes {
				order := 0
				for _, l := range lanes[:i] {
					if l == lane {
						order++
					}
				}
				refuse := limits[i] - 2
				wg.Go(func() {
					err := o.Do(t.Context(), outbox.Call{Lane: fmt.Sprint(lane), Limit: perSecond, Priority: outbox.Final, Make: func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						if since := time.Since(last[lane]); since < time.Second {
							rt.Errorf("lane %d: %s after the last call", lane, since)
						}
						last[lane] = time.Now()
						if refuse > 0 {
							refuse--
							return &outbox.Limited{After: time.Duration(refuse) * 1700 * time.Millisecond}
						}
						made[i]++
						if next[lane] != order {
							rt.Errorf("lane %d: call %d came as %d", lane, order, next[lane])
						}
						next[lane]++
						return nil
					}})
					if err != nil {
						rt.Error(err)
					}
				})
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
				synctest.Wait()
			}
			wg.Wait()
			for i := range lanes {
				if made[i] != 1 {
					rt.Errorf("call %d was made %d times", i, made[i])
				}
			}
		})
	})
}

// Lanes that are idle are forgotten, those that stand still are not.
func TestManyLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, l := outbox.New(outbox.Options{}), newLog()
		tries := 0
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := o.Do(short, outbox.Call{Lane: "given up", Make: func(context.Context) error { return &outbox.Limited{After: time.Hour} }})
		if !errors.Is(err, outbox.ErrLate) {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = o.Do(t.Context(), outbox.Call{Lane: "limited", Limit: perSecond, Make: func(context.Context) error {
				if tries++; tries == 1 {
					return &outbox.Limited{After: time.Hour}
				}
				l.note("limited")
				return nil
			}})
		})
		synctest.Wait()
		for i := range 3000 {
			if i%500 == 0 {
				time.Sleep(2 * time.Second)
			}
			if err := o.Do(t.Context(), outbox.Call{Lane: fmt.Sprint(i), Limit: perSecond, Make: func(context.Context) error { return nil }}); err != nil {
				t.Fatal(err)
			}
		}
		wg.Go(func() { send(t, o, l.call("given up", "given up", outbox.Final)) })
		wg.Wait()
		slices.Sort(l.lines)
		l.want(t, "3600 given up", "3600 limited")
	})
}
