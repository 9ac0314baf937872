package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUploadsAndChannels(t *testing.T) {
	t.Parallel()
	file := writeFile(t, `uploads:
  by: ["slack:T0123:usergroup/S0123", ada@example.org]
  types: [md, .PDF]
  max_files: 3
sources:
  - slack_channel: C0123ABCD
  - folder: docs
  - slack_channel: G0123ABCD
    history: 7d
`)
	c, err := Load(Flags{File: file}, environment())
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Uploads.By.String(); !strings.Contains(got, "slack:T0123:usergroup/S0123") || !strings.Contains(got, "ada@example.org") {
		t.Errorf("uploads.by: %s", got)
	}
	if d := cmp.Diff([]string{"md", "pdf"}, c.Uploads.Types); d != "" || c.Uploads.MaxFiles != 3 || c.Uploads.MaxMegabytes != 20 {
		t.Errorf("uploads: %+v", c.Uploads)
	}
	want := []Channel{{"C0123ABCD", 90 * 24 * time.Hour}, {"G0123ABCD", 7 * 24 * time.Hour}}
	if d := cmp.Diff(want, c.Channels); d != "" || len(c.Sources) != 1 {
		t.Errorf("%d folders; channels (-want +got):\n%s", len(c.Sources), d)
	}
	if c, err := Load(Flags{}, environment("FOOTNOTE_UPLOADS_BY", "everyone, group:hr")); err != nil || len(c.Uploads.By.Principals()) != 2 {
		t.Errorf("from the environment: %v %v", c.Uploads.By, err)
	}
	if !Default().Uploads.By.IsZero() {
		t.Error("somebody may add files though nobody is named")
	}
}

func TestUploadsAndChannels_Problems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"nobody":                     {"uploads: {by: []}\n", "uploads.by: must be a single value"},
		"an ending that is a path":   {"uploads: {types: [a/b]}\n", "is no ending"},
		"a channel by name":          {"sources: [{slack_channel: general}]\n", "is not the id of a channel"},
		"a person":                   {"sources: [{slack_channel: U0123}]\n", "is not the id of a channel"},
		"a history without a unit":   {"sources: [{slack_channel: C0123, history: 90}]\n", "no number of days"},
		"a history that is too long": {"sources: [{slack_channel: C0123, history: 99999d}]\n", "no number of days"},
		"an access list":             {"sources: [{slack_channel: C0123, access: everyone}]\n", "is not a setting of a channel"},
		"a channel twice":            {"sources: [{slack_channel: C0123}, {slack_channel: C0123}]\n", "a source twice"},
		"nothing":                    {"sources: [{slack_channel: }]\n", "must be a single value"},
	} {
		_, err := Load(Flags{File: writeFile(t, c.file)}, environment())
		var p *Problems
		if !errors.As(err, &p) || len(p.All) != 1 || !strings.Contains(p.All[0].String(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
