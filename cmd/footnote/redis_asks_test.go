package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"footnote/adapters/discord/discordtest"
	"footnote/adapters/slack/slacktest"
	"footnote/bot"
)

// both is the program on both platforms, with an answer on each.
type both struct {
	*onRedis
	slack   *slacktest.Server
	discord *discordtest.Server
	serve   *served
	answer  slacktest.Message   // to U0ADA, in a thread
	shown   discordtest.Message // to ada, in channel
	ada     string
	channel string
}

func newBoth(t *testing.T) *both {
	t.Helper()
	w := slacktest.DemoWorld()
	w.App.Events = append([]string{"message.channels"}, slacktest.DefaultEvents...)
	w.App.Scopes = append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)
	b := &both{onRedis: newOnRedis(t), slack: slacktest.New(t, w, slacktest.WithRules(slacktest.Rules{Lost: true}))}
	b.discord, b.ada, b.channel = newDiscord(t)
	b.serve = serve(t, b.configuration(fmt.Sprintf("slack: {mode: socket, api_url: '%s', default_follow_ups: true}\ndiscord: {api_url: '%s'}\n", b.slack.APIURL(), b.discord.URL())),
		append(slackEnv(b.slack), "FOOTNOTE_DISCORD_TOKEN="+b.discord.App().Token)...)
	patient(t, "the commands", b.discord.Wait, func() bool { return len(b.discord.Commands("")) > 0 })
	b.serve.ready(http.StatusOK)
	first := asks(t, b.slack, "U0ADA")
	for _, m := range b.slack.Thread(first.Channel, first.TS) {
		if bytes.Contains(m.Blocks, []byte("source_1")) {
			b.answer = m
		}
	}
	b.discord.Command(b.ada, b.channel, "ask", map[string]any{"question": rotate})
	patient(t, "an answer", b.discord.Wait, func() bool { return discordAnswers(b.discord, b.channel) == 1 })
	b.shown = b.discord.FromBot(b.channel)[0]
	return b
}

// act is something that a person does.
type act struct {
	name string
	do   func() (told func() bool) // whether there has been a word on it since
}

// more reports that there is more of something than at the beginning.
func more(count func() int) func() bool {
	n := count()
	return func() bool { return count() > n }
}

func with(text string, all []slacktest.Message) (n int) {
	for _, m := range all {
		if strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// acked reports that a command was answered so.
func acked(i *slacktest.Interaction, text string) func() bool {
	return func() bool {
		said, ok := i.Acked()
		return ok && bytes.Contains(said, []byte(text))
	}
}

// responded reports that an interaction was answered so.
func responded(i *discordtest.Interaction, text string) func() bool {
	return func() bool { m, ok := i.Response(); return ok && strings.Contains(m.Content, text) }
}

// acts is everything that people do for which the program needs its Redis.
func (b *both) acts() []act {
	s, d := b.slack, b.discord
	thread := func() []slacktest.Message { return s.Thread(b.answer.Channel, b.answer.ThreadTS) }
	unsaid := func(user string, room func() []slacktest.Message) func() bool {
		return more(func() int { return with(bot.UnavailableText, append(room(), s.Ephemerals(user)...)) })
	}
	none := func() []slacktest.Message { return nil }
	general := func() []slacktest.Message { return s.Messages("C0GENERAL") }
	const notNow = "cannot be said right now"
	return []act{
		{"Slack: a mention", func() func() bool {
			told := unsaid("U0BOB", general)
			s.Mention("U0BOB", "C0GENERAL", leave)
			return told
		}},
		{"Slack: a direct message", func() func() bool {
			told := unsaid("U0ADA", func() []slacktest.Message { return s.Messages(s.DMChannel("U0ADA")) })
			s.DM("U0ADA", leave)
			return told
		}},
		{"Slack: a message that becomes a question", func() func() bool {
			m := s.Say("U0BOB", "C0GENERAL", "Nothing.")
			told := unsaid("U0BOB", general)
			s.Edit(m, "<@U0BOT> "+leave)
			return told
		}},
		{"Slack: a follow-up", func() func() bool {
			told := unsaid("U0ADA", thread)
			s.ReplyInThread("U0ADA", b.answer.Channel, b.answer.ThreadTS, leave)
			return told
		}},
		{"Slack: /ask", func() func() bool { return acked(s.Slash("U0ADA", "C0GENERAL", "/ask", leave), bot.UnavailableText) }},
		{"Slack: a shortcut", func() func() bool {
			told := unsaid("U0CYD", none)
			s.Shortcut("U0CYD", b.answer, "triage_message")
			return told
		}},
		{"Slack: /footnote status", func() func() bool { return acked(s.Slash("U0ADA", "C0GENERAL", "/footnote", "status"), notNow) }},
		{"Slack: /footnote why", func() func() bool {
			return acked(s.Slash("U0ADA", "C0GENERAL", "/footnote", "why"), "cannot be listed right now")
		}},
		{"Slack: a source", func() func() bool {
			s.CloseView("U0BOB")
			s.Click("U0BOB", b.answer, "source_1")
			return func() bool {
				v := s.Views("U0BOB")
				return len(v) > 0 && strings.Contains(string(v[0].Blocks), "cannot be opened right now")
			}
		}},
		{"Slack: feedback", func() func() bool {
			told := more(func() int { return with("That did not work", s.Ephemerals("U0ADA")) })
			s.Click("U0ADA", b.answer, "helpful")
			return told
		}},
		{"Discord: /ask", func() func() bool {
			return responded(d.Command(b.ada, b.channel, "ask", map[string]any{"question": leave}), bot.UnavailableText)
		}},
		{"Discord: /footnote status", func() func() bool { return responded(d.Command(b.ada, b.channel, "footnote status", nil), notNow) }},
		{"Discord: /footnote why", func() func() bool {
			return responded(d.Command(b.ada, b.channel, "footnote why", nil), "Please try again")
		}},
		{"Discord: a source", func() func() bool {
			return responded(d.Click(b.ada, b.shown, button(b.shown, "s1")), "Please try again")
		}},
		{"Discord: feedback", func() func() bool {
			return responded(d.Click(b.ada, b.shown, button(b.shown, "yes")), "Please try again")
		}},
	}
}

// storm has many people ask while nothing can be done for them: once that is
// known, what is sent to the Redis does not grow with their number.
func (b *both) storm() {
	b.Helper()
	var commands atomic.Int64
	b.proxy.Point(counting(b.T, "LOADING Redis is loading the dataset in memory", &commands))
	const askers = 100
	for _, known := range []bool{false, true} {
		before, start := commands.Load(), time.Now()
		var all []func() bool
		for range askers {
			all = append(all, acked(b.slack.Slash("U0ADA", "C0GENERAL", "/ask", leave), bot.UnavailableText))
		}
		patient(b.T, "a word for each", b.slack.Wait, func() bool {
			return !slices.ContainsFunc(all, func(told func() bool) bool { return !told() })
		})
		took, sent := time.Since(start), commands.Load()-before
		b.Logf("%d people told in %v, with %d commands to the Redis", askers, took.Round(time.Millisecond), sent)
		// Each of two links tries every half second, with the greetings of a few connections.
		if most := int64(60 * (1 + took.Seconds())); known && sent > most {
			b.Errorf("%d commands were sent in %v, want at most %d", sent, took, most)
		}
	}
	b.proxy.Point(b.server.Address)
	b.serve.ready(http.StatusOK)
	asks(b.T, b.slack, "U0BOB")
}

// button is the id of the button for a purpose.
func button(m discordtest.Message, what string) string {
	for _, id := range regexp.MustCompile(`"custom_id":"([^"]+)"`).FindAllSubmatch(m.Components, -1) {
		if bytes.HasSuffix(id[1], []byte(":"+what)) {
			return string(id[1])
		}
	}
	return ""
}

// Whatever people do while Redis is away, they get a word on it; within two
// seconds, which is held where FOOTNOTE_LEVELS is set.
func TestRedis_EverythingWhileAway(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	levels := os.Getenv("FOOTNOTE_LEVELS") != ""
	for _, f := range []struct {
		name  string
		begin func()
	}{
		{"down", b.proxy.Down},
		{"silent", b.proxy.Stall},
		{"slow by 3 s", func() { b.proxy.Delay(3000) }},
	} {
		f.begin()
		for _, a := range b.acts() {
			if levels { // as the first one after the fault began
				b.proxy.Heal()
				b.serve.ready(http.StatusOK)
				f.begin()
			}
			start := time.Now()
			told := a.do()
			for !told() {
				if time.Since(start) > 20*time.Second {
					t.Fatalf("%s, %s: no word", f.name, a.name)
				}
				time.Sleep(2 * time.Millisecond)
			}
			took := time.Since(start)
			t.Logf("%-12s %-42s %5.2f s", f.name, a.name, took.Seconds())
			if levels && took > 2*time.Second {
				t.Errorf("%s, %s: told after %v", f.name, a.name, took)
			}
		}
		b.proxy.Heal()
		b.serve.ready(http.StatusOK)
		asks(t, b.slack, "U0BOB")
	}
	b.storm()
	if err := b.serve.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, b.serve.log())
	}
	for _, broken := range append(b.slack.CheckInvariants(), b.discord.CheckInvariants()...) {
		t.Error(broken)
	}
}
