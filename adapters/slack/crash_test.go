package slack_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/clocktest"
	"footnote/bot/ledger/ledgertest"
	"footnote/bot/shelf/shelftest"
)

// stepOf names a call that leaves something in Slack.
func stepOf(r *http.Request) string {
	switch method := path.Base(r.URL.Path); {
	case strings.Contains(r.URL.Path, "/respond/"):
		return "respond"
	case slices.Contains([]string{"chat.postMessage", "chat.update", "chat.delete", "chat.postEphemeral", "assistant.threads.setStatus", "reactions.add", "reactions.remove"}, method):
		return method
	}
	return ""
}

// surface is a way to ask.
type surface struct {
	name    string
	long    bool // its answer needs several messages
	refused bool
	file    bool     // it is taken in, and its state told
	blind   bool     // what was posted cannot be looked for
	unheard []string // steps at which nobody has heard of it yet, nor will again
	broken  []string // methods that the app may not use
	in      slack.Channel
	before  func(*program) msg // what an earlier process, which lived, has said
	ask     func(*program, msg)
}

const sentences = 500

var surfaces = func() []surface {
	mention := func(p *program, _ msg) { p.s.Mention("U0ADA", "C0GENERAL", qHandbook) }
	direct := func(p *program, _ msg) { p.s.DM("U0ADA", qHandbook) }
	command := func(p *program, _ msg) { p.s.Slash("U0ADA", "C0GENERAL", "/ask", qHandbook) }
	shortcut := func(p *program, m msg) { p.s.Shortcut("U0ADA", m, slack.ShortcutID) }
	said := func(p *program) msg { return p.s.Say("U0BOB", "C0GENERAL", qHandbook) }
	shared := func(p *program) msg {
		shortcut(p, said(p))
		return p.s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	}
	refusal := func(p *program) msg { return p.answer(p.s.Mention("U0ADA", "C0GENERAL", qDiary)) }
	press := func(which string) func(*program, msg) {
		return func(p *program, m msg) { p.s.Click("U0ADA", m, which) }
	}
	noStatus, noSign := []string{"assistant.threads.setStatus"}, []string{"assistant.threads.setStatus", "reactions.add"}
	once, pressed := []string{"before claim"}, []string{"before claim", "after claim", "before claim 2"} // the press, then the question
	noLook := []string{"conversations.replies", "conversations.history"}
	return []surface{
		{name: "a mention", ask: mention},
		{name: "a mention that is refused", refused: true, ask: func(p *program, _ msg) { p.s.Mention("U0ADA", "C0GENERAL", qDiary) }},
		{name: "a mention with a long answer", long: true, ask: mention},
		{name: "a mention where no status can be set", broken: noStatus, ask: mention},
		{name: "a mention where no sign can be set", broken: noSign, ask: mention},
		{name: "a mention with a long answer where no sign can be set", long: true, broken: noSign, ask: mention},
		{name: "a mention where the history may not be read", blind: true, broken: noLook, ask: mention},
		{name: "a mention where answers are private", in: slack.Channel{Answer: slack.PrivateAlways}, ask: mention},
		{name: "a direct message", ask: direct},
		{name: "a direct message with a long answer", long: true, ask: direct},
		{name: "a command", blind: true, unheard: once, ask: command},
		{name: "a command with a long answer", long: true, blind: true, unheard: once, ask: command},
		{name: "a shortcut", blind: true, unheard: once, before: said, ask: shortcut},
		{name: "a file", file: true, ask: func(p *program, _ msg) {
			p.s.PostFile("U0ADA", p.s.DMChannel("U0ADA"), "", "add this", []slacktest.File{notes})
		}},
		{name: "the button that asks directly", unheard: pressed, before: refusal, ask: press("direct")},
		{name: "the button that posts to the thread", unheard: pressed, before: shared, ask: press("share")},
	}
}()

// C-05, C-06: wherever a process ends, another one that takes over answers once
// and whole, or, where nobody can look, says that it may be there.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, s := range surfaces {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			life := ledgertest.NewLife("")
			s.crashAt(t, life)
			steps := life.Steps()
			if len(steps) < 5 {
				t.Errorf("the steps are %v", steps)
			}
			for _, step := range steps {
				for _, at := range []string{"before " + step, "after " + step} {
					if !slices.Contains(s.unheard, at) {
						t.Run(at, func(t *testing.T) { s.crashAt(t, ledgertest.NewLife(at)) })
					}
				}
			}
		})
	}
}

// crashAt has a question asked whose process ends with the life, and another one
// that takes it over.
func (s surface) crashAt(t *testing.T, life *ledgertest.Life) {
	f := historyScopes(fresh(t))
	var files []option
	if s.file {
		f = slacktest.New(t, withFiles(nil))
		files = append(files, takesFiles(shelftest.New()))
	}
	for _, method := range s.broken {
		f.AddFault(slacktest.Fault{Route: method, Error: "missing_scope"})
	}
	text := handbook
	if s.long {
		var b strings.Builder
		for i := range sentences {
			fmt.Fprintf(&b, "Employees get vacation days %05d. ", i)
		}
		text.text = strings.TrimSpace(b.String())
	}
	p := prepare(t, f, newStore(t, text, diary), append(files, channel("C0GENERAL", s.in))...)
	var said msg
	if s.before != nil {
		p.run()
		p.connected()
		said = s.before(p)
		p.quiet()
		p.halt()
		f.WaitSockets(0)
	}
	p.life = life
	p.run()
	p.connected()
	s.ask(p, said)
	f.Eventually("the end of the process, or of its work", func() bool {
		select {
		case <-life.Ended():
			return true
		default:
		}
		return p.worked(said) && f.Unsettled() == 0 || nudge(f)
	})
	p.halt()
	f.WaitSockets(0)
	p.life = nil
	p.run()
	p.connected()
	p.quiet()
	f.Eventually("the signs of work to go", func() bool { return len(p.indicators()) == 0 || nudge(f) })
	p.canary()
	for _, m := range f.Messages("C0GENERAL") {
		if len(m.Reactions) > 0 {
			t.Errorf("it still shows that it looks: %v", m.Reactions)
		}
	}
	s.judge(t, p, said)
	for _, broken := range f.CheckInvariants() {
		if !strings.Contains(broken, "at most 0 expected") { // the fake knows no answer that is posted to a thread later
			t.Error(broken)
		}
	}
}

// worked reports that the question has ended, and what the bot was asked before.
func (p *program) worked(before msg) bool {
	list, err := p.ledger.Latest(p.t.Context(), 10)
	n := 0
	for _, d := range list {
		if d.State.Ended() && d.Reason != "press" {
			n++
		}
	}
	asked := 1
	if before.User == "U0BOT" {
		asked = 2
	}
	return err == nil && n == asked
}

// judge holds what people see at the end to what was promised.
func (s surface) judge(t *testing.T, p *program, before msg) {
	t.Helper()
	answers, unsure, seen := 0, 0, map[string]int{}
	var trail []string
	for _, m := range slices.Concat(p.s.FromBot("C0GENERAL"), p.s.FromBot(p.s.DMChannel("U0ADA")), p.s.Ephemerals("U0ADA")) {
		if m.TS == before.TS || m.Deleted {
			continue
		}
		text := m.Text + shown(m)
		trail = append(trail, text[:min(len(text), 200)])
		if slacktest.HasButtons(m) && (s.refused || strings.Contains(text, "Sources")) || s.file {
			answers++
		}
		if strings.Contains(text, "was interrupted while I posted") {
			unsure++
		}
		if strings.Contains(text, "Looking in") && !s.blind {
			t.Errorf("it still says that it looks")
		}
		for _, w := range strings.Fields(shown(m)) {
			if len(w) == 6 && w[5] == '.' {
				seen[w]++
			}
		}
	}
	if answers > 1 || unsure > 1 || answers+unsure == 0 || unsure > 0 && !s.blind {
		t.Errorf("%d answers, told %d times that it may be there: %q", answers, unsure, trail)
	}
	for w, n := range seen {
		if n > 1 {
			t.Errorf("said %d times: %s", n, w)
			break
		}
	}
	if s.long && answers == 1 && unsure == 0 && len(seen) != sentences {
		t.Errorf("%d of %d sentences are there", len(seen), sentences)
	}
}

// A process that is stopped when it is about to post, and goes on when another has
// taken the question over, says nothing.
func TestStoppedBeforeItPosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop   string
		broken []string
		ask    func(*slacktest.Server)
		before int // messages that are there when it stops
	}{
		"a mention":                       {"posting", nil, func(s *slacktest.Server) { s.Mention("U0ADA", "C0GENERAL", qHandbook) }, 0},
		"a mention with a sign to change": {"posting", []string{"assistant.threads.setStatus", "reactions.add"}, func(s *slacktest.Server) { s.Mention("U0ADA", "C0GENERAL", qHandbook) }, 1},
		"a direct message":                {"posting", nil, func(s *slacktest.Server) { s.DM("U0ADA", qHandbook) }, 0},
		"a command":                       {"posting", nil, func(s *slacktest.Server) { s.Slash("U0ADA", "C0GENERAL", "/ask", qHandbook).Wait() }, 1},
		"while it works":                  {"answering", nil, func(s *slacktest.Server) { s.Mention("U0ADA", "C0GENERAL", qHandbook) }, 0},
		"while it records the answer":     {"record", nil, func(s *slacktest.Server) { s.DM("U0ADA", qHandbook) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktest.NewManualClock(time.Time{})
			s := historyScopes(fresh(t, slacktest.WithClock(clock)))
			for _, method := range c.broken {
				s.AddFault(slacktest.Fault{Route: method, Error: "missing_scope"})
			}
			p := prepare(t, s, newStore(t, handbook))
			p.life = ledgertest.NewPause(c.stop)
			p.run()
			p.connected()
			c.ask(s)
			<-p.life.Paused()
			clock.Advance(3 * time.Minute) // more than a lease
			if list, err := p.ledger.Resume(t.Context(), time.Minute); err != nil || len(list) != 1 {
				t.Fatalf("nothing to take over: %v, %v", list, err)
			}
			p.life.GoOn()
			s.Eventually("the run to end", func() bool { h := p.desk.Health(); return h.Running+h.Waiting == 0 || nudge(s) })
			all := slices.Concat(s.FromBot("C0GENERAL"), s.FromBot(s.DMChannel("U0ADA")), s.Ephemerals("U0ADA"))
			for _, m := range all {
				if !strings.Contains(m.Text+shown(m), "Looking in") {
					t.Errorf("it says %s", shown(m))
				}
			}
			if len(all) != c.before {
				t.Errorf("%d messages, want %d", len(all), c.before)
			}
		})
	}
}
