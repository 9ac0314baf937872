package desk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/retrieval"
)

// A process that was stopped in the middle of a question, just before it posts,
// and goes on later: it posts only what is still its own, and tells nobody of a
// question that another has answered.
func TestHeld(t *testing.T) {
	const lease = 2 * time.Minute
	answered := func(w *world) {
		list, err := w.ledger.Resume(t.Context(), lease)
		w.must(err)
		for _, d := range list {
			w.must(w.ledger.Move(t.Context(), d.Ref(), ledger.Step{State: ledger.Posting}))
			w.must(w.ledger.Move(t.Context(), d.Ref(), ledger.Step{State: ledger.Answered}))
		}
	}
	cases := map[string]struct {
		stopped   time.Duration
		meanwhile func(w *world)
		away      bool // the ledger, when it goes on
		held      error
		state     string
		told      []string // if it cannot post for another reason
	}{
		"for a moment":                       {time.Second, nil, false, nil, "answered 1", []string{"q1 error"}},
		"within its lease, the ledger away":  {lease - time.Second, nil, true, nil, "answered 1", []string{"q1 error"}},
		"beyond its lease, and nobody came":  {lease + time.Second, nil, false, nil, "answered 1", []string{"q1 error"}},
		"beyond its lease, another answered": {lease + time.Second, answered, false, ledger.ErrLost, "answered 2", nil},
		"beyond its lease, the ledger away":  {lease + time.Second, nil, true, retrieval.ErrUnavailable, "answered 2", nil},
	}
	for name, c := range cases {
		for _, fails := range []bool{false, true} {
			test := name
			if fails {
				test += ", and posting fails"
			}
			t.Run(test, func(t *testing.T) {
				inBubble(t, desk.Options{Lease: lease, Deadline: time.Hour}, func(w *world) {
					r := newRemote(w)
					goesOn := make(chan struct{})
					first := true
					w.answer = func(ctx context.Context, task *desk.Task) (desk.Result, error) {
						if !first {
							return posted(ctx, task)
						}
						first = false
						if err := task.Posting(ctx, nil); err != nil {
							return desk.Result{}, err
						}
						<-goesOn
						if err := desk.Held(ctx); !errors.Is(err, c.held) {
							w.Errorf("held: %v, want %v", err, c.held)
						}
						if fails {
							return desk.Result{}, errors.New("no")
						}
						return desk.Result{State: ledger.Answered}, desk.Held(ctx)
					}
					w.run()
					w.receive(question("q1", "ada", "r"), desk.Accepted)
					synctest.Wait()
					r.set(errAway) // stopped, it does not tend its lease
					time.Sleep(c.stopped)
					if c.meanwhile != nil {
						c.meanwhile(w)
					}
					if !c.away {
						r.set(nil)
					}
					close(goesOn)
					synctest.Wait()
					told := []string(nil)
					if fails {
						told = c.told
					}
					w.equal("told", told, w.told)
					r.set(nil)
					w.sleep(10 * time.Minute)
					state := c.state
					if fails && c.told != nil {
						state = "failed 1 error"
					}
					w.equal("the question", state, w.state("q1"))
					w.equal("told in all", told, w.told)
				})
			})
		}
	}
	if err := desk.Held(t.Context()); err != nil {
		t.Errorf("outside of a run: %v", err)
	}
}

// When a ledger answers again that was away, what nobody holds is left alone until
// those who told people of it have noted that.
func TestLedgerAway_OthersNoteTheirEndsFirst(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		r := newRemote(w)
		w.run()
		synctest.Wait()
		d, _, err := w.ledger.Claim(t.Context(), question("q1", "ada", "r"), time.Second)
		w.must(err)
		r.set(errAway)
		w.sleep(5 * time.Minute)
		r.set(nil)
		for w.state("q1") == "accepted 1" && r.reached() == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second) // another notes that it told the person
		w.must(w.ledger.Move(t.Context(), d.Ref(), ledger.Step{State: ledger.Failed, Reason: "unavailable"}))
		w.sleep(time.Minute)
		w.equal("runs", []string(nil), w.runs)
	})
}
