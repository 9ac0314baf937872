package assemble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"

	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/inbox/redisinbox"
)

// Inboxes (pushed documents, files and threads of a chat) lie where the index
// does: in the data directory, each in a directory of its own, or on the Redis,
// for every process alike.

// pushDirectory is where pushed documents lie in the data directory.
func pushDirectory(c config.Config) string { return filepath.Join(c.Data, "inbox", "push") }

// inbox opens the inbox with the root. dir is its place in the data directory.
// again says that what is lost of it comes in again by itself.
func (s *State) inbox(root, dir string, again bool) (*inbox.Inbox, error) {
	o := inbox.Options{MaxBytes: int64(s.c.Ingest.MaxMegabytes) << 20}
	if s.Link == nil {
		return inbox.Open(dir, root, o)
	}
	o.MaxTotal = int64(s.c.Redis.InboxMegabytes) << 20
	return redisinbox.Open(s.boxes, root, redisinbox.Options{Options: o, Prefix: s.c.Redis.Prefix, Again: again, Room: s.patient.Room}), nil
}

// roots are those of the inboxes of channels that hold something, or did.
func (s *State) roots() ([]string, error) {
	if s.Link != nil {
		all, err := redisinbox.Roots(context.Background(), s.Link, s.c.Redis.Prefix)
		return all, err
	}
	there, err := os.ReadDir(filepath.Join(s.c.Data, "inbox"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range there {
		if id, is := strings.CutPrefix(e.Name(), "slack-"); is && e.IsDir() {
			out = append(out, channelRoot+id)
		}
	}
	return out, nil
}

// moveIn moves documents that were pushed to this process before there was a
// Redis, or before that kept them, from the data directory to where they lie now.
// One that cannot be read stays, and its sender has to send it again.
func (l *Library) moveIn(ctx context.Context, log *slog.Logger) error {
	if l.state.Link == nil || !l.state.Alone() {
		return nil
	}
	dir := pushDirectory(l.state.c)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	old, err := inbox.Open(dir, pushRoot, inbox.Options{})
	if err != nil {
		return err
	}
	all, err := old.List(ctx, "", "", math.MaxInt)
	for _, e := range all {
		var fault *ingest.Fault
		if err = l.move(ctx, old, e); errors.As(err, &fault) {
			log.Error("a pushed document was damaged and not moved to the Redis: its sender must send it again", "error", err)
			err = nil
		}
		if err != nil {
			return fmt.Errorf("moving the documents of %s to the Redis: %w", dir, err)
		}
	}
	return err
}

func (l *Library) move(ctx context.Context, old *inbox.Inbox, e inbox.Entry) error {
	content, err := old.Read(ctx, old.PathOf(e.ID))
	if err != nil {
		return err
	}
	_, _, err = l.Pushed.Put(ctx, e.Meta, bytes.NewReader(content.Data), inbox.Condition{Absent: true})
	if err != nil && !errors.Is(err, inbox.ErrChanged) {
		return err
	}
	return old.Drop(ctx, e.ID)
}

// bounded is a pipeline for workers: of a document of an inbox it publishes what
// that allows at that moment.
type bounded struct {
	*ingest.Pipeline

	state *State
}

// Work does a task.
//
// SECURITY: the list of a task may be hours old.
func (p bounded) Work(ctx context.Context, t ingest.Task, data []byte, open func(string) (retrieval.Generation, error), told func(catalog.State)) (ingest.Done, error) {
	root, _, _ := strings.Cut(t.Path, "/")
	if !strings.HasPrefix(root, channelRoot) && root != pushRoot && root != filesRoot {
		return p.Pipeline.Work(ctx, t, data, open, told)
	}
	b, err := p.state.inbox(root, "", false)
	if err != nil {
		return ingest.Done{}, err
	}
	return p.Pipeline.Work(ctx, t, data, func(name string) (retrieval.Generation, error) {
		g, err := open(name)
		if err != nil {
			return nil, err
		}
		return b.GuardOne(g, t.Path), nil
	}, told)
}
