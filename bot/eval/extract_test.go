package eval_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/bot/eval"
)

// formats writes a folder of format files.
func formats(t *testing.T, expect string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	files["../expect.jsonl"] = expect
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, "files", name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestExtractionIsHeldToWhatIsExpected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, expect, data string
		held, failed       []string
	}{
		{"text, white space collapsed", `"text","must_contain":["one two"],"must_not_contain":["four"]`, "one\n  two three", []string{"text", "chunks", "«one two»", "no «four»"}, nil},
		{"a phrase is missing and another should be", `"text","must_contain":["two"],"must_not_contain":["one"]`, "one", []string{"text", "chunks"}, []string{"«two»", "no «one»"}},
		{"text where an error is expected", `"error"`, "one", []string{"chunks"}, []string{"error"}},
		{"an error where text is expected", `"text","must_contain":["one"]`, "", []string{"a reason for an operator"}, []string{"text"}},
		{"an error that is expected", `"empty"`, "", []string{"a reason for an operator", "empty"}, nil},
		{"another error than the one expected", `"encrypted"`, "", []string{"a reason for an operator"}, []string{"encrypted"}},
		{"either", `"text-or-error"`, "one", []string{"text-or-error", "chunks"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := formats(t, `{"file":"a.txt","kind":"txt","expect":`+c.expect+"}\n\n", map[string]string{"a.txt": c.data})
			all, err := eval.LoadExtraction(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got eval.Extracted
			if err := eval.Extract(context.Background(), dir, all, func(e eval.Extracted) { got = e }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.held, got.Held); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.failed, got.Failed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpectationsThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"no JSON":              "{",
		"an unknown outcome":   `{"file":"a.txt","expect":"wonder"}`,
		"no file":              `{"expect":"text"}`,
		"a file outside files": `{"file":"../a.txt","expect":"text"}`,
	} {
		if _, err := eval.LoadExtraction(formats(t, line, map[string]string{})); err == nil || !strings.Contains(err.Error(), "expect.jsonl line 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := eval.LoadExtraction(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is no folder of format files") {
		t.Error(err)
	}
}
