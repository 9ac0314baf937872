package fakeserver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"footnote/bot/clocktest"
)

// Server is the part of a fake that no platform differs in. Its methods are safe
// for concurrent use; those that say so want the fake's lock held.
type Server struct {
	// T is the test, or where there is none something that panics: a misuse of
	// the fake or a wait in vain is a fault of the caller.
	T testing.TB
	// Base is the address of the server, "http://127.0.0.1:PORT".
	Base string
	// Client makes the requests to the app.
	Client *http.Client
	// Closed says that Close was called; read it with the lock held.
	Closed bool

	name    string
	mu      sync.Locker
	clock   clocktest.Clock
	http    *http.Server
	drop    func()
	done    chan struct{}
	once    sync.Once
	work    sync.WaitGroup
	changed chan struct{}
	timers  map[int]func()
	timerID int
}

// New makes a server that does not listen yet. name stands before every message
// of Failf; mu guards the fake's state; t may be nil.
func New(t testing.TB, name string, mu sync.Locker, clock clocktest.Clock) *Server {
	if t == nil {
		t = panicking{}
	}
	return &Server{
		T: t, name: name, mu: mu, clock: clock, Client: &http.Client{Transport: &http.Transport{}},
		done: make(chan struct{}), changed: make(chan struct{}), timers: map[int]func(){},
	}
}

// panicking stands for the test where there is none.
type panicking struct{ testing.TB }

func (panicking) Helper()        {}
func (panicking) Cleanup(func()) {}
func (panicking) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// Failf stops the test.
func (s *Server) Failf(format string, args ...any) {
	s.T.Helper()
	s.T.Fatalf(s.name+": "+format, args...)
}

// Listen serves h on a free local port until Close, at the latest until the end
// of the test. drop ends the connections that were taken over from HTTP; it is
// called without the lock.
func (s *Server) Listen(h http.Handler, drop func()) {
	s.T.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Failf("listening: %v", err)
	}
	s.Base, s.drop = "http://"+l.Addr().String(), drop
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	s.work.Go(func() { _ = s.http.Serve(l) })
	s.T.Cleanup(s.Close)
}

// Close ends every socket, request and timer. It may be called twice.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.done)
		s.mu.Lock()
		s.Closed = true
		stops := slices.Collect(maps.Values(s.timers))
		s.mu.Unlock()
		for _, stop := range stops {
			stop()
		}
		s.drop()
		_ = s.http.Close()
		s.Client.CloseIdleConnections()
		s.work.Wait()
	})
}

// Done is closed when the server closes.
func (s *Server) Done() <-chan struct{} { return s.done }

// Context ends when the server closes.
func (s *Server) Context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-s.done:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}

// Spawn runs f, and Close waits for it; nothing happens once the server is
// closed. The caller holds the lock.
func (s *Server) Spawn(f func()) {
	if !s.Closed {
		s.work.Go(f)
	}
}

// After runs f with the lock held, d from now, unless the server is closed by
// then. The caller holds the lock.
func (s *Server) After(d time.Duration, f func()) {
	if s.Closed {
		return
	}
	s.timerID++
	id := s.timerID
	s.timers[id] = s.clock.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.Closed {
			return
		}
		delete(s.timers, id)
		f()
	})
}

// Later runs f now, or after the wait if there is one. The caller holds the lock.
func (s *Server) Later(wait time.Duration, f func()) {
	if wait <= 0 {
		f()
		return
	}
	s.After(wait, f)
}

// Answer is what the app answered to an HTTP delivery.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a delivery to the app and reads the answer, 1 MiB of it at most.
func (s *Server) Do(req *http.Request) (Answer, error) {
	resp, err := s.Client.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("posting to the app: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Answer{}, fmt.Errorf("reading the app's answer: %w", err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b)}, nil
}
