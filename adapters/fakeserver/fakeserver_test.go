package fakeserver_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/fakeserver"
	"footnote/bot/clocktest"
)

type fault struct {
	name, route string
	on          fakeserver.Trigger
}

func TestFaultsHit(t *testing.T) {
	t.Parallel()
	nth := func(n int) fakeserver.Trigger { return fakeserver.Trigger{Calls: fakeserver.Nth(n)} }
	tests := map[string]struct {
		faults []fault
		calls  []string
		want   []string // by call: the fault that hit it, "" for none
	}{
		"none is set":                     {nil, []string{"a"}, []string{""}},
		"without a trigger: every call":   {[]fault{{name: "x"}}, []string{"a", "b"}, []string{"x", "x"}},
		"another route does not count":    {[]fault{{"x", "b", nth(2)}}, []string{"b", "a", "b", "b"}, []string{"", "", "x", ""}},
		"the first two calls":             {[]fault{{"x", "", fakeserver.Trigger{Calls: fakeserver.First(2)}}}, []string{"a", "a", "a"}, []string{"x", "x", ""}},
		"the fault that was set first":    {[]fault{{name: "x"}, {name: "y"}}, []string{"a"}, []string{"x"}},
		"a call hit by another counts":    {[]fault{{"x", "", nth(1)}, {"y", "", nth(2)}}, []string{"a", "a", "a"}, []string{"x", "y", ""}},
		"a chance of one hits every call": {[]fault{{"x", "", fakeserver.Trigger{Chance: 1}}}, []string{"a", "a"}, []string{"x", "x"}},
		"a chance of almost nothing":      {[]fault{{"x", "", fakeserver.Trigger{Chance: 1e-12}}}, []string{"a", "a"}, []string{"", ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fs fakeserver.Faults[fault]
			for _, f := range tt.faults {
				fs.Add(f, f.on)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			var got []string
			for _, route := range tt.calls {
				hit := fs.Hit(rng, func(f *fault) bool { return f.route == "" || f.route == route })
				if hit == nil {
					hit = &fault{}
				}
				got = append(got, hit.name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFaultThatIsTakenAwayHitsNoMore(t *testing.T) {
	t.Parallel()
	var fs fakeserver.Faults[fault]
	remove := fs.Add(fault{name: "x"}, fakeserver.Trigger{})
	fs.Add(fault{name: "y"}, fakeserver.Trigger{})
	remove()
	remove()
	if hit := fs.Hit(nil, func(*fault) bool { return true }); hit == nil || hit.name != "y" {
		t.Errorf("hit by %v, want y", hit)
	}
}

func TestWindowTake(t *testing.T) {
	t.Parallel()
	type call struct {
		at   int // seconds
		key  string
		want int // seconds to wait
	}
	tests := map[string][]call{
		"two in ten seconds":             {{0, "a", 0}, {3, "a", 0}, {4, "a", 6}, {9, "a", 1}},
		"the span slides":                {{0, "a", 0}, {3, "a", 0}, {10, "a", 0}, {11, "a", 2}, {13, "a", 0}},
		"a refused call does not count":  {{0, "a", 0}, {0, "a", 0}, {1, "a", 9}, {2, "a", 8}, {10, "a", 0}},
		"each key has a span of its own": {{0, "a", 0}, {0, "a", 0}, {0, "b", 0}, {0, "a", 10}},
	}
	for name, calls := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, start := fakeserver.Window{}, time.Unix(1000, 0)
			for i, c := range calls {
				got := w.Take(start.Add(time.Duration(c.at)*time.Second), c.key, 2, 10*time.Second)
				if got != time.Duration(c.want)*time.Second {
					t.Errorf("call %d waits %v, want %d s", i+1, got, c.want)
				}
			}
		})
	}
}

// fake is the smallest fake: it counts.
type fake struct {
	*fakeserver.Server
	mu    sync.Mutex
	n     int
	drops int
}

func newFake(t testing.TB, clock clocktest.Clock, h http.Handler) *fake {
	f := &fake{}
	f.Server = fakeserver.New(t, "fake", &f.mu, clock)
	f.Listen(h, func() { f.drops++ })
	return f
}

func (f *fake) add() { f.n++; f.Bump() }

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func TestTimersFollowTheClockAndEndWithTheServer(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	f := newFake(t, clock, http.NotFoundHandler())
	f.mu.Lock()
	f.Later(0, f.add)
	f.After(time.Second, f.add)
	f.Later(3*time.Second, f.add)
	f.mu.Unlock()
	for _, want := range []int{1, 2} {
		if got := f.count(); got != want {
			t.Errorf("%d have run, want %d", got, want)
		}
		clock.Advance(time.Second)
	}
	f.Close()
	f.Close()
	clock.Advance(time.Hour)
	f.mu.Lock()
	f.After(0, f.add)
	f.Spawn(func() { t.Error("ran after Close") })
	f.mu.Unlock()
	if got := f.count(); got != 2 || f.drops != 1 {
		t.Errorf("%d have run and %d times dropped after Close, want 2 and once", got, f.drops)
	}
	if _, err := http.Get(f.Base); err == nil {
		t.Error("it still answers after Close")
	}
}

func TestWaitersSeeEveryChange(t *testing.T) {
	t.Parallel()
	f := newFake(t, clocktest.RealClock(), http.NotFoundHandler())
	f.mu.Lock()
	for range 3 {
		f.Spawn(func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.add()
		})
	}
	f.mu.Unlock()
	f.Eventually("three", func() bool { return f.count() == 3 })
	list := func() []string { return []string{"a", "b", "bb"} }
	if got := fakeserver.WaitFirst(f.Server, "a b", list, func(s string) bool { return strings.HasPrefix(s, "b") }); got != "b" {
		t.Errorf("got %q, want the first that matches", got)
	}
	if got := fakeserver.WaitFirst(f.Server, "anything", list, nil); got != "a" {
		t.Errorf("got %q, want the first", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Wait(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
}

func TestResetIsNoAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t, clocktest.RealClock(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fakeserver.Reset(w) }))
	if resp, err := http.Get(f.Base); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v, want a reset connection", resp, err)
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	t.Parallel()
	f := newFake(t, clocktest.NewManualClock(time.Time{}), nil)
	var ended []string
	entered := make(chan struct{}, 2)
	note := func(what string, wait func()) {
		f.Spawn(func() {
			entered <- struct{}{}
			wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			ended = append(ended, what)
		})
	}
	f.mu.Lock()
	note("a delivery", func() {
		ctx, cancel := f.Context()
		defer cancel()
		<-ctx.Done()
	})
	note("a slow call", func() {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, f.Base, nil)
		if err != nil {
			t.Error(err)
			return
		}
		f.Delay(r, time.Hour)
	})
	f.mu.Unlock()
	<-entered
	<-entered
	f.Close()
	slices.Sort(ended)
	if diff := cmp.Diff([]string{"a delivery", "a slow call"}, ended); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutATestAMisusePanics(t *testing.T) {
	t.Parallel()
	f := newFake(nil, clocktest.RealClock(), http.NotFoundHandler())
	defer f.Close()
	defer func() {
		if got := recover(); got != "fake: no user ada" {
			t.Errorf("panicked with %v", got)
		}
	}()
	f.Failf("no user %s", "ada")
}

func TestDoReadsTheAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t, clocktest.RealClock(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(append([]byte("got "), b...))
	}))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.Base, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Do(req)
	if err != nil || got.Status != http.StatusAccepted || got.Body != "got x" {
		t.Errorf("got %+v, %v", got, err)
	}
}
