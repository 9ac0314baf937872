package command

import (
	"context"
	"errors"

	"footnote/adapters/slack"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
)

// checkPlatforms asks every configured chat platform whether the app is set up.
func (p *program) checkPlatforms(ctx context.Context, c config.Config) []finding {
	found, err := c.Platforms(p.lookup)
	var problems *config.Problems
	if errors.As(err, &problems) {
		var out []finding
		for _, x := range problems.All {
			out = append(out, finding{"platforms", failure, x.Where + ": " + x.What, "accepted: " + x.Accepts})
		}
		return out
	}
	var out []finding
	for _, w := range found.Warnings {
		out = append(out, finding{"platforms", warning, w, "use https, or an address on this machine"})
	}
	if found.Slack == nil && found.Discord == nil {
		return append(out, finding{"platforms", good, "none is configured; footnote serve says what to set", ""})
	}
	l, err := assemble.OpenLookout(c, found)
	if err != nil {
		return append(out, finding{"platforms", failure, err.Error(), ""})
	}
	defer func() { _ = l.Close() }() // nothing is written
	return append(out, setup(ctx, l)...)
}

// setup is what the adapters find.
func setup(ctx context.Context, l *assemble.Lookout) []finding {
	var out []finding
	if l.Slack != nil {
		states := map[slack.Severity]string{slack.Good: good, slack.Warning: warning, slack.Problem: failure}
		for _, f := range l.Slack.Check(ctx) {
			out = append(out, finding{"slack", states[f.Severity], f.What, f.Do})
		}
	}
	if l.Discord != nil {
		for _, f := range l.Discord.Check(ctx) {
			state := failure
			if f.OK {
				state = good
			}
			out = append(out, finding{"discord", state, f.Name + ": " + f.Text, ""})
		}
	}
	return out
}
