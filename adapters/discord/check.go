package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/bwmarrin/discordgo"

	"footnote/adapters/discord/guild"
)

// Finding is one check of the set-up: what was looked at, whether it is well,
// and, if not, what to do and where.
type Finding struct {
	Name string
	OK   bool
	Text string
}

// permission is one that the bot asks for, and what it is for.
type permission struct {
	bit  guild.Perm
	name string
	why  string
}

// permissions is the table from which the install link and the documentation
// are made. Nothing in it lets the bot manage anything.
var permissions = []permission{
	{guild.ViewChannel, "View Channels", "to know who can see a channel, and so what may be said there"},
	{guild.SendMessages, "Send Messages", "to answer after the 15 minutes in which an interaction can be answered"},
	{guild.EmbedLinks, "Embed Links", "to show a source in a frame"},
	{guild.ReadHistory, "Read Message History", "to reply to the message that asked"},
	{guild.CreatePublicThreads, "Create Public Threads", "to go on in a thread when an answer is long"},
	{guild.SendInThreads, "Send Messages in Threads", "to answer in the thread in which the question was asked"},
}

// PermissionsInteger is the sum that an install link asks for.
func PermissionsInteger() uint64 {
	var p guild.Perm
	for _, x := range permissions {
		p |= x.bit
	}
	return uint64(p)
}

// InstallLink lets an administrator add the bot to a server.
func InstallLink(application string) string {
	return fmt.Sprintf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d", application, PermissionsInteger())
}

// intent is one of the gateway, and what it is for.
type intent struct {
	bit        discordgo.Intent
	name, why  string
	mentions   bool // only if mentions are answered
	privileged bool
}

var intentTable = []intent{
	{discordgo.IntentGuilds, "GUILDS", "roles, channels and their overwrites: who can see an answer", false, false},
	{discordgo.IntentGuildMessages, "GUILD_MESSAGES", "messages in which the bot is mentioned", true, false},
	{discordgo.IntentDirectMessages, "DIRECT_MESSAGES", "direct messages to the bot", true, false},
}

// Setup is the part of the documentation that must agree with the program:
// the permissions and the intents, in Markdown.
func Setup() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Permissions integer: `%d`\n\n| permission | bit | why |\n|---|---|---|\n", PermissionsInteger())
	for _, p := range permissions {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", p.name, uint64(p.bit), p.why)
	}
	b.WriteString("\n| intent | privileged | asked for | why |\n|---|---|---|---|\n")
	for _, i := range intentTable {
		when, privileged := "always", "no"
		if i.mentions {
			when = "with `discord.mentions`"
		}
		if i.privileged {
			privileged = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.name, privileged, when, i.why)
	}
	return b.String()
}

// application is what Discord says of the bot's own application.
type application struct {
	ID       string `json:"id"`
	Key      string `json:"verify_key"`
	Endpoint string `json:"interactions_endpoint_url"`
}

// Check looks at the set-up by calls that change nothing. It returns a finding
// for everything that it looked at.
func (a *Adapter) Check(ctx context.Context) []Finding {
	var me user
	err := a.get(ctx, "users/@me", &me)
	switch {
	case status(err) == http.StatusUnauthorized:
		return []Finding{{"token", false, "FOOTNOTE_DISCORD_TOKEN is not valid: on https://discord.com/developers/applications open your application, page Bot, press Reset Token, and set the new one"}}
	case err != nil:
		return []Finding{{"token", false, "Discord cannot be reached, or discord.api_url is wrong: " + err.Error()}}
	}
	out := []Finding{{"token", true, "the token is valid"}}
	var app application
	if err := a.get(ctx, "applications/@me", &app); err != nil {
		out = append(out, Finding{"application", false, "the application cannot be read: " + err.Error()})
	} else {
		a.learn(app.ID)
		out = append(out, a.checkMode(app)...)
	}
	out = append(out, a.checkGuilds(ctx, cmp.Or(app.ID, me.ID))...)
	return append(out, a.checkSessions(ctx), a.checkIntents(), a.checkCommands(ctx))
}

// checkMode compares how interactions are sent with how they are awaited.
func (a *Adapter) checkMode(app application) []Finding {
	const where = "on https://discord.com/developers/applications, your application, General Information, Interactions Endpoint URL"
	var out []Finding
	switch {
	case a.c.Mode == Gateway && app.Endpoint != "":
		out = append(out, Finding{"interactions", false, "Discord sends interactions by HTTP, so none come by the gateway: clear the address " + where + ", or set discord.mode: http"})
	case a.c.Mode == HTTP && app.Endpoint == "":
		out = append(out, Finding{"interactions", false, "Discord does not know where to send interactions: enter https://YOUR-HOST/discord/interactions " + where})
	default:
		out = append(out, Finding{"interactions", true, "interactions come by " + map[string]string{Gateway: "the gateway", HTTP: "HTTP"}[a.c.Mode]})
	}
	switch {
	case a.c.PublicKey == "":
	case !strings.EqualFold(a.c.PublicKey, app.Key):
		out = append(out, Finding{"public key", false, "FOOTNOTE_DISCORD_PUBLIC_KEY is not that of the application: copy it from General Information"})
	default:
		out = append(out, Finding{"public key", true, "the public key is that of the application"})
	}
	return out
}

// checkGuilds compares where the bot is and what it may with what it needs.
func (a *Adapter) checkGuilds(ctx context.Context, app string) []Finding {
	var guilds []struct {
		ID          string      `json:"id"`
		Permissions *guild.Perm `json:"permissions"`
		Features    []string    `json:"features"`
	}
	if err := a.get(ctx, "users/@me/guilds", &guilds); err != nil {
		return []Finding{{"servers", false, "the bot's servers cannot be read: " + err.Error()}}
	}
	var out []Finding
	var ids []string
	in := map[string]bool{}
	for _, g := range guilds {
		in[g.ID] = true
		ids = append(ids, g.ID)
		if guild.Discoverable(g.Features) && (len(a.c.Guilds) == 0 || a.dir.tenant(g.ID)) {
			out = append(out, Finding{"server " + g.ID, false, "anybody on the internet can find and join this server: documents for everyone are shown there only if discord.guilds names it; leave it out unless they are public"})
		}
		if g.Permissions == nil || len(a.c.Guilds) > 0 && !a.dir.tenant(g.ID) {
			continue
		}
		var missing []string
		for _, p := range permissions {
			if !g.Permissions.Has(p.bit) && !g.Permissions.Has(guild.Administrator) {
				missing = append(missing, p.name+" ("+p.why+")")
			}
		}
		switch {
		case len(missing) > 0:
			out = append(out, Finding{"permissions in " + g.ID, false, "missing: " + strings.Join(missing, ", ") + ". Open " + InstallLink(app) + " and choose the server again"})
		case g.Permissions.Has(guild.Administrator):
			out = append(out, Finding{"permissions in " + g.ID, false, "the bot is an administrator, which it does not need: take the permission from its role in Server Settings, Roles"})
		default:
			out = append(out, Finding{"permissions in " + g.ID, true, "the bot has what it needs"})
		}
	}
	for _, id := range a.c.Guilds {
		if !in[id] {
			out = append(out, Finding{"server " + id, false, "the bot is not in this server of discord.guilds: open " + InstallLink(app)})
		}
	}
	switch {
	case len(guilds) == 0:
		out = append(out, Finding{"servers", false, "the bot is in no server: open " + InstallLink(app)})
	case a.unclear(ids) != "":
		out = append(out, Finding{"servers", false, a.unclear(ids)})
	default:
		out = append(out, Finding{"servers", true, fmt.Sprintf("the bot is in %d", len(guilds))})
	}
	return out
}

// checkSessions looks at the budget of the gateway.
func (a *Adapter) checkSessions(ctx context.Context) Finding {
	if a.c.Mode != Gateway {
		return Finding{"gateway", true, "not used"}
	}
	var g struct {
		Shards int `json:"shards"`
		Limit  struct {
			Remaining *int `json:"remaining"`
		} `json:"session_start_limit"`
	}
	err := a.get(ctx, "gateway/bot", &g)
	switch {
	case err != nil:
		return Finding{"gateway", false, "the gateway cannot be asked for: " + err.Error()}
	case g.Limit.Remaining != nil && *g.Limit.Remaining < maxIdentifies/5:
		return Finding{"gateway", false, fmt.Sprintf("only %d connections are left for today: something uses this token and connects again and again", *g.Limit.Remaining)}
	case g.Shards > 1:
		return Finding{"gateway", false, fmt.Sprintf("Discord recommends %d shards; footnote uses one, which is allowed up to 2,500 servers", g.Shards)}
	}
	return Finding{"gateway", true, "the gateway can be reached"}
}

// checkIntents says what is asked for: nothing privileged.
func (a *Adapter) checkIntents() Finding {
	var names []string
	for _, i := range intentTable {
		if !i.mentions || a.c.Mentions {
			names = append(names, i.name)
		}
	}
	if a.c.Mode == HTTP {
		return Finding{"intents", true, "none are needed without the gateway"}
	}
	return Finding{"intents", true, strings.Join(names, ", ") + ": none is privileged, there is nothing to switch on"}
}

// checkCommands compares what is registered with the table.
func (a *Adapter) checkCommands(ctx context.Context) Finding {
	app := a.application()
	if app == "" {
		return Finding{"commands", false, "the application is not known"}
	}
	path := "applications/" + app + "/commands"
	if a.c.DevGuild != "" {
		path = "applications/" + app + "/guilds/" + a.c.DevGuild + "/commands"
	}
	var current json.RawMessage
	if err := a.get(ctx, path+"?with_localizations=true", &current); err != nil {
		return Finding{"commands", false, "the commands cannot be read: add the bot with the scope applications.commands, " + InstallLink(app)}
	}
	wanted, _ := json.Marshal(commands())
	if same, err := sameCommands(current, wanted, a.c.DevGuild != ""); err != nil || !same {
		return Finding{"commands", false, "the commands are not registered yet: footnote serve does that when it starts"}
	}
	return Finding{"commands", true, "the commands are registered"}
}
