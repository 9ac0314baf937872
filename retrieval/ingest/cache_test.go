package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/models"
	"footnote/models/modelstest"
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
