package slack

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write deploy/slack/manifest.yaml anew")

// The manifest that people paste and the scopes that the code asks for are one
// table.
func TestS112ManifestIsTheTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "deploy", "slack", "manifest.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(manifest()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest(), string(got)); diff != "" {
		t.Errorf("run go test ./adapters/slack -run S112 -update (-want +got):\n%s", diff)
	}
}

func TestManifestIsYAMLWithTheLeastScopes(t *testing.T) {
	t.Parallel()
	var m struct {
		OAuth struct {
			Scopes struct{ Bot []string }
		} `yaml:"oauth_config"`
		Settings struct {
			Events struct {
				Bot []string `yaml:"bot_events"`
			} `yaml:"event_subscriptions"`
			Socket bool `yaml:"socket_mode_enabled"`
		}
	}
	if err := yaml.Unmarshal([]byte(manifest()), &m); err != nil {
		t.Fatal(err)
	}
	if !m.Settings.Socket || len(m.Settings.Events.Bot) != 20 || len(m.OAuth.Scopes.Bot) != 13 {
		t.Errorf("%+v", m)
	}
	for _, s := range m.OAuth.Scopes.Bot {
		switch s {
		case "chat:write.public", "channels:join", "files:read", "channels:history", "groups:history", "mpim:history":
			t.Errorf("the manifest asks for %s", s)
		}
	}
}

// manifest is the app's manifest, for deploy/slack/manifest.yaml.
func manifest() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# The Slack app of footnote. Paste it at https://api.slack.com/apps, Create New App, From a manifest.")
	p("# It is made from the table in adapters/slack/scopes.go; a test holds the two together.")
	p("display_information:")
	p("  name: footnote")
	p("  description: Answers from your documents, with sources")
	p("features:")
	p("  app_home:")
	p("    home_tab_enabled: true")
	p("    messages_tab_enabled: true")
	p("    messages_tab_read_only_enabled: false")
	p("  bot_user:")
	p("    display_name: footnote")
	p("    always_online: true")
	p("  slash_commands:")
	p("    - command: /ask")
	p("      description: Ask privately")
	p("      usage_hint: your question")
	p("      should_escape: true")
	p("    - command: /footnote")
	p("      description: Help, status, and what became of your questions")
	p("      usage_hint: help, status, status DOCUMENT or why")
	p("      should_escape: true")
	p("  shortcuts:")
	p("    - name: Ask footnote about this message")
	p("      type: message")
	p("      callback_id: %s", ShortcutID)
	p("      description: Looks this up, for you alone")
	p("oauth_config:")
	p("  scopes:")
	p("    bot:")
	rows(&b, scopes)
	p("settings:")
	p("  event_subscriptions:")
	p("    bot_events:")
	rows(&b, events)
	p("  interactivity:")
	p("    is_enabled: true")
	p("  org_deploy_enabled: false")
	p("  socket_mode_enabled: true")
	p("  token_rotation_enabled: false")
	return b.String()
}

func rows(b *strings.Builder, list []need) {
	for _, n := range list {
		mark := "- "
		if n.Extra {
			mark = "# - "
		}
		row := "      " + mark + n.Name
		if n.Optional {
			fmt.Fprintf(b, "%-36s # optional: %s\n", row, n.Why)
		} else {
			fmt.Fprintf(b, "%-36s # %s\n", row, n.Why)
		}
	}
}
