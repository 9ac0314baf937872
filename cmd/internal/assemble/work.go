package assemble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/cmd/internal/config"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/jobs"
	"footnote/retrieval/ingest/notes"
	"footnote/retrieval/redisindex"
)

// Jobs are those of the Redis for a recipe, nil without one.
func (s *State) Jobs(stamp catalog.Stamp) (*jobs.Queue, error) {
	index, ok := s.Build.(*redisindex.Store)
	if !ok {
		return nil, nil
	}
	return jobs.New(s.patient, index, stamp, jobs.Options{Prefix: s.c.Redis.Prefix, Room: s.patient.Room})
}

// work does jobs until ctx is done, as many at once as the configuration says,
// at least as many as given.
func (in *Ingester) work(ctx context.Context, c config.Config, least int, log *slog.Logger) error {
	g, ctx := errgroup.WithContext(ctx)
	for range max(least, c.Ingest.Workers) {
		g.Go(func() error { return in.queue.Work(ctx, bounded{in.Pipeline, in.state}, log) })
	}
	return g.Wait()
}

// missWorkers says so when documents wait for workers and there are none.
func (in *Ingester) missWorkers(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n, err := in.queue.Deserted(ctx); err == nil && n > 0 {
			log.Warn("documents wait for workers, and none is running: start footnote worker, or set ingest.workers", "documents", n)
		}
	}
}

// Worker takes in documents for the process that keeps up with the sources. It
// needs none of those.
type Worker struct {
	c      config.Config
	state  *State
	models *Models
	cache  *ingest.Cache
	notes  *notes.Writer // nil: none are written
	queue  *jobs.Queue
	pipe   *ingest.Pipeline
	log    *slog.Logger
}

// OpenWorker connects what a worker needs. The configuration must name a Redis.
func OpenWorker(c config.Config, log *slog.Logger) (*Worker, error) {
	state, err := openState(c)
	if err != nil {
		return nil, err
	}
	w := &Worker{c: c, state: state, log: log}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Worker) open() (err error) {
	dir, err := w.state.Directory()
	if err != nil {
		return err
	}
	if w.models, err = OpenModels(w.c); err != nil {
		return err
	}
	if w.cache, err = ingest.OpenCache(dir, w.models.Embedder.Info()); err != nil {
		return err
	}
	if w.notes, err = openNotes(w.c, dir); err != nil {
		return err
	}
	o, err := working(w.c)
	if err != nil {
		return err
	}
	o.Cache, o.Notes = w.cache, w.notes
	w.pipe = ingest.New(w.state.Build, nil, w.models.Embedder, o)
	w.queue, err = w.state.Jobs(w.pipe.Stamp())
	return err
}

// working are the options of a pipeline that are the same for all who extract.
func working(c config.Config) (ingest.Options, error) {
	passwords, err := config.DocumentPasswords(os.LookupEnv)
	return ingest.Options{
		Chunk: chunking(c), Timeout: c.Ingest.Extract.Timeout(), Limits: c.Ingest.Extract.Limits(),
		Password: passwords, Tika: tikaServer(c),
	}, err
}

// Run works until ctx is done.
func (w *Worker) Run(ctx context.Context, say func(string)) error {
	tellRecipe(ctx, w.c, w.state.Build, w.log)
	n := max(1, w.c.Ingest.Workers)
	say(fmt.Sprintf("taking in documents, %d at once; stop with Ctrl-C", n))
	g, ctx := errgroup.WithContext(ctx)
	for range n {
		g.Go(func() error { return w.queue.Work(ctx, bounded{w.pipe, w.state}, w.log) })
	}
	return g.Wait()
}

// Close ends what OpenWorker opened, in the reverse order.
func (w *Worker) Close() error {
	var errs []error
	if w.notes != nil {
		errs = append(errs, w.notes.Close())
	}
	if w.cache != nil {
		errs = append(errs, w.cache.Close())
	}
	if w.models != nil {
		errs = append(errs, w.models.Close())
	}
	return errors.Join(append(errs, w.state.Close())...)
}
