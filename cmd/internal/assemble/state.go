package assemble

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"footnote/adapters/web"
	"footnote/bot/ledger"
	"footnote/bot/ledger/redisledger"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/catalog/rediscatalog"
	"footnote/retrieval/memindex"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redislink"
)

// Store is the generations of an index while they are open.
type Store interface {
	retrieval.Store
	Close() error
}

// State is where that lies which must survive: in the data directory, which one
// process holds, or on a Redis, for any number of them. It is the one place
// that knows which.
type State struct {
	Ask   Store           // for questions: what takes long is given up
	Build Store           // for ingestion and operators, the same generations
	Link  *redislink.Link // nil: the data directory

	c       config.Config
	patient *redislink.Link
	boxes   *redislink.Link // of inboxes: its connections wait for the server's disk
	own     string          // temporary directory instead of the data directory, "" none
	release func() error
}

// Times of the links: a person waits for one, nobody for the other.
const (
	askDeadline   = 1500 * time.Millisecond
	askTimeout    = 1200 * time.Millisecond // of a query in the server, which must end first
	buildDeadline = 20 * time.Second
)

// openState takes the data directory, or connects to the Redis. ErrInUse and
// ErrUnavailable say that neither can be had now.
func openState(c config.Config) (*State, error) {
	if c.Shared() {
		return openShared(context.Background(), c)
	}
	store, err := memindex.Open(c.Data)
	if err != nil {
		return nil, err
	}
	return &State{Ask: store, Build: store, c: c, release: store.Close}, nil
}

func openShared(ctx context.Context, c config.Config) (s *State, err error) {
	s = &State{c: c, release: func() error { return nil }}
	if s.Link, err = OpenLink(c, askDeadline); err != nil {
		return nil, err
	}
	if s.patient, err = OpenLink(c, buildDeadline); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.boxes, err = OpenLink(c, buildDeadline); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.Ask, err = openIndex(ctx, c, s.Link, askTimeout); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.Build, err = openIndex(ctx, c, s.patient, buildDeadline/2); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func openIndex(ctx context.Context, c config.Config, l *redislink.Link, timeout time.Duration) (Store, error) {
	if err := l.Usable(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Where(), err)
	}
	s, err := redisindex.Open(ctx, l, redisindex.Options{Prefix: c.Redis.Prefix, HNSW: c.Redis.Vectors == "hnsw", Timeout: timeout})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.Where(), err)
	}
	return s, nil
}

// OpenLink makes a link to the Redis of the configuration. It sends nothing.
func OpenLink(c config.Config, deadline time.Duration) (*redislink.Link, error) {
	r := c.Redis
	l, err := redislink.Open(redislink.Options{
		URL: r.URL, Username: r.Username.Reveal(), Password: r.Password.Reveal(),
		SentinelUsername: r.SentinelUsername.Reveal(), SentinelPassword: r.SentinelPassword.Reveal(),
		CAFile: r.CAFile, CertFile: r.CertFile, KeyFile: r.KeyFile, Deadline: deadline,
	})
	if err != nil {
		return nil, &config.Problems{All: []config.Problem{{Where: "redis.url", What: err.Error(), Accepts: "an address and certificates that fit together"}}}
	}
	return l, nil
}

// Keeps refuses a Redis that throws data away when its memory is full: nothing
// is to be taken in there.
func (s *State) Keeps(ctx context.Context) error {
	if s.Link == nil {
		return nil
	}
	return s.Link.Keeps(ctx)
}

// Evicted is how many keys the Redis has thrown away.
func (s *State) Evicted(ctx context.Context) int64 {
	if s.Link == nil {
		return 0
	}
	return s.Link.Evicted(ctx)
}

// Catalog opens the catalog of documents.
func (s *State) Catalog() (*catalog.Catalog, error) {
	if s.Link != nil {
		return rediscatalog.Open(context.Background(), s.patient, s.c.Redis.Prefix)
	}
	return catalog.Open(s.c.Data)
}

// Ledger opens the ledger.
func (s *State) Ledger() (ledger.Store, error) {
	if s.Link != nil {
		return redisledger.Open(s.Link, redisledger.Options{Prefix: s.c.Redis.Prefix}), nil
	}
	return ledger.Open(s.c.Data, ledger.Options{})
}

// Directory is for what is this process's own, such as its cache of vectors: the
// data directory, or another one while another process holds that.
func (s *State) Directory() (string, error) {
	if s.Link == nil || s.own != "" {
		return s.directory(), nil
	}
	release, err := memindex.Lock(s.c.Data)
	switch {
	case err == nil:
		s.release = release
	case errors.Is(err, retrieval.ErrInUse):
		if s.own, err = os.MkdirTemp("", "footnote-"); err != nil {
			return "", err
		}
	default:
		return "", err
	}
	return s.directory(), nil
}

func (s *State) directory() string {
	if s.own != "" {
		return s.own
	}
	return s.c.Data
}

// Alone reports that this process holds the data directory.
func (s *State) Alone() bool { return s.own == "" }

// Prefix is the beginning of all keys of the Redis.
func Prefix(c config.Config) string { return cmp.Or(c.Redis.Prefix, "footnote") }

// key names a key of the Redis.
func key(c config.Config, name string) string { return Prefix(c) + ":" + name }

// ViewerKey is the key of the viewer's links. Replicas have one, so that each
// opens the links that another showed.
func (s *State) ViewerKey(ctx context.Context) ([]byte, error) {
	if s.Link == nil {
		return web.LoadKey(s.c.Data)
	}
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	at := key(s.c, "viewer")
	if err := s.Link.SetNX(ctx, at, fresh, 0).Err(); err != nil {
		return nil, redislink.Failed("making the viewer's key", err)
	}
	key, err := s.Link.Get(ctx, at).Bytes()
	if err != nil {
		return nil, redislink.Failed("reading the viewer's key", err)
	}
	return key, nil
}

// Close ends what was opened.
func (s *State) Close() error {
	var errs []error
	if s.Link != nil {
		for _, x := range []Store{s.Ask, s.Build} {
			if x != nil {
				errs = append(errs, x.Close())
			}
		}
		errs = append(errs, s.Link.Close())
	}
	for _, l := range []*redislink.Link{s.patient, s.boxes} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	errs = append(errs, s.release())
	if s.own != "" {
		errs = append(errs, os.RemoveAll(s.own))
	}
	return errors.Join(errs...)
}
