package command

import (
	"context"
	"errors"
	"syscall"

	"footnote/adapters/console"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
)

// Exit codes of the program.
const (
	ExitDone    = 0 // done; for ask: answered
	ExitFailure = 1
	ExitUsage   = 2 // wrong flags, arguments or configuration
	ExitPartial = 3 // some documents failed
	ExitNoIndex = 5
	ExitRefused = 6 // ask: nothing to answer from
)

// exit is an error that carries its exit code. err may be nil: the command
// has said all there is to say.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage marks an error as the caller's: wrong flags or arguments.
func usage(err error) error { return &exit{ExitUsage, err} }

// code is the exit code of an error.
func code(err error) int {
	var e *exit
	var p *config.Problems
	switch {
	case err == nil || isBrokenPipe(err):
		return ExitDone
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &p):
		return ExitUsage
	case errors.Is(err, retrieval.ErrNoIndex):
		return ExitNoIndex
	}
	return ExitFailure
}

// isBrokenPipe reports that the reader of our output went away, as head does:
// there is nobody to tell and nothing wrong.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// message is what standard error says of an error, with what to do where the
// error does not say so itself; "" for nothing.
func message(err error) string {
	if err == nil || isBrokenPipe(err) || err.Error() == "" {
		return ""
	}
	text := "footnote: " + console.Safe(err.Error())
	switch {
	case errors.Is(err, context.Canceled):
		return "footnote: interrupted"
	case errors.Is(err, retrieval.ErrNoIndex):
		return text + "\n  make one: footnote ingest FOLDER"
	case errors.Is(err, retrieval.ErrInUse):
		return text + "\n  end the other footnote, or use another --data"
	case errors.Is(err, retrieval.ErrUnavailable):
		return text + "\n  what is wrong: footnote doctor"
	case errors.Is(err, retrieval.ErrCorrupt):
		return text + "\n  go back to another generation (footnote index list, footnote index promote NAME) or ingest anew into an empty --data"
	}
	return text
}
