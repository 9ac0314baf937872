package command

import (
	"context"

	"github.com/spf13/cobra"

	"footnote/bot"
	"footnote/cmd/internal/assemble"
)

func (p *program) ask() *cobra.Command {
	c := &cobra.Command{
		Use:   "ask QUESTION | - | --batch FILE",
		Short: "Answer a question with footnotes, or refuse",
		Long: `ask answers one question, or each question of a batch in order. It ends with 0
if the question was answered, 6 if it was refused; a batch ends with 0 unless a
question failed.`,
	}
	a := p.askingFlags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runAsk(cmd.Context(), a, args) }
	return c
}

func (p *program) runAsk(ctx context.Context, a *asking, args []string) error {
	return p.eachAsked(ctx, a, args, assemble.DefaultTop, func(s *session, q question) error {
		reply, err := p.answer(ctx, s, q)
		if err == nil && a.batch == "" && reply.Outcome == bot.Refused {
			return &exit{code: ExitRefused}
		}
		return err
	})
}

// answer answers one question and prints the reply.
func (p *program) answer(ctx context.Context, s *session, q question) (bot.Reply, error) {
	m, err := s.message(ctx, q)
	if err != nil {
		return bot.Reply{}, err
	}
	reply, err := s.Bot.Handle(ctx, m)
	if err != nil {
		return bot.Reply{}, err
	}
	s.note(reply)
	if p.json {
		return reply, writeJSON(p.Out, reply)
	}
	return reply, p.print("%s", s.show.Reply(reply))
}

// message is a question as the bot takes it.
func (s *session) message(ctx context.Context, q question) (bot.Message, error) {
	who, audience, err := s.asker.authority(ctx, q.as, q.room)
	if err != nil {
		return bot.Message{}, err
	}
	m := bot.Message{ID: q.id, Text: q.text, Asker: who, Audience: audience}
	for _, t := range q.history {
		if t.Speaker != bot.User {
			t.Speaker = bot.Agent
		}
		m.History = append(m.History, bot.Turn(t))
	}
	return m, nil
}

// note logs that a question was worked on, without a word of it.
func (s *session) note(r bot.Reply) {
	s.log.Info("question", "trace", r.Trace, "outcome", r.Outcome, "reason", r.Reason, "language", r.Language,
		"sources", len(r.Sources), "generation", r.Generation, "ms", r.MS)
}
