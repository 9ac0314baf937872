package assemble

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"footnote/cmd/internal/config"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// By TLS, with a certificate of ours and a user of the least rights, all works
// that lies on the Redis.
func TestRedis_TLS(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.New(t, t.TempDir())
	admin, err := redislink.Open(redislink.Options{URL: "redis://" + server.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	rules, err := os.ReadFile("../../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	args := []any{"ACL", "SETUSER"}
	for _, f := range strings.Fields(strings.Replace(string(rules), ">CHANGE-ME", ">canary", 1))[1:] {
		args = append(args, f)
	}
	if err := admin.Do(ctx, args...).Err(); err != nil {
		t.Fatal(err)
	}
	authority := redistest.NewAuthority(t)
	hour := time.Now().Add(time.Hour)
	cert, key := authority.Certificate("127.0.0.1", hour)
	own, ownKey := authority.Certificate("footnote", hour)
	r := openReplica(t, config.Flags{Redis: "rediss://" + redistest.NewTLS(t, server.Address, cert, key, authority)}, map[string]string{
		"FOOTNOTE_REDIS_USERNAME": "footnote", "FOOTNOTE_REDIS_PASSWORD": "canary",
		"FOOTNOTE_REDIS_CA_FILE": authority.CAFile(), "FOOTNOTE_REDIS_CERT_FILE": own, "FOOTNOTE_REDIS_KEY_FILE": ownKey,
	})
	r.begin(ctx, t)
	for name, do := range map[string]func(context.Context, int) error{
		"publishing": r.publish, "searching": r.search, "claiming": r.post,
		"cataloguing": func(_ context.Context, n int) error { return r.cat.Put(r.record(n)) },
	} {
		if err := do(ctx, 1); err != nil {
			t.Errorf("%s gives %v", name, err)
		}
	}
	r.whole(t)
}
