package assemble

import (
	"context"
	"errors"

	"footnote/adapters/web"
	"footnote/bot/standing"
	"footnote/retrieval/ingest/follow"
)

// standing says in a chat how the documents stand.
func (s *Service) standing() *standing.Board {
	return standing.New(standing.Options{
		Current: s.Current, Catalog: s.Ingester.Catalog, Operators: s.c.Operators,
		Sources: func() []standing.Source {
			var out []standing.Source
			for _, st := range s.sources(context.Background()) {
				out = append(out, standingOf(st))
			}
			return out
		},
	})
}

// sourcesCheck says in /readyz that a source cannot be read or is held. Questions
// are answered all the same from what is known, so that nothing is taken out of
// service for it; the log names the source.
func (s *Service) sourcesCheck() web.Check {
	return web.Check{Name: "sources", Advisory: true, Probe: func(ctx context.Context) error {
		for _, st := range s.sources(ctx) {
			if st.Error != "" || st.Held != nil {
				return errors.New("a source cannot be read, or is held")
			}
		}
		return nil
	}}
}

func standingOf(s follow.Status) standing.Source {
	out := standing.Source{Name: s.Source, Passed: s.Scanned, Trouble: s.Error}
	if s.Held != nil {
		out.Missing = s.Held.Missing
	}
	return out
}
