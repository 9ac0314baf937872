package redisinbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/redislink"
)

// number is that of a change.
func number(seq string) int64 {
	n, _, _ := strings.Cut(seq, ":")
	i, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		return 0
	}
	return i
}

// learn brings the table up to what the server has, over a connection of the
// client or one that the caller has.
func (k *keep) learn(ctx context.Context, c redis.Cmdable) error {
	k.learning.Lock()
	defer k.learning.Unlock()
	for {
		more, err := k.learnSome(ctx, c)
		if err != nil || !more {
			return redislink.Failed("learning what is in the inbox", err)
		}
	}
}

// learnSome reports that there may be more. Whoever is too far behind for the
// log, or knows what the server lost, reads all anew. The caller holds learning,
// so that nobody else moves seq.
func (k *keep) learnSome(ctx context.Context, c redis.Cmdable) (more bool, err error) {
	next := number(k.seq) + 1
	var seq *redis.StringCmd
	var log *redis.XMessageSliceCmd
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		seq = p.Get(ctx, k.at+"seq")
		log = p.XRangeN(ctx, k.at+"log", strconv.FormatInt(next, 10)+"-0", "+", perLook)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	now, found := seq.Val(), log.Val()
	switch {
	case k.known && now == k.seq:
		return false, nil
	case !k.known, number(now) < next, len(found) == 0, found[0].Values["p"] != k.seq:
		return false, k.load(ctx, c)
	}
	return true, k.apply(found)
}

func (k *keep) apply(found []redis.XMessage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range found {
		id, isID := m.Values["d"].(string)
		raw, isDoc := m.Values["r"].(string)
		token, isToken := m.Values["t"].(string)
		if !isID || !isDoc || !isToken || m.ID != strconv.FormatInt(number(k.seq)+1, 10)+"-0" {
			k.known = false // all is read anew
			return nil
		}
		k.set(id, raw)
		k.seq = fmt.Sprintf("%d:%s", number(k.seq)+1, token)
	}
	return nil
}

// set takes a document as the server has it into the table. The caller holds mu.
func (k *keep) set(id, raw string) {
	old, _ := k.table.Get(id)
	d, err := decode(raw)
	delete(k.damaged, id)
	if raw != "" && (err != nil || d.ID != id) {
		k.damaged[id] = true
	}
	if raw == "" || k.damaged[id] {
		d = document{}
		k.table.Drop(id)
	} else {
		k.table.Put(d.Entry)
	}
	if k.notices != nil && (old.ID != "" || d.ID != "") && old.Tag() != d.Tag() {
		k.notices.Changed(id, old, d.Entry)
	}
}

// load reads all documents.
func (k *keep) load(ctx context.Context, c redis.Cmdable) error {
	var seq *redis.StringCmd
	var docs *redis.MapStringStringCmd
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		seq, docs = p.Get(ctx, k.at+"seq"), p.HGetAll(ctx, k.at+"docs")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if err := docs.Err(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range k.table.IDs() {
		if _, still := docs.Val()[id]; !still {
			k.set(id, "")
		}
	}
	clear(k.damaged)
	for id, raw := range docs.Val() {
		k.set(id, raw)
	}
	k.seq, k.known = seq.Val(), true
	return nil
}

// Watch implements inbox.Keep: at each notice, and every second.
func (k *keep) Watch(ctx context.Context, told func(id string, urgent bool)) error {
	n := inbox.NewNotices()
	k.watch(n)
	defer k.watch(nil)
	words := k.client.Subscribe(ctx, k.top+"notices")
	defer func() { _ = words.Close() }() // nothing is sent on it
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		// What fails is tried again in the next round.
		_ = k.learn(ctx, k.client)
		n.Tell(told)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-words.Channel():
		case <-tick.C:
		case <-n.Wake:
		}
	}
}

func (k *keep) watch(n *inbox.Notices) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notices = n
}
