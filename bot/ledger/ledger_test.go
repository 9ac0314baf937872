package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
	"footnote/retrieval"
)

func open(t testing.TB, dir string, now func() time.Time) ledger.Store {
	return openWith(t, dir, ledger.Options{Now: now})
}

func openWith(t testing.TB, dir string, o ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(dir, o)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func question(key string) ledger.Delivery {
	return ledger.Delivery{Key: key, Platform: "slack", Asker: "ada", Room: "r", Payload: []byte("payload of " + key)}
}

func TestLedgerPassesTheSuite(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, open)
}

func TestOneProcessHoldsTheLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openWith(t, dir, ledger.Options{})
	if _, err := ledger.Open(dir, ledger.Options{}); !errors.Is(err, retrieval.ErrInUse) {
		t.Fatalf("a second opening gives %v", err)
	}
	must(t, l.Close())
	openWith(t, dir, ledger.Options{})
}

func TestClosedLedgerTakesNothing(t *testing.T) {
	t.Parallel()
	l := openWith(t, t.TempDir(), ledger.Options{})
	must(t, l.Close())
	if _, won, err := l.Claim(t.Context(), question("q"), time.Minute); won || !errors.Is(err, os.ErrClosed) {
		t.Fatalf("won %t, %v", won, err)
	}
}

// What ended leaves the disk within the hour, and what is old within its age.
func TestTextsLeaveTheDisk(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), ledgertest.NewClock()
	l := openWith(t, dir, ledger.Options{Now: clock.Now})
	on := func(word string) bool {
		b, err := os.ReadFile(filepath.Join(dir, ledger.File))
		must(t, err)
		return bytes.Contains(b, []byte(word))
	}
	q := question("q")
	q.Payload = []byte("canary-payload")
	d, _, err := l.Claim(t.Context(), q, time.Minute)
	must(t, err)
	must(t, l.PutAnswer(t.Context(), ledger.Answer{ID: "a", Asker: "ada", Question: "canary-question"}))
	must(t, l.NoteGap(t.Context(), "a", "canary-gap"))
	if !on("canary-payload") || !on("canary-question") || on("canary-gap") {
		t.Fatalf("payload %t, question %t, gap %t", on("canary-payload"), on("canary-question"), on("canary-gap"))
	}
	must(t, l.Move(t.Context(), d.Ref(), ledger.Step{State: ledger.Failed}))
	tend := func() {
		_, err := l.Resume(t.Context(), time.Minute)
		must(t, err)
	}
	clock.Advance(time.Hour)
	tend()
	if on("canary-payload") || !on("canary-question") {
		t.Fatalf("an hour later: payload %t, question %t", on("canary-payload"), on("canary-question"))
	}
	clock.Advance(7 * 24 * time.Hour)
	tend()
	if on("canary-question") || on(`"q"`) {
		t.Fatalf("a week later: question %t, delivery %t", on("canary-question"), on(`"q"`))
	}
	if a, err := l.Answer(t.Context(), "a"); err != nil || a.Question != "" {
		t.Fatalf("the answer is %+v, %v", a, err)
	}
}

func TestGapTextIsKeptWhereItIsWanted(t *testing.T) {
	t.Parallel()
	l := openWith(t, t.TempDir(), ledger.Options{GapText: true})
	must(t, l.NoteGap(t.Context(), "a", "What nobody wrote down?"))
	if gaps, err := l.Gaps(t.Context()); err != nil || len(gaps) != 1 || gaps[0].Question != "What nobody wrote down?" {
		t.Fatalf("%v, %v", gaps, err)
	}
}

// However much is delivered, memory and disk stay bounded, what is unfinished
// is kept, and what was no question goes first.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), ledgertest.NewClock()
	o := ledger.Options{Now: clock.Now, MaxDeliveries: 64, MaxAnswers: 16}
	l := openWith(t, dir, o)
	claim := func(d ledger.Delivery) (bool, error) {
		clock.Advance(time.Second)
		_, won, err := l.Claim(t.Context(), d, time.Hour*24)
		return won, err
	}
	for i := range 60 {
		if won, err := claim(question(fmt.Sprint("kept", i))); !won || err != nil {
			t.Fatal(won, err)
		}
	}
	asked := question("answered")
	asked.State = ledger.Answered
	if won, err := claim(asked); !won || err != nil {
		t.Fatal(won, err)
	}
	for i := range 300 {
		d := question(fmt.Sprint("noise", i))
		d.State = ledger.Ignored
		if won, err := claim(d); !won || err != nil {
			t.Fatal(won, err)
		}
		must(t, l.PutAnswer(t.Context(), ledger.Answer{ID: fmt.Sprint("a", i), Asker: "ada", Question: "q"}))
	}
	n, err := l.Counts(t.Context())
	must(t, err)
	if n[ledger.Accepted] != 60 || n[ledger.Answered] != 1 || n[ledger.Ignored] > 3 {
		t.Fatalf("counts: %v", n)
	}
	if _, err := l.Answer(t.Context(), "a283"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the 17th answer from the end gives %v", err)
	}
	if _, err := l.Answer(t.Context(), "a299"); err != nil {
		t.Error(err)
	}
	for i := 0; err == nil; i++ {
		_, err = claim(question(fmt.Sprint("more", i)))
	}
	if !errors.Is(err, ledger.ErrFull) {
		t.Fatalf("a full ledger gives %v", err)
	}
	clock.Advance(time.Hour)
	_, err = l.Resume(t.Context(), time.Minute)
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, ledger.File))
	must(t, err)
	if info.Size() > 64<<10 {
		t.Errorf("the log has %d bytes", info.Size())
	}
}

func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openWith(t, dir, ledger.Options{})
	for i := range 3 {
		_, _, err := l.Claim(t.Context(), question(fmt.Sprint(i)), time.Minute)
		must(t, err)
	}
	must(t, l.Close())
	path := filepath.Join(dir, ledger.File)
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(path, b, 0o600))
	_, err = ledger.Open(dir, ledger.Options{})
	if !errors.Is(err, retrieval.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), "restore the data directory") {
		t.Fatalf("%v", err)
	}
	must(t, os.WriteFile(path, b[:0], 0o600))
	openWith(t, dir, ledger.Options{}) // the lock was given back
}
