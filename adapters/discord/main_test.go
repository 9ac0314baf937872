package discord

import (
	commandline "flag"
	"os"
	"testing"
)

// TestMain is also the bot that TestStorm runs in a process of its own. Tests
// wait for sockets more than they work, so more of them run at once than there
// are processors.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FOOTNOTE_CHILD_DIR"); dir != "" {
		os.Exit(child(dir))
	}
	commandline.Parse()
	given := false
	commandline.Visit(func(f *commandline.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = commandline.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}
