package desk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// canary is the text of every question here. It must appear in no log.
const canary = "canary-how-long-is-the-notice-period"

// world is a desk over a ledger of its own, in one bubble of time.
type world struct {
	*testing.T
	dir    string
	ledger *ledger.Ledger
	claims ledger.Claims // what the desk gets; nil: ledger
	desk   *desk.Desk
	face   *face
	o      desk.Options
	stop   context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	logs   bytes.Buffer
	runs   []string // keys, in the order in which they ran
	told   []string // "key cause"
	tells  []desk.Trouble
	answer func(ctx context.Context, t *desk.Task) (desk.Result, error)
	onTold func(ctx context.Context)
}

// inBubble runs a test in a bubble of time, with a world that is not running
// yet.
func inBubble(t *testing.T, o desk.Options, test func(w *world)) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, dir: dir, o: o}
		w.answer = posted
		w.openLedger()
		w.newDesk()
		test(w)
		w.end()
		time.Sleep(3 * time.Hour) // whatever was left alone ends
		w.must(w.ledger.Close())
		if s := w.logged(); strings.Contains(s, canary) {
			t.Errorf("a log holds the text of a question:\n%s", s)
		}
	})
}

// posted is a handler's usual course.
func posted(ctx context.Context, t *desk.Task) (desk.Result, error) {
	if err := t.Posting(ctx, []byte("message")); err != nil {
		return desk.Result{}, err
	}
	return desk.Result{State: ledger.Answered}, nil
}

func (w *world) openLedger() {
	var err error
	w.ledger, err = ledger.Open(w.dir, ledger.Options{})
	w.must(err)
}

func (w *world) newDesk() {
	w.o.Ledger = w.ledger
	if w.claims != nil {
		w.o.Ledger = w.claims
	}
	w.o.Log = slog.New(slog.NewTextHandler(lockedWriter{w}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	w.desk, err = desk.New(w.o)
	w.must(err)
	w.face = &face{world: w}
	w.desk.Handle("slack", w.face)
	w.stop, w.ended = nil, nil
}

type lockedWriter struct{ w *world }

func (l lockedWriter) Write(b []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.logs.Write(b)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs.String()
}

// face is the handler of one process.
type face struct {
	*world
	dead bool
}

func (w *face) Answer(ctx context.Context, t *desk.Task) (desk.Result, error) {
	w.mu.Lock()
	w.runs = append(w.runs, t.Key)
	answer := w.answer
	w.mu.Unlock()
	if string(t.Payload) != canary {
		w.Errorf("%s has the payload %q", t.Key, t.Payload)
	}
	return answer(ctx, t)
}

func (w *face) Interrupted(ctx context.Context, d ledger.Delivery, trouble desk.Trouble) {
	w.mu.Lock()
	if w.dead {
		w.mu.Unlock()
		return
	}
	w.told = append(w.told, d.Key+" "+string(trouble.Cause))
	w.tells = append(w.tells, trouble)
	w.mu.Unlock()
	if w.onTold != nil {
		w.onTold(ctx)
	}
}

// run lets the desk run until end.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.Context())
	d, ended := w.desk, make(chan error, 1)
	w.stop, w.ended = cancel, ended
	go func() { ended <- d.Run(ctx) }()
	synctest.Wait()
}

func (w *world) end() {
	w.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	w.must(<-w.ended)
	w.stop = nil
}

// crash is a kill -9: the ledger is as it is, the desk is never heard of
// again. What its runs still do fails, since the ledger is closed.
func (w *world) crash() {
	w.must(w.ledger.Close())
	w.mu.Lock()
	w.face.dead = true
	w.mu.Unlock()
	w.stop()
	w.openLedger()
	w.newDesk()
}

// sleep lets time pass, and everything happen that is due.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func question(key, asker, room string) ledger.Delivery {
	return ledger.Delivery{Key: key, Platform: "slack", Asker: asker, Room: room, Payload: []byte(canary)}
}

// receive hands in a question and wants a verdict.
func (w *world) receive(d ledger.Delivery, want desk.Verdict) {
	w.Helper()
	got, err := w.desk.Receive(w.Context(), d)
	w.must(err)
	if got != want {
		w.Fatalf("%s is %s, want %s", d.Key, got, want)
	}
}

// state is what the ledger has of a delivery: "answered 1 reason".
func (w *world) state(key string) string {
	w.Helper()
	d, err := w.ledger.Delivery(w.Context(), key)
	w.must(err)
	return strings.TrimSpace(fmt.Sprint(d.State, " ", d.Attempt, " ", d.Reason))
}

func (w *world) equal(what string, want, got any) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wait blocks until ctx is done or the channel is closed.
func wait(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestQuestionIsAnsweredOnce(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		w.receive(question("q1", "ada", "r"), desk.Accepted) // before Run
		w.run()
		w.receive(question("q2", "ada", "r"), desk.Accepted)
		synctest.Wait()
		for range 3 {
			w.receive(question("q1", "ada", "r"), desk.Duplicate)
		}
		w.sleep(time.Hour) // far more than a lease
		w.equal("runs", []string{"q1", "q2"}, w.runs)
		w.equal("told", []string(nil), w.told)
		w.equal("state", "answered 1", w.state("q1"))
		d, err := w.ledger.Delivery(w.Context(), "q1")
		w.must(err)
		w.equal("reference", "message", string(d.Posted))
	})
}

func TestCopiesThatRaceRunOnce(t *testing.T) {
	inBubble(t, desk.Options{PerAsker: 100, PerRoom: 100}, func(w *world) {
		w.run()
		const questions, copies = 20, 10
		verdicts := make(chan desk.Verdict, questions*copies)
		for i := range questions * copies {
			go func() {
				d := question(fmt.Sprint("q", i%questions), "ada", "r")
				d.Also = []string{fmt.Sprint("event", i)}
				v, err := w.desk.Receive(w.Context(), d)
				if err != nil {
					w.Error(err)
				}
				verdicts <- v
			}()
		}
		n := map[desk.Verdict]int{}
		for range questions * copies {
			n[<-verdicts]++
		}
		synctest.Wait()
		w.equal("verdicts", map[desk.Verdict]int{desk.Accepted: questions, desk.Duplicate: questions * (copies - 1)}, n)
		slices.Sort(w.runs)
		if len(w.runs) != questions || len(slices.Compact(w.runs)) != questions {
			w.Errorf("runs: %v", w.runs)
		}
		in := w.desk.Health().Platforms["slack"]
		w.equal("health", []int{200, 180, 0, 0}, []int{in.Received, in.Duplicates, in.Shed, in.Errors})
	})
}

// L7: with a full queue the person is told, and nothing is lost.
func TestCase_L7_FullQueueIsTold(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, PerAsker: 100, PerRoom: 64}, func(w *world) {
		gate := make(chan struct{})
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			if err := wait(ctx, gate); err != nil {
				return desk.Result{}, err
			}
			return posted(ctx, t)
		}
		w.run()
		for i := range 64 {
			w.receive(question(fmt.Sprint("q", i), "ada", "r"), desk.Accepted)
		}
		w.receive(question("one too many", "ada", "r"), desk.BusyRoom)
		w.receive(question("one too many", "ada", "r"), desk.Duplicate) // told once
		w.receive(question("q0", "ada", "r"), desk.Duplicate)
		w.receive(question("elsewhere", "ada", "r2"), desk.Accepted)
		h := w.desk.Health()
		w.equal("waiting, running, shed", []int{64, 1, 1}, []int{h.Waiting, h.Running, h.Platforms["slack"].Shed})
		close(gate)
		synctest.Wait()
		w.equal("runs", 65, len(w.runs))
		w.equal("the shed one", "failed 1 busy_room", w.state("one too many"))
		w.receive(question("one too many, again", "ada", "r"), desk.Accepted)
	})
}

func TestBoundsPerAskerAndInAll(t *testing.T) {
	inBubble(t, desk.Options{PerAsker: 2, PerRoom: 3, Queue: 4}, func(w *world) {
		for _, c := range []struct {
			asker, room string
			want        desk.Verdict
		}{
			{"ada", "r1", desk.Accepted}, {"ada", "r2", desk.Accepted}, {"ada", "r3", desk.BusyAsker},
			{"bob", "r1", desk.Accepted}, {"eve", "r1", desk.Accepted}, {"dan", "r1", desk.BusyRoom},
			{"dan", "r4", desk.Busy},
		} {
			w.receive(question(c.asker+c.room, c.asker, c.room), c.want)
			if told := c.want.Text() != ""; told != (c.want != desk.Accepted) {
				w.Errorf("%s is told %q", c.want, c.want.Text())
			}
		}
		w.run()
		for _, key := range []string{"adar1", "adar2", "bobr1", "ever1"} {
			w.equal(key, "answered 1", w.state(key))
		}
		w.receive(question("again", "ada", "r3"), desk.Accepted) // all seats are free again
	})
}

func TestBusyRoomStarvesNoOther(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, PerAsker: 100, PerRoom: 100}, func(w *world) {
		for i := range 50 {
			w.receive(question(fmt.Sprint("busy", i), "ada", "busy"), desk.Accepted)
		}
		for i := range 2 {
			w.receive(question(fmt.Sprint("quiet", i), "bob", "quiet"), desk.Accepted)
		}
		w.run()
		w.equal("first runs", []string{"busy0", "quiet0", "busy1", "quiet1", "busy2", "busy3"}, w.runs[:6])
	})
}

func TestPanicIsToldAndLoggedOnce(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		w.answer = func(_ context.Context, t *desk.Task) (desk.Result, error) {
			switch t.Key {
			case "text":
				panic("while answering " + string(t.Payload))
			case "error":
				panic(fmt.Errorf("while answering %s", t.Payload))
			case "nil":
				var p *desk.Task
				p.Key = "x"
			}
			return desk.Result{State: ledger.Answered}, nil
		}
		w.run()
		for _, key := range []string{"text", "error", "nil", "fine"} {
			w.receive(question(key, "ada", "r"), desk.Accepted)
			synctest.Wait()
		}
		w.equal("told", []string{"text panic", "error panic", "nil panic"}, w.told)
		w.equal("state", "failed 1 panic", w.state("nil"))
		w.equal("state", "answered 1", w.state("fine"))
		w.equal("panics", 3, w.desk.Health().Panics)
		for _, trouble := range w.tells {
			if n := strings.Count(w.logged(), trouble.Reference); len(trouble.Reference) < 8 || n != 1 {
				w.Errorf("the reference %q is logged %d times", trouble.Reference, n)
			}
			if !strings.Contains(trouble.Text(), trouble.Reference) {
				w.Errorf("the person is told %q", trouble.Text())
			}
		}
		if !strings.Contains(w.logged(), "nil pointer") || !strings.Contains(w.logged(), "desk_test.go") {
			w.Errorf("the log says neither what nor where:\n%s", w.logged())
		}
	})
}

func TestFailuresAreTold(t *testing.T) {
	inBubble(t, desk.Options{PerAsker: 10}, func(w *world) {
		w.answer = func(_ context.Context, t *desk.Task) (desk.Result, error) {
			switch t.Key {
			case "user error":
				return desk.Result{}, fmt.Errorf("handling: %w", &bot.UserError{Text: "The documents are changing."})
			case "internal":
				return desk.Result{}, errors.New("boom")
			case "no end":
				return desk.Result{State: ledger.Posting}, nil
			case "own account":
				return desk.Result{State: ledger.Failed, Reason: "not_in_channel"}, nil
			}
			return desk.Result{State: ledger.Refused, Reason: "no_match"}, nil
		}
		w.run()
		for _, key := range []string{"user error", "internal", "no end", "own account", "refusal"} {
			w.receive(question(key, "ada", "r"), desk.Accepted)
			synctest.Wait()
		}
		w.equal("told", []string{"user error error", "internal error", "no end error"}, w.told)
		w.equal("words", "The documents are changing.", w.tells[0].Text())
		w.equal("state", "refused 1 no_match", w.state("refusal"))
		w.equal("state", "failed 1 not_in_channel", w.state("own account"))
		w.equal("state", "failed 1 error", w.state("internal"))
		if n := strings.Count(w.logged(), "boom"); n != 1 || !strings.Contains(w.logged(), w.tells[1].Reference) {
			w.Errorf("the error is logged %d times", n)
		}
	})
}

func TestDeadlineIsNeverSilent(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, Deadline: time.Minute}, func(w *world) {
		late := make(chan error, 1)
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			switch t.Key {
			case "heeds":
				<-ctx.Done()
				return desk.Result{}, ctx.Err()
			case "heeds nothing":
				time.Sleep(time.Hour)
				late <- t.Posting(context.WithoutCancel(ctx), nil)
			}
			return posted(ctx, t)
		}
		w.run()
		w.receive(question("heeds", "ada", "r"), desk.Accepted)
		w.receive(question("heeds nothing", "ada", "r"), desk.Accepted)
		w.receive(question("behind", "ada", "r"), desk.Accepted)
		w.sleep(time.Minute + time.Second)
		w.equal("told", []string{"heeds timed_out"}, w.told)
		w.sleep(time.Minute + 11*time.Second)
		w.equal("told", []string{"heeds timed_out", "heeds nothing timed_out"}, w.told)
		w.equal("behind", "answered 1", w.state("behind"))
		if err := <-late; !errors.Is(err, ledger.ErrLost) {
			w.Errorf("the run that was given up may post: %v", err)
		}
		w.equal("state", "failed 1 timed_out", w.state("heeds nothing"))
	})
}

// A run longer than its lease is still this desk's own.
func TestLongRunKeepsItsLease(t *testing.T) {
	inBubble(t, desk.Options{Deadline: time.Hour, Lease: time.Minute}, func(w *world) {
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			time.Sleep(30 * time.Minute)
			return posted(ctx, t)
		}
		w.run()
		w.receive(question("q", "ada", "r"), desk.Accepted)
		w.sleep(time.Hour)
		w.equal("runs", []string{"q"}, w.runs)
		w.equal("state", "answered 1", w.state("q"))
	})
}

func TestRunsFinishWithinTheGrace(t *testing.T) {
	inBubble(t, desk.Options{Grace: 20 * time.Second}, func(w *world) {
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			time.Sleep(15 * time.Second)
			return posted(ctx, t)
		}
		w.run()
		w.receive(question("q", "ada", "r"), desk.Accepted)
		synctest.Wait()
		start := time.Now()
		w.end()
		w.equal("took", 15*time.Second, time.Since(start))
		w.equal("state", "answered 1", w.state("q"))
		w.equal("told", []string(nil), w.told)
		if _, err := w.desk.Receive(w.Context(), question("late", "ada", "r")); !errors.Is(err, desk.ErrStopped) {
			w.Errorf("a closed desk says %v", err)
		}
	})
}

// What cannot finish is told that it is kept, and answered after the restart,
// as is what waited and what came in while the desk drained.
func TestQuestionsSurviveAShutdown(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, Grace: 20 * time.Second, PerAsker: 9}, func(w *world) {
		w.answer = func(ctx context.Context, _ *desk.Task) (desk.Result, error) {
			<-ctx.Done()
			return desk.Result{}, ctx.Err()
		}
		w.run()
		w.receive(question("running", "ada", "r"), desk.Accepted)
		w.receive(question("waiting", "ada", "r"), desk.Accepted)
		w.stop()
		w.sleep(time.Second)
		w.receive(question("draining", "ada", "r"), desk.Accepted)
		w.must(<-w.ended)
		w.stop = nil
		w.equal("told", []string{"running restarting"}, w.told)
		w.equal("state", "accepted 1 restarting", w.state("running"))

		w.answer = posted
		w.newDesk() // another process with the same ledger need not wait for a lease
		w.run()
		for _, key := range []string{"running", "waiting", "draining"} {
			w.equal(key, "answered 2", w.state(key))
		}
		w.equal("resumed", 3, w.desk.Health().Resumed)
		w.equal("told", []string{"running restarting"}, w.told)
	})
}

// A run that is posting when the time is up is not told to be repeated: the
// next start looks whether its message is there.
func TestShutdownWhilePosting(t *testing.T) {
	inBubble(t, desk.Options{Grace: time.Second}, func(w *world) {
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			if err := t.Posting(ctx, []byte("placeholder")); err != nil {
				return desk.Result{}, err
			}
			<-ctx.Done()
			return desk.Result{}, ctx.Err()
		}
		w.run()
		w.receive(question("q", "ada", "r"), desk.Accepted)
		synctest.Wait()
		w.end()
		w.equal("told", []string(nil), w.told)
		w.equal("state", "posting 1", w.state("q"))
		var ambiguous bool
		w.answer = func(_ context.Context, t *desk.Task) (desk.Result, error) {
			ambiguous = t.Ambiguous && string(t.Posted) == "placeholder"
			return desk.Result{State: ledger.Answered, Reason: "found"}, nil
		}
		w.newDesk()
		w.run()
		w.equal("state", "answered 2 found", w.state("q"))
		w.equal("ambiguous", true, ambiguous)
	})
}

func TestCrash(t *testing.T) {
	inBubble(t, desk.Options{Workers: 3, PerAsker: 9}, func(w *world) {
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			switch t.Key {
			case "posting":
				if err := t.Posting(ctx, []byte("ref")); err != nil {
					return desk.Result{}, err
				}
			case "answering":
				if err := t.Keep(ctx, []byte("placeholder")); err != nil {
					return desk.Result{}, err
				}
			}
			time.Sleep(time.Minute)
			return desk.Result{State: ledger.Answered}, nil
		}
		w.run()
		for _, key := range []string{"posting", "answering", "third", "waiting"} {
			w.receive(question(key, "ada", "r"), desk.Accepted)
		}
		synctest.Wait()
		w.crash()
		runs := map[string]string{}
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			w.mu.Lock()
			runs[t.Key] = fmt.Sprint(t.Ambiguous, " ", string(t.Posted), " ", t.Attempt)
			w.mu.Unlock()
			return posted(ctx, t)
		}
		w.run()
		w.sleep(2 * time.Minute)
		w.equal("runs after the crash", map[string]string{
			"posting": "true ref 2", "answering": "false placeholder 2", "third": "false  2", "waiting": "false  2",
		}, runs)
		w.equal("told", []string(nil), w.told)
		w.receive(question("third", "ada", "r"), desk.Duplicate)
	})
}

// D10: a replay half an hour later, after a restart, is answered by nobody.
func TestCase_D10_LateReplay(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		w.run()
		d := question("q", "ada", "r")
		d.Sent = time.Now()
		w.receive(d, desk.Accepted)
		synctest.Wait()
		w.sleep(29 * time.Minute)
		w.end()
		w.newDesk()
		w.run()
		w.receive(d, desk.Duplicate)
		w.sleep(time.Hour)
		w.receive(d, desk.Duplicate)
		w.equal("runs", []string{"q"}, w.runs)
	})
}

// D4: what is no question does not block the copy that is one, in any order.
func TestCase_D4_EitherOrder(t *testing.T) {
	inBubble(t, desk.Options{PerAsker: 100, PerRoom: 100}, func(w *world) {
		w.run()
		for i := range 50 {
			mention := question(fmt.Sprint("q", i), "ada", "r")
			message := mention
			message.State, message.Payload = ledger.Ignored, nil
			ignore := func() {
				_, _, err := w.ledger.Claim(w.Context(), message, time.Minute)
				w.must(err)
			}
			if i%2 == 0 {
				ignore()
			}
			w.receive(mention, desk.Accepted)
			if i%2 == 1 {
				ignore()
			}
		}
		synctest.Wait()
		w.equal("runs", 50, len(w.runs))
	})
}

func TestStale(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		w.run()
		old := question("old", "ada", "r")
		old.Sent = time.Now().Add(-31 * time.Minute)
		w.receive(old, desk.Stale)
		w.receive(old, desk.Duplicate)
		w.equal("state", "failed 1 stale", w.state("old"))
		fresh := question("fresh", "ada", "r")
		fresh.Sent = time.Now().Add(-29 * time.Minute)
		w.receive(fresh, desk.Accepted)
		synctest.Wait()
		ahead := question("ahead", "ada", "r")
		ahead.Sent = time.Now().Add(time.Hour) // a skewed clock
		w.receive(ahead, desk.Accepted)
		synctest.Wait()
		w.equal("runs", []string{"fresh", "ahead"}, w.runs)

		w.end()
		w.newDesk()
		w.receive(question("kept", "ada", "r"), desk.Accepted)
		w.sleep(time.Hour) // the program was away
		w.run()
		w.equal("told", []string{"kept stale"}, w.told)
		w.equal("state", "failed 1 stale", w.state("kept"))
	})
}

// A question that ends the process each time is given up, and told.
func TestPoisonIsGivenUp(t *testing.T) {
	inBubble(t, desk.Options{MaxAttempts: 3}, func(w *world) {
		w.answer = func(ctx context.Context, _ *desk.Task) (desk.Result, error) {
			<-ctx.Done()
			return desk.Result{}, ctx.Err()
		}
		w.run()
		w.receive(question("q", "ada", "r"), desk.Accepted)
		synctest.Wait()
		for range 3 {
			w.crash()
			w.run()
		}
		w.equal("runs", 3, len(w.runs))
		w.equal("told", []string{"q crashed"}, w.told)
		w.equal("state", "failed 4 crashed", w.state("q"))
	})
}

// A question that only waited while the process ended again and again has had
// no run, and gets one.
func TestWaitingIsNoRun(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, MaxAttempts: 2}, func(w *world) {
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			if t.Key == "poison" {
				<-ctx.Done()
				return desk.Result{}, ctx.Err()
			}
			return posted(ctx, t)
		}
		w.run()
		w.receive(question("poison", "ada", "r"), desk.Accepted)
		w.receive(question("waiting", "bob", "r"), desk.Accepted)
		synctest.Wait()
		for range 2 {
			w.crash()
			w.run()
		}
		w.sleep(time.Minute)
		w.equal("told", []string{"poison crashed"}, w.told)
		w.equal("state", "answered 3", w.state("waiting"))
	})
}

// flaky is a ledger that can fail and be slow.
type flaky struct {
	ledger.Claims
	mu    sync.Mutex
	err   error
	delay time.Duration
}

func (f *flaky) set(err error, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.delay = err, delay
}

func (f *flaky) trouble() error {
	f.mu.Lock()
	err, delay := f.err, f.delay
	f.mu.Unlock()
	time.Sleep(delay)
	return err
}

func (f *flaky) Claim(ctx context.Context, d ledger.Delivery, lease time.Duration) (ledger.Delivery, bool, error) {
	if err := f.trouble(); err != nil {
		return ledger.Delivery{}, false, err
	}
	return f.Claims.Claim(ctx, d, lease)
}

func (f *flaky) Move(ctx context.Context, r ledger.Ref, s ledger.Step) error {
	if err := f.trouble(); err != nil {
		return err
	}
	return f.Claims.Move(ctx, r, s)
}

func (f *flaky) Renew(ctx context.Context, lease time.Duration, held ...ledger.Ref) ([]ledger.Ref, error) {
	if err := f.trouble(); err != nil {
		return nil, err
	}
	return f.Claims.Renew(ctx, lease, held...)
}

func (w *world) withFlaky() *flaky {
	f := &flaky{Claims: w.ledger}
	w.claims = f
	w.newDesk()
	return f
}

// L6: while the ledger is down nothing is taken and nothing is lost: the
// caller learns it, and the platform delivers again.
func TestCase_L6_LedgerDown(t *testing.T) {
	inBubble(t, desk.Options{PerAsker: 1}, func(w *world) {
		f := w.withFlaky()
		w.run()
		f.set(errors.New("no connection"), 0)
		for range 3 {
			if v, err := w.desk.Receive(w.Context(), question("q", "ada", "r")); err == nil || v != "" {
				w.Fatalf("%s, %v", v, err)
			}
		}
		w.sleep(time.Hour) // the desk goes on
		f.set(nil, 0)
		w.receive(question("q", "ada", "r"), desk.Accepted)
		synctest.Wait()
		w.equal("state", "answered 1", w.state("q"))
		w.equal("errors", 3, w.desk.Health().Platforms["slack"].Errors)
		if !strings.Contains(w.logged(), "no connection") {
			w.Error("the log does not say that the ledger is down")
		}
	})
}

// A claim that takes too long is not acknowledged; when it gets through, it
// is worked on, and the platform's next copy is a duplicate.
func TestSlowLedger(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		f := w.withFlaky()
		w.run()
		f.set(nil, 5*time.Second)
		start := time.Now()
		if _, err := w.desk.Receive(w.Context(), question("q", "ada", "r")); !errors.Is(err, desk.ErrSlow) {
			w.Fatal(err)
		}
		w.equal("took", 500*time.Millisecond, time.Since(start))
		w.sleep(5 * time.Second)
		f.set(nil, 0)
		w.receive(question("q", "ada", "r"), desk.Duplicate)
		w.sleep(time.Minute)
		w.equal("runs", []string{"q"}, w.runs)
		w.equal("state", "answered 1", w.state("q"))

		gone, cancel := context.WithCancel(w.Context())
		cancel() // the platform hung up
		if _, err := w.desk.Receive(gone, question("q2", "ada", "r")); err != nil && !errors.Is(err, context.Canceled) {
			w.Fatal(err)
		}
		synctest.Wait()
		w.equal("state", "answered 1", w.state("q2"))
	})
}

// If the ledger fails while a question is worked on, the person is told.
func TestLedgerFailsDuringARun(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		f := w.withFlaky()
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			f.set(errors.New("disk full"), 0)
			return posted(ctx, t)
		}
		w.run()
		w.receive(question("q", "ada", "r"), desk.Accepted)
		synctest.Wait()
		w.equal("told", []string{"q error"}, w.told)
		w.equal("state", "answering 1", w.state("q")) // the next start looks after it
	})
}

// When another process took a question over, this one stops and is silent.
func TestQuestionTakenOver(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, Deadline: time.Hour}, func(w *world) {
		f := w.withFlaky()
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			<-ctx.Done()
			return posted(context.WithoutCancel(ctx), t)
		}
		w.run()
		w.receive(question("running", "ada", "r"), desk.Accepted)
		w.receive(question("waiting", "ada", "r"), desk.Accepted)
		synctest.Wait() // the first one runs
		f.set(errors.New("partitioned"), 0)
		w.sleep(3 * time.Minute)
		taken, err := w.ledger.Resume(w.Context(), 24*time.Hour) // by another process
		w.must(err)
		w.equal("taken", 2, len(taken))
		f.set(nil, 0)
		w.sleep(time.Minute)
		w.equal("runs", []string{"running"}, w.runs)
		w.equal("told", []string(nil), w.told)
		h := w.desk.Health()
		w.equal("held", []int{0, 0}, []int{h.Waiting, h.Running})
		w.equal("state", "accepted 2", w.state("waiting"))
		for _, key := range []string{"a", "b", "c"} { // all seats are free
			w.receive(question(key, "ada", "r"), desk.Accepted)
		}
	})
}

func TestTellingMayFail(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1}, func(w *world) {
		w.answer = func(context.Context, *desk.Task) (desk.Result, error) { return desk.Result{}, errors.New("boom") }
		how := []func(context.Context){
			func(context.Context) { panic("telling " + canary) },
			func(context.Context) { time.Sleep(time.Hour) },
			func(context.Context) {},
		}
		w.onTold = func(ctx context.Context) {
			w.mu.Lock()
			do := how[0]
			how = how[1:]
			w.mu.Unlock()
			do(ctx)
		}
		w.run()
		for _, key := range []string{"panics", "hangs", "works"} {
			w.receive(question(key, "ada", "r"), desk.Accepted)
		}
		w.sleep(time.Minute)
		for _, key := range []string{"panics", "hangs", "works"} {
			w.equal(key, "failed 1 error", w.state(key))
		}
		w.sleep(time.Hour)
	})
}

func TestUnknownPlatform(t *testing.T) {
	inBubble(t, desk.Options{}, func(w *world) {
		d := question("q", "ada", "r")
		d.Platform = "telex"
		if _, err := w.desk.Receive(w.Context(), d); err == nil {
			w.Error("a delivery of a platform without handler was taken")
		}
		// One that was set up when the question came.
		_, _, err := w.ledger.Claim(w.Context(), d, 0)
		w.must(err)
		w.run()
		w.equal("state", "failed 2 no_handler", w.state("q"))
	})
}

func TestHealth(t *testing.T) {
	inBubble(t, desk.Options{Workers: 1, PerAsker: 9, Deadline: time.Hour}, func(w *world) {
		f := w.withFlaky()
		gate := make(chan struct{})
		w.answer = func(ctx context.Context, t *desk.Task) (desk.Result, error) {
			return desk.Result{State: ledger.Answered}, wait(ctx, gate)
		}
		w.run()
		f.set(nil, 100*time.Millisecond)
		w.receive(question("a", "ada", "r"), desk.Accepted)
		f.set(nil, 0)
		last := time.Now()
		w.receive(question("b", "ada", "r"), desk.Accepted)
		w.sleep(time.Minute)
		h := w.desk.Health()
		w.equal("health", desk.Health{
			Waiting: 1, Running: 1, Oldest: time.Minute,
			Platforms: map[string]desk.Inbound{"slack": {Received: 2, Last: last, AckP99: 100 * time.Millisecond}},
		}, h)
		close(gate)
		synctest.Wait()
	})
}

func TestDeskNeedsALedgerAndRunsOnce(t *testing.T) {
	if _, err := desk.New(desk.Options{}); err == nil {
		t.Error("a desk was made without a ledger")
	}
	inBubble(t, desk.Options{}, func(w *world) {
		w.run()
		if err := w.desk.Run(w.Context()); err == nil {
			w.Error("a desk ran twice")
		}
	})
}
