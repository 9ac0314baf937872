package assemble

import (
	"footnote/bot/standing"
	"footnote/retrieval/ingest/follow"
)

// standing says in a chat how the documents stand.
func (s *Service) standing() *standing.Board {
	return standing.New(standing.Options{
		Current: s.Current, Catalog: s.Ingester.Catalog, Operators: s.c.Operators,
		Sources: func() []standing.Source {
			var out []standing.Source
			for _, st := range s.Ingester.Loop.Status() {
				out = append(out, standingOf(st))
			}
			return out
		},
	})
}

func standingOf(s follow.Status) standing.Source {
	out := standing.Source{Name: s.Source, Passed: s.Scanned, Trouble: s.Error}
	if s.Held != nil {
		out.Missing = s.Held.Missing
	}
	return out
}
