package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"footnote/adapters/slack/slacktest"
)

// chatOnRedis is the configuration of a replica with files and channels of Slack,
// which leaves documents to workers.
func (r *onRedis) chatOnRedis(s *slacktest.Server) string {
	r.Helper()
	return r.configuration("slack: {mode: socket, api_url: '" + s.APIURL() + "'}\nsync: {interval: 5}\ningest: {workers: 0}\n" +
		"uploads: {by: ['slack:T0HOME:usergroup/S0SECURITY']}\nsources: [{slack_channel: C0HELP}, {slack_channel: C0SECURITY, history: 30d}]\n")
}

// until asks again and again until the answer holds the text, or no longer does.
func until(t *testing.T, s *slacktest.Server, what, user, question, text string, want bool) {
	t.Helper()
	got := ""
	for range 60 {
		if got = answered(t, s, user, question); strings.Contains(got, text) == want {
			return
		}
	}
	t.Fatalf("%s: %s is answered %s", what, user, got)
}

// A file that one replica took in is answered from by the other, for those who
// are in its channel, outlives the first one, and goes when the other one hears
// that it was deleted.
func TestRedis_FileFromSlack(t *testing.T) {
	t.Parallel()
	r, env := restricted(t)
	s := withChat(t)
	env = append(env, slackEnv(s)...)
	a := serve(t, r.chatOnRedis(s), env...)
	b := serve(t, r.chatOnRedis(s), env...)
	worker := r.working(env)
	s.WaitSockets(2)
	s.Distribute(func(int) int { return 0 })
	m := s.PostFile("U0ADA", "C0SECURITY", "", "<@U0BOT> add this", []slacktest.File{{ID: "F0LEAVE", Name: "leave.md", Content: leaveDocument}})
	said(t, s, "C0SECURITY", func(n slacktest.Message) bool {
		return n.ThreadTS == m.TS && strings.Contains(n.Text, "1 chunk; ask me about it")
	})
	if !heard(a) || heard(b) {
		t.Fatal("the file did not come to the first replica alone: the test shows nothing")
	}
	s.Distribute(func(n int) int { return n - 1 })
	for user, may := range map[string]bool{"U0BOB": true, "U0CYD": false} {
		got := answered(t, s, user, parental)
		if strings.Contains(got, "eighteen weeks") != may || may && !strings.Contains(got, "archives/C0SECURITY/p") {
			t.Errorf("%s is answered by the other replica: %s", user, got)
		}
	}
	_ = a.stop(syscall.SIGKILL)
	s.WaitSockets(1)
	if got := answered(t, s, "U0BOB", parental); !strings.Contains(got, "eighteen weeks") {
		t.Errorf("after the first one was killed: %s", got)
	}
	s.Delete(m)
	s.WaitSettled()
	if got := answered(t, s, "U0ADA", parental); strings.Contains(got, "eighteen weeks") {
		t.Errorf("after the message was deleted: %s", got)
	}
	for _, p := range []*served{b, worker} {
		if err := p.stop(os.Interrupt); err != nil {
			t.Errorf("told to stop it ended with %v", err)
		}
		for _, word := range []string{"NOPERM", "leave.md", "eighteen", "Parental", "xoxb-"} {
			if strings.Contains(p.log(), word) {
				t.Errorf("the log holds %q:\n%s", word, p.log())
			}
		}
	}
}

// What became of a file is told also when the replica that took it in is gone for
// good, in a directory of its own.
func TestRedis_FileToldByAnother(t *testing.T) {
	t.Parallel()
	r, env := restricted(t)
	s := withChat(t)
	env = append(env, slackEnv(s)...)
	a := serve(t, r.chatOnRedis(s), env...)
	a.line("Slack channels as sources: 2, kept up with")
	b := serve(t, r.chatOnRedis(s), env...)
	s.WaitSockets(2)
	s.Distribute(func(n int) int { return n - 1 })
	m := s.PostFile("U0ADA", "C0SECURITY", "", "<@U0BOT> add this", []slacktest.File{{ID: "F0LEAVE", Name: "leave.md", Content: leaveDocument}})
	r.notices(1)
	_ = b.stop(syscall.SIGKILL)
	r.working(env)
	said(t, s, "C0SECURITY", func(n slacktest.Message) bool {
		return n.ThreadTS == m.TS && strings.Contains(n.Text, "1 chunk; ask me about it")
	})
	if got := s.FromBot("C0SECURITY"); len(got) != 1 {
		t.Errorf("%d messages in the channel", len(got))
	}
	r.notices(0)
}

// notices waits until so many messages wait for what becomes of a file.
func (r *onRedis) notices(want int64) {
	r.Helper()
	late := time.Now().Add(2 * time.Minute)
	for range time.Tick(20 * time.Millisecond) {
		n, err := r.link.HLen(context.Background(), "footnote:notices").Result()
		if err == nil && n == want {
			return
		}
		if time.Now().After(late) {
			r.Fatalf("%d messages wait, %v, want %d", n, err, want)
		}
	}
}

// heard reports that the replica got something from Slack.
func heard(p *served) bool {
	_, metrics := p.get("/metrics")
	return strings.Contains(metrics, `footnote_deliveries_received_total{platform="slack"} `) &&
		!strings.Contains(metrics, `footnote_deliveries_received_total{platform="slack"} 0`)
}

// Threads of channels are read by one replica, whichever hears of a change, and
// by the next one when that is killed.
func TestRedis_ChannelsOfSlack(t *testing.T) {
	t.Parallel()
	r, env := restricted(t)
	s := withChat(t)
	env = append(env, slackEnv(s)...)
	root := s.Say("U0ADA", "C0HELP", "My VPN connection is lost every morning, what can I do?")
	reply := s.ReplyInThread("U0BOB", "C0HELP", root.TS, vpn)
	secret := s.Say("U0BOB", "C0SECURITY", "The vault of the archive opens with the blue badge only.")
	const following = "Slack channels as sources: 2, kept up with"
	a := serve(t, r.chatOnRedis(s), env...)
	a.line(following)
	file := r.chatOnRedis(s)
	b := serve(t, file, env...)
	b.line("sources: kept up with by another replica, ")
	worker := r.working(env)
	s.WaitSockets(2)
	s.Distribute(func(n int) int { return n - 1 }) // the one that does not read hears all
	until(t, s, "a thread", "U0CYD", vpnAsked, "gateway in Lisbon", true)
	until(t, s, "a private channel, in it", "U0ADA", "Which badge opens the vault of the archive?", "blue badge", true)
	until(t, s, "a private channel, not in it", "U0CYD", "Which badge opens the vault of the archive?", "blue badge", false)
	s.Edit(reply, "The VPN drops because the gateway in Oslo restarts at seven each morning.")
	until(t, s, "edited", "U0CYD", vpnAsked, "gateway in Oslo", true)
	s.Delete(secret)
	s.WaitSettled()
	if got := answered(t, s, "U0ADA", "Which badge opens the vault of the archive?"); strings.Contains(got, "blue badge") {
		t.Errorf("deleted: %s", got)
	}
	if strings.Contains(b.log(), following) {
		t.Errorf("both read the channels:\n%s", b.log())
	}
	_ = a.stop(syscall.SIGKILL)
	s.WaitSockets(1)
	s.Say("U0BOB", "C0SECURITY", "The archive of maps closes at nine in the evening.")
	b.line(following)
	until(t, s, "written while nobody read", "U0ADA", maps, "nine in the evening", true)
	s.ShareChannel("C0HELP", "T0OTHER", false)
	until(t, s, "shared with outsiders", "U0ADA", vpnAsked, "gateway in", false)
	if err := b.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v", err)
	}
	// What is left of a channel that the configuration names no longer goes.
	before, _, _ := strings.Cut(read(t, file), "sources:")
	write(t, file, before)
	b = serve(t, file, env...)
	until(t, s, "a channel that is a source no longer", "U0ADA", maps, "nine in the evening", false)
	for _, p := range []*served{b, worker} {
		if err := p.stop(os.Interrupt); err != nil {
			t.Errorf("told to stop it ended with %v", err)
		}
		if strings.Contains(p.log(), "NOPERM") {
			t.Errorf("it lacks a right:\n%s", p.log())
		}
	}
}
