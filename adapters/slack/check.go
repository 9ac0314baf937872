package slack

import (
	"context"
	"fmt"
	"strings"
)

// Severity of a finding.
type Severity string

// Severities.
const (
	Good    Severity = "ok"
	Warning Severity = "warning" // a part of the bot does not work
	Problem Severity = "problem" // the bot does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Severity Severity
	What     string
	Do       string // what to click or set, "" if nothing
}

// Check asks Slack whether the app is set up, for footnote doctor. Each
// finding says what to do.
func (a *Adapter) Check(ctx context.Context) []Finding {
	w, err := a.api.whoami(ctx)
	if err != nil {
		what, is := fatal[codeOf(err)]
		if !is {
			what = "check the network, proxies and slack.api_url"
		}
		return []Finding{{Problem, fmt.Sprintf("Slack does not take the bot token: %v", err), what}}
	}
	out := []Finding{{Good, fmt.Sprintf("the bot token belongs to workspace %s, bot user %s", w.team, w.user), ""}}
	out = append(out, checkScopes(w)...)
	if a.c.Mode == Socket {
		out = append(out, a.checkSocket(ctx))
	} else {
		out = append(out, Finding{Good, "deliveries come by HTTP, signed", "Request URLs under Event Subscriptions, Interactivity and Slash Commands must end in /slack/events, /slack/interactions and /slack/commands"})
	}
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	return append(out, Finding{Good, "events cannot be listed through the API", "under Event Subscriptions, bot events must hold: " + strings.Join(names, ", ")})
}

func checkScopes(w whoami) []Finding {
	if w.scopes == nil {
		return []Finding{{Warning, "Slack does not say which scopes the bot token has", ""}}
	}
	const where = "add it under OAuth & Permissions, Bot Token Scopes, then Install App, Reinstall"
	var out []Finding
	for _, s := range missing(w.scopes, true) {
		out = append(out, Finding{Problem, "the bot scope " + s + " is missing: " + reasonOf(s), where})
	}
	for _, s := range missing(w.scopes, false) {
		out = append(out, Finding{Warning, "the optional bot scope " + s + " is missing: " + reasonOf(s), where})
	}
	if len(out) == 0 {
		out = append(out, Finding{Good, "all bot scopes are granted", ""})
	}
	return out
}

func (a *Adapter) checkSocket(ctx context.Context) Finding {
	if _, err := a.api.openSocket(ctx); err != nil {
		what, is := fatal[codeOf(err)]
		if !is {
			what = "check the network, and that Socket Mode is on under Socket Mode"
		}
		return Finding{Problem, fmt.Sprintf("Slack opens no socket with the app token: %v", err), what}
	}
	return Finding{Good, "the app token opens sockets", ""}
}
