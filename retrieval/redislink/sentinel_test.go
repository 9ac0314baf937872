package redislink_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// What may be wrong between us and Sentinels is told apart from what may be wrong
// with the server; in particular a master that they do not know is no absent key.
func TestSentinels(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers := redistest.NewReplicated(t, "--min-replicas-to-write", "1")
	guarded := redistest.NewSentinel(t, servers.Master.Address)
	redistest.Await(t, func() string { // until it has heard of the others
		said, err := guarded.Say("SENTINEL CKQUORUM " + redistest.MasterName)
		if err != nil || !strings.HasPrefix(said, "+OK") {
			return "the guarded Sentinel says " + said
		}
		return ""
	})
	if said, err := guarded.Say("ACL SETUSER default resetpass >canary"); err != nil || said != "+OK\r\n" {
		t.Fatal(said, err)
	}
	closed := "redis://" + guarded.Address + "?master_name=" + redistest.MasterName
	for name, c := range map[string]struct {
		o    redislink.Options
		says string // "": it works
	}{
		"all is well":            {redislink.Options{URL: servers.URL()}, ""},
		"a server, no Sentinel":  {redislink.Options{URL: "redis://" + servers.Master.Address + "?master_name=m"}, "no Sentinel: set redis.url to the Sentinels"},
		"another name":           {redislink.Options{URL: strings.Replace(servers.URL(), redistest.MasterName, "other", 1)}, "check master_name"},
		"their password":         {redislink.Options{URL: closed, SentinelPassword: "canary"}, ""},
		"without their password": {redislink.Options{URL: closed}, "FOOTNOTE_REDIS_SENTINEL_PASSWORD"},
		"the server's password":  {redislink.Options{URL: closed, Password: "canary"}, "FOOTNOTE_REDIS_SENTINEL_PASSWORD"},
		"a wrong password":       {redislink.Options{URL: closed, SentinelPassword: "canaries"}, "FOOTNOTE_REDIS_SENTINEL_PASSWORD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Deadline = 10 * time.Second
			l := open(t, c.o)
			err, got, found := l.Usable(ctx), l.Get(ctx, "key").Err(), bad(l.Check(ctx, "footnote"))
			if c.says == "" {
				if err != nil || !errors.Is(got, redis.Nil) || len(found) > 0 {
					t.Errorf("it does not work: %v, %v, %q", err, got, found)
				}
				return
			}
			if err == nil || redislink.Unavailable(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it gives %v, want a word on %q", err, c.says)
			}
			if got == nil || errors.Is(got, redis.Nil) {
				t.Errorf("a key that cannot be asked for gives %v", got)
			}
			if len(found) != 1 || !strings.Contains(found[0], c.says) || strings.Contains(found[0]+err.Error(), "canar") {
				t.Errorf("found %q, want %q", found, c.says)
			}
		})
	}
}

// Too few Sentinels can name the master, and none to follow it.
func TestSentinels_TooFew(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	sentinel := redistest.NewSentinel(t, server.Address)
	l := open(t, redislink.Options{URL: "redis://" + sentinel.Address + "?master_name=" + redistest.MasterName + "&addr=127.0.0.1:1"})
	found := strings.Join(bad(l.Check(context.Background(), "footnote")), "\n")
	for _, says := range []string{"NOQUORUM", "the Sentinel 127.0.0.1:1", "has no replica", "three of them"} {
		if !strings.Contains(found, says) {
			t.Errorf("found %q, nothing of %q", found, says)
		}
	}
}

// Sentinels and the master bear names of their own.
func TestSentinels_TLS(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.New(t, t.TempDir())
	authority, hour := redistest.NewAuthority(t), time.Now().Add(time.Hour)
	cert, key := authority.Certificate("127.0.0.1", hour)
	// It cannot talk to what speaks TLS, and names it all the same.
	sentinel := redistest.NewSentinel(t, redistest.NewTLS(t, server.Address, cert, key, nil))
	for host, works := range map[string]bool{"localhost": true, "sentinel.example.org": false} {
		cert, key := authority.Certificate(host, hour)
		_, port, _ := net.SplitHostPort(redistest.NewTLS(t, sentinel.Address, cert, key, nil))
		l := open(t, redislink.Options{URL: "rediss://localhost:" + port + "?master_name=" + redistest.MasterName, CAFile: authority.CAFile()})
		if err := l.Ping(ctx).Err(); (err == nil) != works || !works && !strings.Contains(l.Remedy(ctx, err), "name of the certificate") {
			t.Errorf("a Sentinel %s gives %v: %s", host, err, l.Remedy(ctx, err))
		}
	}
}
