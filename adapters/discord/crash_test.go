package discord

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
	"footnote/bot/clocktest"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
)

// stepOf names a call that leaves something on Discord.
func stepOf(r *http.Request) string {
	p := r.URL.Path
	switch {
	case r.Method == http.MethodGet:
	case strings.HasSuffix(p, "/callback"):
		return "first response"
	case strings.Contains(p, "/webhooks/") && r.Method == http.MethodPatch:
		return "edit"
	case strings.Contains(p, "/webhooks/"):
		return "follow-up"
	case strings.HasSuffix(p, "/threads"):
		return "thread"
	case strings.HasSuffix(p, "/messages"):
		return "message"
	case strings.Contains(p, "/messages/"):
		return "change"
	}
	return ""
}

// surface is a way to ask.
type surface struct {
	name    string
	doc     string // that the question is about: all
	long    bool   // its answer needs several messages
	refused bool
	file    bool          // it is taken in, and its state told
	blind   bool          // parts that only their asker sees, which nobody can look for
	late    time.Duration // until another process takes over
	config  func(*Config)
	before  func(*rig) dt.Message // what an earlier process, which lived, has said
	ask     func(*rig, dt.Message)
}

func surfaces(x *town) []surface {
	privately := map[string]any{"question": "what about all", "private": true}
	aloud := func(r *rig, _ dt.Message) { r.ask(x.cy, x.open, "what about all") }
	inThread := func(r *rig, _ dt.Message) { r.ask(x.cy, x.thread, "what about all") }
	alone := func(r *rig, _ dt.Message) { r.Command(x.cy, x.open, "ask", privately) }
	mention := func(r *rig, _ dt.Message) { r.Mention(x.cy, x.open, "what about all") }
	mentions := func(c *Config) { c.Mentions = true }
	answered := func(r *rig) dt.Message { return r.Command(x.cy, x.open, "ask", privately).WaitAnswer() }
	refused := func(r *rig) dt.Message { return r.ask(x.bob, x.open, "what about staff").WaitAnswer() }
	press := func(user, which string) func(*rig, dt.Message) {
		return func(r *rig, m dt.Message) { r.Click(user, m, button(r.t, m, which)) }
	}
	const dead, forgotten = 16 * time.Minute, 10 * time.Minute
	return []surface{
		{name: "a command", ask: aloud},
		{name: "a command that is refused", refused: true, ask: func(r *rig, _ dt.Message) { r.ask(x.cy, x.open, "what about nothing") }},
		{name: "a command in private", ask: alone},
		{name: "a command where the bot may not write", ask: func(r *rig, _ dt.Message) { r.ask(x.cy, x.mute, "what about all") }},
		{name: "a command in a direct conversation", doc: "staff", ask: func(r *rig, _ dt.Message) { r.ask(x.bob, r.DMChannel(x.bob), "what about staff") }},
		{name: "a command on a message", ask: func(r *rig, _ dt.Message) {
			r.MessageCommand(x.cy, r.Say(x.bob, x.open, "what about all"), askMessage)
		}},
		{name: "a command with a long answer", long: true, ask: aloud},
		{name: "a command with a long answer, in a thread", long: true, ask: inThread},
		{name: "a command with a long answer in private", long: true, blind: true, ask: alone},
		{name: "a command, when its token is dead", late: dead, ask: aloud},
		{name: "a command in private, when its token is dead", late: dead, blind: true, ask: alone},
		{name: "a command with a long answer, when its token is dead", long: true, late: dead, ask: aloud},
		{name: "a mention", config: mentions, ask: mention},
		{name: "a mention with a long answer", long: true, config: mentions, ask: mention},
		{name: "a mention, when nonces are forgotten", config: mentions, late: forgotten, ask: mention},
		{name: "a mention with a long answer, when nonces are forgotten", long: true, config: mentions, late: forgotten, ask: mention},
		{name: "a direct message", doc: "staff", config: mentions, ask: func(r *rig, _ dt.Message) { r.DM(x.bob, "what about staff") }},
		{name: "a file", file: true, ask: func(r *rig, _ dt.Message) { r.PostFile(x.bob, r.DMChannel(x.bob), "add this", []dt.File{notes}) }},
		{name: "a file, when nonces are forgotten", file: true, late: forgotten, ask: func(r *rig, _ dt.Message) { r.PostFile(x.bob, r.DMChannel(x.bob), "add this", []dt.File{notes}) }},
		{name: "the button that asks in private", doc: "staff", before: refused, ask: press(x.bob, "private")},
		{name: "the button that posts to the channel", before: answered, ask: press(x.cy, "post")},
		{name: "the button that posts to the channel, when its token is dead", late: dead, before: answered, ask: press(x.cy, "post")},
	}
}

// C-05, C-06: wherever a process ends, another one that takes over answers once
// and whole, or, where nobody can look, says that it may be there.
func TestCrash(t *testing.T) {
	t.Parallel()
	for i, s := range surfaces(newTown()) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			life := ledgertest.NewLife("")
			crashAt(t, i, life)
			steps := life.Steps()
			if len(steps) < 5 {
				t.Errorf("the steps are %v", steps)
			}
			for _, step := range steps[1:] { // of what was not claimed nobody has heard
				for _, at := range []string{"before " + step, "after " + step} {
					t.Run(at, func(t *testing.T) { crashAt(t, i, ledgertest.NewLife(at)) })
				}
			}
		})
	}
}

// crashAt has a question asked whose process ends with the life, and another one
// that takes it over.
func crashAt(t *testing.T, i int, life *ledgertest.Life) {
	x := newTown()
	s := surfaces(x)[i]
	clock := clocktest.NewManualClock(time.Now())
	books := newShelf(x.documents())
	if s.long {
		var lines []string
		for n := range 40 {
			lines = append(lines, fmt.Sprintf("Sentence %d of what everybody here may read is not short, and there are more of them.", n))
		}
		books.say["all"] = strings.Join(lines, "\n")
	}
	rules := dt.Rules{Explicit: true, CanRead: x.canRead, Claimed: func(string) bool { return true }, Lost: true, DeadTokenCalls: 8}
	base := setting{shelf: books, config: s.config, now: clock.Now, server: dt.New(t, x.world, dt.WithClock(clock), dt.WithRules(rules))}
	if s.file {
		files := takesFiles(t, x)
		base.files, base.dir, base.config = files.files, files.dir, files.config
	}
	dir := t.TempDir()
	process := func(life *ledgertest.Life) *rig {
		l, err := ledger.Open(dir, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		now := base
		now.ledger, now.life = l, life
		return newRig(t, x, now)
	}
	end := func(r *rig) {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		_ = r.ledger.Close()
	}
	var said dt.Message
	if s.before != nil {
		r := process(nil)
		said = s.before(r)
		r.idle()
		end(r)
	}
	r := process(life)
	s.ask(r, said)
	questions := 1
	if s.before != nil {
		questions = 2
	}
	r.endOf(life, questions)
	end(r)
	clock.Advance(s.late)
	r = process(nil)
	r.idle()
	s.judge(t, r, said)
	end(r)
	for _, broken := range r.CheckInvariants() {
		if s.late < 15*time.Minute || !strings.Contains(broken, "is left thinking") { // Discord itself says then that nothing came
			t.Error(broken)
		}
	}
}

// endOf waits until the process has ended, or so many questions have.
func (r *rig) endOf(life *ledgertest.Life, questions int) {
	r.t.Helper()
	r.Eventually("the end of the process, or of its work", func() bool {
		select {
		case <-life.Ended():
			return true
		default:
		}
		d, err := r.ledger.Latest(context.Background(), 10)
		return err == nil && len(d) == questions && !slices.ContainsFunc(d, func(d ledger.Delivery) bool { return !d.State.Ended() })
	})
}

// judge holds what people see at the end to what was promised.
func (s surface) judge(t *testing.T, r *rig, before dt.Message) {
	t.Helper()
	x := r.town
	channels := []string{x.open, x.thread, x.mute, r.DMChannel(x.bob), r.DMChannel(x.cy)}
	for _, c := range r.Threads(x.open) {
		channels = append(channels, c.ID)
	}
	var all []dt.Message
	for _, c := range channels {
		all = append(all, r.FromBot(c)...)
	}
	all = append(all, r.Ephemerals(x.bob)...)
	all = append(all, r.Ephemerals(x.cy)...)
	answers, unsure, words, seen := 0, 0, 0, map[string]int{}
	var trail []string
	for _, m := range all {
		if m.ID == before.ID || slices.Contains(trail, m.ID) {
			continue
		}
		trail = append(trail, m.ID, m.Content)
		if dt.HasButtons(m) && (s.refused || strings.Contains(m.Content, "Sources")) || s.file {
			answers++
		}
		if strings.Contains(m.Content, "did not confirm") || strings.Contains(m.Content, "was interrupted while I posted") {
			unsure++
		}
		if m.Content == sayPosted {
			words++
		}
		for _, line := range strings.Split(m.Content, "\n") {
			seen[line]++
		}
	}
	if answers > 1 || unsure > 1 || answers+unsure == 0 || unsure > 0 && !s.blind || words > 1 {
		t.Errorf("%d answers, told %d times that it may be there, %d words besides: %q", answers, unsure, words, trail)
	}
	whole := 0
	for line, n := range seen {
		if strings.HasPrefix(line, "Sentence") {
			whole++
			if n > 1 {
				t.Errorf("said %d times: %s", n, line)
			}
		}
	}
	if short := strings.Contains(strings.Join(trail, "\n"), "Shortened"); s.long && answers == 1 && whole != 40 && !short {
		t.Errorf("%d of 40 sentences are there: %q", whole, trail)
	}
}

// SECURITY: what an earlier run began for all is not completed with what is for the
// asker alone, when it is not known any more who can read there.
func TestCrashThenTheAudienceIsLost(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*rig){
		"a command": func(r *rig) { r.ask(r.town.bob, r.town.open, "what about all and staff") },
		"a mention": func(r *rig) { r.Mention(r.town.bob, r.town.open, "what about all and staff") },
	} {
		for _, at := range []string{"after edit", "after thread", "after message", "before place", "after place"} {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				x := newTown()
				books := newShelf(x.documents())
				books.say["all"] = long(40)
				dir := t.TempDir()
				start := func(s setting) *rig {
					l, err := ledger.Open(dir, ledger.Options{})
					if err != nil {
						t.Fatal(err)
					}
					s.ledger, s.shelf, s.config = l, books, func(c *Config) { c.Mentions = true }
					return newRig(t, x, s)
				}
				life := ledgertest.NewLife(at)
				r := start(setting{life: life})
				ask(r)
				r.endOf(life, 1)
				_ = r.stop()
				_ = r.ledger.Close()
				r.SetRules(dt.Rules{CanRead: x.canRead, Lost: true, Claimed: func(string) bool { return true }, DeadTokenCalls: 8})
				connected := make(chan *Adapter, 1)
				books.wait = func(context.Context, bot.Message) {
					a := <-connected
					a.book.Forget()
					connected <- a
				}
				next := start(setting{server: r.Server})
				connected <- next.adapter
				next.idle()
				for _, broken := range next.CheckInvariants() {
					t.Error(broken)
				}
			})
		}
	}
}

// A process that is stopped when it is about to post, and goes on when another has
// taken the question over, says nothing.
func TestStoppedBeforeItPosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, stop string
		ask        func(*rig, *town)
	}{
		{"a command", "posting", func(r *rig, x *town) { r.ask(x.cy, x.open, "what about all") }},
		{"a mention", "posting", func(r *rig, x *town) { r.Mention(x.cy, x.open, "what about all") }},
		{"while it works", "answering", func(r *rig, x *town) { r.Mention(x.cy, x.open, "what about all") }},
		{"while it records the answer", "record", func(r *rig, x *town) { r.ask(x.cy, x.open, "what about all") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTown()
			clock := clocktest.NewManualClock(time.Now())
			l, err := ledger.Open(t.TempDir(), ledger.Options{Now: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			life := ledgertest.NewPause(tt.stop)
			r := newRig(t, x, setting{
				ledger: l, life: life, now: clock.Now, options: []dt.Option{dt.WithClock(clock)},
				config: func(c *Config) { c.Mentions = true }, desk: func(o *desk.Options) { o.Now = clock.Now },
			})
			tt.ask(r, x)
			<-life.Paused()
			clock.Advance(3 * time.Minute) // more than a lease
			if list, err := l.Resume(context.Background(), time.Minute); err != nil || len(list) != 1 {
				t.Fatalf("nothing to take over: %v, %v", list, err)
			}
			life.GoOn()
			r.Eventually("the run to end", func() bool { h := r.desk.Health(); return h.Running+h.Waiting == 0 })
			for _, m := range r.FromBot(x.open) {
				if !m.Thinking {
					t.Errorf("it says %s", m.Content)
				}
			}
		})
	}
}
