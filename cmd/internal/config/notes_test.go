package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/cmd/internal/config"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file    string
		want    config.Notes
		problem string
	}{
		"off":                       {"log: {level: info}", config.Notes{PerRun: 1000, Concurrency: 4}, ""},
		"on":                        {"notes: {url: http://127.0.0.1:8000/v1, model: small}", config.Notes{URL: "http://127.0.0.1:8000/v1", Model: "small", PerRun: 1000, Concurrency: 4}, ""},
		"no bound":                  {"notes: {url: https://models.example/v1, model: small, requests: 0, concurrency: 1}", config.Notes{URL: "https://models.example/v1", Model: "small", Concurrency: 1}, ""},
		"no model":                  {"notes: {url: http://127.0.0.1:8000/v1}", config.Notes{}, "notes.model"},
		"no address":                {"notes: {model: small}", config.Notes{}, "notes.url"},
		"a key in the file":         {"notes: {url: http://127.0.0.1:8000/v1, model: small, key: k}", config.Notes{}, "key"},
		"a password in the address": {"notes: {url: http://u:p@127.0.0.1:8000/v1, model: small}", config.Notes{}, "notes.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := config.Load(config.Flags{File: file, Data: t.TempDir()}, func(string) (string, bool) { return "", false })
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("error is %v, want one that names %s", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got.Notes); d != "" {
				t.Errorf("notes (-want +got):\n%s", d)
			}
		})
	}
}

func TestChatKeyIsASecret(t *testing.T) {
	t.Parallel()
	environ := []string{"FOOTNOTE_CHAT_KEY=k", "FOOTNOTE_CHAT_KEY_FILE=f", "FOOTNOTE_NOTES_URL=u"}
	if got := config.Public(environ); !slices.Equal(got, environ[2:]) {
		t.Errorf("handed on to other processes: %v", got)
	}
	if got := config.Unknown(environ); got != nil {
		t.Errorf("unknown: %v", got)
	}
}
