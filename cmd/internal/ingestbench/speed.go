package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"footnote/acl"
	"footnote/adapters/files"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/models"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/memindex"
)

// watched is an embedder that knows how long it was at work.
type watched struct {
	models.Embedder
	mu    sync.Mutex
	busy  time.Duration
	texts int
}

// EmbedPassages implements models.Embedder. The pipeline calls it from one
// goroutine.
func (w *watched) EmbedPassages(ctx context.Context, texts []string) ([]models.Embedding, error) {
	start := time.Now()
	out, err := w.Embedder.EmbedPassages(ctx, texts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.texts = w.busy+time.Since(start), w.texts+len(texts)
	return out, err
}

// speed takes in text documents with the shipped model.
func speed(ctx context.Context, s settings) (err error) {
	var c config.Config
	c.Models.Runtime = s.library
	m, err := assemble.OpenModels(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	dir := filepath.Join(s.cache, "speed")
	size, err := demoDocuments(filepath.Join(dir, "docs"), s.docs)
	if err != nil {
		return err
	}
	w := &watched{Embedder: m.Embedder}
	start := time.Now()
	r, err := takeIn(ctx, dir, w)
	if err != nil {
		return err
	}
	took := time.Since(start)
	share := float64(w.busy) / float64(took)
	fmt.Printf("%d text documents, %.1f kB each: %.2f documents/s, %.1f chunks/s, %.0f kB/s\n",
		r.Published, float64(size)/1000/float64(s.docs), float64(r.Published)/took.Seconds(), float64(r.Chunks)/took.Seconds(), float64(size)/1000/took.Seconds())
	fmt.Printf("share of the time in the embedder: %.1f %%, target 90 %%: %s\n", 100*share, verdict(share >= 0.9))
	return nil
}

// takeIn ingests dir/docs into a new index in dir/index.
func takeIn(ctx context.Context, dir string, e models.Embedder) (r ingest.Report, err error) {
	data := filepath.Join(dir, "index")
	if err := os.RemoveAll(data); err != nil {
		return r, err
	}
	store, err := memindex.Open(data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	cat, err := catalog.Open(data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	folder, err := files.New(filepath.Join(dir, "docs"), files.Options{Default: acl.NewList(acl.Everyone), MaxBytes: 64 << 20})
	if err != nil {
		return r, err
	}
	c := config.Default()
	c.Data = data
	r, err = ingest.New(store, cat, e, ingest.Options{Limits: c.Ingest.Extract.Limits()}).Ingest(ctx, assemble.NewDocuments(c, folder), ingest.How{})
	if err == nil && len(r.Failed)+len(r.Refused) > 0 {
		err = fmt.Errorf("%d documents were not taken in: %v", len(r.Failed)+len(r.Refused), append(r.Failed, r.Refused...)[0].Reason)
	}
	return r, err
}

// paragraphs are those of the demo documents.
func paragraphs() ([]string, error) {
	names, err := filepath.Glob("deploy/demo/*/*.md")
	if more, _ := filepath.Glob("deploy/demo/*.md"); err == nil {
		names = append(names, more...)
	}
	var out []string
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		for _, p := range strings.Split(string(data), "\n\n") {
			if len(p) > 80 && !strings.HasPrefix(p, "---") {
				out = append(out, p)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there are no demo documents here: run it in the root of the repository")
	}
	return out, err
}

// demoDocuments writes n documents of 12 paragraphs in an order of their own.
func demoDocuments(dir string, n int) (size int, err error) {
	all, err := paragraphs()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(3, 5))
	for i := range n {
		var b strings.Builder
		fmt.Fprintf(&b, "# Document %d\n\n", i)
		for range 12 {
			b.WriteString(all[r.IntN(len(all))] + "\n\n")
		}
		size += b.Len()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.md", i)), []byte(b.String()), 0o600); err != nil {
			return 0, err
		}
	}
	return size, nil
}
