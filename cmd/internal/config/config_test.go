package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func environment(kv ...string) Lookup {
	m := map[string]string{"HOME": "/home/ada"}
	for i := 0; i+1 < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLoad(t *testing.T) {
	t.Parallel()
	const good = "data: state\nmodels:\n  threads: 3\ngate:\n  distance: 0.17\nlog:\n  level: debug\n"
	tests := []struct {
		name, file string
		env        Lookup
		data       string
		check      func(c Config, dir string) bool
	}{
		{"file sets values, paths relative to it", good, environment(), "", func(c Config, dir string) bool {
			return c.Data == filepath.Join(dir, "state") && c.Models.Threads == 3 && *c.Gate.Distance == 0.17 && c.Log.Level == "debug"
		}},
		{"environment wins over file", good, environment("FOOTNOTE_MODELS_THREADS", "5"), "", func(c Config, _ string) bool {
			return c.Models.Threads == 5
		}},
		{"flag wins over environment", good, environment("FOOTNOTE_DATA", "/a"), "/b", func(c Config, _ string) bool {
			return c.Data == "/b"
		}},
		{"empty file leaves defaults", "", environment(), "", func(c Config, _ string) bool {
			return c.Search.Depth == 100 && strings.HasPrefix(c.Data, "/home/ada/")
		}},
		{"only comments", "# nothing\n", environment(), "", func(c Config, _ string) bool { return c.Search.Rerank == 25 }},
		{"state directory of the desktop", "", environment("XDG_STATE_HOME", "/s"), "", func(c Config, _ string) bool {
			return c.Data == "/s/footnote"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := writeFile(t, tt.file)
			c, err := Load(Flags{File: file, Data: tt.data}, tt.env)
			if err != nil {
				t.Fatal(err)
			}
			if !tt.check(c, filepath.Dir(file)) {
				t.Errorf("unexpected configuration: %+v", c)
			}
		})
	}
}

func TestLoadReportsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	file := writeFile(t, `
data: [a]
modles: {threads: 1}
models: {threads: 900, thread: 1}
search: 5
gate: {distance: near}
chunk: {strategy: Z}
log: {level: }
log: {level: info}
`)
	_, err := Load(Flags{File: file}, environment("FOOTNOTE_CHUNK_TOKENS", "ten"))
	var p *Problems
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want *Problems", err)
	}
	var got []string
	for _, x := range p.All {
		got = append(got, strings.ReplaceAll(x.String(), file, "F"))
	}
	want := []string{
		"F:2: data: must be a single value; accepted: a directory, made when needed",
		"F:3: modles: is not a setting; accepted: one of answer, chunk, data, discord, gate, index, ingest, log, models, notes, operators, people, push, redis, search, serve, slack, sources, sync, uploads, web",
		"F:4: models.threads: 900 is out of range; accepted: a whole number from 0 to 64",
		"F:4: models.thread: is not a setting; accepted: one of runtime, threads",
		"F:5: search: must be a group of settings; accepted: keys depth, rerank",
		`F:6: gate.distance: "near" is not a number; accepted: a number from 0 to 2`,
		`F:7: chunk.strategy: "Z" is not known; accepted: one of structural, A, B, C, D, E, F`,
		"F:8: log.level: has no value; accepted: one of debug, info, warn, error",
		"F:9: log: is set twice; accepted: one value",
		`FOOTNOTE_CHUNK_TOKENS: "ten" is not a whole number; accepted: a whole number from 50 to 508`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"list instead of mapping", "- a\n", "must be a mapping"},
		{"two documents", "data: a\n---\ndata: b\n", "more than one"},
		{"broken", "a: [", "yaml"},
		{"too long", strings.Repeat("#", maxFile+1), "longer than"},
		{"not a number", "gate: {distance: .nan}\n", "not a number"},
		{"alias", "data: &x a\npeople: *x\n", "must be a single value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(Flags{File: writeFile(t, tt.text)}, environment())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestLoadMissing(t *testing.T) {
	t.Parallel()
	if _, err := Load(Flags{File: filepath.Join(t.TempDir(), "no.yaml")}, environment()); err == nil {
		t.Error("a named file that is missing must be an error")
	}
	if _, err := Load(Flags{}, environment("XDG_CONFIG_HOME", t.TempDir())); err != nil {
		t.Errorf("the user's own file is optional, got %v", err)
	}
	_, err := Load(Flags{}, environment("HOME", ""))
	if err == nil || !strings.Contains(err.Error(), "FOOTNOTE_DATA") {
		t.Errorf("without a home the error must name FOOTNOTE_DATA, got %v", err)
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	got := Unknown([]string{"PATH=/bin", "FOOTNOTE_DATA=/x", "FOOTNOTE_DTAA=/x", "FOOTNOTE_AS=ada"})
	if diff := cmp.Diff([]string{"FOOTNOTE_DTAA"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadmeNamesEverySetting(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range new(Config).settings() {
		row := fmt.Sprintf("| `%s` | `%s` | %s |", s.path, s.env(), s.accepts)
		if s.keyed() {
			row = fmt.Sprintf("| `%s` | | %s |", s.path, s.accepts)
		}
		if !strings.Contains(string(readme), row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const value = "hunter2-swordfish"
	s, err := LookupSecret("K", environment("K", value))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, _ := json.Marshal(map[string]any{"k": s})
	asYAML, _ := yaml.Marshal(map[string]any{"k": s})
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "k", s, "wrapped", struct{ S Secret }{s})
	all := fmt.Sprintf("%v %s %q %x %d %+v %#v %T", s, s, s, s, s, struct{ S Secret }{s}, s, s) + string(asJSON) + string(asYAML) + log.String()
	if strings.Contains(all, value) || strings.Contains(all, fmt.Sprintf("%x", value)) {
		t.Errorf("the secret leaks: %s", all)
	}
	if s.Reveal() != value {
		t.Error("Reveal must return the value")
	}
}

func TestLookupSecret(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "from-file\n")
	blank := writeFile(t, " \n")
	tests := []struct {
		name    string
		env     Lookup
		want    string
		wantErr string
	}{
		{"absent", environment(), "", ""},
		{"variable", environment("K", "v"), "v", ""},
		{"file, line break dropped", environment("K_FILE", file), "from-file", ""},
		{"both", environment("K", "v", "K_FILE", file), "", "both set"},
		{"blank variable", environment("K", "  "), "", "blank"},
		{"empty variable", environment("K", ""), "", "blank"},
		{"blank file", environment("K_FILE", blank), "", "blank"},
		{"missing file", environment("K_FILE", blank+"x"), "", "K_FILE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := LookupSecret("K", tt.env)
			if s.Reveal() != tt.want || (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %q, %v", s.Reveal(), err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("data: x\nmodels:\n  threads: 1\n")
	f.Add("a: &a [*a]\n")
	f.Add("? {a: b}\n: c\n")
	f.Fuzz(func(t *testing.T, text string) {
		root, err := parseYAML([]byte(text))
		if err != nil {
			return
		}
		c := Default()
		var p Problems
		walk(root, place{}, "f", tableOf(&c), &p)
		if p.err() == nil && (c.Search.Depth < 1 || c.Chunk.Tokens > 508) {
			t.Errorf("out of range without a problem: %+v", c)
		}
	})
}
