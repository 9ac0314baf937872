// Package desk queues and runs questions, for every platform at once.
//
// Its one idea: a question is in the ledger before its delivery is
// acknowledged, and from then on it ends in exactly one of two ways: it is
// answered once, or the person is told that it was not. Nothing is dropped in
// silence: not by a full queue, a deadline, a panic, a shutdown or a crash.
//
//	Receive -> claim -> queue of the room -> run -> Handler.Answer -> ledger
//
// Rooms take turns, so that a busy one starves no other. The number of waiting
// and running questions is bounded per asker, per room and in all. What an
// earlier process left unfinished is taken over from the ledger. Receive is the
// same for sockets, gateways and HTTP.
//
// It does not know what a question says or how a platform looks: adapters
// register a Handler each. It writes no text of a question anywhere.
package desk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"footnote/bot"
	"footnote/bot/ledger"
	"footnote/retrieval"
)

// Handler answers the questions of one platform. It is safe for concurrent
// use.
type Handler interface {
	// Answer answers the question in its place and says how that ended. It
	// calls t.Posting before the call that makes the answer visible, and Held just
	// before each call, and posts nothing once one fails. If t.Ambiguous, it looks for the answer of an
	// earlier run before it posts. It returns soon after ctx is done. An error
	// means that nothing was answered: Interrupted follows.
	Answer(ctx context.Context, t *Task) (Result, error)
	// Interrupted tells the person in place that the question was not
	// answered, and takes away what says that it is worked on.
	Interrupted(ctx context.Context, d ledger.Delivery, t Trouble)
}

// Result is how a question ended: ledger.Answered, Refused, Failed or Ignored,
// with a code as the reason.
type Result struct {
	State  ledger.State
	Reason string
}

// Verdict is what became of a delivery at the door. The adapter tells the
// person about all but Accepted and Duplicate.
type Verdict string

// Verdicts. All but the last are durable: a further copy of the same question is
// a Duplicate.
const (
	Accepted  Verdict = "accepted"   // will be answered, or the person told
	Duplicate Verdict = "duplicate"  // is or was worked on
	BusyAsker Verdict = "busy_asker" // too many questions of this person wait
	BusyRoom  Verdict = "busy_room"  // too many wait in this room
	Busy      Verdict = "busy"       // too many wait in all
	Stale     Verdict = "stale"      // asked too long ago

	// Unavailable: the ledger that replicas share does not answer. It alone is
	// not durable; this desk knows copies of the question for a while.
	Unavailable Verdict = "unavailable"
)

// Text is what the person is told, "" if nothing.
func (v Verdict) Text() string {
	switch v {
	case BusyAsker:
		return "You have several questions waiting already. Please ask again when they are answered."
	case BusyRoom:
		return "Many questions are waiting in this channel. Please ask again in a few minutes."
	case Busy:
		return "Many questions are waiting right now. Please ask again in a few minutes."
	case Stale:
		return "Your question reached me too late to be answered. Please ask again."
	case Unavailable:
		return bot.UnavailableText
	}
	return ""
}

var (
	// ErrSlow says that the ledger did not take the question in time. The
	// delivery must not be acknowledged; if it comes again, it is answered or
	// found to be a duplicate.
	ErrSlow = errors.New("the ledger is too slow")
	// ErrStopped says that the desk takes no more questions.
	ErrStopped = errors.New("the desk is closed")
)

// Options of a desk. Ledger is required; zero values mean the defaults.
type Options struct {
	Ledger      ledger.Claims
	Workers     int           // questions worked on at once: 4
	PerAsker    int           // waiting or running of one asker: 10
	PerRoom     int           // of one room: 100
	Queue       int           // in all: 1,000
	Budget      time.Duration // of Receive: 500 ms
	Deadline    time.Duration // of one run: 2 min
	Patience    time.Duration // for a run to return once it is told to: 10 s
	Grace       time.Duration // for runs to finish at a shutdown: 20 s
	StaleAfter  time.Duration // age from which a question is not answered: 30 min
	Lease       time.Duration // after which another process takes over: 2 min
	MaxAttempts int           // runs of one question, each ended by a crash but the last: 3
	Log         *slog.Logger  // nil: none
	Now         func() time.Time
}

func (o *Options) fill() {
	o.Workers, o.PerAsker, o.PerRoom, o.Queue = cmp.Or(o.Workers, 4), cmp.Or(o.PerAsker, 10), cmp.Or(o.PerRoom, 100), cmp.Or(o.Queue, 1000)
	o.Budget, o.Deadline = cmp.Or(o.Budget, 500*time.Millisecond), cmp.Or(o.Deadline, 2*time.Minute)
	o.Patience, o.Grace = cmp.Or(o.Patience, 10*time.Second), cmp.Or(o.Grace, 20*time.Second)
	o.StaleAfter, o.Lease = cmp.Or(o.StaleAfter, 30*time.Minute), cmp.Or(o.Lease, 2*time.Minute)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 3)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Desk takes questions and has them answered. It is safe for concurrent use.
type Desk struct {
	o        Options
	handlers map[string]Handler // complete before Run

	// runs is the context of every run; stop ends it.
	runs context.Context
	stop context.CancelCauseFunc

	mu      sync.Mutex
	line    line
	seats   seats
	held    map[string]*item // waiting and running, by key
	running int
	phase   phase
	owed    []owed
	away    bool                 // the shared ledger did not answer, or was not asked yet; keep's alone
	recent  map[string]time.Time // questions that were dealt with here, by key

	paying sync.Mutex    // held while owed is worked off
	idle   chan struct{} // closed when nothing runs any more
	count  counters
}

// phase is where a desk is in its life.
type phase int

const (
	closed phase = iota // takes questions, runs none yet
	open
	draining // takes questions for whoever comes after, starts none
	stopped
)

// New makes a desk. Questions are taken at once, and run once Run does.
func New(o Options) (*Desk, error) {
	if o.Ledger == nil {
		return nil, errors.New("a desk needs a ledger")
	}
	o.fill()
	d := &Desk{o: o, handlers: map[string]Handler{}, line: newLine(), held: map[string]*item{}, recent: map[string]time.Time{}, idle: make(chan struct{})}
	d.seats = seats{limits: o, askers: map[string]int{}, rooms: map[string]int{}}
	d.count.platforms = map[string]*platform{}
	_, d.away = o.Ledger.(shared)
	d.runs, d.stop = context.WithCancelCause(context.Background())
	return d, nil
}

// Handle registers the handler of a platform, before Run.
func (d *Desk) Handle(name string, h Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handlers[name] = h
	d.count.of(name)
}

// item is a question that this desk holds.
type item struct {
	ledger.Delivery
	since  time.Time
	cancel context.CancelCauseFunc // nil while it waits
	task   atomic.Pointer[Task]    // nil while it waits
	until  atomic.Int64            // end of its lease by our clock, Unix ms
}

// Receive takes a question. When it returns a verdict, that is durable and
// the delivery may be acknowledged; after an error it must not be, or, where
// the platform does not repeat, the person must be asked to try again. It
// returns within the budget.
func (d *Desk) Receive(ctx context.Context, q ledger.Delivery) (Verdict, error) {
	start := d.o.Now()
	if err := d.arrived(q.Platform, start); err != nil {
		return "", err
	}
	q.Claim = rand.Text()
	ctx, cancel := context.WithTimeoutCause(ctx, d.o.Budget, ErrSlow)
	defer cancel()
	// The claim goes on when the caller has gone: what the ledger took must
	// be worked on.
	done := make(chan received, 1)
	go func() { done <- d.take(context.WithoutCancel(ctx), q, start) }()
	select {
	case r := <-done:
		if errors.Is(r.err, retrieval.ErrUnavailable) {
			r = received{verdict: d.unavailable(q)}
		}
		d.acknowledged(q.Platform, r, d.o.Now().Sub(start))
		return r.verdict, r.err
	case <-ctx.Done():
		err := fmt.Errorf("taking a question: %w", context.Cause(ctx))
		d.acknowledged(q.Platform, received{err: err}, d.o.Now().Sub(start))
		return "", err
	}
}

// received is how a question got on at the door.
type received struct {
	verdict Verdict
	err     error
}

// take claims the question and queues it. The seat is taken first, so that
// what is accepted is always within the bounds.
func (d *Desk) take(ctx context.Context, q ledger.Delivery, now time.Time) received {
	ctx, cancel := d.hurry(ctx)
	defer cancel()
	verdict := d.seat(q, now)
	verdict, err := d.everywhere(ctx, q, verdict)
	if err != nil {
		return received{err: fmt.Errorf("taking a question: %w", err)}
	}
	if verdict != Accepted {
		q.State, q.Reason, q.Payload = ledger.Failed, string(verdict), nil
	}
	claimed, won, err := d.o.Ledger.Claim(ctx, q, d.o.Lease)
	if err == nil && won && verdict == Accepted {
		d.enqueue(claimed, now)
		return received{verdict: Accepted}
	}
	if verdict == Accepted {
		d.leave(q)
	}
	switch {
	case err != nil:
		return received{err: fmt.Errorf("taking a question: %w", err)}
	case !won:
		return received{verdict: Duplicate}
	}
	return received{verdict: verdict}
}

func (d *Desk) seat(q ledger.Delivery, now time.Time) Verdict {
	if !q.Sent.IsZero() && now.Sub(q.Sent) > d.o.StaleAfter {
		return Stale
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seats.take(q)
}

func (d *Desk) leave(q ledger.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seats.leave(q)
}

// enqueue queues a question that has a seat, and a lease from then on.
func (d *Desk) enqueue(q ledger.Delivery, leased time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	it := &item{Delivery: q, since: d.o.Now()}
	it.until.Store(leased.Add(d.o.Lease).UnixMilli())
	d.held[q.Key] = it
	d.line.push(it)
	d.dispatch()
}

// dispatch starts what can be started. The caller holds mu.
func (d *Desk) dispatch() {
	for d.phase == open && d.running < d.o.Workers {
		it := d.line.pop()
		if it == nil {
			return
		}
		ctx, cancel := context.WithCancelCause(d.runs)
		it.cancel = cancel
		d.running++
		go func() {
			defer d.finish(it)
			defer cancel(nil)
			d.run(ctx, it)
		}()
	}
}

// finish makes room for the next question.
func (d *Desk) finish(it *item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	d.seats.leave(it.Delivery)
	if d.held[it.Key] == it {
		delete(d.held, it.Key)
	}
	d.remember(it.Key)
	d.dispatch()
	if d.phase == draining && d.running == 0 {
		close(d.idle)
	}
}
