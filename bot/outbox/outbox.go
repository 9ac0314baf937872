// Package outbox spaces calls to a platform, so that its rate limits are met
// and a final answer is never held up by signs of progress.
//
// Its one idea: a call waits in a lane, which makes one call at a time, in
// order, final ones first. A lane is whatever the platform limits: a channel
// for posts, a method of a workspace for edits. All lanes share one more
// limit. Of each limit a reserve is left for final calls alone.
//
// When the platform says that a limit was met (Limited), only the lane
// concerned stands still, for exactly as long as it was told, and the call is
// made again: the platform did nothing the first time. No other failure is
// repeated here, since a message may have left. Backoff and Retry are for what
// may be repeated: connecting.
//
// It waits in memory only and makes no calls itself.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

var (
	// ErrFull says that too many calls wait; the call was not made.
	ErrFull = errors.New("too many calls to the platform wait")
	// ErrLate says that the call could not be made before its deadline, and
	// was not made.
	ErrLate = errors.New("the rate limit lasts longer than the question may take")
)

// Priority of a call.
type Priority int

// Priorities: Status may be late or left out, Final may not.
const (
	Status Priority = iota
	Final
)

// Limit is a token bucket: one call every Every, Burst at once, the last
// Reserve of them for final calls only. Every 0 is no limit.
type Limit struct {
	Every   time.Duration
	Burst   int // 0: 1
	Reserve int // below Burst
}

// Call is one call to the platform.
type Call struct {
	Lane     string // calls of one lane are made one after another
	Limit    Limit  // of the lane; what its first call says counts
	Priority Priority
	// Make makes the call. It returns a *Limited if the platform refused it
	// for its rate, and is then called again.
	Make func(ctx context.Context) error
}

// Limited says that the platform refused a call for its rate.
type Limited struct {
	After      time.Duration // 0: the platform did not say
	Everywhere bool          // all lanes, not only this one
	Err        error
}

func (l *Limited) Error() string {
	return fmt.Sprintf("the platform limits the rate for %s: %v", l.After, l.Err)
}
func (l *Limited) Unwrap() error { return l.Err }

// Options of an outbox; zero values mean the defaults.
type Options struct {
	Limit    Limit          // of all lanes together; zero: none
	Finals   int            // final calls that may wait in a lane: 64
	Statuses int            // status calls likewise: 8
	Rand     func() float64 // 0 to 1
}

// Outbox spaces calls. It is safe for concurrent use.
type Outbox struct {
	o Options

	mu      sync.Mutex
	lanes   map[string]*lane
	all     bucket
	until   time.Time // all lanes stand still
	waiting int
	limited int
	full    int
}

// New makes an outbox.
func New(o Options) *Outbox {
	o.Finals, o.Statuses = cmp.Or(o.Finals, 64), cmp.Or(o.Statuses, 8)
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return &Outbox{o: o, lanes: map[string]*lane{}, all: newBucket(o.Limit)}
}

// Health is how an outbox is doing.
type Health struct {
	Waiting int
	Limited int // refusals for the rate since the start
	Full    int // calls turned away since the start
}

// Health says how the outbox is doing.
func (o *Outbox) Health() Health {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Health{o.waiting, o.limited, o.full}
}

// lane is a queue of calls. One is made at a time.
type lane struct {
	name    string
	bucket  bucket
	waiting [Final + 1][]*waiter
	busy    bool
	until   time.Time // the platform said so
	timer   *time.Timer
}

type waiter struct {
	call Call
	turn chan struct{} // closed when it may go
}

// Do makes the call in its turn and returns what it returns. It gives up with
// ErrLate as soon as the turn cannot come before the deadline of ctx.
func (o *Outbox) Do(ctx context.Context, c Call) error {
	w, err := o.join(c)
	if err != nil {
		return err
	}
	if o.late(ctx, w) {
		return ErrLate
	}
	for {
		if err := o.wait(ctx, w); err != nil {
			return err
		}
		limited, err := o.attempt(ctx, w)
		if limited == nil {
			return err
		}
		if o.late(ctx, w) {
			return fmt.Errorf("%w: %w", ErrLate, limited)
		}
	}
}

func (o *Outbox) join(c Call) (*waiter, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[c.Lane]
	if l == nil {
		o.tidy()
		l = &lane{name: c.Lane, bucket: newBucket(c.Limit)}
		o.lanes[c.Lane] = l
	}
	most := o.o.Statuses
	if c.Priority == Final {
		most = o.o.Finals
	}
	if len(l.waiting[c.Priority]) >= most {
		o.full++
		return nil, ErrFull
	}
	w := &waiter{call: c, turn: make(chan struct{})}
	l.waiting[c.Priority] = append(l.waiting[c.Priority], w)
	o.waiting++
	o.pump(l)
	return w, nil
}

// wait waits for the turn of a call.
func (o *Outbox) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[w.call.Lane]
	if !l.remove(w) { // its turn came in between
		l.busy = false
	} else {
		o.waiting--
	}
	o.pump(l)
	return context.Cause(ctx)
}

// attempt makes the call. If the platform limited it, the call is back at the
// head of its lane.
func (o *Outbox) attempt(ctx context.Context, w *waiter) (*Limited, error) {
	returned := false
	var limited *Limited
	defer func() {
		if !returned { // a panic passes through, and must not block the lane
			o.release(w, nil)
		}
	}()
	err := w.call.Make(ctx)
	returned = true
	if !errors.As(err, &limited) {
		limited = nil
	}
	o.release(w, limited)
	return limited, err
}

// release opens the lane for the next call.
func (o *Outbox) release(w *waiter, limited *Limited) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[w.call.Lane]
	l.busy = false
	if limited != nil {
		o.limited++
		until := time.Now().Add(o.pause(limited))
		if limited.Everywhere {
			o.until = until
		}
		l.until = until
		w.turn = make(chan struct{})
		l.waiting[w.call.Priority] = append([]*waiter{w}, l.waiting[w.call.Priority]...)
		o.waiting++
	}
	o.pump(l)
}

// pause is how long a limit lasts: 30 to 60 s where the platform does not say.
func (o *Outbox) pause(l *Limited) time.Duration {
	if l.After > 0 {
		return l.After
	}
	return 30*time.Second + time.Duration(o.o.Rand()*float64(30*time.Second))
}

// late takes a waiting call out if its turn cannot come in time.
func (o *Outbox) late(ctx context.Context, w *waiter) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[w.call.Lane]
	if l.until.Before(deadline) && o.until.Before(deadline) || !l.remove(w) {
		return false
	}
	o.waiting--
	o.pump(l)
	return true
}

// pump lets the next call of a lane go, or sees to it that it will. The caller
// holds mu.
func (o *Outbox) pump(l *lane) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	p, ok := l.next()
	if !ok || l.busy {
		return
	}
	now := time.Now()
	delay := max(l.until.Sub(now), o.until.Sub(now), l.bucket.delay(now, p), o.all.delay(now, p))
	if delay > 0 {
		l.timer = time.AfterFunc(delay, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.pump(l)
		})
		return
	}
	l.bucket.take()
	o.all.take()
	w := l.waiting[p][0]
	l.waiting[p] = l.waiting[p][1:]
	o.waiting--
	l.busy = true
	close(w.turn)
}

// next is the priority of the call whose turn it is.
func (l *lane) next() (Priority, bool) {
	for _, p := range []Priority{Final, Status} {
		if len(l.waiting[p]) > 0 {
			return p, true
		}
	}
	return 0, false
}

func (l *lane) remove(w *waiter) bool {
	q := l.waiting[w.call.Priority]
	for i, other := range q {
		if other == w {
			l.waiting[w.call.Priority] = append(q[:i:i], q[i+1:]...)
			return true
		}
	}
	return false
}

// tidyAt is the number of lanes from which idle ones are forgotten.
const tidyAt = 1000

// tidy forgets lanes that would be the same if they were made anew.
func (o *Outbox) tidy() {
	if len(o.lanes) < tidyAt {
		return
	}
	now := time.Now()
	for name, l := range o.lanes {
		if _, waits := l.next(); !waits && !l.busy && !l.until.After(now) && l.bucket.full(now) {
			delete(o.lanes, name)
		}
	}
}

// bucket is a Limit at work.
type bucket struct {
	Limit
	tokens float64
	at     time.Time
}

func newBucket(l Limit) bucket {
	l.Burst = max(l.Burst, 1)
	l.Reserve = min(l.Reserve, l.Burst-1)
	return bucket{Limit: l, tokens: float64(l.Burst)}
}

func (b *bucket) fill(now time.Time) {
	if !b.at.IsZero() && b.Every > 0 {
		b.tokens = min(float64(b.Burst), b.tokens+float64(now.Sub(b.at))/float64(b.Every))
	}
	b.at = now
}

// delay is the time until a call of the priority may go.
func (b *bucket) delay(now time.Time, p Priority) time.Duration {
	if b.Every <= 0 {
		return 0
	}
	b.fill(now)
	need := 1.0
	if p == Status {
		need += float64(b.Reserve)
	}
	if b.tokens >= need {
		return 0
	}
	// Rounded up, or a timer would fire just before the token is there.
	return time.Duration((need-b.tokens)*float64(b.Every)) + 1
}

func (b *bucket) take() { b.tokens-- }

func (b *bucket) full(now time.Time) bool {
	b.fill(now)
	return b.Every <= 0 || b.tokens >= float64(b.Burst)
}
