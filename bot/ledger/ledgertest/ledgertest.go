// Package ledgertest is the suite that every ledger must pass, whether it is
// kept in the data directory or shared by replicas, a clock for tests, and the lives
// of processes that end in the middle of a question.
//
// Its one idea: the suite sees a ledger only through its contract and through
// restarts; how leases and texts are kept is the ledger's own affair.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/bot/ledger"
)

// Open opens the ledger that an earlier call with the same place left, with
// default options and the clock. place is an empty directory at first, which
// no other test has.
type Open func(t testing.TB, place string, now func() time.Time) ledger.Store

// Clock is a clock that moves when it is told to.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Lease is the lease of the suite's claims.
const Lease = 2 * time.Minute

// world is one ledger under test.
type world struct {
	testing.TB
	ledger.Store
	clock *Clock
	place string
	open  Open
	ctx   context.Context
}

func newWorld(t testing.TB, open Open) *world {
	w := &world{TB: t, clock: NewClock(), place: t.TempDir(), open: open, ctx: t.Context()}
	w.Store = open(t, w.place, w.clock.Now)
	t.Cleanup(func() { w.Store.Close() })
	return w
}

// restart ends the process and starts it again once its leases ran out.
func (w *world) restart() {
	w.Helper()
	w.must(w.Store.Close())
	w.clock.Advance(Lease + time.Second)
	w.Store = w.open(w, w.place, w.clock.Now)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// question is a delivery of ada's in the room r.
func question(key string, also ...string) ledger.Delivery {
	return ledger.Delivery{Key: key, Also: also, Platform: "slack", Asker: "slack|T1|ada", Room: "slack|T1|r", Payload: []byte("payload of " + key)}
}

// claim claims and says whether it won.
func (w *world) claim(d ledger.Delivery) (ledger.Delivery, bool) {
	w.Helper()
	got, won, err := w.Claim(w.ctx, d, Lease)
	w.must(err)
	return got, won
}

func (w *world) mustClaim(d ledger.Delivery) ledger.Delivery {
	w.Helper()
	got, won := w.claim(d)
	if !won {
		w.Fatalf("%s could not be claimed: it is %s", d.Key, got.State)
	}
	return got
}

func (w *world) mustNotClaim(d ledger.Delivery) ledger.Delivery {
	w.Helper()
	got, won := w.claim(d)
	if won {
		w.Fatalf("%s was claimed twice", d.Key)
	}
	return got
}

func (w *world) move(r ledger.Ref, s ledger.State, reason string) {
	w.Helper()
	w.must(w.Move(w.ctx, r, ledger.Step{State: s, Reason: reason}))
}

func (w *world) resume() []ledger.Delivery {
	w.Helper()
	found, err := w.Resume(w.ctx, Lease)
	w.must(err)
	return found
}

func (w *world) equal(what string, want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*world){
		"claimed once":                     claimedOnce,
		"claimed at once by many":          claimedAtOnce,
		"D4 no question blocks a question": ignoredBlocksNothing,
		"D5 keys are the message's own":    ownKeys,
		"D10 replayed late":                replayedLate,
		"known by a further key":           furtherKeys,
		"seen and ended at the door":       endedAtTheDoor,
		"a question's whole life":          wholeLife,
		"steps that are allowed":           steps,
		"leases":                           leases,
		"given back":                       givenBack,
		"resumed after a restart":          resumed,
		"own entries":                      ownEntries,
		"C8 answers outlive the process":   answers,
		"answers grow old":                 answersGrowOld,
		"feedback":                         feedback,
		"asking for a human":               askingForHuman,
		"gaps and audit":                   gapsAndAudit,
		"what is not taken":                notTaken,
		"values are copied":                copied,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, open))
		})
	}
}

func claimedOnce(w *world) {
	d := question("q1", "event 1")
	got := w.mustClaim(d)
	now := w.clock.Now()
	want := d
	want.State, want.Attempt, want.Received, want.Sent = ledger.Accepted, 1, now, now
	want.Changes = []ledger.Change{{State: ledger.Received, At: now}, {State: ledger.Accepted, At: now}}
	w.equal("claimed", want, got)

	for i := range 3 {
		copied := w.mustNotClaim(question("q1", fmt.Sprint("event ", i+1)))
		if copied.Copies != i+1 || copied.State != ledger.Accepted {
			w.Fatalf("copy %d finds %d copies of a delivery that is %s", i+1, copied.Copies, copied.State)
		}
	}
	w.restart()
	got = w.mustNotClaim(question("q1"))
	if got.Copies != 4 {
		w.Fatalf("after a restart there are %d copies, want 4", got.Copies)
	}
	w.equal("further keys", []string{"event 1", "event 2", "event 3"}, got.Also)
}

// Of any number of claims at once one wins, and what the others find is it.
func claimedAtOnce(w *world) {
	const questions, copies = 20, 8
	var mu sync.Mutex
	won := map[string]int{}
	var wg sync.WaitGroup
	for q := range questions {
		for c := range copies {
			wg.Go(func() {
				d := question(fmt.Sprint("q", q), fmt.Sprint("e", q, ".", c))
				got, first, err := w.Claim(w.ctx, d, Lease)
				if err != nil || got.Key != d.Key {
					w.Errorf("%s: %v, found %q", d.Key, err, got.Key)
				}
				if first {
					mu.Lock()
					won[d.Key]++
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for key, n := range won {
		if n != 1 {
			w.Errorf("%s was claimed %d times", key, n)
		}
	}
	if len(won) != questions {
		w.Errorf("%d of %d questions were claimed", len(won), questions)
	}
}

func ignoredBlocksNothing(w *world) {
	for i := range 50 {
		copies := []ledger.Delivery{question(fmt.Sprint("q", i), fmt.Sprint("message", i)), question(fmt.Sprint("q", i), fmt.Sprint("mention", i))}
		copies[0].State, copies[0].Reason = ledger.Ignored, "no_mention"
		if rand.IntN(2) == 1 {
			slices.Reverse(copies)
		}
		for _, d := range copies {
			_, won := w.claim(d)
			if d.State != ledger.Ignored && !won {
				w.Fatalf("trial %d: the mention was dropped", i)
			}
		}
		w.mustNotClaim(question(fmt.Sprint("q", i)))
	}
	n, err := w.Counts(w.ctx)
	w.must(err)
	w.equal("counts", map[ledger.State]int{ledger.Accepted: 50}, n)
}

func ownKeys(w *world) {
	for _, key := range []string{"slack|T1|C1|17.01|answer", "slack|T1|C1|17.02|answer", "slack|T1|C2|17.01|answer", "slack|T2|C1|17.01|answer", "slack|T1|C1|17.01|share"} {
		w.mustClaim(question(key))
	}
}

func replayedLate(w *world) {
	d := w.mustClaim(question("q", "event"))
	w.move(d.Ref(), ledger.Answering, "")
	w.move(d.Ref(), ledger.Answered, "")
	for _, wait := range []time.Duration{30 * time.Minute, 24 * time.Hour, 5*24*time.Hour + 23*time.Hour} {
		w.clock.Advance(wait)
		w.restart()
		w.mustNotClaim(question("q"))
		w.mustNotClaim(question("other", "event"))
		if found := w.resume(); len(found) > 0 {
			w.Fatalf("an answered question was resumed: %v", found)
		}
	}
	w.clock.Advance(2 * time.Hour)
	w.mustClaim(question("q")) // past seven days it is forgotten
}

func furtherKeys(w *world) {
	w.mustClaim(question("q1", "event 1", "envelope 1"))
	for _, d := range []ledger.Delivery{question("q2", "event 1"), question("q3", "e", "envelope 1"), question("event 1"), question("q4", "q1")} {
		if got := w.mustNotClaim(d); got.Key != "q1" {
			w.Errorf("%s is taken for %s", d.Key, got.Key)
		}
	}
	w.mustClaim(question("q5", "event 5"))
	got, err := w.Delivery(w.ctx, "envelope 1")
	w.must(err)
	if got.Key != "q1" {
		w.Errorf("the further key leads to %q", got.Key)
	}
}

func endedAtTheDoor(w *world) {
	d := question("q")
	d.State, d.Reason, d.Payload = ledger.Failed, "busy_asker", nil
	w.mustClaim(d)
	w.mustNotClaim(question("q"))
	w.restart()
	if found := w.resume(); len(found) > 0 {
		w.Fatalf("resumed: %v", found)
	}
	got := w.mustNotClaim(question("q"))
	if got.State != ledger.Failed || got.Reason != "busy_asker" {
		w.Errorf("it is %s, %q", got.State, got.Reason)
	}
}

func wholeLife(w *world) {
	d := w.mustClaim(question("q"))
	for i, s := range []ledger.Step{{State: ledger.Answering}, {State: ledger.Answering, Posted: []byte("placeholder")}, {State: ledger.Posting}, {State: ledger.Refused, Reason: "no_match"}} {
		w.clock.Advance(time.Duration(i) * time.Second)
		w.must(w.Move(w.ctx, d.Ref(), s))
	}
	w.restart()
	got, err := w.Delivery(w.ctx, "q")
	w.must(err)
	at := d.Received
	want := question("q")
	want.Payload, want.Posted = nil, []byte("placeholder")
	want.State, want.Reason, want.Attempt, want.Received, want.Sent = ledger.Refused, "no_match", 1, at, at
	want.Changes = []ledger.Change{
		{State: ledger.Received, At: at}, {State: ledger.Accepted, At: at}, {State: ledger.Answering, At: at},
		{State: ledger.Posting, At: at.Add(3 * time.Second)}, {State: ledger.Refused, At: at.Add(6 * time.Second), Reason: "no_match"},
	}
	w.equal("the delivery", want, got)
	if _, err := w.Delivery(w.ctx, "nothing"); !errors.Is(err, ledger.ErrNotFound) {
		w.Errorf("an unknown key gives %v", err)
	}
}

func steps(w *world) {
	all := []ledger.State{ledger.Received, ledger.Accepted, ledger.Answering, ledger.Posting, ledger.Answered, ledger.Refused, ledger.Failed, ledger.Ignored, "else"}
	paths := map[ledger.State][]ledger.State{
		ledger.Accepted: nil, ledger.Answering: {ledger.Answering}, ledger.Posting: {ledger.Answering, ledger.Posting},
	}
	allowed := map[ledger.State]string{
		ledger.Accepted:  "answering refused failed ignored",
		ledger.Answering: "accepted answering posting answered refused failed ignored",
		ledger.Posting:   "posting answered refused failed",
	}
	for _, from := range slices.Sorted(maps.Keys(paths)) {
		var got []string
		for _, to := range all {
			d := w.mustClaim(question(fmt.Sprint(from, to)))
			for _, s := range paths[from] {
				w.move(d.Ref(), s, "")
			}
			if err := w.Move(w.ctx, d.Ref(), ledger.Step{State: to}); err == nil {
				got = append(got, string(to))
				if to.Ended() {
					if err := w.Move(w.ctx, d.Ref(), ledger.Step{State: ledger.Failed}); !errors.Is(err, ledger.ErrLost) {
						w.Errorf("a step after %s gives %v", to, err)
					}
				}
			} else if errors.Is(err, ledger.ErrLost) {
				w.Errorf("%s to %s: %v", from, to, err)
			}
		}
		if s := fmt.Sprint(got); s != "["+allowed[from]+"]" {
			w.Errorf("from %s: %s, want %s", from, s, allowed[from])
		}
	}
}

func leases(w *world) {
	a, b := w.mustClaim(question("a")), w.mustClaim(question("b"))
	w.clock.Advance(Lease - time.Second)
	lost, err := w.Renew(w.ctx, Lease, a.Ref())
	w.must(err)
	w.equal("lost", []ledger.Ref(nil), lost)
	w.clock.Advance(2 * time.Second)
	found := w.resume()
	if len(found) != 1 || found[0].Key != "b" || found[0].Attempt != 2 || string(found[0].Payload) != "payload of b" {
		w.Fatalf("resumed: %+v, want b with its payload for the second time", found)
	}
	if again := w.resume(); len(again) > 0 {
		w.Fatalf("resumed twice: %v", again)
	}
	for _, s := range []ledger.State{ledger.Answering, ledger.Posting, ledger.Answered} {
		if err := w.Move(w.ctx, b.Ref(), ledger.Step{State: s}); !errors.Is(err, ledger.ErrLost) {
			w.Errorf("the former holder's step to %s gives %v", s, err)
		}
		w.move(found[0].Ref(), s, "")
	}
	lost, err = w.Renew(w.ctx, Lease, a.Ref(), b.Ref(), found[0].Ref(), ledger.Ref{Key: "unknown", Attempt: 1})
	w.must(err)
	w.equal("lost", []ledger.Ref{b.Ref(), found[0].Ref(), {Key: "unknown", Attempt: 1}}, lost)
	if err := w.Move(w.ctx, ledger.Ref{Key: "unknown", Attempt: 1}, ledger.Step{State: ledger.Failed}); !errors.Is(err, ledger.ErrLost) {
		w.Errorf("a step of an unknown delivery gives %v", err)
	}
	// A lease that ran out and was not taken over is still the holder's.
	w.clock.Advance(Lease + time.Second)
	lost, err = w.Renew(w.ctx, Lease, a.Ref())
	w.must(err)
	if found := w.resume(); len(lost) > 0 || len(found) > 0 {
		w.Errorf("lost %v, resumed %v", lost, found)
	}
}

func givenBack(w *world) {
	d := w.mustClaim(question("q"))
	w.move(d.Ref(), ledger.Answering, "")
	w.move(d.Ref(), ledger.Accepted, "restarting")
	_, err := w.Renew(w.ctx, 0, d.Ref())
	w.must(err)
	found := w.resume()
	if len(found) != 1 || found[0].State != ledger.Accepted || found[0].Attempt != 2 {
		w.Fatalf("resumed: %+v", found)
	}
}

func resumed(w *world) {
	for i, to := range []ledger.State{ledger.Accepted, ledger.Answering, ledger.Posting, ledger.Answered} {
		d := w.mustClaim(question(string(to)))
		w.clock.Advance(time.Second)
		for _, s := range []ledger.State{ledger.Answering, ledger.Posting, ledger.Answered}[:i] {
			w.move(d.Ref(), s, "")
		}
	}
	for attempt := 2; attempt < 5; attempt++ {
		w.restart()
		var got []string
		for _, d := range w.resume() {
			got = append(got, fmt.Sprint(d.State, " ", d.Attempt, " ", string(d.Payload)))
		}
		var want []string
		for _, s := range []string{"accepted", "answering", "posting"} {
			want = append(want, fmt.Sprintf("%s %d payload of %s", s, attempt, s))
		}
		w.equal("resumed", want, got)
	}
}

func ownEntries(w *world) {
	for i := range 4 {
		w.mustClaim(question(fmt.Sprint("ada", i)))
		w.clock.Advance(time.Second)
		bob := question(fmt.Sprint("bob", i))
		bob.Asker = "slack|T1|bob"
		w.mustClaim(bob)
		w.clock.Advance(time.Second)
	}
	ended, err := w.Delivery(w.ctx, "ada1")
	w.must(err)
	w.move(ended.Ref(), ledger.Failed, "timed_out")
	keys := func(ds []ledger.Delivery, err error) (out []string) {
		w.must(err)
		for _, d := range ds {
			if d.Payload != nil {
				w.Errorf("the list holds the payload of %s", d.Key)
			}
			out = append(out, d.Key)
		}
		return out
	}
	w.equal("ada's", []string{"ada3", "ada2", "ada1"}, keys(w.Of(w.ctx, "slack|T1|ada", 3)))
	w.equal("the latest of all", 8, len(keys(w.Latest(w.ctx, 100))))
	w.equal("the latest", keys(w.Latest(w.ctx, 100))[:2], keys(w.Latest(w.ctx, 2)))
	w.equal("nobody's", []string(nil), keys(w.Of(w.ctx, "slack|T1|eve", 3)))
	w.equal("pending", []string{"ada0", "bob0", "bob1"}, keys(w.Pending(w.ctx, 3)))
	n, err := w.Counts(w.ctx)
	w.must(err)
	w.equal("counts", map[ledger.State]int{ledger.Accepted: 7, ledger.Failed: 1}, n)
}

func anAnswer(id string) ledger.Answer {
	return ledger.Answer{
		ID: id, Delivery: "q", Asker: "slack|T1|ada", Room: "slack|T1|r", Question: "How long is it?",
		Sources: []ledger.Source{{N: 1, Document: "d1", Revision: "r1", From: 3, To: 9}, {N: 2, Document: "d2", Revision: "r2", From: 0, To: 4}},
	}
}

func answers(w *world) {
	a := anAnswer(ledger.NewID())
	w.must(w.PutAnswer(w.ctx, a))
	a.At = w.clock.Now()
	w.must(w.Posted(w.ctx, a.ID, []byte("C1 17.03")))
	a.Message = []byte("C1 17.03")
	for range 2 {
		got, err := w.Answer(w.ctx, a.ID)
		w.must(err)
		w.equal("the answer", a, got)
		w.restart()
	}
	later := anAnswer(ledger.NewID())
	later.Question, later.Refused = "And now?", true
	w.must(w.PutAnswer(w.ctx, later))
	w.restart()
	got, err := w.AnswerTo(w.ctx, "q")
	w.must(err)
	if got.ID != later.ID || got.Question != "And now?" || !got.Refused {
		w.Errorf("the latest answer to q is %+v", got)
	}
	if s, ok := got.Source(2); !ok || s.Document != "d2" {
		w.Errorf("source 2 is %+v", s)
	}
	if _, ok := got.Source(3); ok {
		w.Error("there is a source 3")
	}
	for _, err := range []error{
		second(w.Answer(w.ctx, "unknown")), second(w.AnswerTo(w.ctx, "unknown")), w.Posted(w.ctx, "unknown", nil),
		w.Rate(w.ctx, ledger.Feedback{Answer: "unknown", User: "u"}), second(w.AskHuman(w.ctx, "unknown", "u")),
	} {
		if !errors.Is(err, ledger.ErrNotFound) {
			w.Errorf("an unknown answer gives %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func answersGrowOld(w *world) {
	w.must(w.PutAnswer(w.ctx, anAnswer("a")))
	w.clock.Advance(7*24*time.Hour + time.Hour)
	for range 2 {
		got, err := w.Answer(w.ctx, "a")
		w.must(err)
		if got.Question != "" || len(got.Sources) != 2 {
			w.Fatalf("after a week the answer is %+v", got)
		}
		w.restart()
	}
	w.clock.Advance(23 * 24 * time.Hour)
	for range 2 {
		if _, err := w.Answer(w.ctx, "a"); !errors.Is(err, ledger.ErrNotFound) {
			w.Fatalf("after a month: %v", err)
		}
		w.restart()
	}
}

func feedback(w *world) {
	w.must(w.PutAnswer(w.ctx, anAnswer("a")))
	for _, f := range []ledger.Feedback{
		{Answer: "a", User: "ada", Helpful: true}, {Answer: "a", User: "bob", Helpful: true}, {Answer: "a", User: "ada", Reason: "wrong_document"},
	} {
		w.clock.Advance(time.Second)
		w.must(w.Rate(w.ctx, f))
	}
	at := w.clock.Now()
	w.restart()
	for _, id := range []string{"a", ""} {
		got, err := w.Feedback(w.ctx, id)
		w.must(err)
		w.equal("feedback", []ledger.Feedback{
			{Answer: "a", User: "bob", Helpful: true, At: at.Add(-time.Second)}, {Answer: "a", User: "ada", Reason: "wrong_document", At: at},
		}, got)
	}
	got, err := w.Feedback(w.ctx, "other")
	w.must(err)
	w.equal("feedback of another", []ledger.Feedback(nil), got)
}

func askingForHuman(w *world) {
	w.must(w.PutAnswer(w.ctx, anAnswer("a")))
	at := w.clock.Now()
	for i, want := range []bool{true, false, false} {
		if i == 2 {
			w.restart()
		}
		fresh, err := w.AskHuman(w.ctx, "a", "ada")
		w.must(err)
		if fresh != want {
			w.Errorf("tap %d is new: %t", i+1, fresh)
		}
	}
	got, err := w.HelpRequests(w.ctx)
	w.must(err)
	w.equal("requests", []ledger.HelpRequest{{Answer: "a", User: "ada", At: at}}, got)
}

func gapsAndAudit(w *world) {
	at := w.clock.Now()
	w.must(w.NoteGap(w.ctx, "a", "What nobody wrote down?"))
	w.must(w.NoteAudit(w.ctx, ledger.Audit{Actor: "ada", Action: "open_source", Subject: "a/1", Result: "shown"}))
	w.must(w.NoteAudit(w.ctx, ledger.Audit{Actor: "eve", Action: "open_source", Subject: "a/1", Result: "denied"}))
	w.restart()
	gaps, err := w.Gaps(w.ctx)
	w.must(err)
	w.equal("gaps", []ledger.Gap{{ID: "a", At: at}}, gaps)
	audits, err := w.Audits(w.ctx, 1)
	w.must(err)
	w.equal("audit", []ledger.Audit{{At: at, Actor: "eve", Action: "open_source", Subject: "a/1", Result: "denied"}}, audits)
	w.clock.Advance(8 * 24 * time.Hour)
	gaps, err = w.Gaps(w.ctx)
	w.must(err)
	audits, err = w.Audits(w.ctx, 9)
	w.must(err)
	if len(gaps)+len(audits) > 0 {
		w.Errorf("after a week there are %v and %v", gaps, audits)
	}
}

func notTaken(w *world) {
	with := func(change func(*ledger.Delivery)) ledger.Delivery {
		d := question("bad")
		change(&d)
		return d
	}
	for name, d := range map[string]ledger.Delivery{
		"no key":            with(func(d *ledger.Delivery) { d.Key = "" }),
		"no platform":       with(func(d *ledger.Delivery) { d.Platform = "" }),
		"no asker":          with(func(d *ledger.Delivery) { d.Asker = "" }),
		"empty further key": with(func(d *ledger.Delivery) { d.Also = []string{""} }),
		"long key":          with(func(d *ledger.Delivery) { d.Key = string(make([]byte, 600)) }),
		"line break in key": with(func(d *ledger.Delivery) { d.Key = "a\nb" }),
		"no UTF-8":          with(func(d *ledger.Delivery) { d.Room = "\xff" }),
		"long payload":      with(func(d *ledger.Delivery) { d.Payload = make([]byte, 1<<20) }),
		"many further keys": with(func(d *ledger.Delivery) { d.Also = make([]string, 17) }),
		"begins answering":  with(func(d *ledger.Delivery) { d.State = ledger.Answering }),
		"text as a reason":  with(func(d *ledger.Delivery) { d.State, d.Reason = ledger.Failed, "How long is it?" }),
	} {
		if _, won, err := w.Claim(w.ctx, d, Lease); err == nil || won {
			w.Errorf("%s: won %t, %v", name, won, err)
		}
	}
	d := w.mustClaim(question("q"))
	w.must(w.PutAnswer(w.ctx, anAnswer("a")))
	for name, err := range map[string]error{
		"a reason of a step":     w.Move(w.ctx, d.Ref(), ledger.Step{State: ledger.Failed, Reason: "some text"}),
		"a reason of feedback":   w.Rate(w.ctx, ledger.Feedback{Answer: "a", User: "u", Reason: "it is wrong"}),
		"feedback of nobody":     w.Rate(w.ctx, ledger.Feedback{Answer: "a"}),
		"an answer without id":   w.PutAnswer(w.ctx, ledger.Answer{Asker: "u"}),
		"an answer of nobody":    w.PutAnswer(w.ctx, ledger.Answer{ID: "x"}),
		"a very long question":   w.PutAnswer(w.ctx, ledger.Answer{ID: "x", Asker: "u", Question: string(make([]byte, 1<<20))}),
		"a gap without id":       w.NoteGap(w.ctx, "", ""),
		"text as an action":      w.NoteAudit(w.ctx, ledger.Audit{Actor: "a", Action: "opened it", Subject: "s"}),
		"an action of nobody":    w.NoteAudit(w.ctx, ledger.Audit{Action: "open", Subject: "s"}),
		"a very long reference":  w.Posted(w.ctx, "a", make([]byte, 1<<20)),
		"asking without a name":  second(w.AskHuman(w.ctx, "a", "")),
		"a long reference moved": w.Move(w.ctx, d.Ref(), ledger.Step{State: ledger.Answering, Posted: make([]byte, 1<<20)}),
	} {
		if err == nil {
			w.Errorf("%s was taken", name)
		}
	}
	if got, err := w.Delivery(w.ctx, "q"); err != nil || got.State != ledger.Accepted {
		w.Errorf("the delivery is %s, %v", got.State, err)
	}
}

func copied(w *world) {
	d := question("q", "event")
	d.Posted = []byte("ref")
	got := w.mustClaim(d)
	d.Also[0], d.Payload[0], d.Posted[0] = "x", 'x', 'x'
	got.Also[0], got.Payload[0], got.Posted[0], got.Changes[0].Reason = "x", 'x', 'x', "x"
	a := anAnswer("a")
	a.Message = []byte("ref")
	w.must(w.PutAnswer(w.ctx, a))
	a.Sources[0].N, a.Message[0] = 9, 'x'
	back, err := w.Delivery(w.ctx, "q")
	w.must(err)
	if back.Also[0] != "event" || string(back.Payload) != "payload of q" || string(back.Posted) != "ref" || back.Changes[0].Reason != "" {
		w.Errorf("a caller's slice reaches into the ledger: %+v", back)
	}
	answer, err := w.Answer(w.ctx, "a")
	w.must(err)
	if answer.Sources[0].N != 1 || string(answer.Message) != "ref" {
		w.Errorf("a caller's slice reaches into the ledger: %+v", answer)
	}
}
