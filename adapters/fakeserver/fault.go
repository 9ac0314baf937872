package fakeserver

import (
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Faults are the faults that are set, each a platform's own F. The zero value
// holds none. It is safe for concurrent use.
type Faults[F any] struct {
	mu  sync.Mutex
	set []*armed[F]
}

type armed[F any] struct {
	fault F
	on    Trigger
	seen  int
}

// Trigger says which of the calls that match a fault are hit; the zero Trigger
// hits every one.
type Trigger struct {
	Calls  func(n int) bool // n counts matching calls from 1; nil: every call
	Chance float64          // when > 0, the share of calls that are hit
}

// Nth hits only the n-th call.
func Nth(n int) func(int) bool { return func(i int) bool { return i == n } }

// First hits the first n calls.
func First(n int) func(int) bool { return func(i int) bool { return i <= n } }

// Add sets a fault; the function returned takes it away.
func (fs *Faults[F]) Add(f F, on Trigger) (remove func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	a := &armed[F]{fault: f, on: on}
	fs.set = append(fs.set, a)
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.set = slices.DeleteFunc(fs.set, func(b *armed[F]) bool { return a == b })
	}
}

// Hit finds the fault that hits a call: the first one, in the order in which they
// were set. Every fault that matches counts the call, hit or not. nil: none.
func (fs *Faults[F]) Hit(rng *rand.Rand, matches func(*F) bool) *F {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var hit *F
	for _, a := range fs.set {
		if !matches(&a.fault) {
			continue
		}
		a.seen++
		if hit != nil || a.on.Calls != nil && !a.on.Calls(a.seen) || a.on.Chance > 0 && rng.Float64() >= a.on.Chance {
			continue
		}
		f := a.fault
		hit = &f
	}
	return hit
}

// Delay waits on the server's clock, until the caller has gone, or until the
// server closes.
func (s *Server) Delay(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-s.clock.After(d):
	case <-r.Context().Done():
	case <-s.done:
	}
}

// Reset ends the TCP connection of a request without an HTTP answer.
func Reset(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ResetConn(conn)
}

// ResetConn closes the connection so that the peer sees a reset.
func ResetConn(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
