package assemble

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redislink"
)

// Inboxes (pushed documents, files and threads of a chat) lie in the data
// directory of one process, also where the index is on a Redis. That process is
// their home: it takes such documents in and keeps up with all sources. Others
// must not: to their empty inboxes every such document would seem taken back.
//
// PREFIX:inbox holds the name of the home, which also lies in the directory
// "inbox": whoever has the directory is the home.

// homeFile is the name's file in the directory of the inboxes.
const homeFile = "home"

// errElsewhere says that this process cannot take in what is sent to it.
var errElsewhere = errors.New("documents that are pushed, or come from a chat, lie in the data directory of another replica: " +
	"set push, uploads and channels in the configuration of that one alone; or move its directory inbox into this data directory, and start this one instead")

// settle finds out whether this process is the home of the inboxes, and makes
// it so if it wants to be and there is none. away: another one is, or nobody.
func (l *Library) settle(ctx context.Context, wants bool) (away bool, err error) {
	if l.state.Link == nil {
		return false, nil
	}
	for _, b := range l.boxes() {
		wants = wants || holds(b)
	}
	home, err := l.home(ctx)
	if err != nil {
		return true, err
	}
	mine, err := l.homeName(wants && home == "")
	if err != nil || mine == "" {
		return true, err
	}
	if home == "" && wants {
		if err := l.state.Link.SetNX(ctx, key(l.state.c, "inbox"), mine, 0).Err(); err != nil {
			return true, redislink.Failed("saying where the inboxes are", err)
		}
		if home, err = l.home(ctx); err != nil {
			return true, err
		}
	}
	return home != mine, nil
}

// home is the name of the home, "" if there is none.
func (l *Library) home(ctx context.Context) (string, error) {
	name, err := l.state.Link.Get(ctx, key(l.state.c, "inbox")).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", redislink.Failed("asking where the inboxes are", err)
	}
	return name, nil
}

// homeName is what the directory of the inboxes is called, "" if it has no name
// and is given none.
func (l *Library) homeName(make bool) (string, error) {
	at := filepath.Join(l.state.c.Data, "inbox", homeFile)
	raw, err := os.ReadFile(at)
	switch {
	case err == nil:
		return strings.TrimSpace(string(raw)), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("naming the inboxes: %w", err)
	case !make:
		return "", nil
	}
	name := rand.Text()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return "", fmt.Errorf("naming the inboxes: %w", err)
	}
	if err := os.WriteFile(at, []byte(name+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("naming the inboxes: %w", err)
	}
	return name, nil
}

// whileHome ends ctx when the inboxes turn out to have a home elsewhere, which
// then keeps up with the sources.
func (l *Library) whileHome(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for l.leads(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel()
	}()
	return work(ctx)
}

// leads reports that this process may keep up with the sources: nobody, or it,
// is the home of the inboxes. In doubt it may go on.
func (l *Library) leads(ctx context.Context) bool {
	home, err := l.home(ctx)
	return err != nil || home == "" || !l.away
}
