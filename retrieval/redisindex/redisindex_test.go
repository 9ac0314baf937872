package redisindex

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"footnote/retrieval"
	"footnote/retrieval/indextest"
	"footnote/retrieval/redisindex/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestConformance(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) retrieval.Store { return openStore(t, Options{}) })
}

// openStore opens an empty store on the shared server.
func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = "test-" + strings.ToLower(rand.Text())[:12]
	}
	s, err := OpenURL(t.Context(), redistest.URL(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
