package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// While footnote serve holds the data directory, other commands run inside it
// and see and do the same as without it.
func TestCommandsRunInsideTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "footnote.yaml")
	write(t, file, "data: data\nweb: {listen: '127.0.0.1:0'}\nsync: {interval: 3600}\nsources:\n  - {folder: docs, access: [everyone]}\n")
	write(t, filepath.Join(dir, "docs", "oil.md"), "# Gearbox\n\nThe gearbox of the press takes seven litres of oil.\n")
	write(t, filepath.Join(dir, "other", "fee.md"), "# Parking\n\nParking in the yard costs forty euros a month.\n")
	s := start(t, file)
	run := func(code int, want string, args ...string) string {
		t.Helper()
		cmd := program(t, "", append(args, "--config", "footnote.yaml")...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if exitCode(err) != code || !strings.Contains(string(out), want) {
			t.Errorf("footnote %v ends with %d, not %d, or does not say %q:\n%s", args, exitCode(err), code, want, out)
		}
		return string(out)
	}
	run(0, "0 failed", "sync")
	run(0, "seven litres", "ask", "How much oil does the gearbox take?")
	write(t, filepath.Join(dir, "docs", "oil.md"), "# Gearbox\n\nThe gearbox of the press takes nine litres of oil.\n")
	run(0, "0 failed", "sync", "docs")
	if out := run(0, "nine litres", "ask", "How much oil does the gearbox take?"); strings.Contains(out, "seven litres") {
		t.Errorf("the old text is still told:\n%s", out)
	}
	run(3, "other: 0 published", "ingest", "other") // no access list
	run(0, "other: 1 published", "ingest", "other", "--access", "everyone")
	run(0, "other/fee.md", "docs", "list")
	run(0, "index and catalog agree", "docs", "verify")
	run(0, "removed", "docs", "rm", "other/fee.md")
	run(6, "", "ask", "What does parking in the yard cost?")
	run(2, "unknown flag", "docs", "list", "--frobnicate")
	run(0, "content", "sla")
	run(1, "in use", "chat") // reads its questions from the terminal
	s.holds("/metrics", `footnote_changes_total{kind="content"} `, `footnote_source_held{source="docs"} 0`, `footnote_documents{state="published"} 1`)
	for _, name := range []string{"serve.sock", "serve.addr"} {
		if info, err := os.Stat(filepath.Join(dir, "data", name)); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
	}

	write(t, file, "data: data\nsources:\n  - {folder: docs, access: [group:hr]}\n")
	run(1, "have changed since footnote serve was started: restart it", "sync")
	if err := s.stop(syscall.SIGTERM); err != nil {
		t.Errorf("footnote serve ends with %v:\n%s", err, s.log())
	}
	run(1, "no footnote serve runs on this data directory", "sla")
	run(0, "1 unchanged documents have a new access list", "sync")
}
