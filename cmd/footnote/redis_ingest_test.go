package main

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"footnote/retrieval/redisindex/redistest"
)

// Two people who take in the same folder at once take turns: one index, each
// document once.
func TestRedis_TwoIngestsAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	on := func(command ...string) result {
		return footnote("", append(command, "--data", copyOf(t), "--redis", "redis://"+server.Address)...)
	}
	var both sync.WaitGroup
	var results [2]result
	for i := range results {
		both.Go(func() { results[i] = on("ingest", filepath.Join(work, "docs")) })
	}
	both.Wait()
	waited := 0
	for _, r := range results {
		if r.code != 0 || !strings.Contains(r.out, ", 0 failed") {
			t.Errorf("ingest ended with %d: %s%s", r.code, r.out, r.err)
		}
		waited += strings.Count(r.err, "waiting: ")
	}
	if waited > 1 {
		t.Errorf("they waited for each other: %s%s", results[0].err, results[1].err)
	}
	if list := on("index", "list"); strings.Count(list.out, "\n") != 1 {
		t.Errorf("there is more than one index: %s%s", list.out, list.err)
	}
	for _, what := range []string{"index", "docs"} {
		if r := on(what, "verify"); r.code != 0 {
			t.Errorf("%s verify ended with %d: %s%s", what, r.code, r.out, r.err)
		}
	}
}
