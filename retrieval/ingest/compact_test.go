package ingest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"footnote/acl"
	"footnote/models/modelstest"
)

// onDisk is all that the generations keep.
func (b *bench) onDisk() []byte {
	b.t.Helper()
	logs, err := filepath.Glob(filepath.Join(b.dir, "generations", "*", "index.log"))
	must(b.t, err)
	var all []byte
	for _, l := range logs {
		raw, err := os.ReadFile(l)
		must(b.t, err)
		all = append(all, raw...)
	}
	return all
}

// The bytes of a removed document leave the disk once a quarter of the index is
// dead; searches go on meanwhile.
func TestCompact(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("The quetzal flies over the harbour at dawn and dusk.\n\n", 20_000)
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "big.txt": secret, "small.md": text("numbat")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	must(t, b.Compact(t.Context())) // there is no index
	b.ingest(src, How{})
	full := b.onDisk()

	must(t, os.Remove(src.path("small.md")))
	b.ingest(src, How{Prune: true})
	must(t, b.Compact(t.Context()))
	if got := b.onDisk(); len(got) < len(full) || !bytes.Contains(got, []byte("numbat")) {
		t.Errorf("little was dead, and %d of %d bytes are left", len(got), len(full))
	}

	must(t, os.Remove(src.path("big.txt")))
	b.ingest(src, How{Prune: true})
	done := make(chan error)
	go func() { done <- b.Compact(context.Background()) }()
	searches := 0
	for compacting := true; compacting; searches++ {
		if got := b.search("alpha", acl.Everyone); len(got) != 1 {
			t.Fatalf("a search beside compaction finds %v", got)
		}
		select {
		case err := <-done:
			must(t, err)
			compacting = false
		default:
		}
	}
	if got := b.onDisk(); len(got) > len(full)/10 || bytes.Contains(got, []byte("quetzal")) || bytes.Contains(got, []byte("numbat")) {
		t.Errorf("%d of %d bytes are left", len(got), len(full))
	}
	b.consistent()
	if r := b.ingest(src, How{}); r.Unchanged != 1 {
		t.Errorf("after compaction: %+v", r)
	}
}
