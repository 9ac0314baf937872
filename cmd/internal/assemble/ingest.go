package assemble

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"footnote/cmd/internal/config"
	cards "footnote/models/catalog"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/chunk"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/jobs"
	"footnote/retrieval/ingest/notes"
)

// Library is what the operator sees: the index and the catalog of documents,
// without models.
type Library struct {
	Store   Store
	Catalog *catalog.Catalog
	Pushed  *inbox.Inbox // documents of other systems
	chat    chat         // documents from a chat

	state *State
}

// ReadLibrary is OpenLibrary for what does not ingest: ErrNoIndex if there is no
// data directory.
func ReadLibrary(c config.Config) (*Library, error) {
	if err := there(c); err != nil {
		return nil, err
	}
	return OpenLibrary(c)
}

// OpenLibrary takes the data directory and makes it if it is absent, or connects
// to the Redis.
func OpenLibrary(c config.Config) (*Library, error) {
	state, err := openState(c)
	if err != nil {
		return nil, err
	}
	l := &Library{Store: state.Build, state: state}
	if l.Catalog, err = state.Catalog(); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	if l.Pushed, err = state.inbox(pushRoot, pushDirectory(c), false); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if l.chat, err = openChat(c, state); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close gives the data directory free.
func (l *Library) Close() error { return errors.Join(l.Catalog.Close(), l.state.Close()) }

// State is where the library lies.
func (l *Library) State() *State { return l.state }

// Ingester is a library with what changes it.
type Ingester struct {
	*Library
	Models   *Models
	Pipeline *ingest.Pipeline
	Loop     *follow.Loop // over the sources of the configuration, if there are any
	cache    *ingest.Cache
	notes    *notes.Writer               // nil: none are written
	queue    *jobs.Queue                 // nil: this process does all by itself
	working  func()                      // ends jobs of this process; nil: it does none of its own
	receives bool                        // Pushed may get documents while it is open
	uploads  bool                        // people may post files while it is open
	trouble  func(channel string) string // why a channel cannot be kept up with; nil: nobody keeps up
}

// OpenIngester connects what ingestion needs.
func OpenIngester(c config.Config, progress func(ingest.Event)) (*Ingester, error) {
	l, err := OpenLibrary(c)
	if err != nil {
		return nil, err
	}
	in := &Ingester{Library: l}
	if in.Models, err = OpenModels(c); err == nil {
		err = in.open(c, progress, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	in.workMeanwhile(c)
	return in, nil
}

// workMeanwhile has this process do jobs while it is open: there may be no
// other.
func (in *Ingester) workMeanwhile(c config.Config) {
	if in.queue == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = in.work(ctx, c, 1, slog.New(slog.DiscardHandler)) // errors are those of the documents
	}()
	in.working = func() { cancel(); <-ended }
}

// open makes the pipeline and the loop over a library and models.
func (in *Ingester) open(c config.Config, progress func(ingest.Event), log *slog.Logger) (err error) {
	dir, err := in.state.Directory()
	if err != nil {
		return err
	}
	if in.cache, err = ingest.OpenCache(dir, in.Models.Embedder.Info()); err != nil {
		return err
	}
	if in.notes, err = openNotes(c, dir); err != nil {
		return err
	}
	if err = in.moveIn(context.Background(), log); err != nil {
		return err
	}
	if err = in.guard(log); err != nil {
		return err
	}
	o, err := working(c)
	if err != nil {
		return err
	}
	o.Others, o.Cache, o.Notes, o.Progress = in.others(c), in.cache, in.notes, progress
	if in.queue, err = in.state.Jobs(ingest.StampOf(chunking(c), notesRecipe(c), in.Models.Embedder.Info())); err != nil {
		return err
	}
	if in.queue != nil {
		o.Hands = in.queue
	}
	in.Pipeline = ingest.New(in.guarded(), in.Catalog, in.Models.Embedder, o)
	in.Loop, err = in.NewLoop(c, log)
	return err
}

// NewLoop makes a loop over the sources of a configuration, which does nothing
// by itself.
func (in *Ingester) NewLoop(c config.Config, log *slog.Logger) (*follow.Loop, error) {
	folders, err := c.Folders()
	if err != nil {
		return nil, err
	}
	var feeds []follow.Feed
	for i, f := range folders {
		feeds = append(feeds, follow.Feed{Name: c.Sources[i].Name, Source: NewDocuments(c, f), Watch: f.Watch})
	}
	if in.state.Link != nil || in.FollowsPushed() {
		feeds = append(feeds, boxFeed(c, in.Pushed))
	}
	feeds = append(feeds, in.chatFeeds(c)...)
	return follow.New(in.Pipeline, feeds, follow.Options{
		Interval: time.Duration(c.Sync.Interval) * time.Second, MaxRemoved: MaxRemoved(c), Resumes: in.queue != nil, Log: log,
		Passed: func(all []follow.Status) {
			if err := in.state.keepSources(context.Background(), all); err != nil && !errors.Is(err, retrieval.ErrUnavailable) {
				log.Warn("how the sources stand could not be kept", "error", err)
			}
		},
	}), nil
}

// Stamp is what this program puts on what it ingests with the configuration.
func Stamp(c config.Config) (catalog.Stamp, error) {
	card, err := cards.Lookup(cards.DefaultEmbedder)
	return ingest.StampOf(chunking(c), notesRecipe(c), card.Info()), err
}

func chunking(c config.Config) chunk.Options {
	return chunk.Options{Strategy: chunk.Strategy(c.Chunk.Strategy), Budget: c.Chunk.Tokens}
}

// MaxRemoved is sync.max_removed as a share. 0 percent removes one or two
// documents at most; 100 is no bound.
func MaxRemoved(c config.Config) float64 {
	if c.Sync.MaxRemoved == 100 {
		return 0
	}
	return max(float64(c.Sync.MaxRemoved)/100, 1e-9)
}

// Alone runs an operator's work while no other command takes in documents on the
// same Redis, from whatever machine: two that begin an index at once would each
// make one of their own. waiting is told for whom it waits. Without a Redis the
// data directory is one process's anyway.
func (in *Ingester) Alone(ctx context.Context, c config.Config, waiting func(who string), work func(context.Context) error) error {
	if in.state.Link == nil {
		return work(ctx)
	}
	return in.state.Link.NewLease(key(c, "ingest"), replica(""), sourcesTerm).Once(ctx, waiting, work)
}

// Between runs an operator's work between the passes of the loop.
func (in *Ingester) Between(work func() error) error {
	if in.Loop == nil {
		return work()
	}
	return in.Loop.Urgently(work)
}

// Close ends what OpenIngester opened, in the reverse order.
func (in *Ingester) Close() error {
	if in.working != nil {
		in.working()
	}
	err := in.closeCaches()
	if in.Models != nil {
		err = errors.Join(err, in.Models.Close())
	}
	return errors.Join(err, in.Library.Close())
}

func (in *Ingester) closeCaches() (err error) {
	if in.cache != nil {
		err = in.cache.Close()
	}
	if in.notes != nil {
		err = errors.Join(err, in.notes.Close())
	}
	return err
}
