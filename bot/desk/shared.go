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
	// Restore writes a delivery as this desk holds it, with a lease, if the
	// server has lost it with its last writes. It reports false, and changes
	// nothing, if there is one with any of its keys.
	Restore(ctx context.Context, d ledger.Delivery, lease time.Duration) (bool, error)
}

// restored makes good that the server has lost a question that this desk holds,
// as after a loss of power or where a replica took over that was behind. Else the
// question is another's, or ended.
func (d *Desk) restored(ctx context.Context, q ledger.Delivery) (bool, error) {
	s, ok := d.o.Ledger.(shared)
	if !ok {
		return false, nil
	}
	back, err := s.Restore(ctx, q, d.o.Lease)
	if back {
		d.o.Log.Warn("the ledger had lost a question", "platform", q.Platform, "key", q.Key)
	}
	return back, err
}

// courtesy is how long a ledger that answers again is left to those who have to
// note what they told people meanwhile.
const courtesy = 3 * time.Second

// returned reports that a shared ledger answers, but did not the last time:
// nothing is taken over yet, whose person may have been told that search is
// unavailable.
func (d *Desk) returned(ctx context.Context) (bool, error) {
	s, ok := d.o.Ledger.(shared)
	if !ok || !d.away {
		return false, nil
	}
	if _, _, err := s.Unfinished(ctx, "", ""); err != nil {
		return false, err
	}
	d.pay(ctx)
	d.away = false
	return true, nil
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
// all its copies. As soon as the ledger answers it is ended there, whether the
// claim had arrived or not, so that no replica answers a copy that comes late. One
// that reaches the ledger meanwhile may have taken its own copy: it is not ended
// under its hands, or its person would get no word where the one that was to come
// from here found no place.
func (d *Desk) unavailable(q ledger.Delivery) Verdict {
	d.mu.Lock()
	_, dealt := d.recent[q.Key]
	_, held := d.held[q.Key]
	d.remember(q.Key)
	d.mu.Unlock()
	if dealt || held {
		return Duplicate
	}
	q.Payload = nil
	d.owe(owed{ledger.Ref{Key: q.Key, Attempt: 1}, ledger.Step{State: ledger.Failed, Reason: string(Away)}, &q})
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
	ref   ledger.Ref
	step  ledger.Step
	claim *ledger.Delivery // not claimed before, nil if it was
}

// mostOwed bounds what is remembered. What is forgotten is found unfinished
// when its lease ends.
const mostOwed = 10_000

func (d *Desk) owe(o owed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.owed) < mostOwed {
		d.owed = append(d.owed, o)
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

// note notes an end. A question that was not claimed, as far as is known, ends
// unless another replica has it: that one has its own copy, and answers it.
func (d *Desk) note(ctx context.Context, o owed) error {
	if o.claim == nil {
		return d.o.Ledger.Move(ctx, o.ref, o.step)
	}
	q := *o.claim
	q.State, q.Reason = o.step.State, o.step.Reason
	there, won, err := d.o.Ledger.Claim(ctx, q, d.o.Lease)
	if err != nil || won || there.Claim != q.Claim {
		return err
	}
	return d.o.Ledger.Move(ctx, o.ref, o.step) // the claim had arrived after all
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
		err := d.note(ctx, o)
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
