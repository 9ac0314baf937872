package slack_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/generate"
	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
	"footnote/retrieval"
)

// away is a ledger that is out of reach at times. What it is asked then takes as
// long as the caller has patience.
type away struct {
	ledger.Store
	gone atomic.Bool
}

func (a *away) reach(ctx context.Context) error {
	if !a.gone.Load() {
		return nil
	}
	late := time.NewTimer(1500 * time.Millisecond) // the deadline of a command
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
	}
	return fmt.Errorf("%w: no route", retrieval.ErrUnavailable)
}

func (a *away) Claim(ctx context.Context, d ledger.Delivery, lease time.Duration) (ledger.Delivery, bool, error) {
	if err := a.reach(ctx); err != nil {
		return ledger.Delivery{}, false, err
	}
	return a.Store.Claim(ctx, d, lease)
}

func (a *away) Answer(ctx context.Context, id string) (ledger.Answer, error) {
	if err := a.reach(ctx); err != nil {
		return ledger.Answer{}, err
	}
	return a.Store.Answer(ctx, id)
}

func (a *away) AnswerTo(ctx context.Context, key string) (ledger.Answer, error) {
	if err := a.reach(ctx); err != nil {
		return ledger.Answer{}, err
	}
	return a.Store.AnswerTo(ctx, key)
}

func (a *away) Rate(ctx context.Context, f ledger.Feedback) error {
	if err := a.reach(ctx); err != nil {
		return err
	}
	return a.Store.Rate(ctx, f)
}

func (a *away) AskHuman(ctx context.Context, id, user string) (bool, error) {
	if err := a.reach(ctx); err != nil {
		return false, err
	}
	return a.Store.AskHuman(ctx, id, user)
}

// Whoever presses a button while the ledger is out of reach is told so, in the
// three seconds that the press is good for.
func TestPressesWhileTheLedgerIsAway(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{
		"source_1": "cannot be opened right now",
		"helpful":  "That did not work.",
		"human":    "That did not work.",
		"direct":   "That did not work.",
		"share":    "That did not work.",
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, matrixWorld())
			ledger := &away{}
			p := start(t, s, newStore(t, handbook), func(p *program) { p.away = ledger })
			a := p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
			p.quiet()
			ledger.gone.Store(true)
			if value(a, action) != "" {
				s.Click("U0ADA", a, action)
			} else {
				press(s, "U0ADA", a, action, value(a, "source_1"))
			}
			s.Eventually("a word", func() bool {
				for _, v := range s.Views("U0ADA") {
					if strings.Contains(string(v.Blocks), want) {
						return true
					}
				}
				for _, m := range s.Ephemerals("U0ADA") {
					if strings.Contains(m.Text, want) {
						return true
					}
				}
				return false
			})
		})
	}
}

// Whether a reply goes on from another replica's answer cannot be known while
// the ledger is out of reach: Slack sends it again.
func TestFollowUpWhileTheLedgerIsAway(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.App.Events = append([]string{"message.channels"}, slacktest.DefaultEvents...)
	w.App.Scopes = append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)
	// The second copy may come before the ledger is back: then the third counts.
	s := slacktest.New(t, w, slacktest.WithRetries(0, 2*time.Second, 2*time.Second))
	ledger := &away{}
	p := start(t, s, newStore(t, handbook, leaflet), channel("C0GENERAL", slack.Channel{FollowUps: true}), func(p *program) { p.away = ledger })
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	p.answer(q)
	p.quiet()
	p.again() // who was answered is forgotten
	ledger.gone.Store(true)
	s.ReplyInThread("U0ADA", "C0GENERAL", q.TS, qLeaflet)
	s.Eventually("a second copy", func() bool {
		for _, f := range s.Frames() {
			if f.Out && f.Retry > 0 {
				return true
			}
		}
		return false
	})
	ledger.gone.Store(false)
	s.Eventually("a second answer", func() bool { return answers(s.Thread("C0GENERAL", q.TS)) == 2 })
	p.quiet()
}

// wordsTo counts what the person of a question in a direct message is told of it.
func wordsTo(s *slacktest.Server, q msg) (n int) {
	for _, m := range s.Thread(q.Channel, q.TS) {
		if m.BotID == "B0BOT" && !m.Deleted {
			n++
		}
	}
	return n
}

// Two replicas that both find the ledger away, and both get a direct message, tell
// its person once.
func TestReplicasTellOnceThatTheLedgerIsAway(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slacktest.Fault{
		"both say it":                     {Route: "none"},
		"and Slack does not confirm that": {Route: "chat.postMessage", Calls: slacktest.First(3), ResetAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := historyScopes(fresh(t))
			s.AddFault(fault)
			var replicas []*program
			for range 2 {
				p := prepare(t, s, newStore(t, handbook), func(p *program) { p.claims = &away{}; p.claims.gone.Store(true) })
				p.run()
				replicas = append(replicas, p)
			}
			s.WaitSockets(2)
			var asked []msg
			for range 6 {
				asked = append(asked, s.DM("U0ADA", qHandbook, slacktest.Delivery{NewIDs: 3}))
			}
			s.WaitSettled()
			for _, p := range replicas {
				if p.desk.Health().Platforms["slack"].Received == 0 {
					t.Error("a replica got nothing: the test shows nothing")
				}
			}
			s.Eventually("a word on each", func() bool {
				for _, q := range asked {
					if wordsTo(s, q) != 1 {
						return nudge(s)
					}
				}
				return true
			})
		})
	}
}

// Whoever was told that search is away, by a process that ended before it could
// note that, is not answered besides.
func TestToldByAProcessThatEnded(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*slacktest.Server) msg{
		"in a channel":        func(s *slacktest.Server) msg { return s.Mention("U0ADA", "C0GENERAL", qHandbook) },
		"in a direct message": func(s *slacktest.Server) msg { return s.DM("U0ADA", qHandbook) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := historyScopes(fresh(t))
			p := prepare(t, s, newStore(t, handbook), drafting(func(context.Context, generate.Request) (generate.Draft, error) {
				return generate.Draft{}, fmt.Errorf("%w: no route", retrieval.ErrUnavailable)
			}))
			p.life = ledgertest.NewLife("before failed")
			p.run()
			p.connected()
			q := ask(s)
			<-p.life.Ended()
			p.halt()
			s.WaitSockets(0)
			p.life, p.draft = nil, verbatim
			p.run()
			p.connected()
			p.done()
			if n := wordsTo(s, q); n != 1 || answers(s.Thread(q.Channel, q.TS)) != 0 {
				t.Errorf("%d words, %d of them answers", n, answers(s.Thread(q.Channel, q.TS)))
			}
		})
	}
}
