package command

import (
	"context"
	"errors"

	"footnote/bot"
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
	tell := func(platform string, found []bot.Finding) {
		states := map[bot.Weight]string{bot.Good: good, bot.Warning: warning, bot.Problem: failure}
		for _, f := range found {
			out = append(out, finding{platform, states[f.Weight], f.What, f.Do})
		}
	}
	if l.Slack != nil {
		tell("slack", l.Slack.Check(ctx))
	}
	if l.Discord != nil {
		tell("discord", l.Discord.Check(ctx))
	}
	return out
}
