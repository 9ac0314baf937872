// Command footnote answers questions from an organisation's own documents, in
// Slack, in Discord and in a terminal: every sentence with a numbered footnote,
// or an honest refusal.
//
// This file is the edge to the system: streams, environment, signals. The
// commands live in cmd/internal/command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"footnote/cmd/internal/command"
)

func main() { os.Exit(run()) }

func run() int {
	// A reader that goes away is then an error of the write, which the
	// commands end on in order, and not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal drains; from then on the second one kills.
	context.AfterFunc(ctx, stop)
	return command.Main(ctx, os.Args[1:], command.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}, os.Environ())
}
