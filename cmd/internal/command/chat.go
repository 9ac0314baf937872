package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/bot"
	"footnote/cmd/internal/assemble"
)

const chatHelp = `Ask in a sentence; a short question may go on from the one before.
  /sources  the sources of the last answer
  /why      every stage of the last question
  /help     this text
  /quit     end (also the end of input)
`

// maxTurns bounds how much of the conversation goes with a question.
const maxTurns = 20

func (p *program) chat() *cobra.Command {
	c := &cobra.Command{Use: "chat", Short: "Ask in a conversation", Long: "chat answers line by line.\n\n" + chatHelp, Args: exactly(0, "no question: it asks for them")}
	a := p.askerFlags(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runChat(cmd.Context(), a) }
	return c
}

// conversation is one chat: its turns and what the last question led to.
type conversation struct {
	*session
	p       *program
	history []bot.Turn
	last    *bot.Explanation
}

func (p *program) runChat(ctx context.Context, a *asker) (err error) {
	s, err := p.session(ctx, a, assemble.DefaultTop, false)
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	c := &conversation{session: s, p: p}
	if _, is := terminal(p.In); is {
		if err := p.print("footnote, generation %s. /help says what there is.\n", s.Index.Manifest().Name); err != nil {
			return err
		}
	}
	return c.run(ctx)
}

// run reads lines until the end of input, /quit or the end of ctx.
func (c *conversation) run(ctx context.Context) error {
	_, interactive := terminal(c.p.In)
	lines := readLines(c.p.In)
	for {
		if interactive {
			if err := c.p.print("> "); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return c.p.print("\n")
		case l, ok := <-lines:
			if !ok {
				return nil
			}
			if l.err != nil {
				return l.err
			}
			quit, err := c.line(ctx, l.text)
			if quit || err != nil {
				return err
			}
		}
	}
}

type line struct {
	text string
	err  error
}

// readLines reads in its own goroutine, so that an interrupt is not stuck
// behind a read. It ends with the input; after an interrupt, with the process.
func readLines(r io.Reader) <-chan line {
	out := make(chan line)
	go func() {
		defer close(out)
		in := bufio.NewReaderSize(r, 1<<16)
		for {
			raw, err := readLine(in)
			if errors.Is(err, io.EOF) {
				return
			}
			out <- line{string(raw), err}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// line answers one line of input and reports whether the chat is over.
func (c *conversation) line(ctx context.Context, text string) (quit bool, err error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return false, nil
	case text == "/quit" || text == "/exit":
		return true, nil
	case text == "/help":
		return false, c.p.print("%s", chatHelp)
	case text == "/sources":
		return false, c.sources()
	case text == "/why":
		return false, c.why()
	case strings.HasPrefix(text, "/") && !strings.ContainsAny(text, " \t?"):
		return false, c.p.print("There is no %s.\n%s", console.Line(text), chatHelp)
	}
	return false, c.question(ctx, text)
}

func (c *conversation) question(ctx context.Context, text string) error {
	m, err := c.message(ctx, question{text: text})
	if err != nil {
		return err
	}
	m.History = c.history
	e, err := c.Bot.Explain(ctx, m)
	var told *bot.UserError
	if errors.As(err, &told) {
		return c.p.print("%s\n", console.Safe(told.Text))
	}
	if err != nil {
		return err
	}
	c.note(e.Reply)
	c.last = &e
	c.remember(text, said(e.Reply))
	return c.p.print("%s\n", c.show.Reply(e.Reply))
}

func (c *conversation) remember(asked, answered string) {
	c.history = append(c.history, bot.Turn{Speaker: bot.User, Text: asked}, bot.Turn{Speaker: bot.Agent, Text: answered})
	c.history = c.history[max(0, len(c.history)-maxTurns):]
}

// said is what the bot said, for the history.
func said(r bot.Reply) string {
	if r.Outcome == bot.Refused {
		return r.Text
	}
	var parts []string
	for _, s := range r.Sentences {
		parts = append(parts, s.Plain)
	}
	return strings.Join(parts, " ")
}

func (c *conversation) sources() error {
	if c.last == nil || len(c.last.Reply.Sources) == 0 {
		return c.p.print("The last answer has no sources.\n")
	}
	return c.p.print("%s", c.show.Sources(c.last.Reply.Sources))
}

func (c *conversation) why() error {
	if c.last == nil {
		return c.p.print("Nothing was asked yet.\n")
	}
	return c.p.print("%s", c.stages(*c.last, 5))
}
