package assemble

import (
	"errors"

	"footnote/cmd/internal/config"
	"footnote/retrieval/catalog"
	"footnote/retrieval/chunk"
	"footnote/retrieval/ingest"
	"footnote/retrieval/memindex"
)

// Library is the data directory as the operator sees it: the index and the
// catalog of documents, without models.
type Library struct {
	Store   *memindex.Store
	Catalog *catalog.Catalog
}

// OpenLibrary takes the data directory.
func OpenLibrary(c config.Config) (*Library, error) {
	store, err := memindex.Open(c.Data)
	if err != nil {
		return nil, err
	}
	l := &Library{Store: store}
	if l.Catalog, err = catalog.Open(c.Data); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return l, nil
}

// Close gives the data directory free.
func (l *Library) Close() error { return errors.Join(l.Catalog.Close(), l.Store.Close()) }

// Ingester is a library with what changes it.
type Ingester struct {
	*Library
	Models   *Models
	Pipeline *ingest.Pipeline
	cache    *ingest.Cache
}

// OpenIngester connects what ingestion needs.
func OpenIngester(c config.Config, progress func(ingest.Event)) (*Ingester, error) {
	l, err := OpenLibrary(c)
	if err != nil {
		return nil, err
	}
	in := &Ingester{Library: l}
	if err := in.open(c, progress); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

func (in *Ingester) open(c config.Config, progress func(ingest.Event)) (err error) {
	if in.Models, err = OpenModels(c); err != nil {
		return err
	}
	if in.cache, err = ingest.OpenCache(c.Data, in.Models.Embedder.Info()); err != nil {
		return err
	}
	in.Pipeline = ingest.New(in.Store, in.Catalog, in.Models.Embedder, ingest.Options{
		Chunk:    chunk.Options{Strategy: chunk.Strategy(c.Chunk.Strategy), Budget: c.Chunk.Tokens},
		Cache:    in.cache,
		Progress: progress,
	})
	return nil
}

// Close ends what OpenIngester opened, in the reverse order.
func (in *Ingester) Close() error {
	var errs []error
	if in.cache != nil {
		errs = append(errs, in.cache.Close())
	}
	if in.Models != nil {
		errs = append(errs, in.Models.Close())
	}
	return errors.Join(append(errs, in.Library.Close())...)
}
