package assemble

import (
	"context"
	"errors"
	"fmt"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/bot"
	"footnote/bot/generate"
	"footnote/cmd/internal/config"
	"footnote/models"
	"footnote/models/catalog"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/memindex"
)

// DefaultTop is the number of hits that an answer chooses from.
const DefaultTop = 25

// App is all that answers questions.
type App struct {
	Models   *Models
	Store    *memindex.Store
	Index    retrieval.Generation // the current one
	Searcher *retrieval.Searcher
	Bot      *bot.Bot
}

// Open connects what asking needs. ErrNoIndex if nothing was ingested yet,
// ErrInUse if another process holds the data directory; both are found before
// any model is loaded. top is the greatest number of hits a search returns.
func Open(ctx context.Context, c config.Config, top int) (*App, error) {
	store, err := memindex.Open(c.Data)
	if err != nil {
		return nil, err
	}
	a := &App{Store: store}
	if err := a.open(ctx, c, top); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context, c config.Config, top int) (err error) {
	if a.Index, err = a.Store.Open(ctx, ""); err != nil {
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
		Current:   func(context.Context) (retrieval.Reader, error) { return a.Index, nil },
		Searcher:  a.Searcher,
		Generator: generate.NewExtractive(a.Models.Embedder, a.Models.Reranker, draft),
		Cuts:      cuts,
		Limits:    bot.Limits{Sources: c.Answer.Sources},
	})
	return err
}

// Close ends what Open opened, in the reverse order.
func (a *App) Close() error {
	var err error
	if a.Models != nil {
		err = a.Models.Close()
	}
	return errors.Join(err, a.Store.Close())
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
