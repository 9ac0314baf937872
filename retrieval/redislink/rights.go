package redislink

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// needs are the commands that footnote sends, each in a form that is complete;
// K, S and C stand for a key and a stream that are not there, and a channel.
// deploy/redis/users.acl allows the same.
var needs = strings.Split(`ping
client|setinfo lib-name footnote
client|info
info server
module|list
get K
set K v
del K
unlink K
exists K
expire K 1
pexpire K 1
persist K
mget K
incr K
hset K f v
hincrby K f 1
hsetnx K f v
hget K f
hmget K f
hgetall K
hdel K f
hlen K
hvals K
hexists K f
zadd K 1 m
zrem K m
zrange K 0 0
zrevrange K 0 0
zrangebyscore K 0 0
zcard K
zscore K m
zcount K 0 0
sadd K m
srem K m
smembers K
scard K
lpush K v
ltrim K 0 0
lrange K 0 0
watch K
unwatch
eval return 0
evalsha 0000000000000000000000000000000000000000 0
publish C m
subscribe C
unsubscribe C
xadd S * f v
xrange S - +
xgroup|create S g 0
xgroup|delconsumer S g c
xinfo|consumers S g
xreadgroup GROUP g c STREAMS S >
xautoclaim S g c 0 0
xclaim S g c 0 0-1
xack S g 0-1
xdel S 0-1
time
wait 0 0
waitaof 0 0 0
scan 0
ft.create K SCHEMA f TAG
ft.search K *
ft.info K
ft._list
ft.aliasupdate K K
ft.dropindex K
ft.config|get TIMEOUT`, "\n")

// rights finds out which rights the user lacks. It puts each command into a
// transaction, where the server says whether it may be run, and discards that:
// nothing is run.
func (l *Link) rights(ctx context.Context, prefix string) []Finding {
	missing, err := l.bracket(ctx)
	if err == nil && len(missing) == 0 {
		missing, err = l.queue(ctx, prefix)
	}
	switch {
	case err != nil:
		return []Finding{{Doubt: true, What: fmt.Sprintf("the user's rights could not be looked at: %v", err)}}
	case len(missing) > 0:
		return []Finding{{Bad: true, What: "the user lacks rights: " + strings.Join(missing, " "), Do: "ACL SETUSER for the user with these, or with all of deploy/redis/users.acl"}}
	}
	return []Finding{{What: "the user has the rights that are needed"}}
}

// bracket asks for what makes a transaction, in an order that leaves none open.
func (l *Link) bracket(ctx context.Context) (missing []string, err error) {
	if err := l.Do(ctx, "DISCARD").Err(); denied(err) {
		return []string{"+discard"}, nil
	}
	var multi, exec *redis.Cmd
	_, err = l.Pipelined(ctx, func(p redis.Pipeliner) error {
		multi, exec = p.Do(ctx, "MULTI"), p.Do(ctx, "EXEC")
		return nil
	})
	switch {
	case denied(multi.Err()):
		return []string{"+multi"}, nil
	case exec.Err() != nil && strings.Contains(exec.Err().Error(), "NOPERM"):
		return []string{"+exec"}, nil // it is discarded
	}
	return nil, err
}

// queue puts all commands into a transaction that is discarded.
func (l *Link) queue(ctx context.Context, prefix string) ([]string, error) {
	// As the parts of footnote name them: plain, and within a tag.
	stand := strings.NewReplacer("K", prefix+":doctor", "S", "{"+prefix+":doctor}:s", "C", "{"+prefix+":doctor}:c")
	tried := make([]string, len(needs))
	cmds, err := l.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "MULTI")
		for i, need := range needs {
			name, rest, _ := strings.Cut(need, " ")
			tried[i] = name
			var args []any
			for _, a := range append(strings.Split(name, "|"), strings.Fields(rest)...) {
				if len(a) == 1 {
					a = stand.Replace(a)
				}
				args = append(args, a)
			}
			p.Do(ctx, args...)
		}
		p.Do(ctx, "DISCARD")
		return nil
	})
	if len(cmds) != len(needs)+2 || cmds[len(cmds)-1].Err() != nil {
		return nil, err
	}
	var missing []string
	for i, c := range cmds[1 : len(cmds)-1] {
		if right := lacking(c.Err(), tried[i], prefix); right != "" && !slices.Contains(missing, right) {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

// lacking is the right of which the server's answer says that the user lacks it,
// as ACL SETUSER takes it.
func lacking(err error, command, prefix string) string {
	switch {
	case !denied(err):
		return ""
	case strings.Contains(err.Error(), "access a key") || strings.Contains(err.Error(), "access one of the keys"):
		return "~" + prefix + ":* ~{" + prefix + ":*"
	case strings.Contains(err.Error(), "channel"):
		return "&{" + prefix + ":*"
	}
	return "+" + command
}
