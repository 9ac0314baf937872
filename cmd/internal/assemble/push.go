package assemble

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"footnote/adapters/web/push"
	"footnote/cmd/internal/config"
	"footnote/deploy"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/unpack"
)

// pushRoot begins the paths of documents of other systems, and is the name of
// their source: no folder of the configuration can have it.
const pushRoot = "push:"

func (in *Ingester) pathOf(id retrieval.DocumentID) string {
	rec, _ := in.Catalog.Get(id)
	return rec.Path
}

// FollowsPushed reports that there are pushed documents, or may be soon.
func (in *Ingester) FollowsPushed() bool {
	return in.receives || holds(in.Pushed)
}

// unpacked is an inbox with what its mails and archives hold.
func unpacked(c config.Config, b *inbox.Inbox) ingest.Source { return unpack.New(b, Unpacking(c)) }

// boxFeed follows an inbox.
func boxFeed(c config.Config, b *inbox.Inbox) follow.Feed {
	return follow.Feed{Name: b.Root(), Source: unpacked(c, b), Watch: func(ctx context.Context, changed func(follow.Change)) error {
		return b.Watch(ctx, func(path string, urgent bool) { changed(follow.Change{Path: path, Urgent: urgent}) })
	}}
}

// enforce puts in force what an inbox says, and counts it among the service
// levels.
func (in *Ingester) enforce(ctx context.Context, b *inbox.Inbox, doc catalog.Record, id string) error {
	begin := time.Now()
	done, err := b.Enforce(ctx, in.Store, doc, id)
	if in.Loop != nil {
		in.Loop.InForce(time.Since(begin), done...)
	}
	return err
}

// below lists the records of what lies below a path.
func (in *Ingester) below(path string) []catalog.Record {
	return slices.DeleteFunc(in.Catalog.List(), func(r catalog.Record) bool { return !strings.HasPrefix(r.Path, path+"/") })
}

// newPush makes the push API, nil without a token.
func (s *Service) newPush(tokens []config.PushToken) (http.Handler, error) {
	if len(tokens) == 0 {
		return nil, nil
	}
	o := push.Options{
		Box: s.Ingester.Pushed, Known: s.Ingester.Catalog.At, Description: deploy.OpenAPI, Log: s.log,
		Below: s.Ingester.below,
		Enforce: func(ctx context.Context, doc catalog.Record, id string) error {
			return s.Ingester.enforce(ctx, s.Ingester.Pushed, doc, id)
		},
	}
	if s.state.Link != nil {
		o.Uploads = 16 // most of them wait for the disk of the Redis
	}
	for _, t := range tokens {
		o.Tokens = append(o.Tokens, push.Token{Secret: t.Secret.Reveal(), Prefix: t.Prefix, Grants: t.MayGrant})
	}
	return push.New(o)
}

// RemovePushed takes a document out of its inbox, if its path is of one, so
// that no later pass takes it in again.
func (l *Library) RemovePushed(ctx context.Context, path string) error {
	for _, b := range l.boxes() {
		if id, ok := b.IDOf(path); ok {
			return b.Drop(ctx, id)
		}
	}
	return nil
}

// holds reports that the inbox has documents. One that cannot be asked may.
func holds(b *inbox.Inbox) bool {
	found, err := b.List(context.Background(), "", "", 1)
	return err != nil || len(found) > 0
}
