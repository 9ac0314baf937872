package assemble

import (
	"os"
	"path/filepath"
	"testing"

	"footnote/cmd/internal/config"
	"footnote/retrieval/redisindex/redistest"
)

// TestHome: of processes on one Redis, that with the inboxes alone has a say in
// what they hold.
func TestHome(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.New(t, t.TempDir()).Address
	open := func(data string) *Library {
		t.Helper()
		c := config.Default()
		c.Data, c.Index, c.Redis.URL = data, config.OnRedis, url
		l, err := OpenLibrary(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	check := func(what string, l *Library, wants, away, leads bool) {
		t.Helper()
		got, err := l.settle(t.Context(), wants)
		if err != nil {
			t.Fatal(err)
		}
		if l.away = got; got != away || l.leads(t.Context()) != leads {
			t.Errorf("%s: away %t, leads %t", what, got, l.leads(t.Context()))
		}
	}
	one, two, moved := t.TempDir(), t.TempDir(), t.TempDir()
	check("nobody has any", open(two), false, true, true)
	check("the first that is sent documents", open(one), true, false, true)
	check("the same, started anew without", open(one), false, false, true)
	check("another that is sent some", open(two), true, true, false)
	check("another that is not", open(two), false, true, false)
	if err := os.Rename(filepath.Join(one, "inbox"), filepath.Join(moved, "inbox")); err != nil {
		t.Fatal(err)
	}
	check("where its directory was moved to", open(moved), true, false, true)
	check("where it was before", open(one), true, true, false)
}
