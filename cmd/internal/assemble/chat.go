package assemble

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"strings"

	"footnote/acl"
	"footnote/adapters/slack"
	"footnote/bot"
	"footnote/bot/shelf"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/extract"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/inbox/redisinbox"
)

// filesRoot begins the paths of files that people posted in a chat, channelRoot
// and an id those of the threads of a channel. No folder can be named so.
const (
	filesRoot   = "chat:"
	channelRoot = "slack:"
)

// chat are the inboxes of what comes from a chat.
type chat struct {
	files    *inbox.Inbox
	channels map[string]*inbox.Inbox // of the configuration, by id
	forsaken []*inbox.Inbox          // of channels that the configuration names no longer
}

func openChat(c config.Config, at *State) (out chat, err error) {
	out.channels = map[string]*inbox.Inbox{}
	if out.files, err = at.inbox(filesRoot, filepath.Join(c.Data, "inbox", "chat"), false); err != nil {
		return chat{}, err
	}
	channel := func(id string) (*inbox.Inbox, error) {
		return at.inbox(channelRoot+id, filepath.Join(c.Data, "inbox", "slack-"+id), true)
	}
	for _, ch := range c.Channels {
		if out.channels[ch.ID], err = channel(ch.ID); err != nil {
			return chat{}, err
		}
	}
	roots, err := at.roots()
	if err != nil {
		return chat{}, err
	}
	for _, root := range roots {
		id, is := strings.CutPrefix(root, channelRoot)
		if !is || out.channels[id] != nil {
			continue
		}
		b, err := channel(id)
		if err != nil {
			return chat{}, err
		}
		out.forsaken = append(out.forsaken, b)
	}
	return out, nil
}

// ChannelSource names the source that a channel is, and begins the paths of its
// threads.
func ChannelSource(id string) string { return channelRoot + id }

// boxes are all inboxes.
func (l *Library) boxes() []*inbox.Inbox {
	out := append([]*inbox.Inbox{l.Pushed, l.chat.files}, l.chat.forsaken...)
	for _, b := range l.chat.channels {
		out = append(out, b)
	}
	return out
}

// others are the inboxes as sources.
func (l *Library) others(c config.Config) []ingest.Source {
	var out []ingest.Source
	for _, b := range l.boxes() {
		out = append(out, unpacked(c, b))
	}
	return out
}

// guarded is the store with every write held to what the inboxes say.
func (in *Ingester) guarded() retrieval.Store {
	return inbox.Guard(in.Store, in.pathOf, in.boxes()...)
}

// guard puts in force what the last process may have left undone.
func (in *Ingester) guard(log *slog.Logger) error {
	if in.state.Link == nil {
		if err := in.forsake(context.Background()); err != nil {
			return err
		}
	}
	if err := inbox.EnforceAll(context.Background(), in.Store, in.boxes()...); err != nil {
		return err
	}
	for _, b := range in.boxes() {
		if n := len(b.Damaged()); n > 0 {
			log.Error("stored documents were damaged and set aside: their senders must send them again", "inbox", b.Root(), "documents", n)
		}
	}
	return nil
}

// forsake drops what is left of channels that the configuration names no longer.
// On a Redis, where processes with other configurations come and go, the one that
// keeps up with the sources does so.
//
// SECURITY: with the channel its documents go.
func (in *Ingester) forsake(ctx context.Context) error {
	for _, b := range in.chat.forsaken {
		if err := clearOut(ctx, b); err != nil {
			return err
		}
	}
	return inbox.EnforceAll(ctx, in.Store, in.chat.forsaken...)
}

// clearOut drops all documents of an inbox.
func clearOut(ctx context.Context, b *inbox.Inbox) error {
	all, err := b.List(ctx, "", "", math.MaxInt)
	for _, e := range all {
		if err = b.Drop(ctx, e.ID); err != nil {
			return err
		}
	}
	return err
}

// FollowsChat reports that there are documents from a chat, or may be soon.
func (in *Ingester) FollowsChat() bool {
	return in.uploads || len(in.chat.channels) > 0 || holds(in.chat.files)
}

// chatFeeds follow the inboxes of a chat.
func (in *Ingester) chatFeeds(c config.Config) []follow.Feed {
	var out []follow.Feed
	if in.state.Link != nil || in.uploads || holds(in.chat.files) {
		out = append(out, boxFeed(c, in.chat.files))
	}
	for _, ch := range c.Channels {
		f := boxFeed(c, in.chat.channels[ch.ID])
		f.Source = channel{in.chat.channels[ch.ID], in, ch.ID}
		out = append(out, f)
	}
	return out
}

// channel is the inbox of a channel as a source that says why the channel
// cannot be kept up with.
type channel struct {
	*inbox.Inbox
	in *Ingester
	id string
}

// Items lists the threads. What had to be withdrawn is noted first, then the
// trouble is an error.
func (c channel) Items(ctx context.Context) ([]ingest.Item, error) {
	items, err := c.Inbox.Items(ctx)
	if err != nil || c.in.trouble == nil {
		return items, err
	}
	why := c.in.trouble(c.id)
	if why == "" {
		return items, nil
	}
	for _, rec := range c.in.Catalog.List() {
		if _, own := c.IDOf(rec.Path); own && rec.State != catalog.Removed && len(items) == 0 {
			return items, nil
		}
	}
	return nil, errors.New(why)
}

// keeper keeps documents of a chat in an inbox.
type keeper struct {
	box *inbox.Inbox
	in  *Ingester
}

var _ shelf.Keeper = keeper{}

// Put implements shelf.Keeper.
func (k keeper) Put(ctx context.Context, d shelf.Document, content io.Reader) error {
	m := inbox.Meta{ID: d.ID, Name: d.Name, Title: d.Title, Link: d.Link, Author: d.Author, Mark: d.Mark, Modified: d.Modified}
	for _, p := range d.Access {
		m.Access = append(m.Access, string(p))
	}
	_, change, err := k.box.Put(ctx, m, content, inbox.Condition{})
	var refused *inbox.Refusal
	switch {
	case errors.As(err, &refused):
		return &bot.UserError{Text: "its " + refused.Error() + ".", Err: err}
	case errors.Is(err, inbox.ErrTooLarge), errors.Is(err, inbox.ErrFull):
		return &bot.UserError{Text: err.Error() + ".", Err: err}
	case err != nil:
		return err
	}
	return k.enforce(ctx, d.ID, change == inbox.Updated || extract.Holds(d.Name))
}

// enforce puts in force what the inbox says. published says that something of
// the document may be in the index, also where the catalog has not heard of it.
//
// SECURITY: whom the list no longer names finds nothing from here on. What lies
// in a mail or an archive may be published before that itself is known.
func (k keeper) enforce(ctx context.Context, id string, published bool) error {
	rec, known := k.in.Catalog.At(k.box.PathOf(id))
	if !known && !published {
		return nil
	}
	return k.in.enforce(ctx, k.box, rec, id)
}

// Remove implements shelf.Keeper.
//
// SECURITY: out of the inbox first, durably, so that no run brings it in again;
// then out of the index.
func (k keeper) Remove(ctx context.Context, now bool, ids ...string) error {
	for _, id := range ids {
		err := k.box.Delete(ctx, id, inbox.Condition{})
		if err != nil && !errors.Is(err, inbox.ErrNotFound) {
			return err
		}
		if !now {
			continue
		}
		if err := k.enforce(ctx, id, err == nil); err != nil {
			return err
		}
	}
	return nil
}

// List implements shelf.Keeper.
func (k keeper) List(ctx context.Context, prefix string) ([]shelf.Document, error) {
	all, err := k.box.List(ctx, prefix, "", math.MaxInt)
	var out []shelf.Document
	for _, e := range all {
		d := shelf.Document{ID: e.ID, Name: e.Name, Title: e.Title, Link: e.Link, Author: e.Author, Mark: e.Mark, Modified: e.Modified}
		for _, p := range e.Access {
			d.Access = append(d.Access, acl.Principal(p))
		}
		out = append(out, d)
	}
	return out, err
}

// State implements shelf.Keeper.
func (k keeper) State(id string) shelf.State {
	e, held, err := k.box.Get(context.Background(), id)
	if err != nil {
		return shelf.State{}
	}
	if !held {
		return shelf.State{Settled: true, Gone: true}
	}
	rec, known := k.in.Catalog.At(k.box.PathOf(id))
	if !known || !rec.State.Settled() || rec.Revision != e.Revision() || rec.State == catalog.Removed {
		return shelf.State{}
	}
	return shelf.State{
		Settled: true, Published: rec.State == catalog.Published, Chunks: rec.Chunks, Reason: rec.Reason, Retryable: rec.Retryable,
	}
}

// uploadRules are those of the configuration.
func uploadRules(c config.Config) shelf.Rules {
	return shelf.Rules{
		By: c.Uploads.By, MaxBytes: int64(min(c.Uploads.MaxMegabytes, c.Ingest.MaxMegabytes)) << 20, MaxFiles: c.Uploads.MaxFiles,
		Types: c.Uploads.Types, Supported: extract.Supported,
	}
}

// openChat makes what platforms put documents on.
func (s *Service) openChat() (err error) {
	o := shelf.Options{Log: s.log}
	if s.state.Link != nil {
		o.Shared = board{s.state.Link, key(s.c, "notices"), s.lead}
	}
	s.notices, err = shelf.OpenNotices(s.c.Data, s.files(), o)
	return err
}

func (s *Service) files() shelf.Keeper { return keeper{s.Ingester.chat.files, s.Ingester} }

// channelsOf are the channels that are sources, without a place for their
// threads.
func channelsOf(c config.Config) []slack.Source {
	var out []slack.Source
	for _, ch := range c.Channels {
		out = append(out, slack.Source{Channel: ch.ID, History: ch.History})
	}
	return out
}

// share is what replicas that follow a channel have in common: whichever keeps up
// with the sources reads it.
type share struct {
	*redisinbox.Notes

	lead *lead
}

// Lead implements threads.Share.
func (s share) Lead(ctx context.Context, work func(context.Context) error) error {
	return s.lead.hold(ctx, work)
}

func (s *Service) slackSources() []slack.Source {
	out := channelsOf(s.c)
	for i := range out {
		id := out[i].Channel
		out[i].Keeper = keeper{s.Ingester.chat.channels[id], s.Ingester}
		if s.state.Link != nil {
			out[i].Share = share{redisinbox.NewNotes(s.state.Link, channelRoot+id, s.c.Redis.Prefix), s.lead}
		}
	}
	return out
}
