package config

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// problemsOf loads a file and the platforms, and lists what is wrong.
func problemsOf(t *testing.T, file string, env ...string) (Platforms, []string) {
	t.Helper()
	c, err := Load(Flags{File: writeFile(t, file)}, environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Platforms(environment(env...))
	var p *Problems
	if err != nil && !errors.As(err, &p) {
		t.Fatalf("got %v, want *Problems", err)
	}
	var out []string
	if p != nil {
		for _, x := range p.All {
			out = append(out, x.Where)
		}
	}
	return found, out
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	key := hex.EncodeToString(make([]byte, 32))
	tests := []struct {
		name, file     string
		env            []string
		slack, discord bool
		problems       []string
	}{
		{"nothing", "", nil, false, false, nil},
		{"web alone is no platform", "web: {listen: '127.0.0.1:0'}\n", nil, false, false, nil},
		{"Slack by its tokens", "", []string{slackBotToken, "xoxb-1", slackAppToken, "xapp-1"}, true, false, nil},
		{"Slack by a setting in the environment", "", []string{"FOOTNOTE_SLACK_MODE", "socket"}, true, false, []string{slackBotToken, slackAppToken}},
		{"Slack by an empty section", "slack: {}\n", nil, true, false, []string{slackBotToken, slackAppToken}},
		{"half of Slack", "", []string{slackAppToken, "xapp-1"}, true, false, []string{slackBotToken}},
		{"tokens in each other's place", "", []string{slackBotToken, "xapp-1", slackAppToken, "xoxb-1"}, true, false, []string{slackBotToken, slackAppToken}},
		{"user token", "", []string{slackBotToken, "xoxp-1", slackAppToken, "xapp-1"}, true, false, []string{slackBotToken}},
		{"Slack by HTTP", "slack: {mode: http}\nweb: {listen: '127.0.0.1:0'}\n", []string{slackBotToken, "xoxb-1", slackSigningSecret, "s"}, true, false, nil},
		{"S-02 both ways to Slack and no mode", "", []string{slackBotToken, "xoxb-1", slackAppToken, "xapp-1", slackSigningSecret, "s"}, true, false, []string{"slack.mode"}},
		{"both ways to Slack and a mode", "slack: {mode: socket}\n", []string{slackBotToken, "xoxb-1", slackAppToken, "xapp-1", slackSigningSecret, "s"}, true, false, nil},
		{"Slack by HTTP, unsigned and nowhere to listen", "slack: {mode: http}\n", []string{slackBotToken, "xoxb-1"}, true, false, []string{slackSigningSecret, "web.listen"}},
		{"blank secret", "slack: {mode: http}\nweb: {listen: '127.0.0.1:0'}\n", []string{slackBotToken, "xoxb-1", slackSigningSecret, " "}, true, false, []string{slackSigningSecret}},
		{"Discord by its token", "", []string{discordToken, "t"}, false, true, nil},
		{"Discord by its key alone", "", []string{discordPublicKey, key}, false, true, []string{discordToken}},
		{"Discord by HTTP", "discord: {mode: http}\nweb: {listen: '127.0.0.1:0'}\n", []string{discordToken, "t", discordPublicKey, key}, false, true, nil},
		{"Discord by HTTP with half a key", "discord: {mode: http, mentions: true}\n", []string{discordToken, "t", discordPublicKey, key[1:]}, false, true, []string{discordPublicKey, "web.listen", "discord.mentions"}},
		{"both, both wrong", "slack: {}\ndiscord: {}\n", nil, true, true, []string{slackBotToken, slackAppToken, discordToken}},
		{"viewer without a server", "web: {public_url: 'https://f.example.org'}\n", nil, false, false, []string{"web.listen"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, problems := problemsOf(t, tt.file, tt.env...)
			if (got.Slack != nil) != tt.slack || (got.Discord != nil) != tt.discord {
				t.Errorf("configured: Slack %t, Discord %t", got.Slack != nil, got.Discord != nil)
			}
			if diff := cmp.Diff(tt.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChannelSettings(t *testing.T) {
	t.Parallel()
	c, err := Load(Flags{File: writeFile(t, `
slack:
  channels:
    C1: {mode: off, follow_ups: true}
    G2: {follow_ups: false}
  default_follow_ups: true
discord:
  guilds: 12, 34
  development_guild: 1234567890123456789
  channels: {1234567890123456789: private-always}
`)}, environment())
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	want := map[string]SlackChannel{"C1": {"off", &yes}, "G2": {"", &no}}
	if diff := cmp.Diff(want, c.Slack.Channels); diff != "" || !*c.Slack.Default.FollowUps {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"1234567890123456789": "private-always"}, c.Discord.Channels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"12", "34"}, c.Discord.Guilds); diff != "" || c.Discord.DevelopmentGuild != "1234567890123456789" {
		t.Error(diff)
	}
}

func TestPlatformSettingsRefuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, want string }{
		{"name for an id", "slack: {channels: {general: {mode: off}}}", `slack.channels.general.mode: "general" is not the id`},
		{"unknown mode", "slack: {channels: {C1: {mode: loud}}}", `slack.channels.C1.mode: "loud" is not known`},
		{"unknown key of a channel", "slack: {channels: {C1: {colour: red}}}", "slack.channels.C1.colour: is not a setting; accepted: one of follow_ups, mode"},
		{"mode without its key", "slack: {channels: {C1: off}}", "slack.channels.C1: must be a group"},
		{"yes for true", "discord: {mentions: yes}", `discord.mentions: "yes" is neither`},
		{"port alone", "web: {listen: ':8080'}", "is not host:port"},
		{"no port", "web: {listen: localhost}", "is not host:port"},
		{"address without a scheme", "slack: {api_url: slack.com/api}", "is not an http or https address"},
		{"address with a password", "slack: {api_url: 'https://a:b@c.example'}", "holds a user"},
		{"secret in the file", "slack: {bot_token: xoxb-1}", "slack.bot_token: is not a setting"},
		{"name of a server", "discord: {guilds: '12,home'}", `"home" is no such id`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(Flags{File: writeFile(t, tt.file+"\n")}, environment())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestPlainHTTPToAnotherMachineIsWarnedOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://proxy.example": false, "http://127.0.0.1:1": false, "http://[::1]:1": false, "http://localhost": false,
		"http://proxy.example": true, "http://127.0.0.1.example": true, "http://10.0.0.1": true,
	} {
		if got := exposed(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestUnknownKnowsSecrets(t *testing.T) {
	t.Parallel()
	got := Unknown([]string{"FOOTNOTE_SLACK_BOT_TOKEN=x", "FOOTNOTE_DISCORD_TOKEN_FILE=x", "FOOTNOTE_SLACK_TOKEN=x", "FOOTNOTE_SLACK_MODE=http"})
	if diff := cmp.Diff([]string{"FOOTNOTE_SLACK_TOKEN"}, got); diff != "" {
		t.Error(diff)
	}
}
