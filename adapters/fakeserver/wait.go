package fakeserver

import (
	"context"
	"slices"
	"time"
)

// patience is how long a test waits, in real time: long, for a busy machine.
const patience = 40 * time.Second

// Bump wakes everybody who waits; the caller holds the lock and has changed the
// fake's state.
func (s *Server) Bump() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns when cond holds; it looks again after every change of the
// fake's state. cond may call any method of the fake.
func (s *Server) Wait(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Eventually is Wait for at most 40 seconds of real time; it fails the test with what.
func (s *Server) Eventually(what string, cond func() bool) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Wait(ctx, cond); err != nil {
		s.Failf("waiting for %s: %v", what, err)
	}
}

// WaitFirst waits until match accepts something in the list, and returns the
// first such. A nil match accepts everything.
func WaitFirst[T any](s *Server, what string, list func() []T, match func(T) bool) T {
	s.T.Helper()
	var got T
	s.Eventually(what, func() bool {
		l := list()
		i := slices.IndexFunc(l, func(t T) bool { return match == nil || match(t) })
		if i >= 0 {
			got = l[i]
		}
		return i >= 0
	})
	return got
}
