package fakeserver

import (
	"slices"
	"time"
)

// Window is a sliding-window log: by key, the times of the calls that were let
// through. It wants a lock.
type Window map[string][]time.Time

// Take lets n calls through in each span, and returns the wait until the next
// where there were too many, 0 for a call that is let through.
func (w Window) Take(now time.Time, key string, n int, span time.Duration) time.Duration {
	recent := slices.DeleteFunc(w[key], func(t time.Time) bool { return now.Sub(t) >= span })
	w[key] = recent
	if len(recent) >= n {
		return span - now.Sub(recent[0])
	}
	w[key] = append(recent, now)
	return 0
}
