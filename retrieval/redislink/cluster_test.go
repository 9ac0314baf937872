package redislink_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// A node of a cluster is refused, at once and with the reason.
func TestNodeOfACluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := redistest.New(t, t.TempDir(), redistest.WithoutEngine, "--cluster-enabled", "yes")
	l := open(t, redislink.Options{URL: "redis://" + s.Address})
	if err := l.Usable(ctx); err == nil || redislink.Unavailable(err) || !strings.Contains(err.Error(), "one shard") {
		t.Errorf("it gives %v", err)
	}
	if found := bad(l.Check(ctx, "footnote")); len(found) != 1 || !strings.Contains(found[0], "master_name") {
		t.Errorf("found %q", found)
	}
	// A server that becomes one under our hands is unwell, and says why.
	for _, answer := range []string{"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "CLUSTERDOWN Hash slot not served"} {
		err := redislink.Failed("searching", answered(answer))
		if !redislink.Unavailable(err) || !strings.Contains(err.Error(), "cluster cannot hold the index") {
			t.Errorf("%s gives %v", answer, err)
		}
	}
	if err := l.Get(ctx, "key").Err(); err == nil || !redislink.Unavailable(err) {
		t.Errorf("without slots it gives %v", err)
	}
}

// answered is an answer of the server.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

// What the refusal of clusters rests on. When this fails an engine does better,
// and the refusal should be thought over.
func TestCluster_WhyItIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	nodes := redistest.NewCluster(t)
	links := make([]*redislink.Link, len(nodes))
	for i, n := range nodes {
		links[i] = open(t, redislink.Options{URL: "redis://" + n.Address})
	}
	const index, key = "kb:{g}", "kb:{g}:c:1"
	slot := links[0].ClusterKeySlot(ctx, key).Val()
	from, to := links[slot*3/16384], links[(slot*3/16384+1)%3]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(from.FTCreate(ctx, index, &redis.FTCreateOptions{OnHash: true, Prefix: []any{"kb:{g}:c:"}}, &redis.FieldSchema{FieldName: "f", FieldType: redis.SearchFieldTypeTag}).Err())
	must(from.HSet(ctx, key, "f", "v").Err())
	search := func(l *redislink.Link) (int, error) {
		found, err := l.FTSearchWithArgs(ctx, index, "@f:{v}", &redis.FTSearchOptions{DialectVersion: 2}).Result()
		return found.Total, err
	}
	if n, err := search(from); n != 1 || err != nil {
		t.Fatalf("its own shard finds %d: %v", n, err)
	}
	if _, err := search(to); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
		t.Errorf("another shard gives %v", err)
	}
	if err := from.FTAliasUpdate(ctx, index, "kb:live").Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
		t.Errorf("an alias elsewhere gives %v", err)
	}

	// The slot moves, as when shards are added.
	at, target := from.ClusterMyID(ctx).Val(), to.ClusterMyID(ctx).Val()
	must(to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", at).Err())
	must(from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target).Err())
	_, port, _ := net.SplitHostPort(nodes[(slot*3/16384+1)%3].Address)
	must(from.Migrate(ctx, "127.0.0.1", port, key, 0, 5e9).Err())
	if _, err := search(from); err == nil || !strings.HasPrefix(err.Error(), "ASK") {
		t.Errorf("while it moves a search gives %v", err)
	}
	must(to.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err())
	must(from.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err())
	if v, err := to.HGet(ctx, key, "f").Result(); v != "v" || err != nil {
		t.Errorf("the key has moved and gives %q, %v", v, err)
	}
	if n, err := search(to); err == nil || !strings.Contains(err.Error(), "no such index") {
		t.Errorf("the index has moved, too: %d, %v", n, err)
	}
}
