package redisinbox

import (
	"cmp"
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redislink"
)

// Notes are what processes have heard of the source of an inbox, for the one that
// reads it. Key: :INBOX:heard, a hash from what is noted to a token.
type Notes struct {
	client redis.UniversalClient
	key    string
}

// NewNotes makes the notes of an inbox. It sends nothing.
func NewNotes(client redis.UniversalClient, root, prefix string) *Notes {
	return &Notes{client, "{" + cmp.Or(prefix, "footnote") + ":inbox}:" + strings.TrimSuffix(root, ":") + ":heard"}
}

// Note notes something, again if it is noted already.
func (n *Notes) Note(ctx context.Context, what string) error {
	return redislink.Failed("noting what has changed", n.client.HSet(ctx, n.key, what, newToken()).Err())
}

// Noted lists what is noted, with the token of each.
func (n *Notes) Noted(ctx context.Context) (map[string]string, error) {
	all, err := n.client.HGetAll(ctx, n.key).Result()
	return all, redislink.Failed("asking what has changed", err)
}

// settleScript forgets a note.
//
//	keys: notes
//	args: what, token
var settleScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])`)

// Settle forgets what was noted with the token.
func (n *Notes) Settle(ctx context.Context, what, token string) error {
	return redislink.Failed("noting what was read", settleScript.Run(ctx, n.client, []string{n.key}, what, token).Err())
}
