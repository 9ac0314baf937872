package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
)

// stormSize is the number of questions: FOOTNOTE_STORM=2000 is the whole storm.
func stormSize(t *testing.T) int {
	if s := os.Getenv("FOOTNOTE_STORM"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 60
}

// beside runs the reduced storm beside other tests; the whole one has the machine
// to itself.
func beside(t *testing.T) {
	t.Helper()
	if os.Getenv("FOOTNOTE_STORM") == "" {
		t.Parallel()
	}
}

// stormWorld has 50 people, of whom ten are in the security group and three
// are guests, in 12 public and 8 private channels.
func stormWorld(r *rand.Rand) (w slacktest.World, people, rooms []string) {
	w = slacktest.NewWorld()
	for i := range 50 {
		people = append(people, w.Add(slacktest.User{ID: fmt.Sprintf("U0P%02d", i), Name: fmt.Sprintf("p%d", i), Guest: i >= 47}))
	}
	w.AddGroup("security", people[:10]...)
	for i := range 20 {
		members := []string{}
		for _, p := range people[:47] {
			if r.IntN(3) == 0 || i%3 == 0 {
				members = append(members, p)
			}
		}
		switch {
		case i < 12:
			rooms = append(rooms, w.Public(fmt.Sprintf("r%d", i), append(members, people[47+i%3])...))
		case i == 12:
			rooms = append(rooms, w.Private("r12", people[:10]...)) // the security group alone
		default:
			rooms = append(rooms, w.Private(fmt.Sprintf("r%d", i), members...))
		}
	}
	w.App.Scopes = append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)
	return w, people, rooms
}

func stormReads(user string, m slacktest.Message) bool {
	said := m.Text + string(m.Blocks)
	if user == "U0BOT" || strings.Contains(said, "looked for") {
		return true
	}
	var n int
	_, _ = fmt.Sscanf(user, "U0P%d", &n)
	return (n < 10 || !strings.Contains(said, "each Friday")) && (n < 47 || !strings.Contains(said, "thirty vacation"))
}

// TestStorm: duplicates, reordering, failures and restarts; one answer each,
// in its thread, and nothing to anybody who may not read it.
func TestStorm(t *testing.T) {
	beside(t)
	r := rand.New(rand.NewPCG(7, 7))
	w, people, rooms := stormWorld(r)
	members := map[string][]string{}
	for _, c := range w.Channels {
		members[c.ID] = slices.DeleteFunc(slices.Clone(c.Members), func(u string) bool { return u == "U0BOT" })
	}
	s := slacktest.New(t, w, slacktest.WithSeed(7))
	p := prepare(t, s, newStore(t, handbook, plan, leaflet), withDesk(stormDesk))
	rage(s)
	p.run()
	p.connected()
	n := stormSize(t)
	asked := storm(s, r, n, people, rooms, members, func([]msg) { p.again() })
	waitStorm(p, time.Duration(n)*200*time.Millisecond+90*time.Second) // Slack's second retry comes after a minute
	judge(p, asked)
	prompt(t, s)
}

func stormDesk(o *desk.Options) {
	o.PerAsker, o.PerRoom, o.Queue, o.Workers = 10_000, 10_000, 10_000, 4
	o.Grace, o.Patience = 2*time.Second, 10*time.Second
}

// rage makes a third of the deliveries come more than once, all of them out of
// order, and a tenth of the calls fail.
func rage(s *slacktest.Server) {
	rules := slacktest.Rules{CanRead: stormReads, Lost: true}
	if os.Getenv("FOOTNOTE_STORM") == "" {
		rules.AckWithin = busy
	}
	s.SetRules(rules)
	s.SetScatter(func(r *rand.Rand, d slacktest.Delivery) slacktest.Delivery {
		switch r.IntN(10) {
		case 0:
			d.Copies = 1
		case 1:
			d.NewIDs, d.CopyDelay = 1, time.Duration(r.IntN(200))*time.Millisecond
		case 2:
			d.Both, d.MessageFirst, d.PairGap = true, r.IntN(2) == 0, time.Duration(r.IntN(100))*time.Millisecond
		}
		d.Delay = time.Duration(r.IntN(60)) * time.Millisecond
		return d
	})
	for _, f := range []slacktest.Fault{{Status: 500}, {ResetBefore: true}, {ResetAfter: true}, {EmptyError: true}, {Status: 429, RetryAfter: "1"}} {
		f.Chance = .02
		s.AddFault(f)
	}
}

// TestStormOfKills is the storm with a bot in a process of its own that is
// killed four times, without a chance to tidy up.
func TestStormOfKills(t *testing.T) {
	beside(t)
	r := rand.New(rand.NewPCG(9, 9))
	w, people, rooms := stormWorld(r)
	members := map[string][]string{}
	for _, c := range w.Channels {
		members[c.ID] = slices.DeleteFunc(slices.Clone(c.Members), func(u string) bool { return u == "U0BOT" })
	}
	s := slacktest.New(t, w, slacktest.WithSeed(9))
	rage(s)
	dir := t.TempDir()
	child := spawn(t, s, dir)
	s.WaitSockets(1)
	n := stormSize(t) / 2
	before := 0 // questions of before the last kill
	asked := storm(s, r, n, people, rooms, members, func(asked []msg) {
		// A question that is killed three times is given up, as it should be:
		// none of before the last kill is left at the next.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := s.Wait(ctx, func() bool { return len(unanswered(s, asked[:before])) == 0 }); err != nil {
			t.Fatalf("the questions of before the last kill are not answered: %v", err)
		}
		before = len(asked)
		child.kill()
		child = spawn(t, s, dir)
	})
	for end := time.Now().Add(time.Duration(n)*200*time.Millisecond + 60*time.Second); time.Now().Before(end) && len(unanswered(s, asked)) > 0; {
		time.Sleep(50 * time.Millisecond)
	}
	child.kill()
	l, err := ledger.Open(dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	judge(&program{t: t, s: s, ledger: l, logs: child.logs}, asked)
}

func unanswered(s *slacktest.Server, asked []msg) []msg {
	return slices.DeleteFunc(slices.Clone(asked), func(q msg) bool { return answers(s.Thread(q.Channel, q.TS)) > 0 })
}

type process struct {
	cmd  *exec.Cmd
	logs *syncBuffer
}

// spawn runs TestChild in a process of its own.
func spawn(t *testing.T, s *slacktest.Server, dir string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.timeout=10m"), logs: &syncBuffer{}}
	app := s.App()
	p.cmd.Env = append(os.Environ(), "FOOTNOTE_CHILD_DIR="+dir, "FOOTNOTE_CHILD_API="+s.APIURL(), "FOOTNOTE_CHILD_TOKENS="+app.BotToken+" "+app.AppToken)
	p.cmd.Stdout, p.cmd.Stderr = p.logs, p.logs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_, _ = p.cmd.Process.Wait()
}

// TestChild is the bot of TestStormOfKills; run by itself it does nothing.
func TestChild(t *testing.T) {
	dir := os.Getenv("FOOTNOTE_CHILD_DIR")
	if dir == "" {
		return
	}
	tokens := strings.Fields(os.Getenv("FOOTNOTE_CHILD_TOKENS"))
	p := &program{t: t, index: newStore(t, handbook, plan, leaflet), dir: dir, draft: verbatim, logs: &syncBuffer{}, now: time.Now}
	p.c = slack.Config{BotToken: tokens[0], AppToken: tokens[1], APIURL: os.Getenv("FOOTNOTE_CHILD_API"), Pace: outbox.Limit{Every: time.Microsecond, Burst: 100}}
	stormDesk(&p.options)
	p.run()
	<-p.ran // until it is killed
}

// storm asks n questions and restarts the bot four times in between.
func storm(s *slacktest.Server, r *rand.Rand, n int, people, rooms []string, members map[string][]string, again func(asked []msg)) []msg {
	texts := []string{qHandbook, qPlan, qLeaflet}
	var asked []msg
	for i := range n {
		who := people[r.IntN(len(people))]
		room := rooms[r.IntN(len(rooms))]
		switch in := members[room]; {
		case r.IntN(5) == 0:
			asked = append(asked, s.DM(who, texts[r.IntN(3)]))
		default:
			asked = append(asked, s.Mention(in[r.IntN(len(in))], room, texts[r.IntN(3)]))
		}
		if i%(n/5+1) == n/5 {
			again(asked)
		}
		time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
	}
	return asked
}

func waitStorm(p *program, most time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		pending, err := p.ledger.Pending(p.t.Context(), 1)
		if h := p.desk.Health(); err == nil && len(pending) == 0 && h.Waiting+h.Running == 0 && p.s.Unsettled() == 0 {
			return
		}
	}
	p.t.Fatalf("still under way: %+v", p.desk.Health())
}

// judge holds the outcome to the promises and prints the figures.
func judge(p *program, asked []msg) {
	p.t.Helper()
	s, wrong := p.s, 0
	for _, q := range asked {
		if got := answers(s.Thread(q.Channel, q.TS)); got != 1 {
			if wrong++; wrong < 6 {
				d, err := p.ledger.Delivery(p.t.Context(), "slack|T0HOME|"+q.Channel+"|"+q.TS+"|answer")
				p.t.Errorf("%d answers to %s in %s: %s %s %+v %v", got, q.TS, q.Channel, d.State, d.Reason, d.Changes, err)
			}
		}
	}
	for _, v := range s.CheckInvariants() {
		p.t.Error(v)
	}
	p.canary()
	acks, status := latencies(s)
	calls, failed := 0, 0
	for _, r := range s.Requests() {
		calls++
		if r.Faulted {
			failed++
		}
	}
	p.t.Logf("%d questions, %d deliveries, %d calls of which %d failed, 4 restarts: %d with other than one answer; acknowledged p50 %s p99 %s, status p50 %s p99 %s",
		len(asked), len(acks), calls, failed, wrong, quantile(acks, 50), quantile(acks, 99), quantile(status, 50), quantile(status, 99))
}

// prompt holds the whole storm to a second; the reduced one has too few
// questions to speak of a hundredth of them.
func prompt(t *testing.T, s *slacktest.Server) {
	t.Helper()
	acks, status := latencies(s)
	if a, st := quantile(acks, 99), quantile(status, 99); os.Getenv("FOOTNOTE_STORM") != "" && (a > time.Second || st > time.Second) {
		t.Errorf("acknowledged within %s, status within %s", a, st)
	}
}

// latencies are how long acknowledgements took, and the first sign of work
// since a question was first delivered.
func latencies(s *slacktest.Server) (acks, status []time.Duration) {
	for _, a := range s.Acks() {
		acks = append(acks, a.After)
	}
	begun := map[string]time.Time{}
	for _, f := range s.Frames() {
		var e struct {
			Payload struct {
				Event struct{ TS, Channel string }
			}
		}
		if !f.Out || f.Type != "events_api" || json.Unmarshal(f.Body, &e) != nil || e.Payload.Event.TS == "" {
			continue
		}
		if key := e.Payload.Event.Channel + e.Payload.Event.TS; begun[key].IsZero() {
			begun[key] = f.At
		}
	}
	for _, r := range s.Requests("assistant.threads.setStatus", "reactions.add") {
		key := r.Args["channel_id"] + r.Args["thread_ts"] + r.Args["channel"] + r.Args["timestamp"]
		if at, ok := begun[key]; ok && r.Args["status"] != "" {
			status = append(status, r.At.Sub(at))
			delete(begun, key)
		}
	}
	return acks, status
}

func quantile(d []time.Duration, q int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)*q+99)/100-1].Round(time.Millisecond)
}
