package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"footnote/retrieval/ingest"
	"footnote/retrieval/redisindex/redistest"
)

// A server whose memory is full for documents still takes what else is written;
// the documents fail with a reason, none in part, and are taken in once there is
// memory again.
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	s := newSite(t, "redis://"+redistest.New(t, t.TempDir()).Address)
	ctx := t.Context()
	s.worker("")
	s.write("first.txt", 1)
	if n := s.settle(); n != 1 {
		t.Fatalf("%d published", n)
	}
	info, err := s.link.Info(ctx, "memory").Result()
	must(t, err)
	_, rest, _ := strings.Cut(info, "used_memory:")
	var used int
	_, err = fmt.Sscan(rest, &used)
	must(t, err)
	limit := func(n int) { must(t, s.link.ConfigSet(ctx, "maxmemory", fmt.Sprint(n)).Err()) }
	limit(used + 7<<20)
	const documents = 60
	for i := range documents {
		text := fmt.Sprintf("Document %d.\n\nalpha %s\n", i, strings.Repeat(fmt.Sprintf("word%d of it ", i), 2000))
		must(t, os.WriteFile(filepath.Join(s.root, fmt.Sprintf("%02d.txt", i)), []byte(text), 0o600))
	}
	var r ingest.Report
	for range 5 { // what is full for one document can hold another
		r, err = s.ingest(ctx)
		must(t, err)
		must(t, s.link.Writes(ctx, s.prefix+":awake"))
	}
	if len(r.Failed) == 0 {
		t.Fatalf("none failed: %+v", r)
	}
	for _, f := range r.Failed {
		if !f.Retryable || !strings.Contains(f.Reason, "the memory of Redis is full (of its maxmemory of") {
			t.Errorf("%s failed: %q, to be tried again: %t", f.Path, f.Reason, f.Retryable)
		}
	}
	g, err := s.store.Open(ctx, "")
	must(t, err)
	if n := g.Counts().Documents; n != documents+1-len(r.Failed) {
		t.Errorf("%d documents are there, %d of %d failed", n, len(r.Failed), documents+1)
	}
	s.empty()
	limit(0)
	if n := s.settle(); n != len(r.Failed) {
		t.Errorf("%d published then, %d had failed", n, len(r.Failed))
	}
	s.check()
}
