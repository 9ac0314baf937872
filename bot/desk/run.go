package desk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/bot"
	"footnote/bot/ledger"
	"footnote/retrieval"
)

// Causes for which a run is told to end.
var (
	errDeadline = errors.New("the question took too long")
	errShutdown = errors.New("the program stops")
	errTaken    = errors.New("another process took the question over")
	errLeft     = errors.New("the run did not end when it was told to")
)

// Cause is why a question was not answered.
type Cause string

// Causes of trouble.
const (
	Broke      Cause = "error"
	Panicked   Cause = "panic"
	TimedOut   Cause = "timed_out"
	TooOld     Cause = "stale"
	Crashed    Cause = "crashed"     // each run of it ended with the process
	Restarting Cause = "restarting"  // it is kept, and answered after the restart
	Away       Cause = "unavailable" // index or ledger do not answer
)

// Trouble is what the person is told of.
type Trouble struct {
	Cause     Cause
	Reference string // under which the log has it; "" if there is nothing to look up
	Said      string // of a *bot.UserError: safe to show
}

// Text is what the person is told.
func (t Trouble) Text() string {
	text := t.Said
	if text == "" {
		text = map[Cause]string{
			Away:       bot.UnavailableText,
			TimedOut:   "I could not answer this in time. Please ask again.",
			TooOld:     "I was interrupted and could not answer this in time. Please ask again.",
			Restarting: "I am being restarted. Your question is kept and will be answered afterwards.",
		}[t.Cause]
	}
	if text == "" {
		text = "Something went wrong and I could not answer this. Please ask again."
	}
	if t.Reference != "" {
		text += " (Reference: " + t.Reference + ")"
	}
	return text
}

// Task is one run of a question. The Delivery is as the run began.
type Task struct {
	ledger.Delivery

	// Ambiguous says that an earlier run ended without a word after it had
	// begun to post: its message may be there.
	Ambiguous bool

	desk  *Desk
	item  *item
	mu    sync.Mutex
	state ledger.State
}

// Posting notes durably that the answer is about to be posted, with a
// reference to where if that is known (nil: as before). After an error nothing
// may be posted: somebody else has the question, or it has ended.
func (t *Task) Posting(ctx context.Context, ref []byte) error {
	return t.move(ctx, ledger.Step{State: ledger.Posting, Posted: ref})
}

// Keep notes a reference durably, for example to a placeholder, for a later
// run. The state stays.
func (t *Task) Keep(ctx context.Context, ref []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.step(ctx, ledger.Step{State: t.state, Posted: ref})
}

func (t *Task) move(ctx context.Context, s ledger.Step) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.step(ctx, s)
}

func (t *Task) step(ctx context.Context, s ledger.Step) error {
	// A step of a run that is over must not happen late.
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("noting %s: %w", s.State, err)
	}
	err := t.desk.o.Ledger.Move(ctx, t.Ref(), s)
	if errors.Is(err, ledger.ErrLost) {
		if back, again := t.desk.restored(ctx, t.present()); back || again != nil {
			err = errors.Join(again, t.desk.o.Ledger.Move(ctx, t.Ref(), s))
		}
	}
	if err != nil {
		return fmt.Errorf("noting %s: %w", s.State, err)
	}
	t.state = s.State
	if s.Posted != nil {
		t.Posted = s.Posted
	}
	return nil
}

func (t *Task) at() ledger.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// snapshot is the delivery as it stands now.
func (t *Task) snapshot() ledger.Delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.present()
}

// present is the snapshot. The caller holds mu.
func (t *Task) present() ledger.Delivery {
	d := t.Delivery
	d.State = t.state
	return d
}

// Run works on questions until ctx is done, then lets runs finish for the
// grace period, ends the others, tells their people, and returns.
func (d *Desk) Run(ctx context.Context) error {
	d.mu.Lock()
	if d.phase != closed {
		d.mu.Unlock()
		return errors.New("a desk runs once")
	}
	d.phase = open
	d.dispatch()
	d.mu.Unlock()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { d.keep(ctx); return nil })
	g.Go(func() error { d.settle(ctx); return nil })
	g.Go(func() error { <-ctx.Done(); d.drain(); return nil })
	return g.Wait()
}

// keep renews what this desk holds and takes over what nobody does.
func (d *Desk) keep(ctx context.Context) {
	for {
		pause, err := d.tend(ctx)
		if err != nil && ctx.Err() == nil {
			d.o.Log.Error("the ledger cannot be tended", "error", err)
		}
		tick := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// tend returns how long to wait before the next time.
func (d *Desk) tend(ctx context.Context) (pause time.Duration, err error) {
	pause = d.o.Lease / 3
	if err := d.renew(ctx); err != nil {
		return pause, err
	}
	if waits, err := d.returned(ctx); waits || err != nil {
		return min(pause, courtesy), err
	}
	now := d.o.Now()
	found, err := d.o.Ledger.Resume(ctx, d.o.Lease)
	for _, q := range found {
		d.adopt(q, now)
	}
	d.away = err != nil
	return pause, err
}

// renew keeps what this desk holds, and lets go of what it does not hold any
// more.
func (d *Desk) renew(ctx context.Context) error {
	held, now := d.refs(), d.o.Now()
	lost, err := d.o.Ledger.Renew(ctx, d.o.Lease, held...)
	if d.away = d.away || err != nil; err != nil {
		return err
	}
	for _, r := range lost {
		if back, err := d.regain(ctx, r); err != nil {
			return err
		} else if !back {
			d.lose(r)
		}
	}
	d.leased(held, now)
	return nil
}

// leased notes until when questions are this desk's. One that is lost is no
// longer among them.
func (d *Desk) leased(held []ledger.Ref, from time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range held {
		if it := d.held[r.Key]; it != nil && it.Attempt == r.Attempt {
			it.until.Store(from.Add(d.o.Lease).UnixMilli())
		}
	}
}

func (d *Desk) refs() []ledger.Ref {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]ledger.Ref, 0, len(d.held))
	for _, it := range d.held {
		out = append(out, it.Ref())
	}
	return out
}

// regain makes good that the server has lost a question.
func (d *Desk) regain(ctx context.Context, r ledger.Ref) (bool, error) {
	d.mu.Lock()
	it := d.held[r.Key]
	d.mu.Unlock()
	if it == nil || it.Attempt != r.Attempt {
		return false, nil
	}
	q := it.Delivery
	if t := it.task.Load(); t != nil {
		q = t.snapshot()
	}
	if q.State.Ended() {
		return true, nil
	}
	return d.restored(ctx, q)
}

// lose lets go of a question that another process took over. One that ended
// meanwhile is finishing anyway.
func (d *Desk) lose(r ledger.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	it := d.held[r.Key]
	switch {
	case it == nil || it.Attempt != r.Attempt:
	case it.cancel != nil:
		it.cancel(errTaken)
	default:
		d.line.remove(it)
		d.seats.leave(it.Delivery)
		delete(d.held, r.Key)
	}
}

// adopt queues a question that an earlier run left unfinished. It was
// accepted, so no bound turns it away.
func (d *Desk) adopt(q ledger.Delivery, leased time.Time) {
	d.mu.Lock()
	d.seats.force(q)
	d.count.resumed++
	d.mu.Unlock()
	d.enqueue(q, leased)
}

// drain ends the desk's life.
func (d *Desk) drain() {
	d.mu.Lock()
	d.phase = draining
	if d.running == 0 {
		close(d.idle)
	}
	d.mu.Unlock()
	grace := time.NewTimer(d.o.Grace)
	defer grace.Stop()
	select {
	case <-d.idle:
	case <-grace.C:
		d.stop(errShutdown)
		<-d.idle // each run ends within its patience
	}
	d.mu.Lock()
	d.phase = stopped
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	d.pay(ctx)
	// What waits goes to another process, or to this one's next start.
	if _, err := d.o.Ledger.Renew(ctx, 0, d.refs()...); err != nil {
		d.o.Log.Error("waiting questions could not be given back", "error", err)
	}
}

// run has one question answered, or its person told.
func (d *Desk) run(ctx context.Context, it *item) {
	h := d.handler(it.Platform)
	t := &Task{Delivery: it.Delivery, desk: d, item: it, state: it.State, Ambiguous: it.State == ledger.Posting}
	it.task.Store(t)
	switch {
	case h == nil:
		d.o.Log.Error("a question is left of a platform that is not set up", "platform", it.Platform)
		d.end(t, ledger.Step{State: ledger.Failed, Reason: "no_handler"})
		return
	case runs(it.Delivery) >= d.o.MaxAttempts && (!t.Ambiguous || runs(it.Delivery) >= 2*d.o.MaxAttempts): // its answer may be there
		d.tell(h, t, Trouble{Cause: Crashed, Reference: d.report("a question ended the process again and again", t, nil)})
		return
	case d.o.Now().Sub(it.Sent) > d.o.StaleAfter && !t.Ambiguous:
		d.tell(h, t, Trouble{Cause: TooOld})
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, taskKey{}, t), d.o.Deadline, errDeadline)
	defer cancel()
	if err := t.begin(ctx); err != nil {
		d.failed(ctx, h, t, err)
		return
	}
	r, err := d.call(ctx, h, t)
	if err == nil && !r.State.Ended() {
		err = fmt.Errorf("a question cannot end as %q", r.State)
	}
	if err != nil {
		d.failed(ctx, h, t, err)
		return
	}
	d.end(t, ledger.Step{State: r.State, Reason: r.Reason})
}

// again is the reason that a run notes which is not a question's first.
const again = "again"

// begin notes the run, so that runs can count it. An ambiguous delivery stays
// one until its message was looked for.
func (t *Task) begin(ctx context.Context) error {
	s := ledger.Step{State: ledger.Answering}
	if t.Ambiguous {
		s.State = ledger.Posting
	}
	if t.at() == s.State {
		s.Reason = again
	}
	return t.move(ctx, s)
}

// runs is how often the question was begun. Waiting in the line while the
// process ends is no run.
func runs(q ledger.Delivery) (n int) {
	for _, c := range q.Changes {
		if c.State == ledger.Answering || c.Reason == again {
			n++
		}
	}
	return n
}

func (d *Desk) handler(platform string) Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handlers[platform]
}

// panicked is a panic of a handler as an error. Its value is shown only where
// it is the runtime's: any other may hold text of a question.
type panicked struct {
	what  string
	stack []byte
}

func (p *panicked) Error() string { return "panic: " + p.what }

func newPanic(v any) *panicked {
	p := &panicked{what: fmt.Sprintf("a value of type %T", v), stack: debug.Stack()}
	var r runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &r) {
		p.what = r.Error()
	}
	return p
}

// call calls the handler, and leaves it alone if it does not return in time.
func (d *Desk) call(ctx context.Context, h Handler, t *Task) (Result, error) {
	type returned struct {
		r   Result
		err error
	}
	done := make(chan returned, 1)
	go func() {
		var out returned
		defer func() {
			if v := recover(); v != nil {
				out.err = newPanic(v)
			}
			done <- out
		}()
		out.r, out.err = h.Answer(ctx, t)
	}()
	select {
	case out := <-done:
		return out.r, out.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(d.o.Patience)
	defer patience.Stop()
	select {
	case out := <-done:
		return out.r, out.err
	case <-patience.C:
		return Result{}, errLeft
	}
}

// failed sorts out why a question was not answered.
func (d *Desk) failed(ctx context.Context, h Handler, t *Task, err error) {
	cause := context.Cause(ctx)
	var p *panicked
	var user *bot.UserError
	switch {
	case errors.Is(err, ledger.ErrLost) || errors.Is(cause, errTaken):
		return // whoever has it answers it
	case errors.Is(err, errLeft):
		d.report("a run did not end when it was told to", t, err)
		if d.fence(t) {
			d.interrupted(h, t, Trouble{Cause: TimedOut})
		}
	case errors.As(err, &p):
		d.panicked()
		d.tell(h, t, Trouble{Cause: Panicked, Reference: d.report("a handler panicked", t, err, "stack", string(p.stack))})
	case errors.Is(cause, errShutdown):
		d.putBack(h, t)
	case errors.Is(cause, errDeadline):
		d.tell(h, t, Trouble{Cause: TimedOut, Reference: d.report("a question ran into its deadline", t, err)})
	case errors.Is(err, retrieval.ErrUnavailable):
		d.o.Log.Warn("a question met an index or a ledger that does not answer", "platform", t.Platform, "key", t.Key, "error", err)
		d.tell(h, t, Trouble{Cause: Away})
	case errors.As(err, &user):
		d.tell(h, t, Trouble{Cause: Broke, Said: user.Text})
	default:
		d.tell(h, t, Trouble{Cause: Broke, Reference: d.report("a question could not be answered", t, err)})
	}
}

// report logs a failure once and returns the reference under which it is
// found.
func (d *Desk) report(what string, t *Task, err error, more ...any) string {
	ref := rand.Text()[:10]
	d.o.Log.Error(what, append([]any{"reference", ref, "platform", t.Platform, "key", t.Key, "attempt", t.Attempt, "error", err}, more...)...)
	return ref
}

func (d *Desk) panicked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count.panics++
}

// tell tells the person first: should the process end in between, the
// question is worked on again rather than forgotten. Whoever may have lost the
// question meanwhile leaves it to whoever has it.
func (d *Desk) tell(h Handler, t *Task, trouble Trouble) {
	if !d.holds(t) {
		return
	}
	d.interrupted(h, t, trouble)
	d.end(t, ledger.Step{State: ledger.Failed, Reason: string(trouble.Cause)})
}

// fence ends a question whose run may still be alive, so that it cannot post. It
// reports false if the question is another's by now.
func (d *Desk) fence(t *Task) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	step := ledger.Step{State: ledger.Failed, Reason: string(TimedOut)}
	err := d.o.Ledger.Move(ctx, t.Ref(), step)
	if err != nil && !errors.Is(err, ledger.ErrLost) {
		d.o.Log.Error("the end of a question could not be noted", "key", t.Key, "error", err)
	}
	return !errors.Is(err, ledger.ErrLost)
}

// putBack keeps a question for the next start, unless its message may have
// left: then the next start looks.
func (d *Desk) putBack(h Handler, t *Task) {
	if t.at() == ledger.Answering && d.holds(t) {
		d.interrupted(h, t, Trouble{Cause: Restarting})
		d.end(t, ledger.Step{State: ledger.Accepted, Reason: string(Restarting)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	if _, err := d.o.Ledger.Renew(ctx, 0, t.Ref()); err != nil {
		d.o.Log.Error("a question could not be given back", "key", t.Key, "error", err)
	}
}

// interrupted calls the handler's Interrupted, within the patience.
func (d *Desk) interrupted(h Handler, t *Task, trouble Trouble) {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	done := make(chan struct{})
	q := t.snapshot()
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				p := newPanic(v)
				d.panicked()
				d.report("a handler panicked while telling of a failure", t, p, "stack", string(p.stack))
			}
		}()
		h.Interrupted(ctx, q, trouble)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		d.o.Log.Error("a person could not be told of a failure in time", "key", t.Key)
	}
}

// end notes how a question ended. If the ledger cannot be reached it is noted
// later; if it cannot be noted at all, the next start finds the question
// unfinished and looks.
func (d *Desk) end(t *Task, s ledger.Step) {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	err := t.move(ctx, s)
	switch {
	case err == nil || errors.Is(err, ledger.ErrLost):
	case errors.Is(err, retrieval.ErrUnavailable):
		d.owe(owed{ref: t.Ref(), step: s})
	default:
		d.o.Log.Error("the end of a question could not be noted", "key", t.Key, "error", err)
	}
}
