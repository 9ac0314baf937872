package desk

import (
	"context"
	"errors"
	"time"

	"footnote/bot/ledger"
)

type taskKey struct{}

// Held is called just before each call by which a run becomes visible. It is nil
// while the run holds its question. A process that was stopped for longer than its
// lease, as by SIGSTOP or a pause of its machine, would go on in the middle of a
// question that another one has answered; it finds itself fenced here. Outside of a
// run Held is nil.
//
// It asks the ledger only where the lease is nearly over: else nobody can have
// taken the question over. What is left is the moment between Held and the call.
func Held(ctx context.Context) error {
	t, ok := ctx.Value(taskKey{}).(*Task)
	if !ok {
		return nil
	}
	return t.desk.hold(ctx, t)
}

// hold is nil if the question is this desk's now. ErrLost says that another has
// it, or it has ended; any other error that this cannot be known.
func (d *Desk) hold(ctx context.Context, t *Task) error {
	now := d.o.Now()
	left := time.Duration(t.item.until.Load()-now.UnixMilli()) * time.Millisecond
	if left > d.o.Lease/3 {
		return nil
	}
	lost, err := d.o.Ledger.Renew(ctx, d.o.Lease, t.Ref())
	if err == nil && len(lost) > 0 {
		var back bool
		if back, err = d.restored(ctx, t.snapshot()); err == nil && !back {
			return ledger.ErrLost
		}
	}
	if err != nil && left > 0 {
		return nil //nolint:nilerr // nobody else can have it yet
	}
	if err == nil {
		t.item.until.Store(now.Add(d.o.Lease).UnixMilli())
	}
	return err
}

// holds is hold for what a person is to be told. Where it cannot be known the
// question is left: whoever reaches the ledger takes it over.
func (d *Desk) holds(t *Task) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	err := d.hold(ctx, t)
	if err != nil && !errors.Is(err, ledger.ErrLost) {
		d.o.Log.Warn("a question is left to whoever takes it over", "platform", t.Platform, "key", t.Key, "error", err)
	}
	return err == nil
}
