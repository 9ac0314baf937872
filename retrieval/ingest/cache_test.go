package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl/system"
	"footnote/models"
	"footnote/models/modelstest"
	"footnote/retrieval"
)

func TestCache(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), CacheFile)
	model := modelstest.NewEmbedder(modelstest.WithWindow(8))
	texts := []string{"alpha", "one two three four five six seven eight nine", ""}
	want, err := model.EmbedPassages(context.Background(), texts)
	must(t, err)
	reopen := func(info models.EmbedderInfo) *Cache {
		c, err := openCache(path, info, cacheBytes)
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	holds := func(c *Cache) (got []models.Embedding) {
		for _, x := range texts {
			if e, ok := c.get(x); ok {
				got = append(got, e)
			}
		}
		return got
	}
	c := reopen(model.Info())
	if got := holds(c); got != nil {
		t.Errorf("an empty cache holds %v", got)
	}
	must(t, c.put(texts, want))
	must(t, c.Close())
	c = reopen(model.Info())
	if diff := cmp.Diff(want, holds(c)); diff != "" {
		t.Errorf("after reopening (-want +got):\n%s", diff)
	}
	must(t, c.Close())
	other := model.Info()
	other.Precision = "q4"
	c = reopen(other)
	if got := holds(c); got != nil {
		t.Error("the vectors of another precision were given out")
	}
	must(t, c.Close())
	// Damage: the file is replaced, work is repeated, no wrong vector comes.
	data, err := os.ReadFile(path)
	must(t, err)
	for at := range data {
		damaged := append([]byte(nil), data...)
		damaged[at] ^= 0x55
		must(t, os.WriteFile(path, damaged, 0o600))
		c := reopen(model.Info())
		for i, x := range texts {
			if e, ok := c.get(x); ok && !cmp.Equal(e, want[i]) {
				t.Fatalf("byte %d changed: %q has another vector", at, x)
			}
		}
		must(t, c.Close())
	}
}

func TestCache_StaysWithinItsBound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), CacheFile)
	model := modelstest.NewEmbedder()
	const limit = 20_000
	c, err := openCache(path, model.Info(), limit)
	must(t, err)
	defer c.Close()
	for i := range 300 {
		x := []string{fmt.Sprint("text ", i)}
		es, err := model.EmbedPassages(context.Background(), x)
		must(t, err)
		must(t, c.put(x, es))
		if size := c.log.Size(); size > limit {
			t.Fatalf("%d bytes after %d texts", size, i+1)
		}
		if got, ok := c.get(x[0]); !ok || !cmp.Equal(got, es[0]) {
			t.Fatalf("text %d was not kept", i)
		}
	}
	if _, ok := c.get("text 0"); ok {
		t.Error("the oldest is still there")
	}
	if n := len(c.entries); n < 15 {
		t.Errorf("only %d are left", n)
	}
}

// Token states reach the index as the embedder gave them, from the model and
// from the cache alike; where there are none, none are stored.
func TestTokenStatesReachTheIndex(t *testing.T) {
	t.Parallel()
	folder := newFolder(t, map[string]string{"a.md": "# Title\n\n" + text("alpha one")})
	for name, model := range map[string]*modelstest.Embedder{
		"with states": modelstest.NewEmbedder(), "without": modelstest.NewEmbedder(modelstest.WithoutStates()),
	} {
		b := open(t, t.TempDir(), model)
		chunks := 0
		for range 2 { // the second time the cache has them
			b.ingest(folder, How{Rebuild: true})
			g, err := b.store.Open(t.Context(), "")
			must(t, err)
			docs, err := g.Documents(t.Context(), system.Grant())
			must(t, err)
			chunks = docs[0].Chunks
			ids := []retrieval.ChunkID{{Document: docs[0].ID, Revision: docs[0].Revision}}
			got, err := g.States(t.Context(), system.Grant(), ids)
			must(t, err)
			passages, err := g.Passages(t.Context(), system.Grant(), ids)
			must(t, err)
			want, err := model.EmbedPassages(t.Context(), []string{passages[0].Chunk.Text})
			must(t, err)
			if diff := cmp.Diff([][]byte{want[0].Coded}, got); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		}
		if n := model.Passages(); n != chunks+2 { // and two for this test
			t.Errorf("%s: %d passages embedded for %d chunks", name, n, chunks)
		}
		b.close()
	}
}
