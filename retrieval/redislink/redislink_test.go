package redislink_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestAddresses(t *testing.T) {
	t.Parallel()
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, []byte("nothing of the kind"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		o     redislink.Options
		where string // "": refused
		says  string
	}{
		"one server":              {o: redislink.Options{URL: "redis://cache:6379/2"}, where: "redis://cache:6379"},
		"secrets are not shown":   {o: redislink.Options{URL: "rediss://bot:hunter2@cache:6379"}, where: "rediss://cache:6379"},
		"sentinels":               {o: redislink.Options{URL: "redis://s1:26379?master_name=main&addr=s2:26379"}, where: "redis://s1:26379 (master main)"},
		"cluster":                 {o: redislink.Options{URL: "redis://n1:6379?cluster=true&addr=n2:6379"}, says: "cluster cannot hold the index"},
		"nothing":                 {says: "redis://HOST:PORT"},
		"another scheme":          {o: redislink.Options{URL: "http://cache:6379"}, says: "redis://HOST:PORT"},
		"no host":                 {o: redislink.Options{URL: "redis:///0"}, says: "redis://HOST:PORT"},
		"no database":             {o: redislink.Options{URL: "redis://cache/x"}, says: "not understood"},
		"certificate without TLS": {o: redislink.Options{URL: "redis://cache", CAFile: pem}, says: "rediss://"},
		"no certificate":          {o: redislink.Options{URL: "rediss://cache", CAFile: pem}, says: "PEM"},
		"no file":                 {o: redislink.Options{URL: "rediss://cache", CAFile: pem + "x"}, says: "reading"},
		"a key without its pair":  {o: redislink.Options{URL: "rediss://cache", KeyFile: pem}, says: "our certificate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := redislink.Open(c.o)
			if err != nil {
				if c.where != "" || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			defer l.Close()
			if l.Where() != c.where {
				t.Errorf("it is %q, want %q", l.Where(), c.where)
			}
		})
	}
}

func open(t *testing.T, o redislink.Options) *redislink.Link {
	t.Helper()
	l, err := redislink.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func proxied(t *testing.T) (*redistest.Proxy, *redislink.Link) {
	t.Helper()
	o, err := redis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	p := redistest.NewProxy(t, o.Addr)
	return p, open(t, redislink.Options{URL: p.URL(), Deadline: 300 * time.Millisecond, Probe: 50 * time.Millisecond})
}

// Whatever is wrong between us and the server, commands fail in time and as
// unavailable, and work again soon after it is mended.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*redistest.Proxy){
		"down":         (*redistest.Proxy).Down,
		"silent":       (*redistest.Proxy).Stall,
		"too slow":     func(p *redistest.Proxy) { p.Delay(5000) },
		"resets":       (*redistest.Proxy).Reset,
		"cuts answers": func(p *redistest.Proxy) { p.Cut(3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, l := proxied(t)
			ctx := context.Background()
			value := strings.Repeat("x", 1000)
			redistest.Await(t, func() string { // a busy machine may take longer than the deadline
				if err := l.Set(ctx, "redislink:"+name, value, time.Hour).Err(); err != nil {
					return err.Error()
				}
				return ""
			})
			fault(p)
			for range 8 {
				if err := l.Get(ctx, "redislink:"+name).Err(); !redislink.Unavailable(err) {
					t.Errorf("a command gives %v", err)
				}
			}
			if err := l.Get(ctx, "redislink:"+name).Err(); !errors.Is(err, redislink.ErrOpen) || !l.Open() {
				t.Errorf("after many failures a command gives %v", err)
			}
			if _, err := l.Pipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); return nil }); !errors.Is(err, redislink.ErrOpen) {
				t.Errorf("a pipeline gives %v", err)
			}
			p.Heal()
			deadline := time.Now().Add(time.Minute)
			for range time.Tick(20 * time.Millisecond) {
				got, err := l.Get(ctx, "redislink:"+name).Result()
				if err == nil && got == value {
					break
				}
				if !redislink.Unavailable(err) || time.Now().After(deadline) {
					t.Fatalf("after it was mended: %v", err)
				}
			}
		})
	}
}

// Only one command at a time tries a server that was down.
func TestNoRetryStorm(t *testing.T) {
	t.Parallel()
	p, l := proxied(t)
	ctx := context.Background()
	p.Stall()
	for !l.Open() {
		_ = l.Ping(ctx).Err()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused, tried := 0, 0
	start := time.Now()
	for range 50 {
		wg.Go(func() {
			err := l.Ping(ctx).Err()
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, redislink.ErrOpen) {
				refused++
			} else {
				tried++
			}
		})
	}
	wg.Wait()
	// Each probe takes the deadline, so at most so many fit into the time.
	if most := 1 + int(time.Since(start)/(300*time.Millisecond)); tried > most {
		t.Errorf("%d of 50 commands were sent, want at most %d", tried, most)
	}
	if refused == 0 {
		t.Error("none was refused")
	}
}

// What the server says of a command is no failure of the server, and a caller
// that gives up neither.
func TestErrorsThatAreNotTheServers(t *testing.T) {
	t.Parallel()
	l := open(t, redislink.Options{URL: redistest.URL(t), Deadline: time.Minute})
	ctx := context.Background()
	for range 20 {
		if err := l.Get(ctx, "redislink:nothing").Err(); !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if err := l.Do(ctx, "NONSENSE").Err(); err == nil || redislink.Unavailable(err) {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := l.Ping(gone).Err(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if l.Open() {
		t.Error("the breaker opened")
	}
}

// A command that waits in the server may do so for longer than the deadline.
func TestBlockingCommands(t *testing.T) {
	t.Parallel()
	l := open(t, redislink.Options{URL: redistest.URL(t), Deadline: time.Second})
	err := l.XRead(context.Background(), &redis.XReadArgs{Streams: []string{"redislink:stream", "$"}, Block: 1200 * time.Millisecond}).Err()
	if !errors.Is(err, redis.Nil) {
		t.Errorf("it gives %v", err)
	}
}

// bad are the findings with which something is wrong.
func bad(fs []redislink.Finding) (out []string) {
	for _, f := range fs {
		if f.Bad || f.Doubt {
			out = append(out, f.What+" -> "+f.Do)
		}
	}
	return out
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	good := redistest.New(t, t.TempDir())
	l := open(t, redislink.Options{URL: "redis://" + good.Address})
	if found := bad(l.Check(ctx, "footnote")); len(found) > 0 {
		t.Errorf("a server as make redis starts it: %q", found)
	}
	for name, c := range map[string]struct {
		set  []any
		says string
	}{
		"throws away when full": {[]any{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}, "noeviction"},
		"keeps no log":          {[]any{"CONFIG", "SET", "appendonly", "no"}, "appendonly yes"},
		"answers with parts":    {[]any{"FT.CONFIG", "SET", "ON_TIMEOUT", "RETURN"}, "ON_TIMEOUT FAIL"},
		"a replica":             {[]any{"REPLICAOF", "127.0.0.1", "1"}, "master"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.New(t, t.TempDir())
			l := open(t, redislink.Options{URL: "redis://" + s.Address})
			if err := l.Do(ctx, c.set...).Err(); err != nil {
				t.Fatal(err)
			}
			if found := strings.Join(bad(l.Check(ctx, "footnote")), "\n"); !strings.Contains(found, c.says) {
				t.Errorf("found %q, want something of %q", found, c.says)
			}
		})
	}
	t.Run("without the engine", func(t *testing.T) {
		t.Parallel()
		s := redistest.New(t, t.TempDir(), redistest.WithoutEngine)
		if found := strings.Join(bad(open(t, redislink.Options{URL: "redis://" + s.Address}).Check(ctx, "footnote")), "\n"); !strings.Contains(found, "no Query Engine") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		if found := bad(open(t, redislink.Options{URL: "redis://127.0.0.1:1"}).Check(ctx, "footnote")); len(found) != 1 || !strings.Contains(found[0], "redis.url") {
			t.Errorf("found %q", found)
		}
	})
}

// A server that does not write now discards transactions: that says why.
func TestDiscardedTransactions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		set         []any
		says        string
		unavailable bool
	}{
		"memory full": {[]any{"CONFIG", "SET", "maxmemory", "1"}, "OOM", true},
		"a replica":   {[]any{"REPLICAOF", "127.0.0.1", "1"}, "READONLY", true},
		"no right":    {[]any{"ACL", "SETUSER", "default", "-hset"}, "NOPERM", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.New(t, t.TempDir())
			l := open(t, redislink.Options{URL: "redis://" + s.Address})
			if err := l.Do(ctx, c.set...).Err(); err != nil {
				t.Fatal(err)
			}
			_, err := l.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Get(ctx, "redislink:other")
				p.HSet(ctx, "redislink:hash", "f", "v")
				return nil
			})
			if err == nil || !strings.HasPrefix(err.Error(), c.says) || redislink.Unavailable(err) != c.unavailable {
				t.Errorf("it gives %v", err)
			}
		})
	}
}
