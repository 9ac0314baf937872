// Package rediscatalog is the catalog that processes share, on a Redis.
//
// Its one idea: every process holds all records, and the server numbers the
// changes. A process that writes first learns what others wrote before, so that
// all apply the same changes in the same order; one that only reads learns them
// as they come, and looks on its own every second, since notices get lost.
//
// Keys, under {PREFIX:catalog}:
//
//	:seq      string  number of the last change
//	:mark     string  token of the last change
//	:records  hash    document id -> its record, JSON
//	:changes  stream  the latest changes, with their number as id: r, JSON array of records, t token
//	:notices  channel a word at each change
//
// Whoever is too far behind for the stream, or knows a last change that the
// server does not have, reads all records anew and forgets its own: the server
// lost its latest changes with its power, or a replica took over that did not have
// them, and others may bear their numbers by now. A record is written after the
// index has what it says, and a server loses the latest first: what is left of
// records is true of the index, and a document whose record is gone or old is
// looked at again.
package rediscatalog

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/redislink"
)

// kept is how many of the latest changes the server keeps.
const kept = 10_000

// Pause is how long a reader waits for a notice before it looks on its own.
const Pause = time.Second

// Open opens the catalog under the prefix of a Redis and makes it if it is
// absent. The client is the caller's, who closes it after the catalog.
func Open(ctx context.Context, client redis.UniversalClient, prefix string) (*catalog.Catalog, error) {
	l := &log{client: client, at: "{" + cmp.Or(prefix, "footnote") + ":catalog}:", done: make(chan struct{})}
	rs, err := l.load(ctx)
	if err != nil {
		return nil, redislink.Failed("opening the catalog", err)
	}
	c := catalog.New(l, rs...)
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	go l.follow(follow, c)
	return c, nil
}

// log is the server's part of a catalog. The catalog's lock guards last.
type log struct {
	client redis.UniversalClient
	at     string
	last   int64  // number of the last change that was applied
	mark   string // its token
	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once
}

// Close ends the following.
func (l *log) Close() error {
	l.once.Do(func() {
		l.cancel()
		<-l.done
	})
	return nil
}

// load reads all records and the number of the change up to which they are.
func (l *log) load(ctx context.Context) ([]catalog.Record, error) {
	var seq, mark *redis.StringCmd
	var all *redis.StringSliceCmd
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		seq, mark, all = p.Get(ctx, l.at+"seq"), p.Get(ctx, l.at+"mark"), p.HVals(ctx, l.at+"records")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	rs := make([]catalog.Record, len(all.Val()))
	for i, s := range all.Val() {
		if err := json.Unmarshal([]byte(s), &rs[i]); err != nil {
			return nil, fmt.Errorf("%w: a record of the catalog: %w", retrieval.ErrCorrupt, err)
		}
	}
	// A path belongs to the document that took it last.
	slices.SortFunc(rs, func(a, b catalog.Record) int {
		return cmp.Or(a.Since().Compare(b.Since()), strings.Compare(string(a.ID), string(b.ID)))
	})
	l.last, l.mark = 0, mark.Val()
	if n, err := seq.Int64(); err == nil {
		l.last = n
	}
	return rs, nil
}

// appendScript numbers a change and keeps it.
//
//	keys: seq records changes notices mark
//	args: changes kept, the records as one JSON array, token, (document id, record)…
//	gives the number
var appendScript = redis.NewScript(`
local n = redis.call('INCR', KEYS[1])
for i = 4, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[1], string.format('%d-0', n), 'r', ARGV[2], 't', ARGV[3])
redis.call('SET', KEYS[5], ARGV[3])
redis.call('PUBLISH', KEYS[4], 'changed')
return n`)

// Append implements catalog.Log. When the connection is lost the records may
// have been written all the same: then they are learnt like those of others.
func (l *log) Append(text []byte, rs []catalog.Record, apply catalog.Apply) error {
	args := []any{kept, text, rand.Text()}
	for _, r := range rs {
		one, err := json.Marshal(r)
		if err != nil {
			return err
		}
		args = append(args, string(r.ID), one)
	}
	ctx := context.Background() // the client's deadline holds
	n, err := appendScript.Run(ctx, l.client, []string{l.at + "seq", l.at + "records", l.at + "changes", l.at + "notices", l.at + "mark"}, args...).Int64()
	if err != nil {
		return redislink.Failed("sharing the catalog", err)
	}
	if err := l.learn(ctx, apply); err != nil || l.last < n {
		// They are kept; this process learns what came before them later.
		apply(rs, false)
	}
	return nil
}

// learn applies what was changed since the last look.
func (l *log) learn(ctx context.Context, apply catalog.Apply) error {
	for {
		// From the last one on that is known: it must be the same still.
		var seq *redis.StringCmd
		var changes *redis.XMessageSliceCmd
		_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			seq = p.Get(ctx, l.at+"seq")
			changes = p.XRangeN(ctx, l.at+"changes", id(l.last), "+", 500)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		now, _ := seq.Int64()
		found := changes.Val()
		if now == l.last && len(found) == 0 {
			return nil
		}
		if l.last > 0 {
			if len(found) == 0 || found[0].ID != id(l.last) || token(found[0]) != l.mark {
				return l.reload(ctx, apply)
			}
			found = found[1:]
		}
		switch {
		case now == l.last:
			return nil
		case now < l.last, len(found) == 0, found[0].ID != id(l.last+1):
			return l.reload(ctx, apply)
		}
		if err := l.apply(found, apply); err != nil {
			return err
		}
	}
}

// id is that of a change in the stream.
func id(n int64) string { return strconv.FormatInt(n, 10) + "-0" }

func token(m redis.XMessage) string {
	t, _ := m.Values["t"].(string)
	return t
}

func (l *log) reload(ctx context.Context, apply catalog.Apply) error {
	rs, err := l.load(ctx)
	if err == nil {
		apply(rs, true)
	}
	return err
}

func (l *log) apply(found []redis.XMessage, apply catalog.Apply) error {
	for _, m := range found {
		s, _ := m.Values["r"].(string)
		var rs []catalog.Record
		if err := json.Unmarshal([]byte(s), &rs); err != nil {
			return fmt.Errorf("%w: a change of the catalog: %w", retrieval.ErrCorrupt, err)
		}
		apply(rs, false)
		l.last, l.mark = l.last+1, token(m)
	}
	return nil
}

// follow learns what others change until ctx is done: at each notice, and
// every Pause.
func (l *log) follow(ctx context.Context, c *catalog.Catalog) {
	defer close(l.done)
	notices := l.client.Subscribe(ctx, l.at+"notices")
	defer func() { _ = notices.Close() }() // nothing is sent on it
	tick := time.NewTicker(Pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-notices.Channel():
		case <-tick.C:
		}
		// What fails is tried again in the next round.
		_ = c.Learn(func(apply catalog.Apply) error { return l.learn(ctx, apply) })
	}
}
