package assemble

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"footnote/bot/shelf"
	"footnote/retrieval/redislink"
)

// board is the notices of documents from a chat that replicas share: a hash of the
// Redis, PREFIX:notices, from platform and message to the notice. Whichever keeps
// up with the sources tells.
type board struct {
	link *redislink.Link
	key  string
	lead *lead
}

var _ shelf.Shared = board{}

// Lead implements shelf.Shared.
func (b board) Lead(ctx context.Context, work func(context.Context) error) error {
	return b.lead.hold(ctx, work)
}

// All implements shelf.Shared.
func (b board) All(ctx context.Context) ([]shelf.Notice, error) {
	values, err := b.link.HVals(ctx, b.key).Result()
	if err != nil {
		return nil, redislink.Failed("reading which messages tell of documents", err)
	}
	out := make([]shelf.Notice, len(values))
	for i, v := range values {
		if err := json.Unmarshal([]byte(v), &out[i]); err != nil {
			return nil, fmt.Errorf("reading which messages tell of documents: %w", err)
		}
	}
	return out, nil
}

// Put implements shelf.Shared.
func (b board) Put(ctx context.Context, n shelf.Notice) error {
	field, value, err := written(n)
	if err != nil {
		return err
	}
	return redislink.Failed("noting which messages tell of documents", b.link.HSet(ctx, b.key, field, value).Err())
}

// written is a notice as it is kept. Its message is in the form that it has when
// it was read.
func written(n shelf.Notice) (field, value string, err error) {
	message, err := json.Marshal(n.Message)
	if err == nil {
		var raw []byte
		raw, err = json.Marshal(n)
		value = string(raw)
	}
	if err != nil {
		return "", "", fmt.Errorf("noting which messages tell of documents: %w", err)
	}
	return n.Platform + " " + string(message), value, nil
}

// swapScript replaces a notice.
//
//	keys: notices
//	args: field, notice expected, notice ("" it goes)
var swapScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then return redis.call('HDEL', KEYS[1], ARGV[1]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`)

// Swap implements shelf.Shared.
func (b board) Swap(ctx context.Context, was shelf.Notice, now *shelf.Notice) error {
	field, before, err := written(was)
	after := ""
	if err == nil && now != nil {
		_, after, err = written(*now)
	}
	if err != nil {
		return err
	}
	return redislink.Failed("noting which messages tell of documents", swapScript.Run(ctx, b.link, []string{b.key}, field, before, after).Err())
}
