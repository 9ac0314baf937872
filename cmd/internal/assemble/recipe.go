package assemble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/ingest"
)

// Recipe is how the current generation was made, beside the configuration.
type Recipe struct {
	Generation string
	Otherwise  string // in what it was made otherwise; "" in nothing
	ByHand     bool   // a person promoted it
}

// What says what is wrong, "" nothing.
func (r Recipe) What() string {
	switch {
	case r.Otherwise == "":
		return ""
	case r.ByHand:
		return fmt.Sprintf("a person promoted generation %s, which was made otherwise than this configuration says (%s): it stays in use, and gets removals and changes of access, but no new content", r.Generation, r.Otherwise)
	}
	return fmt.Sprintf("generation %s was made otherwise than this configuration says (%s)", r.Generation, r.Otherwise)
}

// Do says what to do about it.
func (r Recipe) Do() string {
	switch {
	case r.Otherwise == "":
		return ""
	case r.ByHand:
		return "to go on with this configuration: footnote ingest FOLDER, of any source; to stay: configure it as that generation was made"
	}
	return "if other processes use this index, give all the same configuration; a new generation is built by footnote serve with sources, or: footnote ingest FOLDER"
}

// Recipe compares the current generation with the configuration. ErrNoIndex: there
// is none.
func (l *Library) Recipe(ctx context.Context) (Recipe, error) { return recipe(ctx, l.state.c, l.Store) }

func recipe(ctx context.Context, c config.Config, s retrieval.Store) (r Recipe, err error) {
	stamp, err := Stamp(c)
	if err != nil {
		return r, err
	}
	g, err := s.Open(ctx, "")
	if err != nil {
		return r, err
	}
	marks, err := s.Marks(ctx)
	return Recipe{g.Manifest().Name, ingest.Differs(g.Manifest(), stamp), marks.ByHand}, err
}

// tellRecipe logs it at the start if the index was made otherwise. An index that
// cannot be asked is told of elsewhere.
func tellRecipe(ctx context.Context, c config.Config, s retrieval.Store, log *slog.Logger) {
	r, err := recipe(ctx, c, s)
	if err == nil && r.What() != "" {
		log.Warn(r.What(), "do", r.Do())
	}
	if err != nil && !errors.Is(err, retrieval.ErrNoIndex) {
		log.Debug("how the index was made is not known", "error", err)
	}
}

// Config is the configuration that the library was opened with.
func (l *Library) Config() config.Config { return l.state.c }
