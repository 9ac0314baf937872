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
	"footnote/bot"
)

// well and ill are findings about a part of the set-up.
func well(part, text string) bot.Finding {
	return bot.Finding{Weight: bot.Good, What: part + ": " + text}
}
func ill(part, text string) bot.Finding {
	return bot.Finding{Weight: bot.Problem, What: part + ": " + text}
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

// application is what Discord says of the bot's own application.
type application struct {
	ID       string `json:"id"`
	Key      string `json:"verify_key"`
	Endpoint string `json:"interactions_endpoint_url"`
}

// Check looks at the set-up by calls that change nothing. It returns a finding
// for everything that it looked at.
func (a *Adapter) Check(ctx context.Context) []bot.Finding {
	var me user
	err := a.get(ctx, "users/@me", &me)
	switch {
	case status(err) == http.StatusUnauthorized:
		return []bot.Finding{ill("token", "FOOTNOTE_DISCORD_TOKEN is not valid: on https://discord.com/developers/applications open your application, page Bot, press Reset Token, and set the new one")}
	case err != nil:
		return []bot.Finding{{Weight: bot.Problem, What: "token: Discord cannot be asked about it: " + err.Error(), Do: "check the network, proxies and discord.api_url"}}
	}
	out := []bot.Finding{well("token", "the token is valid")}
	var app application
	if err := a.get(ctx, "applications/@me", &app); err != nil {
		out = append(out, ill("application", "the application cannot be read: "+err.Error()))
	} else {
		a.learn(app.ID)
		out = append(out, a.checkMode(app)...)
	}
	out = append(out, a.checkGuilds(ctx, cmp.Or(app.ID, me.ID))...)
	return append(out, a.checkSessions(ctx), a.checkIntents(), a.checkCommands(ctx))
}

// checkMode compares how interactions are sent with how they are awaited.
func (a *Adapter) checkMode(app application) []bot.Finding {
	const where = "on https://discord.com/developers/applications, your application, General Information, Interactions Endpoint URL"
	var out []bot.Finding
	switch {
	case a.c.Mode == Gateway && app.Endpoint != "":
		out = append(out, ill("interactions", "Discord sends interactions by HTTP, so none come by the gateway: clear the address "+where+", or set discord.mode: http"))
	case a.c.Mode == HTTP && app.Endpoint == "":
		out = append(out, ill("interactions", "Discord does not know where to send interactions: enter https://YOUR-HOST/discord/interactions "+where))
	default:
		out = append(out, well("interactions", "interactions come by "+map[string]string{Gateway: "the gateway", HTTP: "HTTP"}[a.c.Mode]))
	}
	switch {
	case a.c.PublicKey == "":
	case !strings.EqualFold(a.c.PublicKey, app.Key):
		out = append(out, ill("public key", "FOOTNOTE_DISCORD_PUBLIC_KEY is not that of the application: copy it from General Information"))
	default:
		out = append(out, well("public key", "the public key is that of the application"))
	}
	return out
}

// checkGuilds compares where the bot is and what it may with what it needs.
func (a *Adapter) checkGuilds(ctx context.Context, app string) []bot.Finding {
	var guilds []struct {
		ID          string      `json:"id"`
		Permissions *guild.Perm `json:"permissions"`
		Features    []string    `json:"features"`
	}
	if err := a.get(ctx, "users/@me/guilds", &guilds); err != nil {
		return []bot.Finding{ill("servers", "the bot's servers cannot be read: "+err.Error())}
	}
	var out []bot.Finding
	var ids []string
	in := map[string]bool{}
	for _, g := range guilds {
		in[g.ID] = true
		ids = append(ids, g.ID)
		if guild.Discoverable(g.Features) && (len(a.c.Guilds) == 0 || a.dir.tenant(g.ID)) {
			out = append(out, ill("server "+g.ID, "anybody on the internet can find and join this server: documents for everyone are shown there only if discord.guilds names it; leave it out unless they are public"))
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
			out = append(out, ill("permissions in "+g.ID, "missing: "+strings.Join(missing, ", ")+". Open "+InstallLink(app)+" and choose the server again"))
		case g.Permissions.Has(guild.Administrator):
			out = append(out, ill("permissions in "+g.ID, "the bot is an administrator, which it does not need: take the permission from its role in Server Settings, Roles"))
		default:
			out = append(out, well("permissions in "+g.ID, "the bot has what it needs"))
		}
	}
	for _, id := range a.c.Guilds {
		if !in[id] {
			out = append(out, ill("server "+id, "the bot is not in this server of discord.guilds: open "+InstallLink(app)))
		}
	}
	switch {
	case len(guilds) == 0:
		out = append(out, ill("servers", "the bot is in no server: open "+InstallLink(app)))
	case a.unclear(ids) != "":
		out = append(out, ill("servers", a.unclear(ids)))
	default:
		out = append(out, well("servers", fmt.Sprintf("the bot is in %d", len(guilds))))
	}
	return out
}

// checkSessions looks at the budget of the gateway.
func (a *Adapter) checkSessions(ctx context.Context) bot.Finding {
	if a.c.Mode != Gateway {
		return well("gateway", "not used")
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
		return ill("gateway", "the gateway cannot be asked for: "+err.Error())
	case g.Limit.Remaining != nil && *g.Limit.Remaining < maxIdentifies/5:
		return ill("gateway", fmt.Sprintf("only %d connections are left for today: something uses this token and connects again and again", *g.Limit.Remaining))
	case g.Shards > 1:
		return ill("gateway", fmt.Sprintf("Discord recommends %d shards; footnote uses one, which is allowed up to 2,500 servers", g.Shards))
	}
	return well("gateway", "the gateway can be reached")
}

// checkIntents says what is asked for: nothing privileged.
func (a *Adapter) checkIntents() bot.Finding {
	var names []string
	for _, i := range intentTable {
		if !i.mentions || a.c.Mentions {
			names = append(names, i.name)
		}
	}
	if a.c.Mode == HTTP {
		return well("intents", "none are needed without the gateway")
	}
	return well("intents", strings.Join(names, ", ")+": none is privileged, there is nothing to switch on")
}

// checkCommands compares what is registered with the table.
func (a *Adapter) checkCommands(ctx context.Context) bot.Finding {
	app := a.application()
	if app == "" {
		return ill("commands", "the application is not known")
	}
	path := "applications/" + app + "/commands"
	if a.c.DevGuild != "" {
		path = "applications/" + app + "/guilds/" + a.c.DevGuild + "/commands"
	}
	var current json.RawMessage
	if err := a.get(ctx, path+"?with_localizations=true", &current); err != nil {
		return ill("commands", "the commands cannot be read: add the bot with the scope applications.commands, "+InstallLink(app))
	}
	wanted, _ := json.Marshal(commands())
	if same, err := sameCommands(current, wanted, a.c.DevGuild != ""); err != nil || !same {
		return ill("commands", "the commands are not registered yet: footnote serve does that when it starts")
	}
	return well("commands", "the commands are registered")
}
