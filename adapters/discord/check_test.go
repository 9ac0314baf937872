package discord

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
)

// The documentation must say what the program asks for.
func TestD70DocumentationAgrees(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../deploy/discord/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), setup()) {
		t.Errorf("deploy/discord/README.md must hold exactly:\n%s", setup())
	}
	var intents int
	for _, i := range intentTable {
		if i.privileged {
			t.Errorf("%s is privileged", i.name)
		}
		intents |= int(i.bit)
	}
	if intents != int(intentsAlways|intentsMessages) {
		t.Error("the table of intents is not what is asked for")
	}
	if PermissionsInteger() != uint64(dt.BotPerms) {
		t.Errorf("permissions %d", PermissionsInteger())
	}
}

// setup is the part of the documentation that must agree with the program:
// the permissions and the intents, in Markdown.
func setup() string {
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

func failing(fs []bot.Finding) string {
	var out []string
	for _, f := range fs {
		if f.Weight != bot.Good {
			out = append(out, f.What)
		}
	}
	return strings.Join(out, "\n")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	ctx := context.Background()
	if bad := failing(r.adapter.Check(ctx)); bad != "" {
		t.Errorf("a good set-up: %s", bad)
	}
	r.ChangeMember(x.guild, r.App().BotUser, func(m *dt.Member) { m.Roles = nil })
	r.ChangeRole(x.guild, x.guild, func(r *dt.Role) { r.Permissions &^= dt.SendInThreads })
	if bad := failing(r.adapter.Check(ctx)); !strings.Contains(bad, "Send Messages in Threads") || strings.Contains(bad, "Send Messages (") {
		t.Errorf("a missing permission: %s", bad)
	}
	r.adapter.c.Guilds = []string{x.guild, "77"}
	r.adapter.c.PublicKey = strings.Repeat("0", 64)
	if bad := failing(r.adapter.Check(ctx)); !strings.Contains(bad, "server 77") || !strings.Contains(bad, "FOOTNOTE_DISCORD_PUBLIC_KEY") {
		t.Errorf("an absent server and a wrong key: %s", bad)
	}
	r.Server.Close()
	if fs := r.adapter.Check(ctx); len(fs) != 1 || !strings.Contains(fs[0].Do, "discord.api_url") {
		t.Errorf("an outage: %+v", fs)
	}
}

func TestCheckNamesADeadToken(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t, newTown(), setting{}), context.Background()
	r.ResetToken()
	if bad := failing(r.adapter.Check(ctx)); !strings.Contains(bad, "FOOTNOTE_DISCORD_TOKEN") {
		t.Errorf("a dead token: %s", bad)
	}
}
