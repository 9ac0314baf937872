package command

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
)

func (p *program) worker() *cobra.Command {
	c := &cobra.Command{
		Use:   "worker",
		Short: "Take in documents for footnote serve, on the same Redis",
		Long: `worker extracts, embeds and publishes documents until it is told to stop. What
there is to do footnote serve finds out, of whose replicas one keeps up with the
sources; it sends the documents themselves, so that workers need no access to the
sources. Start as many as you like, with the same configuration. serve works, too,
as far as ingest.workers says; 0 leaves all of it to workers.

A document that ends three workers, or takes each longer than half an hour, fails.
A worker that dies, or is stopped, loses nothing: another one takes its place.

  footnote worker --config footnote.yaml
  footnote worker --redis redis://redis:6379`,
		Args: exactly(0, "nothing more"),
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runWorker(cmd.Context()) }
	return c
}

var errNoRedis = errors.New("workers share their work on a Redis, and none is configured; set redis.url, or give --redis")

// openWorker opens the worker as soon as the Redis answers. It takes no port: with
// the same configuration, serve may have it.
func openWorker(ctx context.Context, c config.Config, log *slog.Logger, say func(string)) (*assemble.Worker, error) {
	c.Web.Listen = ""
	for {
		if err := assemble.Await(ctx, c, config.Platforms{}, log, say); err != nil || ctx.Err() != nil {
			return nil, err
		}
		w, err := assemble.OpenWorker(c, log)
		if !errors.Is(err, retrieval.ErrUnavailable) {
			return w, err
		}
		interrupted(ctx, err, say)
	}
}

func (p *program) runWorker(ctx context.Context) (err error) {
	c, err := p.config()
	if err != nil {
		return err
	}
	if !c.Shared() {
		return usage(errNoRedis)
	}
	log, say := p.logger(c), p.saying()
	w, err := openWorker(ctx, c, log, say)
	if ctx.Err() != nil {
		say("stopped")
		return nil
	}
	if err != nil {
		return err
	}
	defer closing(&err, w.Close)
	if err := w.Run(ctx, say); err != nil {
		return err
	}
	say("stopped")
	return nil
}
