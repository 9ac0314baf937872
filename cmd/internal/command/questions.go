package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/retrieval"
)

// asking are the flags and arguments of commands that take questions: words,
// "-" for standard input, or --batch.
type asking struct {
	asker *asker
	batch string
}

func (p *program) askingFlags(c *cobra.Command) *asking {
	a := &asking{asker: p.askerFlags(c)}
	c.Flags().StringVar(&a.batch, "batch", "", "`FILE` of questions, one JSON object a line (id, text, as, room, history); - is standard input")
	p.jsonFlag(c)
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case a.batch != "" && len(args) > 0:
			return usage(errors.New("give a question or --batch, not both"))
		case a.batch == "" && len(args) == 0:
			return usage(fmt.Errorf("%s needs a question, - to read it from standard input, or --batch FILE", cmd.CommandPath()))
		}
		return nil
	}
	return a
}

// maxStdin bounds a question on standard input, in bytes.
const maxStdin = 16 << 20

// question is the one of the arguments. Several words are one question.
func (p *program) question(args []string) (question, error) {
	if len(args) != 1 || args[0] != "-" {
		return question{text: strings.Join(args, " ")}, nil
	}
	raw, err := io.ReadAll(io.LimitReader(p.In, maxStdin+1))
	if err != nil {
		return question{}, fmt.Errorf("reading the question from standard input: %w", err)
	}
	if len(raw) > maxStdin {
		return question{}, usage(fmt.Errorf("the question on standard input is longer than %d bytes", maxStdin))
	}
	return question{text: string(raw)}, nil
}

// input is what a command that takes questions was given: one, or a batch.
type input struct {
	one   question
	batch io.ReadCloser // nil: one
	name  string        // of the batch
}

// input reads the question or opens the batch, before anything else is opened.
func (p *program) input(a *asking, args []string) (in input, err error) {
	switch in.name = a.batch; a.batch {
	case "":
		in.one, err = p.question(args)
	case "-":
		in.batch = io.NopCloser(p.In)
	default:
		if in.batch, err = os.Open(a.batch); err != nil {
			err = usage(fmt.Errorf("opening the batch: %w", err))
		}
	}
	return in, err
}

// eachAsked opens a session and does the question of the arguments, or each of
// the batch. top is how many results the session's searches give.
func (p *program) eachAsked(ctx context.Context, a *asking, args []string, top int, do func(*session, question) error) (err error) {
	in, err := p.input(a, args)
	if err != nil {
		return err
	}
	if in.batch != nil {
		defer in.batch.Close()
	}
	s, err := p.session(ctx, a.asker, top, in.batch != nil)
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	if in.batch == nil {
		return do(s, in.one)
	}
	return p.each(ctx, in, func(q question) error { return do(s, q) })
}

// each answers the questions of a batch in order. What fails is told on
// standard error with its line, and makes the command fail at the end.
func (p *program) each(ctx context.Context, in input, do func(question) error) error {
	failed, err := eachQuestion(in.batch, do, func(line int, err error) {
		_, _ = fmt.Fprintf(p.Err, "footnote: %s, line %d: %s\n", console.Line(in.name), line, console.Safe(err.Error()))
	}, func(err error) bool { return ctx.Err() != nil || fatal(err) })
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d question(s) of the batch failed", failed)
	}
	return err
}

// fatal reports an error that every later question would meet as well.
func fatal(err error) bool {
	return isBrokenPipe(err) || errors.Is(err, retrieval.ErrModelMismatch) || errors.Is(err, retrieval.ErrCorrupt)
}
