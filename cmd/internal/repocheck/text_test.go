package repocheck

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	documented, dirs := map[string]int{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.test && s.dir != "cmd/internal/repocheck" {
			continue
		}
		dirs[s.dir] = true
		if s.doc != "" && !s.test {
			documented[s.dir]++
		}
	}
	for dir := range dirs {
		if documented[dir] != 1 {
			t.Errorf("%s: %d files carry a package comment, want one", dir, documented[dir])
		}
	}
}

func TestNoDrawerPackages(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, name := range []string{"util", "utils", "common", "types", "helpers", "helper", "service", "services", "misc"} {
			if s.pkg == name || path.Base(s.dir) == name {
				t.Errorf("%s: a package named %s says nothing of what is in it", s.path, name)
			}
		}
	}
}

// unwanted are words that tie a file to one machine or one registry. They are
// put together here so that this file does not hold them.
var unwanted = []*regexp.Regexp{
	regexp.MustCompile(`/(root|home|Users)` + `/[A-Za-z]`),
	regexp.MustCompile(`/work` + `/(main|shared|\.)`),
	regexp.MustCompile(`proxy\.golang` + `\.org|sum\.golang` + `\.org`),
	regexp.MustCompile(`(files\.pythonhosted|pypi)` + `\.org`),
	regexp.MustCompile(`(static\.|index\.)?crates` + `\.io`),
	regexp.MustCompile(`registry\.npmjs` + `\.org`),
	regexp.MustCompile(`deb\.debian` + `\.org`),
}

// excused names files that may hold such words, with the reason.
var excused = map[string]string{
	"cmd/internal/config/config_test.go": "homes that no machine has",
}

func TestNoTrackedFileNamesAMachine(t *testing.T) {
	t.Parallel()
	top := root(t)
	for _, file := range tracked(t, top) {
		if excused[file] != "" || strings.HasPrefix(file, "models/assets/") && !strings.HasSuffix(file, ".md") || strings.HasSuffix(file, "Cargo.lock") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(file)))
		if err != nil || bytes.IndexByte(raw, 0) >= 0 {
			continue // removed since, a link to nothing, or binary
		}
		for _, hit := range hits(raw) {
			t.Errorf("%s holds %q", file, hit)
		}
	}
}

func hits(raw []byte) []string {
	var out []string
	for _, re := range unwanted {
		for _, m := range re.FindAll(raw, -1) {
			out = append(out, string(m))
		}
	}
	return out
}

func TestHits(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"/ro" + "ot/x", "see /ho" + "me/ada/x", "https://proxy.go" + "lang.org", "https://py" + "pi.org/simple", "https://crates" + ".io/x"} {
		if len(hits([]byte(bad))) == 0 {
			t.Errorf("%q must be found", bad)
		}
	}
	if got := hits([]byte("see golang.org/x/text and /etc/hosts")); len(got) > 0 {
		t.Errorf("found %q in harmless text", got)
	}
}

// tracked lists the files that git knows; without git (a source archive) there
// is nothing to hold to the rule, which is said aloud and fails in CI.
func tracked(t *testing.T, top string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = top
	raw, err := cmd.Output()
	if err != nil {
		message := fmt.Sprintf("git ls-files: %v", err)
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
}

func TestSizes(t *testing.T) {
	t.Parallel()
	top := root(t)
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(s.path)))
		if err != nil {
			continue
		}
		if n := bytes.Count(raw, []byte("\n")); n > 800 {
			t.Errorf("%s has %d lines: split it by what it is about", s.path, n)
		}
	}
}
