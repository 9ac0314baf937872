package discord

import (
	"encoding/json"
	"strings"
	"time"

	"footnote/adapters/discord/guild"
)

// Types of interactions.
const (
	typePing         = 1
	typeCommand      = 2
	typeComponent    = 3
	typeAutocomplete = 4
)

// Types of first responses.
const (
	respondPong     = 1
	respondMessage  = 4
	respondDeferred = 5
	respondChoices  = 8
)

// interaction is one thing that a person did, as the gateway and HTTP bring it.
// What is missing stays zero; what has another form than expected makes
// only its own field zero.
type interaction struct {
	ID          string      `json:"id"`
	Application string      `json:"application_id"`
	Type        int         `json:"type"`
	Token       string      `json:"token"`
	Guild       string      `json:"guild_id"`
	ChannelID   string      `json:"channel_id"`
	Channel     channelHint `json:"channel"`
	Member      *member     `json:"member"`
	User        *user       `json:"user"`
	Locale      string      `json:"locale"` // of the person
	GuildLocale string      `json:"guild_locale"`
	Context     *int        `json:"context"` // nil: absent, which is not 0
	// Owners has the key "1" for a user who installed the app, "0" for a guild.
	Owners   map[string]json.RawMessage `json:"authorizing_integration_owners"`
	AppPerms *guild.Perm                `json:"app_permissions"` // nil: unknown, which is not none
	Data     json.RawMessage            `json:"data"`

	data data
}

type channelHint struct {
	ID     string `json:"id"`
	Type   int    `json:"type"`
	Parent string `json:"parent_id"`
}

type user struct {
	ID  string `json:"id"`
	Bot bool   `json:"bot"`
}

type member struct {
	User          *user    `json:"user"`
	Roles         []string `json:"roles"`
	Pending       bool     `json:"pending"`
	TimedOutUntil string   `json:"communication_disabled_until"`
}

// timedOut reports that the member may not speak now. A time that cannot be
// read counts as one that is not over.
func (m *member) timedOut(now time.Time) bool {
	if m.TimedOutUntil == "" {
		return false
	}
	until, err := time.Parse(time.RFC3339, m.TimedOutUntil)
	return err != nil || now.Before(until)
}

type data struct {
	Name     string     `json:"name"`
	Type     int        `json:"type"`
	Options  []option   `json:"options"`
	CustomID string     `json:"custom_id"`
	Target   string     `json:"target_id"`
	Resolved resolution `json:"resolved"`
}

type resolution struct {
	Messages map[string]struct {
		Content string `json:"content"`
	} `json:"messages"`
}

type option struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Options []option        `json:"options"`
}

// text is the value of an option if it is a string.
func text(options []option, name string) string {
	var s string
	for _, o := range options {
		if o.Name == name && json.Unmarshal(o.Value, &s) == nil {
			return s
		}
	}
	return ""
}

// flag is the value of an option if it is a truth value.
func flag(options []option, name string) bool {
	var b bool
	for _, o := range options {
		if o.Name == name && json.Unmarshal(o.Value, &b) == nil {
			return b
		}
	}
	return false
}

// readInteraction reads an interaction. ok is false if not even an answer to
// it is possible.
func readInteraction(raw []byte) (in interaction, ok bool) {
	if err := json.Unmarshal(raw, &in); err != nil {
		// Keep what can be kept: enough to say that it is not available.
		var least struct {
			ID    string `json:"id"`
			Token string `json:"token"`
			App   string `json:"application_id"`
		}
		if json.Unmarshal(raw, &least) != nil {
			return interaction{}, false
		}
		in = interaction{ID: least.ID, Token: least.Token, Application: least.App}
	}
	if len(in.Data) > 0 && json.Unmarshal(in.Data, &in.data) != nil {
		in.data = data{}
	}
	return in, isID(in.ID) && in.Token != "" || in.Type == typePing
}

// isID reports that s can be an id: it goes into paths.
func isID(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "0123456789") == ""
}

// account is who acts: in a guild the member, elsewhere the user. A message
// or button never says who.
func (in *interaction) account() string {
	switch {
	case in.inGuild():
		return in.Member.User.ID
	case in.User != nil:
		return in.User.ID
	}
	return ""
}

// inGuild is decided by the fields that are surely there: the context is 0 in
// the library's eyes when it is absent.
func (in *interaction) inGuild() bool {
	return in.Guild != "" && in.Member != nil && in.Member.User != nil
}

// direct reports a conversation with the bot alone.
func (in *interaction) direct() bool {
	return in.Guild == "" && in.User != nil && (in.Context == nil || *in.Context == 1) && in.Channel.Type != 3
}

// userInstalled reports that only the user installed the app: the guild never
// agreed to it.
func (in *interaction) userInstalled() bool {
	_, byUser := in.Owners["1"]
	_, byGuild := in.Owners["0"]
	return byUser && !byGuild
}

func (in *interaction) hint() guild.Channel {
	return guild.Channel{ID: in.Channel.ID, Guild: in.Guild, Type: in.Channel.Type, Parent: in.Channel.Parent}
}
