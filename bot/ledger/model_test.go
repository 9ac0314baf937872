package ledger_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
)

// known is what the model knows of a delivery.
type known struct {
	state   ledger.State
	attempt int
	copies  int
	lease   time.Time
	since   time.Time
}

// model is the ledger in a few lines, driven beside the real one.
type model struct {
	dir   string
	clock *ledgertest.Clock
	l     *ledger.Ledger
	all   map[string]known
	// posted counts how often a run was let through to an answer.
	posted map[string]int
}

const keep = 7 * 24 * time.Hour

func (m *model) open(t *rapid.T) {
	l, err := ledger.Open(m.dir, ledger.Options{Now: m.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	m.l = l
}

// there reports that the delivery stands in the way of another claim.
func (m *model) there(key string) bool {
	k, ok := m.all[key]
	return ok && (!k.state.Ended() || m.clock.Now().Sub(k.since) <= keep)
}

func drawKey(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
}

func (m *model) Claim(t *rapid.T) {
	key := drawKey(t)
	d := question(key)
	d.State = rapid.SampledFrom([]ledger.State{"", "", ledger.Ignored, ledger.Failed}).Draw(t, "as")
	lease := time.Duration(rapid.IntRange(1, 10).Draw(t, "lease")) * time.Minute
	_, won, err := m.l.Claim(t.Context(), d, lease)
	if err != nil {
		t.Fatal(err)
	}
	k := m.all[key]
	free := !m.there(key) || k.state == ledger.Ignored && d.State != ledger.Ignored
	if won != free {
		t.Fatalf("claiming %s as %q: won %t, it is %+v", key, d.State, won, k)
	}
	switch {
	case won:
		state := d.State
		if state == "" {
			state = ledger.Accepted
		}
		m.all[key] = known{state: state, attempt: 1, lease: m.clock.Now().Add(lease), since: m.clock.Now()}
		m.posted[key] = 0
	case d.State != ledger.Ignored:
		k.copies++
		m.all[key] = k
	}
}

func (m *model) Move(t *rapid.T) {
	key := drawKey(t)
	k := m.all[key]
	attempt := rapid.IntRange(max(1, k.attempt-1), k.attempt+1).Draw(t, "attempt")
	to := rapid.SampledFrom([]ledger.State{ledger.Answering, ledger.Posting, ledger.Answered, ledger.Failed}).Draw(t, "to")
	err := m.l.Move(t.Context(), ledger.Ref{Key: key, Attempt: attempt}, ledger.Step{State: to})
	held := m.there(key) && !k.state.Ended() && attempt == k.attempt
	if held == errors.Is(err, ledger.ErrLost) {
		t.Fatalf("moving %s, %+v, as attempt %d to %s: %v", key, k, attempt, to, err)
	}
	if err == nil {
		k.state = to
		m.all[key] = k
	}
	if err == nil && to == ledger.Answered {
		m.posted[key]++
	}
	if m.posted[key] > 1 {
		t.Fatalf("%s was answered twice", key)
	}
}

func (m *model) Renew(t *rapid.T) {
	key := drawKey(t)
	k := m.all[key]
	lease := time.Duration(rapid.IntRange(0, 10).Draw(t, "lease")) * time.Minute
	lost, err := m.l.Renew(t.Context(), lease, ledger.Ref{Key: key, Attempt: k.attempt})
	if err != nil {
		t.Fatal(err)
	}
	if held := m.there(key) && !k.state.Ended(); held == (len(lost) == 1) {
		t.Fatalf("renewing %s, %+v: lost %v", key, k, lost)
	} else if held {
		k.lease = m.clock.Now().Add(lease)
		m.all[key] = k
	}
}

func (m *model) Resume(t *rapid.T) {
	found, err := m.l.Resume(t.Context(), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, d := range found {
		got[d.Key] = d.Attempt
	}
	for key, k := range m.all {
		want := 0
		if !k.state.Ended() && !k.lease.After(m.clock.Now()) {
			k.attempt++
			want = k.attempt
			k.lease = m.clock.Now().Add(5 * time.Minute)
			m.all[key] = k
		}
		if got[key] != want {
			t.Fatalf("%s, %+v, is resumed for the run %d, want %d", key, k, got[key], want)
		}
	}
}

func (m *model) Restart(t *rapid.T) {
	if err := m.l.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
	for key, k := range m.all {
		k.lease = time.Time{}
		m.all[key] = k
	}
}

func (m *model) Wait(t *rapid.T) {
	m.clock.Advance(rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Minute, time.Hour, 4 * 24 * time.Hour}).Draw(t, "wait"))
}

// Check compares what both hold.
func (m *model) Check(t *rapid.T) {
	for _, key := range []string{"a", "b", "c", "d"} {
		d, err := m.l.Delivery(t.Context(), key)
		k := m.all[key]
		if !m.there(key) {
			if !errors.Is(err, ledger.ErrNotFound) {
				t.Fatalf("%s is not there, the ledger has it as %s, %v", key, d.State, err)
			}
			continue
		}
		want := fmt.Sprint(k.state, k.attempt, k.copies, !k.state.Ended())
		if got := fmt.Sprint(d.State, d.Attempt, d.Copies, string(d.Payload) == "payload of "+key); got != want || err != nil {
			t.Fatalf("%s is %s, %v, want %s", key, got, err, want)
		}
	}
}

// In any order of claims, steps, leases, restarts and waits the ledger does
// what the model does, and nothing is answered twice.
func TestClaimsAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "ledger")
		if err != nil {
			t.Fatal(err)
		}
		m := &model{dir: dir, clock: ledgertest.NewClock(), all: map[string]known{}, posted: map[string]int{}}
		m.open(t)
		defer func() { m.l.Close(); os.RemoveAll(dir) }()
		t.Repeat(rapid.StateMachineActions(m))
	})
}
