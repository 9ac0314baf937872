package rediscatalog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/catalog/catalogtest"
	"footnote/retrieval/catalog/rediscatalog"
	"footnote/retrieval/redisindex/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func client(t testing.TB) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// prefix is one that no other test has.
func prefix(place string) string {
	return "t" + filepath.Base(filepath.Dir(place)) + filepath.Base(place)
}

func open(t testing.TB, place string) *catalog.Catalog {
	t.Helper()
	c, err := rediscatalog.Open(context.Background(), client(t), prefix(place))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	catalogtest.Run(t, open)
}

func record(id string, s catalog.State, n int) catalog.Record {
	r := catalog.Record{ID: retrieval.DocumentID(id), Path: "/d/" + id, Reason: fmt.Sprint(n)}
	r.Enter(s, time.Unix(int64(1e9+n), 0))
	r.Reason = fmt.Sprint(n)
	return r
}

func put(t testing.TB, c *catalog.Catalog, rs ...catalog.Record) {
	t.Helper()
	if err := c.Put(rs...); err != nil {
		t.Fatal(err)
	}
}

// await waits until both hold the same.
func await(t *testing.T, want, c *catalog.Catalog) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for range time.Tick(10 * time.Millisecond) {
		diff := cmp.Diff(want.List(), c.List())
		if diff == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("they differ (-want +got):\n%s", diff)
		}
	}
}

// Processes that write at once end up with the same records, and each sees
// its own at once.
func TestShared(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	a, b, reader := open(t, place), open(t, place), open(t, place)
	done := make(chan struct{})
	write := func(c *catalog.Catalog, from int) {
		for i := range 100 {
			r := record(fmt.Sprintf("%04d", i%20), catalog.Failed, from+i)
			if err := c.Put(r); err != nil {
				t.Error(err)
			}
			if _, ok := c.Get(r.ID); !ok {
				t.Errorf("%s is not there after it was put", r.ID)
			}
		}
		done <- struct{}{}
	}
	go write(a, 0)
	go write(b, 1000)
	<-done
	<-done
	fresh := open(t, place)
	for _, c := range []*catalog.Catalog{a, b, reader} {
		await(t, fresh, c)
	}
}

// A process that is too far behind reads all anew, and so does one that knows
// more than a server that lost its last changes.
func TestGaps(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, lose := range map[string]func(c *redis.Client, at string){
		"the stream is cut": func(c *redis.Client, at string) { c.XTrimMaxLen(ctx, at+"changes", 0) },
		"the server lost changes": func(c *redis.Client, at string) {
			c.DecrBy(ctx, at+"seq", 2)
			c.HDel(ctx, at+"records", "0001")
			c.Del(ctx, at+"changes")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := t.TempDir()
			a, b := open(t, place), open(t, place)
			for i := range 5 {
				put(t, a, record(fmt.Sprintf("%04d", i), catalog.Published, i))
			}
			await(t, a, b)
			lose(client(t), "{"+prefix(place)+":catalog}:")
			put(t, a, record("0009", catalog.Published, 9))
			await(t, a, b)
			if _, ok := b.Get("0009"); !ok {
				t.Error("the last record is missing")
			}
		})
	}
}

// A server that lost changes, as a replica does that takes over without them,
// and since took others, numbers those alike. Everybody knows in the end what the
// server has, and nothing else.
func TestForked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	place := t.TempDir()
	at := "{" + prefix(place) + ":catalog}:"
	a, b, c := open(t, place), open(t, place), client(t)
	for i := range 5 {
		put(t, a, record(fmt.Sprintf("%04d", i), catalog.Published, i))
	}
	await(t, a, b)
	// In one step, as a follower would find it: two changes are gone, two others
	// stand in their place.
	fork := redis.NewScript(`
for _, n in ipairs({4, 5}) do
  redis.call('XDEL', KEYS[1], n .. '-0')
  redis.call('HDEL', KEYS[2], '000' .. (n - 1))
  redis.call('HSET', KEYS[2], 'other' .. n, ARGV[n - 3])
end
redis.call('DEL', KEYS[1])
redis.call('XADD', KEYS[1], '4-0', 'r', '[' .. ARGV[1] .. ']', 't', 'x')
redis.call('XADD', KEYS[1], '5-0', 'r', '[' .. ARGV[2] .. ']', 't', 'y')
redis.call('SET', KEYS[3], 'y')`)
	other := func(n int) string {
		return fmt.Sprintf(`{"id":"other%d","path":"/d/other%d","state":"published"}`, n, n)
	}
	if err := fork.Run(ctx, c, []string{at + "changes", at + "records", at + "mark"}, other(4), other(5)).Err(); err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	fresh := open(t, place)
	await(t, fresh, a)
	await(t, fresh, b)
	for id, want := range map[retrieval.DocumentID]bool{"0002": true, "0003": false, "0004": false, "other4": true, "other5": true} {
		if _, ok := a.Get(id); ok != want {
			t.Errorf("%s is there: %t, want %t", id, ok, want)
		}
	}
}
