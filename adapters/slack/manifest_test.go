package slack_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"footnote/adapters/slack"
)

var update = flag.Bool("update", false, "write deploy/slack/manifest.yaml anew")

// The manifest that people paste and the scopes that the code asks for are one
// table.
func TestS112ManifestIsTheTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "deploy", "slack", "manifest.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(slack.Manifest()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slack.Manifest(), string(got)); diff != "" {
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
	if err := yaml.Unmarshal([]byte(slack.Manifest()), &m); err != nil {
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
