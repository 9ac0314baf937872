package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"footnote/adapters/slack/slacktest"
)

// withChat is the demo's workspace with everything that files and channels
// need.
func withChat(t *testing.T) *slacktest.Server {
	t.Helper()
	w := slacktest.DemoWorld()
	w.App.Scopes = append(slices.Clone(slacktest.DefaultScopes), "files:read", "channels:history", "groups:history")
	w.App.Events = append(slices.Clone(slacktest.DefaultEvents), "file_deleted", "message.channels", "message.groups")
	return slacktest.New(t, w)
}

func chatConfiguration(t *testing.T, s *slacktest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "footnote.yaml")
	write(t, file, "data: state\nweb: {listen: '127.0.0.1:0'}\nslack: {mode: socket, api_url: '"+s.APIURL()+"'}\n"+
		"uploads: {by: ['slack:T0HOME:usergroup/S0SECURITY']}\nsources: [{slack_channel: C0HELP}, {slack_channel: C0SECURITY, history: 30d}]\n")
	return file
}

// said waits for a message of the bot in the conversation.
func said(t *testing.T, s *slacktest.Server, channel string, match func(slacktest.Message) bool) (found slacktest.Message) {
	t.Helper()
	patient(t, "a message of the bot", s.Wait, func() bool {
		for _, m := range s.FromBot(channel) {
			if match(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// answered asks in a direct message and returns the answer.
func answered(t *testing.T, s *slacktest.Server, user, question string) string {
	t.Helper()
	q := s.DM(user, question)
	m := said(t, s, q.Channel, func(m slacktest.Message) bool { return m.ThreadTS == q.TS && slacktest.HasButtons(m) })
	return m.Text + string(m.Blocks)
}

func TestServe_FileFromSlack(t *testing.T) {
	t.Parallel()
	s := withChat(t)
	file := chatConfiguration(t, s)
	p := serve(t, file, slackEnv(s)...)
	leave := slacktest.File{ID: "F0LEAVE", Name: "leave.md", Content: leaveDocument}
	m := s.PostFile("U0ADA", "C0SECURITY", "", "<@U0BOT> add this", []slacktest.File{leave})
	state := said(t, s, "C0SECURITY", func(n slacktest.Message) bool {
		return n.ThreadTS == m.TS && strings.Contains(n.Text, "1 chunk; ask me about it")
	})
	for user, may := range map[string]bool{"U0BOB": true, "U0CYD": false} {
		got := answered(t, s, user, parental)
		if strings.Contains(got, "eighteen weeks") != may || may && !strings.Contains(got, "archives/C0SECURITY/p") {
			t.Errorf("%s is answered: %s", user, got)
		}
	}
	if got := s.FromBot("C0SECURITY"); len(got) != 1 || got[0].TS != state.TS {
		t.Errorf("%d messages in the channel", len(got))
	}
	_ = p.stop(syscall.SIGKILL)
	s.WaitSockets(0)
	p = serve(t, file, slackEnv(s)...)
	if got := answered(t, s, "U0BOB", parental); !strings.Contains(got, "eighteen weeks") {
		t.Errorf("after a restart: %s", got)
	}
	s.Leave("U0BOB", "C0SECURITY")
	s.WaitSettled()
	if got := answered(t, s, "U0BOB", parental); strings.Contains(got, "eighteen weeks") {
		t.Errorf("somebody who left: %s", got)
	}
	s.Delete(m)
	s.WaitSettled()
	if got := answered(t, s, "U0ADA", parental); strings.Contains(got, "eighteen weeks") {
		t.Errorf("after the message was deleted: %s", got)
	}
	if err := p.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v", err)
	}
	for _, word := range []string{"leave.md", "eighteen", "Parental", "xoxb-"} {
		if strings.Contains(p.log(), word) {
			t.Errorf("the log holds %q:\n%s", word, p.log())
		}
	}
}

const (
	vpn      = "The VPN drops because the gateway in Lisbon restarts at seven each morning."
	vpnAsked = "Why does the VPN drop?"
	maps     = "When does the archive of maps close?"
)

func TestServe_ChannelsOfSlack(t *testing.T) {
	t.Parallel()
	s := withChat(t)
	file := chatConfiguration(t, s)
	root := s.Say("U0ADA", "C0HELP", "My VPN connection is lost every morning, what can I do?")
	reply := s.ReplyInThread("U0BOB", "C0HELP", root.TS, vpn)
	secret := s.Say("U0BOB", "C0SECURITY", "The vault of the archive opens with the blue badge only.")
	s.Say("U0BOB", "C0GENERAL", "The orchestra rehearses on Thursdays in the canteen.")
	p := serve(t, file, slackEnv(s)...)
	until := func(what, user, question, text string, want bool) {
		t.Helper()
		got := ""
		for range 60 {
			if got = answered(t, s, user, question); strings.Contains(got, text) == want {
				return
			}
		}
		t.Errorf("%s: %s is answered %s\n%s", what, user, got, p.log())
	}
	until("a thread", "U0CYD", vpnAsked, "gateway in Lisbon", true)
	until("a private channel, in it", "U0ADA", "Which badge opens the vault of the archive?", "blue badge", true)
	until("a private channel, not in it", "U0CYD", "Which badge opens the vault of the archive?", "blue badge", false)
	until("a channel that is no source", "U0ADA", "When does the orchestra rehearse?", "Thursdays", false)
	s.Edit(reply, "The VPN drops because the gateway in Oslo restarts at seven each morning.")
	until("edited", "U0CYD", vpnAsked, "gateway in Oslo", true)
	s.Delete(secret)
	until("deleted", "U0ADA", "Which badge opens the vault of the archive?", "blue badge", false)
	s.Leave("U0CYD", "C0HELP")
	s.WaitSettled()
	until("somebody who left", "U0CYD", vpnAsked, "gateway in", false)
	s.ShareChannel("C0HELP", "T0OTHER", false)
	until("shared with outsiders", "U0ADA", vpnAsked, "gateway in", false)
	s.Say("U0BOB", "C0SECURITY", "The archive of maps closes at nine in the evening.")
	until("written while it runs", "U0ADA", maps, "nine in the evening", true)
	if err := p.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v", err)
	}

	// What is left of a channel that the configuration names no longer goes.
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(raw), "sources:")
	write(t, file, before)
	p = serve(t, file, slackEnv(s)...)
	until("a channel that is a source no longer", "U0ADA", maps, "nine in the evening", false)
	if err := p.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v", err)
	}
}
