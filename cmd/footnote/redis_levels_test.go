package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"footnote/adapters/slack/slacktest"
)

// TestRedis_Levels changes who may read a document, by its access file, which one
// replica sees, and by a group on Slack, which tells one replica; and looks when a
// source opens accordingly at each of two replicas. Some changes come when
// subscriptions have just been cut. FOOTNOTE_LEVELS is the number of rounds; then
// the target is held, and the figures are logged.
func TestRedis_Levels(t *testing.T) {
	t.Parallel()
	rounds, target := 1, 5*time.Second
	if s := os.Getenv("FOOTNOTE_LEVELS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	r, s := newOnRedis(t), newSlack(t)
	s.AddGroup(slacktest.Group{ID: "S0CREW", Name: "crew", Handle: "crew", Users: []string{"U0ADA"}})
	docs := filepath.Join(t.TempDir(), "docs")
	write(t, filepath.Join(docs, "boat.md"), "# The boat\n\nThe anchor of the boat weighs 40 kilograms.\n")
	access := func(list string) { write(t, filepath.Join(docs, ".access.yaml"), "access: ["+list+"]\n") }
	const crew = "'slack:T0HOME:usergroup/S0CREW'"
	access(crew)
	settings := fmt.Sprintf("slack: {mode: socket, api_url: '%s'}\nsources: [{folder: '%s'}]\n", s.APIURL(), docs)
	var replicas []*served
	for range 2 {
		replicas = append(replicas, serve(t, r.configuration(settings), slackEnv(s)...))
	}
	s.WaitSockets(2)
	var answer slacktest.Message
	for answer.TS == "" { // the document may not be there yet
		m := s.DM("U0ADA", "How much does the anchor of the boat weigh?")
		thread := func() []slacktest.Message { return s.Thread(m.Channel, m.TS) }
		patient(t, "a reply", s.Wait, func() bool {
			return slices.ContainsFunc(thread(), func(m slacktest.Message) bool { return m.AppID != "" && len(m.Blocks) > 0 })
		})
		for _, m := range thread() {
			if bytes.Contains(m.Blocks, []byte("source_1")) {
				answer = m
			}
		}
	}
	// opens reports whether the source opens at a replica.
	opens := func(replica int) bool {
		s.Distribute(func(int) int { return replica })
		s.CloseView("U0ADA")
		s.Click("U0ADA", answer, "source_1")
		patient(t, "a view", s.Wait, func() bool { return len(s.Views("U0ADA")) > 0 })
		return strings.Contains(string(s.Views("U0ADA")[0].Blocks), "anchor")
	}
	took := map[string][]time.Duration{}
	change := func(kind string, make func(), want bool) {
		t.Helper()
		start := time.Now()
		make()
		for replica := range replicas {
			for opens(replica) != want {
				if time.Since(start) > time.Minute {
					t.Fatalf("%s: replica %d does not know after a minute", kind, replica)
				}
			}
		}
		took[kind] = append(took[kind], time.Since(start))
	}
	group := func(users ...string) func() { return func() { s.SetGroup("S0CREW", users...) } }
	cut := func(then func()) func() {
		return func() { r.do("CLIENT", "KILL", "TYPE", "pubsub"); then() }
	}
	for range rounds {
		change("access file, narrower", func() { access("group:nobody") }, false)
		change("access file, wider", func() { access(crew) }, true)
		change("group, left", group(), false)
		change("group, joined", group("U0ADA"), true)
		change("group, left, subscriptions cut", cut(group()), false)
		change("group, joined, subscriptions cut", cut(group("U0ADA")), true)
	}
	for kind, all := range took {
		slices.Sort(all)
		p95 := all[max(0, (len(all)*95+99)/100-1)]
		t.Logf("%-34s %3d changes  p50 %5.2f s  p95 %5.2f s at both replicas", kind, len(all), all[len(all)/2].Seconds(), p95.Seconds())
		if os.Getenv("FOOTNOTE_LEVELS") != "" && p95 > target {
			t.Errorf("%s takes %v at the 95th percentile, more than %v", kind, p95, target)
		}
	}
	for _, p := range replicas {
		p.ready(http.StatusOK)
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
		}
	}
}
