package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"footnote/adapters/slack/slacktest"
	"footnote/retrieval/redisindex/redistest"
)

// The master is killed while two replicas of the program answer: the Sentinels
// name another, and service goes on by itself. Each question gets one word, an
// answer or that search is unavailable.
func TestRedis_Failover(t *testing.T) {
	t.Parallel()
	servers := redistest.NewReplicated(t)
	s := newSlack(t)
	if got := footnote("", "ingest", filepath.Join(work, "docs"), "--data", copyOf(t), "--redis", servers.URL()); got.code != 0 {
		t.Fatalf("ingest ended with %d: %s%s", got.code, got.out, got.err)
	}
	start := func() *served {
		dir := t.TempDir()
		file := filepath.Join(dir, "footnote.yaml")
		write(t, file, fmt.Sprintf("data: %s\nredis: {url: '%s'}\nweb: {listen: '%s', public_url: 'https://footnote.example.org'}\nslack: {mode: socket, api_url: '%s'}\n",
			filepath.Join(dir, "data"), servers.URL(), freeAddress(t), s.APIURL()))
		return serve(t, file, slackEnv(s)...)
	}
	both := []*served{start(), start()}
	first := asks(t, s, "U0ADA")
	var asked []slacktest.Message
	for range 4 {
		asked = append(asked, s.Mention("U0BOB", "C0GENERAL", leave), s.Mention("U0ADA", "C0GENERAL", leave))
	}
	answered := 0
	count := func() int {
		answered = 0
		for _, m := range asked {
			answered += slackAnswers(s, m)
		}
		return answered
	}
	redistest.Await(t, func() string {
		posting, err := servers.Master.Say("ZCARD {footnote:ledger}:is:posting")
		if err != nil || posting < ":1" {
			return "none is about to be posted: " + posting
		}
		return ""
	})
	servers.Master.Kill()
	patient(t, "a word on each question", s.Wait, func() bool { return count()+unavailable(s) >= len(asked) })
	for _, p := range both {
		p.ready(http.StatusOK)
	}
	asks(t, s, "U0ADA")
	asks(t, s, "U0BOB")
	t.Logf("of %d questions in hand %d were answered, %d told that search is unavailable", len(asked), answered, unavailable(s))
	if n := count() + unavailable(s); n != len(asked) {
		t.Errorf("%d words on %d questions", n, len(asked))
	}
	if n := slackAnswers(s, first); n != 1 {
		t.Errorf("%d answers to the first question", n)
	}
	for _, p := range both {
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
		}
	}
	for _, broken := range s.CheckInvariants() {
		t.Error(broken)
	}
}
