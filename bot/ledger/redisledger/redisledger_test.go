package redisledger_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
	"footnote/bot/ledger/redisledger"
	"footnote/retrieval"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func client(t testing.TB) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func open(t testing.TB, prefix string, o ledger.Options) *redisledger.Ledger {
	t.Helper()
	l := redisledger.Open(client(t), redisledger.Options{Options: o, Prefix: prefix})
	t.Cleanup(func() { l.Close() })
	return l
}

// prefix is one that no other test has.
func prefix(place string) string {
	return "t" + filepath.Base(filepath.Dir(place)) + filepath.Base(place)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t testing.TB, place string, now func() time.Time) ledger.Store {
		return open(t, prefix(place), ledger.Options{Now: now})
	})
}

func question(key string, also ...string) ledger.Delivery {
	return ledger.Delivery{Key: key, Also: also, Platform: "slack", Asker: "ada", Room: "r", Payload: []byte("payload of " + key)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing but what is past its age goes, and all of that goes.
func TestSweep(t *testing.T) {
	t.Parallel()
	clock, at := ledgertest.NewClock(), prefix(t.TempDir())
	l, c, ctx := open(t, at, ledger.Options{Now: clock.Now}), client(t), context.Background()
	write := func(id string) {
		d, won, err := l.Claim(ctx, question(id, "event of "+id), time.Minute)
		if err != nil || !won {
			t.Fatalf("claiming %s: %t, %v", id, won, err)
		}
		must(t, l.Move(ctx, d.Ref(), ledger.Step{State: ledger.Failed, Reason: "error"}))
		must(t, l.PutAnswer(ctx, ledger.Answer{ID: id, Delivery: id, Asker: "ada"}))
		must(t, l.Rate(ctx, ledger.Feedback{Answer: id, User: "ada"}))
		_, err = l.AskHuman(ctx, id, "ada")
		must(t, err)
		must(t, l.NoteGap(ctx, id, ""))
		must(t, l.NoteAudit(ctx, ledger.Audit{Actor: "ada", Action: "open_source", Subject: id, Result: "shown"}))
	}
	write("old")
	must(t, ignore(l.Claim(ctx, question("unfinished"), time.Minute)))
	clock.Advance(31 * 24 * time.Hour)
	write("new")
	must(t, l.Sweep(ctx))
	for key, want := range map[string]int64{"all": 2, "is:failed": 1, "is:accepted": 1, "answers": 1, "feedback:at": 1, "help:at": 1, "gaps:at": 1} {
		if n := c.ZCard(ctx, "{"+at+":ledger}:"+key).Val(); n != want {
			t.Errorf("%s holds %d, want %d", key, n, want)
		}
	}
	for key, n := range map[string]int64{"audit": c.LLen(ctx, "{"+at+":ledger}:audit").Val(), "feedback": c.HLen(ctx, "{"+at+":ledger}:feedback").Val()} {
		if n != 1 {
			t.Errorf("%s holds %d, want 1", key, n)
		}
	}
	if found, err := l.Resume(ctx, time.Minute); err != nil || len(found) != 1 || found[0].Key != "unfinished" {
		t.Errorf("resumed %v, %v", found, err)
	}
}

func ignore(_ ledger.Delivery, _ bool, err error) error { return err }

// Of all replicas one wins each question, and one takes over what is left.
func TestReplicas(t *testing.T) {
	t.Parallel()
	clock, at := ledgertest.NewClock(), prefix(t.TempDir())
	var replicas []*redisledger.Ledger
	for range 4 {
		replicas = append(replicas, open(t, at, ledger.Options{Now: clock.Now}))
	}
	ctx := context.Background()
	var mu sync.Mutex
	won, resumed := map[string]int{}, map[string]int{}
	var wg sync.WaitGroup
	for i, r := range replicas {
		for q := range 40 {
			wg.Go(func() {
				d, first, err := r.Claim(ctx, question(fmt.Sprint("q", q), fmt.Sprint("event", q, ".", i)), ledgertest.Lease)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if first {
					won[d.Key]++
				}
			})
		}
	}
	wg.Wait()
	clock.Advance(ledgertest.Lease + time.Second)
	for _, r := range replicas {
		wg.Go(func() {
			found, err := r.Resume(ctx, ledgertest.Lease)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, d := range found {
				resumed[d.Key]++
			}
		})
	}
	wg.Wait()
	for q := range 40 {
		if k := fmt.Sprint("q", q); won[k] != 1 || resumed[k] != 1 {
			t.Errorf("%s was won %d times and taken over %d times", k, won[k], resumed[k])
		}
	}
	d, err := replicas[0].Delivery(ctx, "q7")
	if err != nil || d.Copies != 3 || len(d.Also) != 4 {
		t.Errorf("q7 has %d copies and the further keys %v: %v", d.Copies, d.Also, err)
	}
}

// Wherever a connection is cut, a question is won once and its steps are not
// refused.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	at := prefix(t.TempDir())
	whole, ctx := open(t, at, ledger.Options{}), context.Background()
	o, err := redis.ParseURL(redistest.URL(t))
	must(t, err)
	cuts := 0
	for n := 1; n < 25; n++ {
		var cut redistest.Cutter
		cut.Left.Store(1 << 40)
		o.Dialer, o.PoolSize, o.MaxRetries = cut.Dial, 1, -1
		c := redis.NewClient(o)
		l := redisledger.Open(c, redisledger.Options{Prefix: at})
		must(t, c.Ping(ctx).Err())
		cut.Left.Store(int64(n))
		q := question(fmt.Sprint("q", n))
		d, won, err := l.Claim(ctx, q, time.Minute)
		if err != nil {
			again, second, err := whole.Claim(ctx, q, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			d, won = again, second || again.State == ledger.Accepted
		}
		if !won {
			t.Errorf("cut %d: the question was lost", n)
		}
		for _, s := range []ledger.State{ledger.Answering, ledger.Posting, ledger.Answered} {
			if err := l.Move(ctx, d.Ref(), ledger.Step{State: s}); err != nil {
				t.Errorf("cut %d: %s: %v", n, s, err)
			}
		}
		if cut.Left.Load() < 0 {
			cuts++
		}
		must(t, errors.Join(l.Close(), c.Close()))
	}
	if cuts < 10 {
		t.Errorf("only %d connections were cut", cuts)
	}
}

// A full ledger makes room of what has ended, and of nothing else.
func TestFull(t *testing.T) {
	t.Parallel()
	l, ctx := open(t, prefix(t.TempDir()), ledger.Options{MaxDeliveries: 8, MaxAnswers: 3}), context.Background()
	claim := func(d ledger.Delivery) error { return ignore(l.Claim(ctx, d, time.Minute)) }
	for i := range 7 {
		must(t, claim(question(fmt.Sprint("q", i))))
	}
	noise := question("noise")
	noise.State = ledger.Ignored
	must(t, claim(noise))
	must(t, claim(question("q7"))) // the noise goes
	if err := claim(question("q8")); !errors.Is(err, ledger.ErrFull) {
		t.Errorf("one more than fits: %v", err)
	}
	must(t, l.Move(ctx, ledger.Ref{Key: "q3", Attempt: 1}, ledger.Step{State: ledger.Failed}))
	must(t, claim(question("q8")))
	if _, err := l.Delivery(ctx, "q3"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the one that ended: %v", err)
	}
	for i := range 5 {
		must(t, l.PutAnswer(ctx, ledger.Answer{ID: fmt.Sprint("a", i), Asker: "ada", At: time.Now().Add(time.Duration(i) * time.Second)}))
	}
	if _, err := l.Answer(ctx, "a0"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the oldest answer: %v", err)
	}
	must(t, second(l.Answer(ctx, "a4")))
}

func second[T any](_ T, err error) error { return err }

// What is unfinished is counted for askers and rooms at all replicas, until it
// ends.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	a, b := open(t, t.Name(), ledger.Options{}), open(t, t.Name(), ledger.Options{})
	ctx := t.Context()
	holds := func(asker, room string, ofAsker, ofRoom int) {
		t.Helper()
		if x, y, err := b.Unfinished(ctx, asker, room); err != nil || x != ofAsker || y != ofRoom {
			t.Errorf("%s has %d, %s has %d (%v), want %d and %d", asker, x, room, y, err, ofAsker, ofRoom)
		}
	}
	claim := func(l *redisledger.Ledger, key, asker, room string, s ledger.State) {
		t.Helper()
		d := ledger.Delivery{Key: key, Platform: "slack", Asker: asker, Room: room, Payload: []byte("x"), State: s}
		if s.Ended() {
			d.Payload, d.Reason = nil, "busy"
		}
		if _, won, err := l.Claim(ctx, d, time.Minute); err != nil || !won {
			t.Fatalf("%s: %v %v", key, won, err)
		}
	}
	claim(a, "1", "ada", "r", ledger.Accepted)
	claim(b, "2", "ada", "elsewhere", ledger.Accepted)
	claim(a, "3", "bob", "r", ledger.Accepted)
	claim(a, "4", "bob", "r", ledger.Failed)
	holds("ada", "r", 2, 2)
	holds("bob", "elsewhere", 1, 1)
	if err := a.Move(ctx, ledger.Ref{Key: "1", Attempt: 1}, ledger.Step{State: ledger.Failed, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	holds("ada", "r", 1, 1)
	holds("nobody", "nowhere", 0, 0)
}

// What a server loses with its last writes its holder gives it again, as it
// was; never over what somebody else has claimed meanwhile.
func TestRestore(t *testing.T) {
	t.Parallel()
	a, b := open(t, t.Name(), ledger.Options{}), open(t, t.Name(), ledger.Options{})
	ctx := t.Context()
	lose := func() {
		t.Helper()
		c := client(t)
		for it := c.Scan(ctx, 0, "{"+t.Name()+":ledger}:*", 1000).Iterator(); it.Next(ctx); {
			must(t, c.Del(ctx, it.Val()).Err())
		}
	}
	restore := func(want bool, d ledger.Delivery) {
		t.Helper()
		if back, err := a.Restore(ctx, d, time.Minute); err != nil || back != want {
			t.Errorf("restored %v, %v, want %v", back, err, want)
		}
	}
	d, _, err := a.Claim(ctx, question("q", "further"), time.Minute)
	must(t, err)
	must(t, a.Move(ctx, d.Ref(), ledger.Step{State: ledger.Answering}))
	d, err = a.Delivery(ctx, "q")
	must(t, err)
	restore(false, d)
	lose()
	if err := a.Move(ctx, d.Ref(), ledger.Step{State: ledger.Posting}); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("a step of what is lost: %v", err)
	}
	restore(true, d)
	got, err := b.Delivery(ctx, "further")
	must(t, err)
	if diff := cmp.Diff(d, got); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if _, won, err := b.Claim(ctx, question("q"), time.Minute); err != nil || won {
		t.Errorf("a copy is claimed: %v %v", won, err)
	}
	if found, err := b.Resume(ctx, time.Minute); err != nil || len(found) > 0 {
		t.Errorf("another takes it over: %v %v", found, err)
	}
	must(t, a.Move(ctx, d.Ref(), ledger.Step{State: ledger.Posting}))

	lose()
	_, _, err = b.Claim(ctx, question("further"), time.Minute)
	must(t, err)
	restore(false, d)
	lose()
	d.State = ledger.Answered
	restore(false, d)
}

// A server that is away is no fault of the question.
func TestAway(t *testing.T) {
	t.Parallel()
	link, err := redislink.Open(redislink.Options{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	l := redisledger.Open(link, redisledger.Options{})
	d := ledger.Delivery{Key: "1", Platform: "slack", Asker: "ada", Payload: []byte("x")}
	if _, _, err := l.Claim(t.Context(), d, time.Minute); !errors.Is(err, retrieval.ErrUnavailable) {
		t.Errorf("a claim gives %v", err)
	}
	if err := l.Move(t.Context(), ledger.Ref{Key: "1", Attempt: 1}, ledger.Step{State: ledger.Answering}); !errors.Is(err, retrieval.ErrUnavailable) {
		t.Errorf("a step gives %v", err)
	}
}

// Before a message is posted, a replica has it that it will be: should it take
// over, nobody posts the message again.
func TestPosting_AtAReplica(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	// The disk is not waited for, and what the replica receives is late.
	master := redistest.New(t, t.TempDir(), "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
	slow := redistest.NewProxy(t, master.Address)
	_, port, _ := net.SplitHostPort(slow.Address())
	replica := redistest.New(t, t.TempDir(), "--replicaof", "127.0.0.1 "+port)
	redistest.Await(t, func() string {
		about, err := master.Say("INFO replication")
		if err != nil || !strings.Contains(about, "state=online") {
			return about
		}
		return ""
	})
	at := func(address string) *redisledger.Ledger {
		c := redis.NewClient(&redis.Options{Addr: address})
		t.Cleanup(func() { c.Close() })
		l := redisledger.Open(c, redisledger.Options{})
		t.Cleanup(func() { l.Close() })
		return l
	}
	l, behind := at(master.Address), at(replica.Address)
	state := func() ledger.State {
		d, err := behind.Delivery(ctx, "q")
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Error(err)
		}
		return d.State
	}
	slow.Delay(500)
	d, _, err := l.Claim(ctx, question("q"), time.Minute)
	must(t, err)
	must(t, l.Move(ctx, d.Ref(), ledger.Step{State: ledger.Answering}))
	before := state()
	must(t, l.Move(ctx, d.Ref(), ledger.Step{State: ledger.Posting}))
	if s := state(); s != ledger.Posting {
		t.Errorf("about to be posted, the replica has it in %q, and %q before", s, before)
	}
}
