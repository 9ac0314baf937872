package follow

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
)

// pipeline is what the loop needs of ingestion.
type pipeline interface {
	Ingest(ctx context.Context, src ingest.Source, how ingest.How) (ingest.Report, error)
	Plan(ctx context.Context, src ingest.Source, how ingest.How) (ingest.Plan, error)
	// Compact gives room back if that pays.
	Compact(ctx context.Context) error
}

// Options tune a loop. The zero value of a field is its default, except
// MaxRemoved.
type Options struct {
	Interval   time.Duration // between full passes over a source: 60 s
	Settle     time.Duration // that a changed path must be at rest: 300 ms
	MaxRemoved float64       // ingest.How.MaxRemoved
	Resumes    bool          // a pass that is interrupted loses no work, so that whatever is noticed interrupts it
	Told       func(ingest.Event)
	Passed     func([]Status) // called after each pass, one at a time
	Log        *slog.Logger   // nil: none
}

// Loop follows sources. It is safe for concurrent use.
type Loop struct {
	p pipeline
	o Options
	c *clock

	wake chan struct{} // holds one: there is something new to do
	turn sync.Mutex    // held by a pass of the loop, and by Urgently

	mu      sync.Mutex
	feeds   []*feed
	running *running                 // nil: no pass
	ahead   map[string]ingest.Effect // by path: in force before its pass, and counted
	said    string                   // why a new generation is not in use, as the log has it
	changed bool                     // something was published or removed since the last compaction
}

// running is a pass that can be interrupted.
type running struct {
	since  time.Time
	peace  time.Duration
	cancel context.CancelCauseFunc
}

// errInterrupted ends a pass for something more urgent.
var errInterrupted = errors.New("interrupted by something more urgent")

// New makes a loop over feeds, which does nothing before Run.
func New(p pipeline, feeds []Feed, o Options) *Loop {
	if o.Interval <= 0 {
		o.Interval = time.Minute
	}
	if o.Settle <= 0 {
		o.Settle = 300 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Loop{p: p, o: o, c: newClock(), wake: make(chan struct{}, 1), ahead: map[string]ingest.Effect{}}
	for _, f := range feeds {
		l.feeds = append(l.feeds, &feed{
			Feed: f, dirty: map[string]notice{}, retries: map[string]retry{}, peace: leastPeace,
			status: Status{Source: f.Name, Root: f.Source.Root()},
		})
	}
	return l
}

// Levels are the service levels since New.
func (l *Loop) Levels() []Level { return l.c.levels() }

// InForce counts changes that were put in force ahead of the pass that would
// notice them, which does not count them again.
func (l *Loop) InForce(took time.Duration, events ...ingest.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if e.Effect == "" {
			continue
		}
		l.c.took(e.Effect, took)
		l.ahead[e.Path] = e.Effect
		l.changed = true
	}
}

// Status is how the sources stand now, in the order of New.
func (l *Loop) Status() []Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Status, len(l.feeds))
	for i, f := range l.feeds {
		out[i] = f.status
	}
	return out
}

// Run follows the sources until ctx is done. Troubles of a source are in its
// Status and the log; they end nothing.
func (l *Loop) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range l.feeds {
		if f.Watch != nil {
			g.Go(func() error { l.watch(ctx, f); return nil })
		}
	}
	g.Go(func() error { l.pace(ctx); return nil })
	return g.Wait()
}

// watch listens to a source and begins anew when that ends.
func (l *Loop) watch(ctx context.Context, f *feed) {
	said := false
	for ctx.Err() == nil {
		l.watching(f, true)
		from := time.Now()
		err := f.Watch(ctx, func(c Change) { l.note(f, c) })
		l.watching(f, false)
		if said = said && time.Since(from) < l.o.Interval; ctx.Err() == nil && !said {
			said = true
			l.o.Log.Warn("changes of a source are noticed only by full passes for now", "source", f.Name, "error", err)
		}
		pause(ctx, min(l.o.Interval, rewatch))
	}
}

// rewatch is how soon a source is listened to again after that ended: a folder
// that was mounted anew should not wait for full passes.
const rewatch = 5 * time.Second

func (l *Loop) watching(f *feed, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.status.Watching = is
}

// pause reports that the time passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// note takes a notice.
func (l *Loop) note(f *feed, c Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.note(c, time.Now())
	if c.Urgent || l.o.Resumes {
		time.AfterFunc(l.o.Settle, l.interrupt)
	}
	l.rouse()
}

func (l *Loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// interrupt ends the running pass once it has had its time in peace.
func (l *Loop) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil || !l.urgent() && !(l.o.Resumes && l.due(time.Now())) {
		return
	}
	if rest := l.running.peace - time.Since(l.running.since); rest > 0 {
		time.AfterFunc(rest, l.interrupt)
		return
	}
	l.running.cancel(errInterrupted)
}

// urgent reports that an urgent path waits. The caller holds mu.
func (l *Loop) urgent() bool {
	return slices.ContainsFunc(l.feeds, func(f *feed) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(f.dirty)), func(n notice) bool { return n.urgent })
	})
}

// due reports that a path can be read that is at rest. The caller holds mu.
func (l *Loop) due(now time.Time) bool {
	return slices.ContainsFunc(l.feeds, func(f *feed) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(f.dirty)), func(n notice) bool { return !n.due(l.o.Settle).After(now) })
	})
}

// pace makes passes when they are due.
func (l *Loop) pace(ctx context.Context) {
	for ctx.Err() == nil {
		w, wait := l.choose()
		switch {
		case w != nil:
			l.turn.Lock()
			_, _ = l.pass(ctx, w) // in the source's status
			l.turn.Unlock()
			continue
		case l.compact(ctx):
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-l.wake:
		}
		t.Stop()
	}
}

// work is a pass to make.
type work struct {
	feed    *feed
	full    bool
	notices map[string]notice // taken
	again   map[string]bool   // paths that are tried again
	at      time.Time

	// Of an operator's pass.
	all    bool // failures are tried again, due or not
	remove bool // however much is missing
	told   func(ingest.Event)
}

// choose takes what is due: dirty paths of any source before full passes. If
// nothing is, it says how long that lasts.
func (l *Loop) choose() (*work, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var full *feed
	wait := l.o.Interval
	for _, f := range l.feeds {
		if w := f.dirtyWork(now, l.o.Settle); w != nil && !f.scanned.IsZero() {
			return w, 0
		}
		if !f.next.After(now) && (full == nil || f.next.Before(full.next)) {
			full = f
		}
		wait = min(wait, f.wake(l.o.Settle).Sub(now))
	}
	if full == nil {
		return nil, max(wait, time.Millisecond)
	}
	return full.fullWork(now, l.o.Settle), 0
}

// fullWork is a pass over all of the source. What is not at rest is looked at
// again afterwards.
func (f *feed) fullWork(now time.Time, settle time.Duration) *work {
	w := &work{feed: f, full: true, notices: maps.Clone(f.dirty), again: f.retriable(now), at: now}
	for path, n := range f.dirty {
		if !n.due(settle).After(now) {
			delete(f.dirty, path)
		}
	}
	return w
}

// dirtyWork is a pass over the paths that are due, nil if there is none. A
// source is first passed over as a whole.
func (f *feed) dirtyWork(now time.Time, settle time.Duration) *work {
	if f.scanned.IsZero() || now.Before(f.idle) {
		return nil
	}
	w := &work{feed: f, notices: f.take(now, settle), again: f.retriable(now), at: now}
	if len(w.notices)+len(w.again) == 0 {
		return nil
	}
	return w
}

// retriable lists what failed and is due.
func (f *feed) retriable(now time.Time) map[string]bool {
	out := map[string]bool{}
	for path, r := range f.retries {
		if !r.next.After(now) {
			out[path] = true
		}
	}
	return out
}

// unavailable is the pause before the next look at an index that does not
// answer.
const unavailable = 2 * time.Second

const (
	leastPeace = time.Second
	mostPeace  = 3 * time.Second
)

// pass makes one pass and plans what follows from it.
func (l *Loop) pass(ctx context.Context, w *work) (ingest.Report, error) {
	f := w.feed
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.begin(&running{time.Now(), f.peace, cancel})
	how := ingest.How{
		Prune: true, Name: f.Name, MaxRemoved: l.o.MaxRemoved, Keep: true,
		Told: func(e ingest.Event) { l.told(w, e) },
	}
	if w.remove {
		how.MaxRemoved = 0
	}
	if !w.full {
		how.Only = slices.Sorted(maps.Keys(w.notices))
		how.Only = append(how.Only, slices.Sorted(maps.Keys(w.again))...)
	}
	if !f.scanned.IsZero() && !w.all {
		how.Again = func(r catalog.Record) bool {
			_, noticed := w.notices[r.Path]
			return noticed || w.again[r.Path]
		}
	}
	report, err := l.p.Ingest(ctx, f.Source, how)
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		err = errInterrupted
	}
	l.ended(ctx, w, report, err)
	return report, err
}

func (l *Loop) begin(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = r
}

// told measures what came in force.
func (l *Loop) told(w *work, e ingest.Event) {
	for _, to := range []func(ingest.Event){l.o.Told, w.told} {
		if to != nil {
			to(e)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.State.Settled() {
		if e.State != catalog.Failed {
			delete(w.feed.retries, e.Path)
		}
		l.changed = l.changed || e.Effect != ""
	}
	counted := l.ahead[e.Path]
	if e.State.Settled() {
		delete(l.ahead, e.Path)
	}
	if e.Effect == "" || e.Effect == counted {
		return
	}
	if at, noticed := since(w.notices, e.Path); noticed {
		l.c.took(e.Effect, time.Since(at))
	} else if w.full && !w.feed.scanned.IsZero() {
		l.c.took(e.Effect, time.Since(w.feed.scanned))
	}
}

// ended notes how a pass ended.
func (l *Loop) ended(ctx context.Context, w *work, r ingest.Report, err error) {
	l.mu.Lock()
	f, now := w.feed, time.Now()
	l.running = nil
	switch {
	case err == nil:
		l.report(w, r, now)
	case errors.Is(err, errInterrupted):
		f.putBack(w.notices)
		f.peace = min(2*f.peace, mostPeace)
	case errors.Is(err, retrieval.ErrUnavailable) && ctx.Err() == nil:
		// It is nothing about the source: what was noticed is due as soon as
		// the index answers again.
		f.putBack(w.notices)
		f.idle = now.Add(min(unavailable, l.o.Interval))
		if f.next = f.idle; f.status.Error == "" {
			l.o.Log.Warn("a source waits for the index", "source", f.Name, "error", err)
		}
		f.status.Error, f.status.Waits = err.Error(), true
	case ctx.Err() == nil:
		f.status.Error, f.status.Waits = err.Error(), false
		f.next = now.Add(l.o.Interval)
		l.o.Log.Warn("a source could not be taken in", "source", f.Name, "error", err)
	}
	l.mu.Unlock()
	if l.o.Passed != nil {
		l.o.Passed(l.Status())
	}
}

// report plans by the report of a pass that ended well. The caller holds mu.
func (l *Loop) report(w *work, r ingest.Report, now time.Time) {
	f := w.feed
	f.peace, f.status.Error, f.status.Waits = leastPeace, "", false
	l.tellGeneration(r)
	for path := range w.again {
		if rt, still := f.retries[path]; still && !rt.next.After(now) {
			f.failed(path, now) // unless the report says otherwise, it is as before
		}
	}
	for _, t := range r.Failed {
		switch rt, known := f.retries[t.Path]; {
		case !t.Retryable:
			delete(f.retries, t.Path)
		case !known || !rt.next.After(now):
			f.failed(t.Path, now)
		}
	}
	if r.Held != nil && f.status.Held == nil {
		l.o.Log.Warn("nothing is removed from a source: too much of it is missing at once", "source", f.Name, "missing", r.Held.Missing, "of", r.Held.Of)
	}
	if w.full {
		f.scanned, f.next = w.at, now.Add(l.o.Interval)
		f.status.Scanned, f.status.Failed, f.status.Refused = w.at, len(r.Failed), len(r.Refused)
		f.status.Held = r.Held
	} else if r.Held != nil {
		f.status.Held = r.Held
	}
}

// compact gives room back when there is nothing else to do. It reports that
// it was worth asking.
func (l *Loop) compact(ctx context.Context) bool {
	l.mu.Lock()
	worth := l.changed && !l.urgent()
	l.changed = l.changed && !worth
	l.mu.Unlock()
	if !worth {
		return false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.turn.Lock()
	defer l.turn.Unlock()
	l.begin(&running{time.Now(), leastPeace, cancel})
	err := l.p.Compact(ctx)
	l.begin(nil)
	if err != nil && ctx.Err() == nil {
		l.o.Log.Warn("the index could not be compacted", "error", err)
	}
	return true
}

// Urgently runs an operator's work between passes: it interrupts the running
// one, which goes on afterwards.
func (l *Loop) Urgently(work func() error) error {
	l.mu.Lock()
	if l.running != nil {
		l.running.cancel(errInterrupted)
	}
	l.mu.Unlock()
	l.turn.Lock()
	defer l.turn.Unlock()
	defer l.rouse()
	return work()
}
