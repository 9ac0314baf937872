package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, path string){
		"a new file": func(*testing.T, string) {},
		"over a longer one": func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("old ", 99)), 0o600))
		},
		"after a crash aside": func(t *testing.T, path string) {
			must(t, os.WriteFile(aside(path), []byte(strings.Repeat("half ", 99)), 0o600))
		},
	}
	for name, before := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "current")
			before(t, path)
			must(t, WriteFile(path, []byte("new")))
			got, err := os.ReadFile(path)
			must(t, err)
			if string(got) != "new" {
				t.Errorf("it holds %q", got)
			}
			files, err := os.ReadDir(filepath.Dir(path))
			must(t, err)
			if len(files) != 1 {
				t.Errorf("%d files are there, want one", len(files))
			}
		})
	}
}

func TestWriteFileThatFailsLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "current")
	must(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	if err := WriteFile(path, []byte("new")); err == nil {
		t.Error("a file replaced a folder")
	}
	if _, err := os.Stat(aside(path)); !os.IsNotExist(err) {
		t.Errorf("what was written aside is still there: %v", err)
	}
	if err := WriteFile(filepath.Join(path, "none", "current"), nil); err == nil {
		t.Error("a file was written into no folder")
	}
}
