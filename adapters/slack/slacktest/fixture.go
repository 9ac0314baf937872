package slacktest

import (
	"embed"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
)

// Fixtures are hand-written payloads, one file each, for DemoWorld. They carry
// fields that no library knows and types that Slack may add one day.
//
//go:embed testdata/*.json
var fixtures embed.FS

// Fixtures lists the names of all fixtures: event_*, command_*, interaction_*, other_*.
func Fixtures() []string {
	files, err := fs.Glob(fixtures, "testdata/*.json")
	if err != nil {
		panic(err) // the pattern is fixed
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "testdata/"), ".json")
	}
	slices.Sort(files)
	return files
}

// Fixture returns the payload with the name, for Deliver and EncodeHTTP.
func (s *Server) Fixture(name string) json.RawMessage {
	s.T.Helper()
	b, err := fixtures.ReadFile("testdata/" + name + ".json")
	if err != nil {
		s.Failf("no fixture %q: %v", name, err)
	}
	return b
}
