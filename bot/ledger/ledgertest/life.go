package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"footnote/bot/ledger"
)

// Life is that of a process: of all that it leaves in a ledger and with a
// platform. It ends just before or just after one of these steps, as by kill -9:
// from then on nothing of the process has any effect.
//
// A step is named by what it does and how often that was done before: "posting",
// "edit", "edit 2". Looking leaves nothing and is no step.
type Life struct {
	mu    sync.Mutex
	fatal string
	count map[string]int
	steps []string
	ended chan struct{}

	pause  string // where it stops, "" nowhere
	paused chan struct{}
	goesOn chan struct{}
}

// ErrEnded is what every step gives once the process has ended.
var ErrEnded = errors.New("the process has ended")

// NewLife begins a life that ends at "before STEP" or "after STEP", or not at all
// if that is "".
func NewLife(fatal string) *Life {
	return &Life{fatal: fatal, count: map[string]int{}, ended: make(chan struct{}), paused: make(chan struct{}), goesOn: make(chan struct{})}
}

// NewPause begins a life that stops after a step, as by SIGSTOP, and goes on when
// it is told to.
func NewPause(step string) *Life {
	l := NewLife("")
	l.pause = step
	return l
}

// Paused is closed when the process has stopped.
func (l *Life) Paused() <-chan struct{} { return l.paused }

// GoOn lets it go on. It is called once.
func (l *Life) GoOn() { close(l.goesOn) }

// Ended is closed when the process has ended.
func (l *Life) Ended() <-chan struct{} { return l.ended }

// Steps are those that were taken, in order.
func (l *Life) Steps() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

// over ends the life if it ends there, and reports whether it has ended.
func (l *Life) over(at string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		return true
	default:
	}
	if at == l.fatal && at != "" {
		close(l.ended)
		return true
	}
	return false
}

// step takes a step, "" for one that leaves nothing.
func (l *Life) step(name string, do func() error) error {
	if name != "" {
		l.mu.Lock()
		if l.count[name]++; l.count[name] > 1 {
			name = fmt.Sprintf("%s %d", name, l.count[name])
		}
		l.mu.Unlock()
	}
	if l.over("before " + name) {
		return ErrEnded
	}
	err := do()
	if name != "" {
		l.mu.Lock()
		l.steps = append(l.steps, name)
		l.mu.Unlock()
	}
	if name == l.pause && name != "" {
		close(l.paused)
		<-l.goesOn
	}
	if l.over("after " + name) {
		return ErrEnded
	}
	return err
}

// Transport is what the process calls a platform with. step names a call, "" if
// it leaves nothing.
func (l *Life) Transport(next http.RoundTripper, step func(*http.Request) string) http.RoundTripper {
	return transport{l, next, step}
}

type transport struct {
	life *Life
	next http.RoundTripper
	name func(*http.Request) string
}

func (t transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	err = t.life.step(t.name(r), func() error {
		resp, err = t.next.RoundTrip(r)
		return err
	})
	if err != nil && resp != nil {
		_ = resp.Body.Close()
		resp = nil
	}
	return resp, err
}

// Ledger is what the process has of a ledger.
func (l *Life) Ledger(s ledger.Store) ledger.Store { return mortal{s, l} }

// mortal is a ledger of a process that can end. What nobody asks it for in the
// course of a question goes past it.
type mortal struct {
	ledger.Store
	life *Life
}

func (m mortal) Claim(ctx context.Context, d ledger.Delivery, lease time.Duration) (out ledger.Delivery, won bool, err error) {
	err = m.life.step("claim", func() error { out, won, err = m.Store.Claim(ctx, d, lease); return err })
	return out, won && err == nil, err
}

func (m mortal) Move(ctx context.Context, r ledger.Ref, s ledger.Step) error {
	return m.life.step(string(s.State), func() error { return m.Store.Move(ctx, r, s) })
}

func (m mortal) Renew(ctx context.Context, lease time.Duration, held ...ledger.Ref) (lost []ledger.Ref, err error) {
	err = m.life.step("", func() error { lost, err = m.Store.Renew(ctx, lease, held...); return err })
	return lost, err
}

func (m mortal) Resume(ctx context.Context, lease time.Duration) (out []ledger.Delivery, err error) {
	err = m.life.step("", func() error { out, err = m.Store.Resume(ctx, lease); return err })
	return out, err
}

func (m mortal) PutAnswer(ctx context.Context, a ledger.Answer) error {
	return m.life.step("record", func() error { return m.Store.PutAnswer(ctx, a) })
}

func (m mortal) Posted(ctx context.Context, id string, message []byte) error {
	return m.life.step("place", func() error { return m.Store.Posted(ctx, id, message) })
}

func (m mortal) NoteGap(ctx context.Context, id, question string) error {
	return m.life.step("gap", func() error { return m.Store.NoteGap(ctx, id, question) })
}

func (m mortal) AnswerTo(ctx context.Context, key string) (a ledger.Answer, err error) {
	err = m.life.step("", func() error { a, err = m.Store.AnswerTo(ctx, key); return err })
	return a, err
}
