package slacktest

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
	mu     sync.Mutex
	more   *sync.Cond
	now    time.Time
	timers []*manualTimer
}

type manualTimer struct {
	at time.Time
	f  func()
}

// NewManualClock starts at the given time, or at a fixed one if it is zero.
func NewManualClock(start time.Time) *ManualClock {
	if start.IsZero() {
		start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	}
	c := &ManualClock{now: start}
	c.more = sync.NewCond(&c.mu)
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
	t := &manualTimer{at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	c.more.Broadcast()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers = slices.DeleteFunc(c.timers, func(o *manualTimer) bool { return o == t })
	}
}

// Advance moves the time on, stopping at each timer on the way to call it.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		next := c.due(end)
		if next == nil {
			break
		}
		c.now = next.at
		c.mu.Unlock()
		next.f()
		c.mu.Lock()
	}
	if end.After(c.now) {
		c.now = end
	}
	c.mu.Unlock()
}

// due removes and returns the earliest timer not after end.
func (c *ManualClock) due(end time.Time) *manualTimer {
	best := -1
	for i, t := range c.timers {
		if !t.at.After(end) && (best < 0 || t.at.Before(c.timers[best].at)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	t := c.timers[best]
	c.timers = slices.Delete(c.timers, best, best+1)
	return t
}

// BlockUntil returns when n timers are set: a test waits for sleepers before
// it advances.
func (c *ManualClock) BlockUntil(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.timers) < n {
		c.more.Wait()
	}
}
