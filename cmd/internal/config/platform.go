package config

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Slack is what is set for Slack; zero values mean the adapter's defaults.
type Slack struct {
	Mode         string // socket (""), http
	APIURL       string
	HumanChannel string       // that is told when somebody asks for a human
	External     string       // refuse (""), labelled
	Default      SlackChannel // where nothing is set for the channel itself
	Channels     map[string]SlackChannel
}

// SlackChannel is what is set for a channel.
type SlackChannel struct {
	Mode      string // public-safe, private-always, off; "": the default's
	FollowUps *bool  // nil: the default's
}

// Discord is what is set for Discord; zero values mean the adapter's defaults.
type Discord struct {
	Mode             string // gateway (""), http
	APIURL           string
	Guilds           []string
	DevelopmentGuild string
	Mentions         bool
	Threads          bool
	Channels         map[string]string // id -> public-safe, private-always, off
}

var channelModes = []string{"public-safe", "private-always", "off"}

var (
	slackID   = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,30}$`).MatchString
	discordID = regexp.MustCompile(`^[0-9]{1,20}$`).MatchString
)

const (
	aSlackChannel = "the id of a channel, for example C0123ABCD"
	discordIDs    = "ids of servers, separated by commas"
)

func (s *Slack) settings() []setting {
	return []setting{
		choice("slack.mode", &s.Mode, "socket", "http"),
		address("slack.api_url", &s.APIURL),
		choice("slack.default_mode", &s.Default.Mode, channelModes...),
		{path: "slack.default_follow_ups", accepts: oneOf([]string{"true", "false"}), set: func(v, _ string) error {
			return s.Default.follow(v)
		}},
		choice("slack.external", &s.External, "refuse", "labelled"),
		id("slack.human_channel", aSlackChannel, &s.HumanChannel, slackID),
		{path: "slack.channels.*.mode", accepts: oneOf(channelModes), setAt: func(key, v string) error {
			return s.channel(key, func(c *SlackChannel) error {
				if !slices.Contains(channelModes, v) {
					return fmt.Errorf("%q is not known", v)
				}
				c.Mode = v
				return nil
			})
		}},
		{path: "slack.channels.*.follow_ups", accepts: oneOf([]string{"true", "false"}), setAt: func(key, v string) error {
			return s.channel(key, func(c *SlackChannel) error { return c.follow(v) })
		}},
	}
}

func (c *SlackChannel) follow(v string) error {
	b, err := parseYesNo(v)
	c.FollowUps = &b
	return err
}

// channel changes what is set for a channel.
func (s *Slack) channel(key string, change func(*SlackChannel) error) error {
	if !slackID(key) {
		return fmt.Errorf("%q is not the id of a channel", key)
	}
	c := s.Channels[key]
	if err := change(&c); err != nil {
		return err
	}
	if s.Channels == nil {
		s.Channels = map[string]SlackChannel{}
	}
	s.Channels[key] = c
	return nil
}

func (d *Discord) settings() []setting {
	return []setting{
		choice("discord.mode", &d.Mode, "gateway", "http"),
		address("discord.api_url", &d.APIURL),
		ids("discord.guilds", discordIDs, &d.Guilds, discordID),
		id("discord.development_guild", "the id of a server", &d.DevelopmentGuild, discordID),
		yesNo("discord.mentions", &d.Mentions),
		yesNo("discord.threads", &d.Threads),
		{path: "discord.channels.*", accepts: oneOf(channelModes), setAt: func(key, v string) error {
			if !discordID(key) {
				return fmt.Errorf("%q is not the id of a channel", key)
			}
			if !slices.Contains(channelModes, v) {
				return fmt.Errorf("%q is not known", v)
			}
			if d.Channels == nil {
				d.Channels = map[string]string{}
			}
			d.Channels[key] = v
			return nil
		}},
	}
}

// Variables that hold secrets, or name a file that does with _FILE behind.
const (
	slackBotToken      = "FOOTNOTE_SLACK_BOT_TOKEN"
	slackAppToken      = "FOOTNOTE_SLACK_APP_TOKEN"
	slackSigningSecret = "FOOTNOTE_SLACK_SIGNING_SECRET"
	discordToken       = "FOOTNOTE_DISCORD_TOKEN"
	discordPublicKey   = "FOOTNOTE_DISCORD_PUBLIC_KEY"
)

var secrets = []string{slackBotToken, slackAppToken, slackSigningSecret, discordToken, discordPublicKey, chatKey, documentPasswords, redisUsername, redisPassword, sentinelUsername, sentinelPassword}

// Platforms are the chat platforms that are configured; nil ones are not.
type Platforms struct {
	Slack   *SlackSecrets
	Discord *DiscordSecrets
	Push    []PushToken // none: the push API is not served
	// Warnings are what works but should not stay so.
	Warnings []string
}

// SlackSecrets are what Slack gave the app. Only the one of the mode in use is
// needed besides the bot token.
type SlackSecrets struct{ BotToken, AppToken, SigningSecret Secret }

// DiscordSecrets are what Discord gave the application.
type DiscordSecrets struct{ Token, PublicKey Secret }

// Platforms reads the secrets and finds out which platforms are configured: those
// of which the file, a variable or a secret speaks. The error is a *Problems
// that holds everything that is missing or unsafe, at once.
func (c Config) Platforms(env Lookup) (Platforms, error) {
	var p Problems
	s := map[string]Secret{}
	given := map[string]bool{}
	for _, name := range secrets {
		_, direct := env(name)
		_, file := env(name + "_FILE")
		given[name] = direct || file
		var err error
		if s[name], err = LookupSecret(name, env); err != nil && !(c.Shared() && slices.Contains(redisSecrets, name)) { // Load has said it
			p.add(name, err.Error(), "a secret, or "+name+"_FILE with the path of a file that holds one")
		}
	}
	var out Platforms
	if c.sections["slack"] || given[slackBotToken] || given[slackAppToken] || given[slackSigningSecret] {
		out.Slack = &SlackSecrets{s[slackBotToken], s[slackAppToken], s[slackSigningSecret]}
		c.checkSlack(*out.Slack, given, &p)
	}
	if c.sections["discord"] || given[discordToken] || given[discordPublicKey] {
		out.Discord = &DiscordSecrets{s[discordToken], s[discordPublicKey]}
		c.checkDiscord(*out.Discord, given, &p)
	}
	out.Push = c.pushTokens(env, &p)
	if len(c.Channels) > 0 && out.Slack == nil {
		p.add("sources", "name the channel "+c.Channels[0].ID+", and Slack is not configured", "the secrets of Slack, or no slack_channel")
	}
	if c.Web.PublicURL != "" && c.Web.Listen == "" {
		p.add("web.listen", "is not set, and the source viewer of web.public_url listens there", "host:port")
	}
	for at, to := range map[string]string{"slack.api_url": c.Slack.APIURL, "discord.api_url": c.Discord.APIURL} {
		if exposed(to) {
			out.Warnings = append(out.Warnings, at+" is plain http to another machine: tokens travel where others can read them")
		}
	}
	slices.Sort(out.Warnings)
	return out, p.err()
}

func (c Config) checkSlack(s SlackSecrets, given map[string]bool, p *Problems) {
	switch token := strings.TrimSpace(s.BotToken.Reveal()); {
	case !given[slackBotToken]:
		p.add(slackBotToken, "is not set, and Slack is configured", "the Bot User OAuth Token (xoxb-…), from OAuth & Permissions of the app; or no slack section and no Slack secret")
	case strings.HasPrefix(token, "xapp-"):
		p.add(slackBotToken, "holds an app-level token (xapp-…)", "the Bot User OAuth Token (xoxb-…)")
	case strings.HasPrefix(token, "xoxp-"):
		p.add(slackBotToken, "holds a user token (xoxp-…)", "the Bot User OAuth Token (xoxb-…)")
	}
	if c.Slack.Mode == "" && given[slackAppToken] && given[slackSigningSecret] {
		p.add("slack.mode", "is not set, and both "+slackAppToken+" and "+slackSigningSecret+" are: an app uses one of Socket Mode and HTTP", "socket or http")
		return
	}
	if cmp.Or(c.Slack.Mode, "socket") == "socket" {
		switch token := strings.TrimSpace(s.AppToken.Reveal()); {
		case !given[slackAppToken] && given[slackSigningSecret]:
			p.add(slackAppToken, "is not set, and slack.mode is socket", "an app-level token (xapp-…) with connections:write; or slack.mode: http, for which the signing secret is there")
		case !given[slackAppToken]:
			p.add(slackAppToken, "is not set, and slack.mode is socket", "an app-level token (xapp-…) with connections:write, from Basic Information of the app; or slack.mode: http")
		case strings.HasPrefix(token, "xoxb-"), strings.HasPrefix(token, "xoxp-"):
			p.add(slackAppToken, "holds a bot or user token", "an app-level token (xapp-…)")
		}
		return
	}
	// SECURITY: without a secret anybody could speak as Slack.
	if !given[slackSigningSecret] {
		p.add(slackSigningSecret, "is not set, and slack.mode is http", "the Signing Secret, from Basic Information of the app")
	}
	if c.Web.Listen == "" {
		p.add("web.listen", "is not set, and slack.mode is http", "host:port where Slack's deliveries arrive")
	}
}

func (c Config) checkDiscord(s DiscordSecrets, given map[string]bool, p *Problems) {
	if !given[discordToken] {
		p.add(discordToken, "is not set, and Discord is configured", "the token of the bot, from Bot in the developer portal; or no discord section and no Discord secret")
	}
	if c.Discord.Mode != "http" {
		return
	}
	// SECURITY: without the key anybody could speak as Discord.
	key, err := hex.DecodeString(strings.TrimSpace(s.PublicKey.Reveal()))
	switch {
	case !given[discordPublicKey]:
		p.add(discordPublicKey, "is not set, and discord.mode is http", "the Public Key, from General Information in the developer portal")
	case !s.PublicKey.IsZero() && (err != nil || len(key) != 32):
		p.add(discordPublicKey, "is no public key", "64 hexadecimal digits, from General Information in the developer portal")
	}
	if c.Web.Listen == "" {
		p.add("web.listen", "is not set, and discord.mode is http", "host:port where Discord's interactions arrive")
	}
	if c.Discord.Mentions {
		p.add("discord.mentions", "is true, and discord.mode is http", "false, or discord.mode: gateway, for messages come by the gateway alone")
	}
}

// exposed reports that an address is plain HTTP to another machine.
func exposed(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
