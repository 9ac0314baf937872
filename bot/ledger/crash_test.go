package ledger_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/bot/ledger"
)

// crashDir makes the test program a writer that is to be killed.
const crashDir = "FOOTNOTE_TEST_LEDGER_CRASH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Println("error", err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeUntilKilled resumes what is unfinished, then claims and moves from
// several goroutines, and says of each change that it returned: "key state".
func writeUntilKilled(dir string) error {
	l, err := ledger.Open(dir, ledger.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	found, err := l.Resume(ctx, time.Minute)
	if err != nil {
		return err
	}
	for _, d := range found {
		if want := "payload of " + d.Key; string(d.Payload) != want {
			return fmt.Errorf("%s has the payload %q", d.Key, d.Payload)
		}
	}
	fmt.Println("open", len(found))
	errs := make(chan error)
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				if err := live(ctx, l, fmt.Sprintf("%d.%d.%d", os.Getpid(), w, i)); err != nil {
					errs <- err
				}
			}
		}()
	}
	return <-errs
}

func live(ctx context.Context, l *ledger.Ledger, key string) error {
	d, won, err := l.Claim(ctx, question(key), time.Minute)
	if err != nil || !won {
		return fmt.Errorf("claiming %s: %t, %w", key, won, err)
	}
	fmt.Println(key, ledger.Accepted)
	for _, s := range []ledger.State{ledger.Answering, ledger.Posting, ledger.Answered} {
		if rand.IntN(4) == 0 {
			return nil
		}
		if err := l.Move(ctx, d.Ref(), ledger.Step{State: s}); err != nil {
			return err
		}
		fmt.Println(key, s)
	}
	return nil
}

// rank orders the states of a life.
var rank = map[ledger.State]int{ledger.Accepted: 1, ledger.Answering: 2, ledger.Posting: 3, ledger.Answered: 4}

// Whenever the process is killed, each change that returned is there, and
// nothing that was not asked for.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	returned := map[string]ledger.State{}
	for range 6 {
		for _, line := range killedRun(t, dir) {
			key, state, _ := strings.Cut(line, " ")
			if key == "error" {
				t.Fatal(state)
			}
			if key != "open" && rank[ledger.State(state)] > rank[returned[key]] {
				returned[key] = ledger.State(state)
			}
		}
	}
	l := openWith(t, dir, ledger.Options{})
	n, further := 0, 0
	for key, state := range returned {
		d, err := l.Delivery(t.Context(), key)
		if err != nil || rank[d.State] < rank[state] || rank[d.State] > rank[state]+1 {
			t.Fatalf("%s returned %s, the ledger has %q, %v", key, state, d.State, err)
		}
		n++
		if d.State != state {
			further++
		}
	}
	if n < 50 {
		t.Fatalf("only %d deliveries were claimed", n)
	}
	// At most what was under way when the process died is unknown: one change
	// of each goroutine.
	if further > 6*4 {
		t.Errorf("%d deliveries are further than what returned", further)
	}
	found, err := l.Resume(t.Context(), time.Minute)
	must(t, err)
	for _, d := range found {
		if d.State.Ended() || string(d.Payload) != "payload of "+d.Key {
			t.Errorf("resumed %s, %s with %q", d.Key, d.State, d.Payload)
		}
	}
	t.Logf("%d deliveries, %d further than what returned, %d unfinished", n, further, len(found))
}

// killedRun starts a writer, kills it after some changes, and returns the
// whole lines that it said.
func killedRun(t *testing.T, dir string) []string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var kill sync.Once
	defer kill.Do(func() { cmd.Process.Kill() })
	after := 20 + rand.IntN(150)
	var lines []string
	for s := bufio.NewScanner(out); s.Scan(); {
		if lines = append(lines, s.Text()); len(lines) == after {
			kill.Do(func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait()
	return lines
}
