package assemble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/bot"
	"footnote/bot/generate"
	"footnote/cmd/internal/config"
	"footnote/models"
	"footnote/models/catalog"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
)

// DefaultTop is the number of hits that an answer chooses from.
const DefaultTop = 25

// App is all that answers questions.
type App struct {
	Models   *Models
	Store    Store                // of its generations, for questions
	Index    retrieval.Generation // the current one at opening; nil: none yet
	Searcher *retrieval.Searcher
	Bot      *bot.Bot

	state *State // nil: lent, Close closes nothing
}

// Open connects what asking needs. ErrNoIndex if nothing was ingested yet,
// ErrInUse if another process holds the data directory, ErrUnavailable if the
// Redis does not answer; all are found before any model is loaded. top is the greatest number of hits a search returns.
func Open(ctx context.Context, c config.Config, top int) (*App, error) {
	if err := there(c); err != nil {
		return nil, err
	}
	state, err := openState(c)
	if err != nil {
		return nil, err
	}
	a := &App{Store: state.Ask, state: state}
	if err := a.open(ctx, c, top, false); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// there says that there is a data directory: what only reads makes none, so that
// a mistake in its name is seen.
func there(c config.Config) error {
	if c.Shared() {
		return nil
	}
	_, err := os.Stat(c.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no directory %s", retrieval.ErrNoIndex, c.Data)
	}
	return err
}

// open opens what answers over the store. empty allows that there is no index
// yet.
func (a *App) open(ctx context.Context, c config.Config, top int, empty bool) (err error) {
	a.Index, err = a.Store.Open(ctx, "")
	if empty && errors.Is(err, retrieval.ErrNoIndex) {
		a.Index, err = nil, nil
	}
	if err != nil {
		return err
	}
	if a.Models, err = OpenModels(c); err != nil {
		return err
	}
	a.Searcher = NewSearcher(c, a.Models, top)
	cuts, draft, err := Cuts(c)
	if err != nil {
		return err
	}
	a.Bot, err = bot.New(bot.Config{
		Current:   a.Current,
		Searcher:  a.Searcher,
		Generator: generate.NewExtractive(a.Models.Embedder, a.Models.Reranker, draft),
		Cuts:      cuts,
		Limits:    bot.Limits{Sources: c.Answer.Sources},
	})
	return err
}

// Current is the generation that answers now: another one may be promoted
// while the program runs.
func (a *App) Current(ctx context.Context) (retrieval.Reader, error) {
	g, err := a.Store.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) {
		return empty{retrieval.Manifest{Embedder: a.Models.Embedder.Info()}}, nil
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Lend is the app for another configuration of the search, over the same parts.
func (a *App) Lend(ctx context.Context, c config.Config, top int) (*App, error) {
	index, err := a.Store.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	return &App{Models: a.Models, Store: a.Store, Index: index, Searcher: NewSearcher(c, a.Models, top), Bot: a.Bot}, nil
}

// Close ends what Open opened, in the reverse order.
func (a *App) Close() error {
	if a.state == nil {
		return nil
	}
	var err error
	if a.Models != nil {
		err = a.Models.Close()
	}
	return errors.Join(err, a.state.Close())
}

// NewSearcher makes the Searcher of a configuration. All that is reranked is
// also returned, so that top changes no order.
func NewSearcher(c config.Config, m *Models, top int) *retrieval.Searcher {
	var reranker models.Reranker
	if c.Search.Rerank > 0 {
		reranker = m.Reranker
	}
	return retrieval.NewSearcher(m.Embedder, reranker, analysis.Terms, analysis.Language, retrieval.Options{
		Depth: c.Search.Depth, Top: max(DefaultTop, top, c.Search.Rerank), Rerank: c.Search.Rerank,
		Function: analysis.Function,
	})
}

// Cuts are those of the models' cards, or what the configuration sets instead.
func Cuts(c config.Config) (bot.Cuts, generate.Options, error) {
	embedder, err := catalog.Lookup(catalog.DefaultEmbedder)
	if err != nil {
		return bot.Cuts{}, generate.Options{}, err
	}
	reranker, err := catalog.Lookup(catalog.DefaultReranker)
	if err != nil {
		return bot.Cuts{}, generate.Options{}, err
	}
	cuts := bot.Cuts{Late: embedder.MinLate, Distance: embedder.MaxDistance, Probability: reranker.MinProbability}
	if c.Gate.Late != nil {
		cuts.Late = *c.Gate.Late
	}
	if c.Gate.Distance != nil {
		cuts.Distance = *c.Gate.Distance
	}
	if c.Gate.Relevance != nil {
		cuts.Probability = *c.Gate.Relevance
	}
	return cuts, generate.Options{
		Sentences: c.Answer.Sentences, Cuts: generate.Cuts{Reranked: reranker.MinSupport, Embedded: embedder.MinSupport, Unrelated: embedder.Unrelated},
	}, nil
}

// People is the directory of the terminal: the people file, or everybody at
// their word where there is none.
func People(file string) (acl.Directory, error) {
	if file == "" {
		return console.AnyName(), nil
	}
	d, err := console.OpenPeople(file)
	if err != nil {
		return nil, fmt.Errorf("who may ask is not known: %w", err)
	}
	return d, nil
}
