package desk

import (
	"context"
	"errors"
	"maps"
	"time"

	"footnote/bot/ledger"
	"footnote/retrieval"
)

// shared is a ledger that replicas share, and that can be out of reach.
type shared interface {
	// Unfinished counts the unfinished deliveries of an asker and of a room,
	// at all replicas.
	Unfinished(ctx context.Context, asker, room string) (ofAsker, ofRoom int, err error)
}

// hurry bounds a claim by the budget where the ledger can be out of reach: the
// person must be told in time.
func (d *Desk) hurry(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := d.o.Ledger.(shared); !ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.o.Budget*9/10)
}

// everywhere holds a question that has a seat here to the limits that all
// replicas keep together. Claims at the same moment may pass a limit, by one
// for each replica.
func (d *Desk) everywhere(ctx context.Context, q ledger.Delivery, verdict Verdict) (Verdict, error) {
	s, ok := d.o.Ledger.(shared)
	if !ok || verdict != Accepted {
		return verdict, nil
	}
	ofAsker, ofRoom, err := s.Unfinished(ctx, q.Asker, q.Room)
	switch {
	case err != nil:
	case ofAsker >= d.o.PerAsker:
		verdict = BusyAsker
	case ofRoom >= d.o.PerRoom:
		verdict = BusyRoom
	default:
		return Accepted, nil
	}
	d.leave(q)
	return verdict, err
}

// unavailable is the verdict on a question that could not be claimed: once for
// all its copies. The claim may be in the ledger all the same, then it is ended
// as soon as the ledger answers.
func (d *Desk) unavailable(q ledger.Delivery) Verdict {
	d.mu.Lock()
	_, dealt := d.recent[q.Key]
	_, held := d.held[q.Key]
	d.remember(q.Key)
	d.mu.Unlock()
	if dealt || held {
		return Duplicate
	}
	d.owe(ledger.Ref{Key: q.Key, Attempt: 1}, ledger.Step{State: ledger.Failed, Reason: string(Away)})
	return Unavailable
}

const mostRecent = 10_000

// remember notes that a question was dealt with. The caller holds mu.
func (d *Desk) remember(key string) {
	now := d.o.Now()
	if len(d.recent) >= mostRecent {
		maps.DeleteFunc(d.recent, func(_ string, at time.Time) bool { return now.Sub(at) > time.Minute })
	}
	d.recent[key] = now
}

// owed is the end of a question that the ledger has not heard of yet.
type owed struct {
	ref  ledger.Ref
	step ledger.Step
}

// mostOwed bounds what is remembered. What is forgotten is found unfinished
// when its lease ends.
const mostOwed = 10_000

func (d *Desk) owe(ref ledger.Ref, step ledger.Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.owed) < mostOwed {
		d.owed = append(d.owed, owed{ref, step})
	}
}

// settle notes what is owed as soon as the ledger answers.
func (d *Desk) settle(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.pay(ctx)
		}
	}
}

// pay notes what is owed, until the ledger does not answer.
func (d *Desk) pay(ctx context.Context) {
	d.paying.Lock()
	defer d.paying.Unlock()
	for {
		d.mu.Lock()
		if len(d.owed) == 0 {
			d.mu.Unlock()
			return
		}
		o := d.owed[0]
		d.mu.Unlock()
		err := d.o.Ledger.Move(ctx, o.ref, o.step)
		if errors.Is(err, retrieval.ErrUnavailable) || ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, ledger.ErrLost) {
			d.o.Log.Error("the end of a question could not be noted", "key", o.ref.Key, "error", err)
		}
		d.mu.Lock()
		d.owed = d.owed[1:]
		d.mu.Unlock()
	}
}
