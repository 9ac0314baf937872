package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"footnote/bot"
)

// Check asks Slack whether the app is set up, for footnote doctor. Each
// finding says what to do.
func (a *Adapter) Check(ctx context.Context) []bot.Finding {
	w, err := a.api.whoami(ctx)
	if err != nil {
		if what, is := fatal[codeOf(err)]; is {
			return []bot.Finding{{Weight: bot.Problem, What: fmt.Sprintf("Slack does not take FOOTNOTE_SLACK_BOT_TOKEN: %v", err), Do: what}}
		}
		return []bot.Finding{{Weight: bot.Problem, What: fmt.Sprintf("Slack cannot be asked about the bot token: %v", err), Do: "check the network, proxies and slack.api_url"}}
	}
	out := []bot.Finding{{Weight: bot.Good, What: fmt.Sprintf("the bot token belongs to workspace %s, bot user %s", w.team, w.user)}}
	wantScopes, wantEvents := a.wanted()
	out = append(out, checkScopes(w, wantScopes)...)
	if a.c.Mode == Socket {
		out = append(out, a.checkSocket(ctx))
	} else {
		out = append(out, bot.Finding{Weight: bot.Good, What: "deliveries come by HTTP, signed", Do: "Request URLs under Event Subscriptions, Interactivity and Slash Commands must end in /slack/events, /slack/interactions and /slack/commands"})
	}
	var names []string
	for _, e := range events {
		if !e.Extra || slices.Contains(wantEvents, e.Name) {
			names = append(names, e.Name)
		}
	}
	return append(out, bot.Finding{Weight: bot.Good, What: "events cannot be listed through the API", Do: "under Event Subscriptions, bot events must hold: " + strings.Join(names, ", ")})
}

// checkScopes looks at the scopes of the manifest and at those extra ones that
// are wanted.
func checkScopes(w whoami, wanted []string) []bot.Finding {
	if w.scopes == nil {
		return []bot.Finding{{Weight: bot.Warning, What: "Slack does not say which scopes the bot token has"}}
	}
	const where = "add it under OAuth & Permissions, Bot Token Scopes, then Install App, Reinstall"
	var out []bot.Finding
	for _, s := range missing(w.scopes, true) {
		out = append(out, bot.Finding{Weight: bot.Problem, What: "the bot scope " + s + " is missing: " + reasonOf(s), Do: where})
	}
	for _, s := range missing(w.scopes, false) {
		out = append(out, bot.Finding{Weight: bot.Warning, What: "the optional bot scope " + s + " is missing: " + reasonOf(s), Do: where})
	}
	for _, s := range wanted {
		if !slices.Contains(w.scopes, s) {
			out = append(out, bot.Finding{Weight: bot.Warning, What: "the bot scope " + s + " is missing, and the configuration needs it: " + reasonOf(s), Do: where})
		}
	}
	if len(out) == 0 {
		out = append(out, bot.Finding{Weight: bot.Good, What: "all bot scopes are granted"})
	}
	return out
}

func (a *Adapter) checkSocket(ctx context.Context) bot.Finding {
	if _, err := a.api.openSocket(ctx); err != nil {
		what, is := fatal[codeOf(err)]
		if !is {
			what = "check the network, and that Socket Mode is on under Socket Mode"
		}
		return bot.Finding{Weight: bot.Problem, What: fmt.Sprintf("Slack opens no socket with FOOTNOTE_SLACK_APP_TOKEN: %v", err), Do: what}
	}
	return bot.Finding{Weight: bot.Good, What: "the app token opens sockets"}
}
