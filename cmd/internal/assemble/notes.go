package assemble

import (
	"fmt"
	"os"

	"footnote/cmd/internal/config"
	"footnote/models/remote"
	"footnote/retrieval/ingest/notes"
)

// openNotes opens what writes notes, nil if nothing does. dir is where their
// cache lies.
func openNotes(c config.Config, dir string) (*notes.Writer, error) {
	if c.Notes.URL == "" {
		return nil, nil
	}
	key, err := config.ChatKey(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	chat, err := remote.NewChat(remote.Options{Address: c.Notes.URL, Model: c.Notes.Model, Key: key.Reveal()})
	if err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	return notes.Open(notes.Options{Model: chat, Dir: dir, PerRun: c.Notes.PerRun, Concurrency: c.Notes.Concurrency})
}

// notesRecipe names what makes the notes of the configuration, "" for none.
func notesRecipe(c config.Config) string {
	if c.Notes.URL == "" {
		return ""
	}
	return notes.Recipe(c.Notes.Model)
}
