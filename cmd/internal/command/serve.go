package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
)

func (p *program) serve() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Answer questions in Slack and Discord, as far as they are configured",
		Long: `serve connects to every chat platform that is configured and answers there until
it is told to stop. The first signal (Ctrl-C, SIGTERM) takes no new questions and
lets those under way finish; the second one ends the process at once. A question
that was taken but not answered is answered after the next start.

It keeps up with the sources of the configuration. While it runs, ingest, sync, docs,
index, ask, search, explain and sla work as ever: they run inside it.

  FOOTNOTE_SLACK_BOT_TOKEN=xoxb-… FOOTNOTE_SLACK_APP_TOKEN=xapp-… footnote serve
  FOOTNOTE_DISCORD_TOKEN=… footnote serve

footnote doctor says what is missing on either platform.`,
		Args: exactly(0, "nothing more"),
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runServe(cmd.Context()) }
	return c
}

var errNoPlatform = errors.New(`no chat platform is configured; set for
  Slack    FOOTNOTE_SLACK_BOT_TOKEN and FOOTNOTE_SLACK_APP_TOKEN
           (with slack.mode: http: FOOTNOTE_SLACK_SIGNING_SECRET and web.listen)
  Discord  FOOTNOTE_DISCORD_TOKEN
           (with discord.mode: http: FOOTNOTE_DISCORD_PUBLIC_KEY and web.listen)
To try it without an account: footnote sandbox slack`)

func (p *program) runServe(ctx context.Context) (err error) {
	c, platforms, err := p.platforms()
	if err != nil {
		return err
	}
	idle := platforms.Slack == nil && platforms.Discord == nil
	if idle && len(c.Sources) == 0 && len(platforms.Push) == 0 {
		return usage(errNoPlatform)
	}
	log := p.logger(c)
	for _, w := range platforms.Warnings {
		log.Warn("unsafe configuration", "what", w)
	}
	say := p.saying()
	s, n, err := openService(ctx, c, platforms, log, say)
	if err != nil && ctx.Err() != nil {
		say("stopped")
		return nil
	}
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	say(fmt.Sprintf("index: %d documents; stop with Ctrl-C", n))
	if idle {
		say("no chat platform is configured: documents are kept up with, and footnote ask answers")
	}
	g, running := errgroup.WithContext(ctx)
	if s.Ingester.State().Alone() {
		o, err := listenOperator(ctx, c.Data, s, log)
		if err != nil {
			return err
		}
		defer closing(&err, o.close)
		g.Go(func() error { return o.run(running) })
	}
	g.Go(func() error { return s.Run(running, say) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	say("stopped")
	return nil
}

// openService opens the service, as soon as the Redis answers that it may be
// on, and counts its documents.
func openService(ctx context.Context, c config.Config, p config.Platforms, log *slog.Logger, say func(string)) (*assemble.Service, int, error) {
	for {
		if err := assemble.Await(ctx, c, p, log, say); err != nil {
			return nil, 0, err
		}
		s, err := assemble.OpenService(ctx, c, p, log)
		if err == nil {
			var n int
			if n, err = s.Documents(ctx); err == nil {
				return s, n, nil
			}
			err = errors.Join(err, s.Close())
		}
		if !errors.Is(err, retrieval.ErrUnavailable) || ctx.Err() != nil {
			return nil, 0, err
		}
		interrupted(ctx, err, say)
	}
}

// interrupted says that the Redis went away during the start, and waits a
// moment.
func interrupted(ctx context.Context, err error, say func(string)) {
	say(fmt.Sprintf("%v; starting anew", err))
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// platforms loads the configuration and what it says of chat platforms, with
// all that is wrong with either.
func (p *program) platforms() (config.Config, config.Platforms, error) {
	c, err := p.config()
	found, more := c.Platforms(p.lookup)
	var a, b *config.Problems
	switch {
	case errors.As(err, &a) && errors.As(more, &b):
		return c, found, &config.Problems{All: append(a.All, b.All...)}
	case err != nil:
		return c, found, err
	}
	return c, found, more
}

// saying tells the operator on standard error what runs, line by line.
func (p *program) saying() func(string) {
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(p.Err, "footnote: "+console.Safe(text))
	}
}
