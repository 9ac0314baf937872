package redisinbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/redislink"
)

// changeScript makes a change if nothing has changed since it was decided.
//
//	keys: seq docs log boxes, those of the conditions…
//	args: seq expected, id, document ("" it goes), token of its content, parts, beginning of the keys of
//	      content, changes kept, root, channel, token of the change, conditions
//	gives the new seq, "" if something has changed, "gone" if the content is not there any more, "not"
//	if a condition does not stand
var changeScript = redis.NewScript(redislink.Standing + `
if not standing(5, 11) then return 'not' end
local was = redis.call('GET', KEYS[1]) or ''
if was ~= ARGV[1] then return '' end
if ARGV[3] ~= '' then
  if redis.call('HLEN', ARGV[6] .. ARGV[4]) ~= tonumber(ARGV[5]) then return 'gone' end
  redis.call('PERSIST', ARGV[6] .. ARGV[4])
end
local old = redis.call('HGET', KEYS[2], ARGV[2])
if ARGV[3] == '' then redis.call('HDEL', KEYS[2], ARGV[2]) else redis.call('HSET', KEYS[2], ARGV[2], ARGV[3]) end
if old then
  local ok, d = pcall(cjson.decode, old)
  if ok and type(d) == 'table' and d.id == ARGV[2] and type(d.bytes) == 'string' then redis.call('UNLINK', ARGV[6] .. d.bytes) end
end
local n = tonumber(string.match(was, '^%d+') or '0') + 1
local seq = string.format('%.0f:%s', n, ARGV[10])
redis.call('SET', KEYS[1], seq)
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[7], string.format('%.0f-0', n), 'd', ARGV[2], 'r', ARGV[3], 't', ARGV[10], 'p', was)
redis.call('SADD', KEYS[4], ARGV[8])
redis.call('PUBLISH', ARGV[9], ARGV[8])
return seq`)

// Change implements inbox.Keep.
func (k *keep) Change(ctx context.Context, decide func(*inbox.Table) (inbox.Step, error)) error {
	for range attempts {
		done, err := k.once(ctx, decide)
		if err != nil || done {
			return err
		}
		// Others are at it; not all of them should try again at once.
		if err := redislink.Pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond); err != nil { //nolint:gosec // it is no secret
			return err
		}
	}
	return errRestless
}

// once makes a change over a connection of its own: of what it has on its disk the
// server speaks by connection. It reports false if something came between. Who
// waits for a turn holds no connection: those whose turn it is may need them all.
func (k *keep) once(ctx context.Context, decide func(*inbox.Table) (inbox.Step, error)) (done bool, err error) {
	k.deciding.Lock()
	turn := sync.OnceFunc(k.deciding.Unlock)
	defer turn()
	err = k.client.Watch(ctx, func(tx *redis.Tx) (err error) {
		var written bool
		done, written, err = k.try(ctx, tx, decide)
		if turn(); err != nil || !done {
			return err
		}
		return k.settle(ctx, tx, written)
	}, k.at+"nothing")
	return done, err
}

// try decides and makes a change. It reports false if something came between,
// and whether anything was written.
func (k *keep) try(ctx context.Context, tx *redis.Tx, decide func(*inbox.Table) (inbox.Step, error)) (done, written bool, err error) {
	s, seq, err := k.decide(ctx, tx, decide)
	if err != nil {
		return false, false, err
	}
	c := change{id: s.Drop, seq: seq, token: newToken()}
	if s.Put != nil {
		if err := c.put(s); err != nil {
			return false, false, err
		}
	}
	if c.id == "" {
		return true, false, nil
	}
	done, err = k.commit(ctx, tx, c)
	return done, true, redislink.Failed("changing the inbox", err)
}

// decide asks for the step on all that is held now, of which seq is the number.
func (k *keep) decide(ctx context.Context, tx *redis.Tx, decide func(*inbox.Table) (inbox.Step, error)) (inbox.Step, string, error) {
	if err := k.learn(ctx, tx); err != nil {
		return inbox.Step{}, "", err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	s, err := decide(k.table)
	return s, k.seq, err
}

// change is a step for the server.
type change struct {
	id, document string
	content      string // token; "" none
	parts        int
	seq, token   string
}

func (c *change) put(s inbox.Step) error {
	d, ours := s.Draft.(*draft)
	if !ours {
		return errors.New("changing the inbox: the draft is another inbox's")
	}
	raw, err := json.Marshal(document{*s.Put, d.token, d.parts})
	if err != nil {
		return fmt.Errorf("changing the inbox: %w", err)
	}
	c.id, c.document, c.content, c.parts = s.Put.ID, string(raw), d.token, d.parts
	return nil
}

// commit makes the change. It reports false if something came between.
func (k *keep) commit(ctx context.Context, tx *redis.Tx, c change) (bool, error) {
	keys, conditions := redislink.Standings(ctx)
	now, err := changeScript.Run(ctx, tx, append([]string{k.at + "seq", k.at + "docs", k.at + "log", k.top + "boxes"}, keys...),
		append([]any{c.seq, c.id, c.document, c.content, c.parts, k.bytes(""), kept, k.root, k.top + "notices", c.token}, conditions...)...).Text()
	switch {
	case err != nil:
		return false, err
	case now == "not":
		return false, fmt.Errorf("changing the inbox: %w", retrieval.ErrFenced)
	case now == "gone":
		return false, fmt.Errorf("%w: the content took longer than %v to arrive; send it again", retrieval.ErrUnavailable, unplaced)
	case now != "":
		return true, nil
	}
	// An answer may have been lost, and the client asked again: then it is this
	// very change that came between.
	at := strconv.FormatInt(number(c.seq)+1, 10) + "-0"
	next, err := tx.XRange(ctx, k.at+"log", at, at).Result()
	return err == nil && len(next) > 0 && next[0].Values["t"] == c.token, err
}

// settle waits until the server has on its disk what it acknowledged on the
// connection, or to anybody, where nothing was written on that; and until a
// replica, where there is one, has received it.
func (k *keep) settle(ctx context.Context, tx *redis.Tx, written bool) error {
	const doing = "waiting until the inbox is on the server's disk"
	if k.lazy {
		return nil
	}
	if !written {
		if err := tx.Set(ctx, k.at+"touch", 1, 0).Err(); err != nil {
			return redislink.Failed(doing, err)
		}
	}
	on, err := tx.Do(ctx, "WAITAOF", 1, 0, patience.Milliseconds()).Int64Slice()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "ERR "):
		// It keeps nothing on a disk, or is older than the question.
	case err != nil:
		return redislink.Failed(doing, err)
	case len(on) == 0 || on[0] < 1:
		return fmt.Errorf("%s: %w: its disk took longer than %v", doing, retrieval.ErrUnavailable, patience)
	}
	about, err := tx.Info(ctx, "replication").Result()
	if err != nil || !strings.Contains(about, ",state=online,") {
		return redislink.Failed(doing, err)
	}
	n, err := tx.Do(ctx, "WAIT", 1, patience.Milliseconds()).Int()
	if err == nil && n < 1 {
		return fmt.Errorf("%s: %w: no replica received it within %v", doing, retrieval.ErrUnavailable, patience)
	}
	return redislink.Failed(doing, err)
}

// draft is content that no document has yet.
type draft struct {
	ctx   context.Context //nolint:containedctx // a Writer has none
	keep  *keep
	id    string // "" it is not sealed
	token string
	rest  bytes.Buffer
	parts int
}

// Begin implements inbox.Keep.
func (k *keep) Begin(ctx context.Context) (inbox.Draft, error) {
	return &draft{ctx: ctx, keep: k, token: newToken()}, nil
}

// Write sends full parts and keeps the rest.
func (d *draft) Write(p []byte) (int, error) {
	n, _ := d.rest.Write(p) // never fails
	for d.rest.Len() >= part {
		if err := d.send(d.ctx, d.rest.Next(part)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (d *draft) send(ctx context.Context, content []byte) error {
	if d.keep.room != nil {
		if full := d.keep.room(ctx, int64(len(content))); full != "" {
			return fmt.Errorf("%w: %s", inbox.ErrFull, full)
		}
	}
	at := d.keep.bytes(d.token)
	_, err := d.keep.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, at, strconv.Itoa(d.parts), content)
		p.Expire(ctx, at, unplaced)
		return nil
	})
	d.parts++
	return redislink.Failed("sending a document to the inbox", err)
}

// Seal implements inbox.Draft.
func (d *draft) Seal(ctx context.Context, e inbox.Entry) error {
	d.id = e.ID
	if d.rest.Len() == 0 {
		return nil
	}
	return d.send(ctx, d.rest.Next(part))
}

// dropScript deletes content unless it is that of a document.
//
//	keys: docs content
//	args: id, token of the content
var dropScript = redis.NewScript(`
local now = redis.call('HGET', KEYS[1], ARGV[1])
if now then
  local ok, d = pcall(cjson.decode, now)
  if ok and type(d) == 'table' and d.bytes == ARGV[2] then return 0 end
end
return redis.call('UNLINK', KEYS[2])`)

// parting is how long giving up a draft may take.
const parting = 5 * time.Second

// Drop implements inbox.Draft. An error may hide that the document was put in
// place: then its content stays. What cannot be deleted goes by itself.
func (d *draft) Drop() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), parting)
	defer cancel()
	_ = dropScript.Run(ctx, d.keep.client, []string{d.keep.at + "docs", d.keep.bytes(d.token)}, d.id, d.token).Err()
}
