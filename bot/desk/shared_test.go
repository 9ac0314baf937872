package desk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/retrieval"
)

// remote is a ledger that replicas share and that can be out of reach.
type remote struct {
	*world
	mu     sync.Mutex
	away   error // what calls give, nil: it is there
	late   bool  // what is away takes claims all the same
	others int   // unfinished questions at other replicas, of everybody
	calls  int
	there  int             // calls since it was last away
	gone   map[string]bool // lost by the server
}

func newRemote(w *world) *remote {
	r := &remote{world: w}
	w.claims = r
	w.newDesk()
	return r
}

func (r *remote) set(away error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away, r.there = away, 0
}

func (r *remote) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.away == nil {
		r.there++
	}
	return r.away
}

// reached is how often it was there for a call since it was last away.
func (r *remote) reached() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.there
}

func (r *remote) Claim(ctx context.Context, d ledger.Delivery, lease time.Duration) (ledger.Delivery, bool, error) {
	if err := r.fault(); err != nil {
		if r.late {
			_, _, err := r.ledger.Claim(ctx, d, lease)
			r.must(err)
		}
		return ledger.Delivery{}, false, err
	}
	return r.ledger.Claim(ctx, d, lease)
}

func (r *remote) Move(ctx context.Context, ref ledger.Ref, s ledger.Step) error {
	if err := r.fault(); err != nil {
		return err
	}
	if r.isGone(ref.Key) {
		return ledger.ErrLost
	}
	return r.ledger.Move(ctx, ref, s)
}

func (r *remote) Restore(_ context.Context, d ledger.Delivery, _ time.Duration) (bool, error) {
	if err := r.fault(); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.gone[d.Key]
	delete(r.gone, d.Key)
	return was, nil
}

// lose lets the server lose what it has of questions.
func (r *remote) lose(keys ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = map[string]bool{}
	for _, k := range keys {
		r.gone[k] = true
	}
}

func (r *remote) isGone(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone[key]
}

func (r *remote) Renew(ctx context.Context, lease time.Duration, held ...ledger.Ref) ([]ledger.Ref, error) {
	if err := r.fault(); err != nil {
		return nil, err
	}
	var lost []ledger.Ref
	for _, h := range held {
		if r.isGone(h.Key) {
			lost = append(lost, h)
		}
	}
	more, err := r.ledger.Renew(ctx, lease, held...)
	return append(lost, more...), err
}

func (r *remote) Resume(ctx context.Context, lease time.Duration) ([]ledger.Delivery, error) {
	if err := r.fault(); err != nil {
		return nil, err
	}
	return r.ledger.Resume(ctx, lease)
}

func (r *remote) Unfinished(ctx context.Context, asker, room string) (int, int, error) {
	if err := r.fault(); err != nil && !r.late {
		return 0, 0, err
	}
	all, err := r.ledger.Pending(ctx, 1000)
	ofAsker, ofRoom := r.others, r.others
	for _, d := range all {
		if d.Asker == asker {
			ofAsker++
		}
		if d.Room == room {
			ofRoom++
		}
	}
	return ofAsker, ofRoom, err
}

var errAway = fmt.Errorf("%w: no route", retrieval.ErrUnavailable)

// Whoever asks while the ledger is away is told at once, once for all copies
// of the question, and asked anew it is answered.
func TestLedgerAway_QuestionsAreToldOnce(t *testing.T) {
	for name, late := range map[string]bool{"nothing arrived": false, "the claim arrived": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, desk.Options{}, func(w *world) {
				r := newRemote(w)
				w.run()
				w.receive(question("before", "ada", "r"), desk.Accepted)
				synctest.Wait()
				r.late = late
				r.set(errAway)
				w.receive(question("q1", "ada", "r"), desk.Unavailable)
				w.receive(question("q1", "ada", "r"), desk.Duplicate)
				w.receive(question("before", "ada", "r"), desk.Duplicate)
				w.sleep(5 * time.Minute) // longer than a lease
				r.set(nil)
				w.sleep(5 * time.Minute)
				w.receive(question("q2", "ada", "r"), desk.Accepted)
				w.sleep(time.Minute)
				w.equal("runs", []string{"before", "q2"}, w.runs)
				w.equal("told in place", []string(nil), w.told)
				if late {
					w.equal("the claim that arrived", "failed 1 unavailable", w.state("q1"))
				}
			})
		})
	}
	if text := desk.Unavailable.Text(); text != bot.UnavailableText {
		t.Errorf("the person is told %q", text)
	}
}

// While one replica does not reach the ledger, another one that does takes its own
// copy of a question: it is not ended under its hands.
func TestLedgerAway_AnotherReplicaHasIt(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		r := newRemote(w)
		w.run()
		synctest.Wait()
		r.set(errAway)
		w.receive(question("q1", "ada", "r"), desk.Unavailable)
		other, won, err := w.ledger.Claim(t.Context(), question("q1", "ada", "r"), time.Minute)
		w.must(err)
		w.equal("the other's claim", true, won)
		r.set(nil)
		time.Sleep(5 * time.Second)
		w.equal("the question", "accepted 1", w.state("q1"))
		w.must(w.ledger.Move(t.Context(), other.Ref(), ledger.Step{State: ledger.Answering}))
	})
}

// A question that meets an index or a ledger that is away is told of it, and its
// end is noted when the ledger is back: nobody answers it again.
func TestLedgerAway_InTheMiddle(t *testing.T) {
	cases := map[string]struct {
		answer func(r *remote) func(context.Context, *desk.Task) (desk.Result, error)
		told   []string
		state  string
	}{
		"the index is away": {func(*remote) func(context.Context, *desk.Task) (desk.Result, error) {
			return func(context.Context, *desk.Task) (desk.Result, error) {
				return desk.Result{}, &bot.UserError{Text: "x", Err: errAway}
			}
		}, []string{"q1 unavailable"}, "failed 1 unavailable"},
		"before it posts": {func(r *remote) func(context.Context, *desk.Task) (desk.Result, error) {
			return func(ctx context.Context, t *desk.Task) (desk.Result, error) {
				r.set(errAway)
				return posted(ctx, t)
			}
		}, []string{"q1 unavailable"}, "failed 1 unavailable"},
		"after it posted": {func(r *remote) func(context.Context, *desk.Task) (desk.Result, error) {
			return func(ctx context.Context, t *desk.Task) (desk.Result, error) {
				defer r.set(errAway)
				return posted(ctx, t)
			}
		}, nil, "answered 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, desk.Options{}, func(w *world) {
				r := newRemote(w)
				w.answer = c.answer(r)
				w.run()
				w.receive(question("q1", "ada", "r"), desk.Accepted)
				w.sleep(10 * time.Second)
				w.equal("told", c.told, w.told)
				r.set(nil)
				w.sleep(10 * time.Minute)
				w.equal("state", c.state, w.state("q1"))
				w.equal("runs", 1, len(w.runs))
				w.equal("told in the end", c.told, w.told)
			})
		})
	}
}

// What waits when the ledger goes away is kept and answered when it is back,
// or told.
func TestLedgerAway_NoneIsLost(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, PerAsker: 10}, func(w *world) {
		r := newRemote(w)
		w.run()
		gate := make(chan struct{})
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			<-gate
			return posted(ctx, t)
		}
		for i := range 5 {
			w.receive(question(fmt.Sprint("q", i), "ada", "r"), desk.Accepted)
		}
		r.set(errAway)
		close(gate)
		w.sleep(10 * time.Second)
		r.set(nil)
		w.sleep(10 * time.Minute)
		w.equal("told", 5, len(w.told))
		for i := range 5 {
			w.equal("state", "failed 1 unavailable", w.state(fmt.Sprint("q", i)))
		}
	})
}

// A server that lost its last writes gets the questions again that a desk
// holds, waiting, running or posted, and each is answered once.
func TestLedgerForgets(t *testing.T) {
	for name, after := range map[string]time.Duration{"found at the next step": time.Second, "found at the next renewal": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, desk.Options{Workers: 2, PerAsker: 10, Deadline: time.Hour}, func(w *world) {
				r := newRemote(w)
				gate := make(chan struct{})
				w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
					if t.Key == "q2" {
						defer func() { <-gate }() // it has posted
						return posted(ctx, t)
					}
					<-gate
					return posted(ctx, t)
				}
				w.run()
				for _, key := range []string{"q1", "q2", "q3"} {
					w.receive(question(key, "ada", "r"+key), desk.Accepted)
					synctest.Wait()
				}
				r.lose("q1", "q2", "q3")
				w.sleep(after)
				close(gate)
				w.sleep(10 * time.Second)
				for _, key := range []string{"q1", "q2", "q3"} {
					w.equal("state", "answered 1", w.state(key))
				}
				w.equal("runs", 3, len(w.runs))
				w.equal("told", []string(nil), w.told)
			})
		})
	}
}

// A question that could not be claimed is ended in the ledger as soon as that
// answers: no replica answers a copy of it.
func TestLedgerAway_CopiesElsewhere(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		r := newRemote(w)
		w.run()
		r.set(errAway)
		w.receive(question("q1", "ada", "r"), desk.Unavailable)
		r.set(nil)
		w.sleep(5 * time.Second)
		w.equal("state", "failed 1 unavailable", w.state("q1"))
		w.equal("runs", 0, len(w.runs))
	})
}

// A ledger that does not answer holds nobody up for longer than the budget.
func TestLedgerAway_Hangs(t *testing.T) {
	inBubble(t, desk.Options{Budget: 1800 * time.Millisecond}, func(w *world) {
		w.claims = hanging{newRemote(w)}
		w.newDesk()
		w.run()
		start := time.Now()
		w.receive(question("q1", "ada", "r"), desk.Unavailable)
		if took := time.Since(start); took > 1800*time.Millisecond {
			w.Errorf("the person is told after %v", took)
		}
	})
}

// hanging takes no claim before its context ends.
type hanging struct{ *remote }

func (hanging) Claim(ctx context.Context, _ ledger.Delivery, _ time.Duration) (ledger.Delivery, bool, error) {
	<-ctx.Done()
	return ledger.Delivery{}, false, errors.Join(retrieval.ErrUnavailable, ctx.Err())
}

// Questions at other replicas count for the limits, and copies are copies
// whatever the limits say.
func TestLimitsOfAllReplicas(t *testing.T) {
	inBubble(t, desk.Options{PerAsker: 3, PerRoom: 5}, func(w *world) {
		r := newRemote(w)
		block := make(chan struct{})
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			<-block
			return posted(ctx, t)
		}
		w.run()
		r.others = 2
		w.receive(question("q1", "ada", "r"), desk.Accepted)
		w.receive(question("q2", "ada", "r"), desk.BusyAsker)
		w.receive(question("q1", "ada", "r"), desk.Duplicate)
		w.receive(question("q3", "bob", "r"), desk.Accepted)
		w.receive(question("q4", "cleo", "r"), desk.Accepted)
		w.receive(question("q5", "dora", "r"), desk.BusyRoom)
		w.receive(question("q6", "dora", "elsewhere"), desk.Accepted)
		close(block)
		w.sleep(time.Second)
		r.others = 0
		w.receive(question("q7", "dora", "r"), desk.Accepted)
		w.sleep(time.Second)
		if n := len(w.runs); n != 5 {
			w.Errorf("%d runs: %s", n, strings.Join(w.runs, " "))
		}
	})
}
