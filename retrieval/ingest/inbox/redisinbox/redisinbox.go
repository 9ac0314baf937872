// Package redisinbox keeps the documents of an inbox on a Redis, for any number
// of processes: what one of them takes, another lists, reads and takes back.
//
// Its one idea: the same decisions, made under another lock. What may be put or
// taken back is decided by package inbox, on a table that every process has; the
// server numbers the changes, and makes one only if nothing has changed since it
// was decided, else it is decided anew. Every look first learns what others
// changed, in one round trip.
//
// Keys, under {PREFIX:inbox}, where INBOX is the root of the inbox without a
// colon at its end:
//
//	:INBOX:seq      string  number of the last change, a colon, its token
//	:INBOX:docs     hash    id -> document: JSON of the entry, with bytes, parts
//	:INBOX:log      stream  the latest changes, with their number as id: d the id, r the document
//	                        ("" it is gone), t the token of the change, p the seq before
//	:INBOX:b:TOKEN  hash    content: 0, 1, … of 1 MiB each
//	:INBOX:heard    hash    see Notes
//	:INBOX:touch    string  nothing: it is written to wait for the disk
//	:boxes          set     roots of the inboxes that ever held something
//	:notices        channel the root of an inbox at each change
//
// The content is written first, under a token of its own and with an end of its
// life; one script then makes it the document's, takes that end away, and deletes
// the content before. So after whatever ends a process there is all of a document
// or nothing, and what was not finished goes by itself after ten minutes.
//
// Durable means: on the server's disk (WAITAOF), with appendfsync everysec within
// a second, and received by a replica, where one is ready. A server without
// appendonly keeps nothing when it ends; footnote doctor says so.
//
// SECURITY: a write that the inbox bounds (inbox.Guard) is made by the script of
// the index only while the document that bounds it is the same, byte for byte
// (redislink.While). So a process that slept opens nothing by an old list. Changes
// of the inbox keep to the conditions of their context, too.
//
// Memory: the content lies in the server's memory, twice while ingestion works on
// it, and every process holds all entries, about 600 bytes each.
//
// It does not say who may send what, and watches no disk.
package redisinbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/redislink"
)

// Options of an inbox on a Redis; zero values mean the defaults.
type Options struct {
	inbox.Options

	Prefix string // of all keys: footnote
	// Again says that what is lost with the server comes in again by itself, so
	// that no change waits for the server's disk.
	Again bool
	// Room says why documents may not take so many bytes of the server now, ""
	// that they may; nil: they always may.
	Room func(ctx context.Context, bytes int64) string
}

// MaxTotal is how many bytes all documents of an inbox may have, where the
// options do not say: 1 GiB, of the server's memory.
const MaxTotal = 1 << 30

// Open makes an inbox with a client of the caller's, who closes it. It sends
// nothing. Inboxes with the same prefix and root are one, in whatever process.
func Open(client redis.UniversalClient, root string, o Options) *inbox.Inbox {
	o.MaxTotal = cmp.Or(o.MaxTotal, MaxTotal)
	top := "{" + cmp.Or(o.Prefix, "footnote") + ":inbox}:"
	return inbox.New(&keep{
		client: client, root: root, lazy: o.Again, room: o.Room, top: top, at: top + strings.TrimSuffix(root, ":") + ":", table: inbox.NewTable(), damaged: map[string]bool{},
	}, root, o.Options)
}

// Roots are those of the inboxes under the prefix that ever held something.
func Roots(ctx context.Context, client redis.UniversalClient, prefix string) ([]string, error) {
	all, err := client.SMembers(ctx, "{"+cmp.Or(prefix, "footnote")+":inbox}:boxes").Result()
	return all, redislink.Failed("listing the inboxes", err)
}

// keep is an inbox.Keep.
type keep struct {
	client  redis.UniversalClient
	root    string
	lazy    bool
	room    func(context.Context, int64) string // nil: there always is
	top, at string                              // beginnings of keys: of all inboxes, of this one

	deciding sync.Mutex // one change of this process at a time
	learning sync.Mutex

	mu      sync.RWMutex // of what follows
	known   bool         // something was learnt
	seq     string       // up to which the table is
	table   *inbox.Table
	damaged map[string]bool // by id
	notices *inbox.Notices  // nil: nobody watches
}

var _ inbox.Keep = (*keep)(nil)

func (k *keep) bytes(token string) string { return k.at + "b:" + token }

const (
	part      = 1 << 20          // bytes of content that go to the server at once
	unplaced  = 10 * time.Minute // that content is kept without a document
	kept      = 10_000           // changes that the server keeps
	perLook   = 500              // changes that are learnt at once
	lookEvery = time.Second      // for changes of others, whose notices get lost
	attempts  = 100              // at a change, until contention is given up
	patience  = 5 * time.Second  // that a change waits for the server's disk
)

// document is a document as the server has it.
type document struct {
	inbox.Entry

	Bytes string `json:"bytes"` // token of the content
	Parts int    `json:"parts"`
}

// decode reads a document: inbox.ErrDamaged if it is none.
func decode(raw string) (document, error) {
	var d document
	if json.Unmarshal([]byte(raw), &d) != nil || d.Parts != parts(d.Size) || !isToken(d.Bytes) {
		return document{}, inbox.ErrDamaged
	}
	return d, d.Sound()
}

func parts(size int64) int { return int((size + part - 1) / part) }

func newToken() string { return strings.ToLower(rand.Text()) }

func isToken(s string) bool {
	return len(s) == 26 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Damaged implements inbox.Keep.
func (k *keep) Damaged() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Sorted(maps.Keys(k.damaged))
}

// Known implements inbox.Keep.
func (k *keep) Known(id string) (inbox.Entry, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.table.Get(id)
}

// View implements inbox.Keep.
func (k *keep) View(ctx context.Context, look func(*inbox.Table)) error {
	if err := k.learn(ctx, k.client); err != nil {
		return err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	look(k.table)
	return nil
}

// Find implements inbox.Keep.
func (k *keep) Find(ctx context.Context, ids ...string) (map[string]inbox.Entry, error) {
	found, _, err := k.find(ctx, ids)
	return found, err
}

// find also gives the documents as the server has them.
func (k *keep) find(ctx context.Context, ids []string) (found map[string]inbox.Entry, raws map[string]string, err error) {
	found, raws = map[string]inbox.Entry{}, map[string]string{}
	if len(ids) == 0 {
		return found, raws, nil
	}
	values, err := k.client.HMGet(ctx, k.at+"docs", ids...).Result()
	if err != nil {
		return nil, nil, redislink.Failed("asking for documents of the inbox", err)
	}
	for i, v := range values {
		raw, is := v.(string)
		if !is {
			continue
		}
		raws[ids[i]] = raw
		if d, err := decode(raw); err == nil && d.ID == ids[i] {
			found[d.ID] = d.Entry
		}
	}
	return found, raws, nil
}

// Still implements inbox.Keep.
//
// SECURITY: the conditions name every document that was asked for, also those
// that are not held: what act concludes from their absence must be so, too.
func (k *keep) Still(ctx context.Context, ids []string, act func(context.Context, map[string]inbox.Entry) error) error {
	for range attempts {
		found, raws, err := k.find(ctx, ids)
		if err != nil {
			return err
		}
		var all []redislink.Condition
		for _, id := range ids {
			all = append(all, redislink.Condition{Key: k.at + "docs", Field: id, Value: raws[id]})
		}
		acted := act(redislink.While(ctx, all...), found)
		if !errors.Is(acted, retrieval.ErrFenced) {
			return acted
		}
		_, now, err := k.find(ctx, ids)
		if err != nil || same(raws, now) {
			return acted // it was for another reason
		}
	}
	return errRestless
}

func same(a, b map[string]string) bool {
	for id, raw := range a {
		if b[id] != raw {
			return false
		}
	}
	return len(a) == len(b)
}

var errRestless = fmt.Errorf("%w: the inbox is changed by others all the time", retrieval.ErrUnavailable)

// Read implements inbox.Keep.
func (k *keep) Read(ctx context.Context, id string) (inbox.Entry, []byte, error) {
	for before := ""; ; {
		_, raws, err := k.find(ctx, []string{id})
		switch {
		case err != nil:
			return inbox.Entry{}, nil, err
		case raws[id] == "":
			return inbox.Entry{}, nil, fs.ErrNotExist
		}
		d, err := decode(raws[id])
		if err != nil || d.ID != id {
			return inbox.Entry{}, nil, inbox.ErrDamaged
		}
		data, err := k.content(ctx, d)
		if !errors.Is(err, inbox.ErrDamaged) || before == raws[id] {
			return d.Entry, data, err
		}
		before = raws[id] // it may have been replaced meanwhile
	}
}

func (k *keep) content(ctx context.Context, d document) ([]byte, error) {
	data := make([]byte, 0, d.Size)
	for i := range d.Parts {
		b, err := k.client.HGet(ctx, k.bytes(d.Bytes), strconv.Itoa(i)).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil, inbox.ErrDamaged
		}
		if err != nil {
			return nil, redislink.Failed("reading a document of the inbox", err)
		}
		data = append(data, b...)
	}
	if int64(len(data)) != d.Size {
		return nil, inbox.ErrDamaged
	}
	return data, d.Checks(data)
}
