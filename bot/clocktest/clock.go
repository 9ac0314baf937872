// Package clocktest is the clock of the fakes: the machine's own, or one that
// moves only when a test says so.
//
// Its one idea: what waits for a time is run by the one who moves the clock, in
// the order of the times, so that a test of minutes takes none.
package clocktest

import (
	"slices"
	"sync"
	"time"
)

// Clock tells the time for every rule of the fake. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// After delivers the time once, d from now.
	After(d time.Duration) <-chan time.Time
	// AfterFunc calls f once, d from now, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type realClock struct{}

// RealClock is the machine's own clock, the default.
func RealClock() Clock { return realClock{} }

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (realClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// ManualClock moves only when Advance is called.
type ManualClock struct {
	mu      sync.Mutex
	set     *sync.Cond // a timer was set
	now     time.Time
	pending []*alarm
}

type alarm struct {
	at time.Time
	f  func()
}

// NewManualClock starts at the given time, or at a fixed one if it is zero.
func NewManualClock(start time.Time) *ManualClock {
	if start.IsZero() {
		start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	}
	c := &ManualClock{now: start}
	c.set = sync.NewCond(&c.mu)
	return c
}

// Now is the time that Advance has reached.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After is like time.After.
func (c *ManualClock) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	c.AfterFunc(d, func() { ch <- c.Now() })
	return ch
}

// AfterFunc calls f from Advance; for d <= 0 at once, in a goroutine of its own.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) func() {
	if d <= 0 {
		go f()
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{at: c.now.Add(d), f: f}
	i, _ := slices.BinarySearchFunc(c.pending, a, func(x, y *alarm) int {
		if x.at.After(y.at) {
			return 1
		}
		return -1 // equal times keep the order in which they were set
	})
	c.pending = slices.Insert(c.pending, i, a)
	c.set.Broadcast()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending = slices.DeleteFunc(c.pending, func(o *alarm) bool { return o == a })
	}
}

// Advance moves the time on, stopping at each timer on the way to call it.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.now.Add(d)
	for len(c.pending) > 0 && !c.pending[0].at.After(end) {
		a := c.pending[0]
		c.pending = c.pending[1:]
		if a.at.After(c.now) {
			c.now = a.at
		}
		c.mu.Unlock()
		a.f()
		c.mu.Lock()
	}
	if end.After(c.now) {
		c.now = end
	}
}

// BlockUntil returns when n timers are set: a test waits for sleepers before
// it advances.
func (c *ManualClock) BlockUntil(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) < n {
		c.set.Wait()
	}
}
