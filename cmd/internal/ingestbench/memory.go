package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"footnote/models"
)

const (
	smallFile = 16 << 10
	largeFile = 8 << 20 // every 64th MB of the folder is one such file's beginning
	dims      = 384
)

// apart measures memory in a process of its own, whose peak nothing else
// raised.
func apart(ctx context.Context, s settings) error {
	dir := filepath.Join(s.cache, "memory")
	if err := folderOf(filepath.Join(dir, "docs"), s.bytes); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, "-part", "memory-here", "-cache", s.cache, "-bytes", fmt.Sprint(s.bytes))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// memory takes the folder in with a stub for the model.
func memory(ctx context.Context, s settings) error {
	dir := filepath.Join(s.cache, "memory")
	start := time.Now()
	r, err := takeIn(ctx, dir, stub{})
	if err != nil {
		return err
	}
	took := time.Since(start)
	peak, err := peakRSS()
	if err != nil {
		return err
	}
	// The index holds vectors and postings in memory for as long as it is open,
	// whatever took them in: what it needs is its size on opening.
	held, err := heldByIndex(ctx, filepath.Join(dir, "index"))
	if err != nil {
		return err
	}
	beyond := peak - held
	fmt.Printf("a folder of %d MB, %d documents, %d chunks, in %s without a model: peak %d MB, of which the open index %d MB\n",
		s.bytes>>20, r.Published, r.Chunks, took.Round(time.Second), peak>>20, held>>20)
	judged := verdict(beyond <= 600<<20)
	if s.bytes < 1<<30 && beyond <= 600<<20 {
		judged = "not judged: the target is for 1 GB, and memory grows with the index"
	}
	fmt.Printf("memory for taking it in: %d MB, target 600 MB: %s\n", beyond>>20, judged)
	return errors.Join(os.RemoveAll(filepath.Join(dir, "docs")), os.RemoveAll(filepath.Join(dir, "index")))
}

// peakRSS is the greatest resident set of this process until now, in bytes.
func peakRSS() (int64, error) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, errors.New("the peak of memory is known on Linux only")
	}
	for _, l := range strings.Split(string(data), "\n") {
		var kb int64
		if _, err := fmt.Sscanf(l, "VmHWM: %d kB", &kb); err == nil {
			return kb << 10, nil
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}

// heldByIndex is the heap that an index takes on opening, in bytes.
func heldByIndex(ctx context.Context, dir string) (int64, error) {
	before := heap()
	store, g, err := openIndex(ctx, dir)
	if err != nil {
		return 0, err
	}
	held := heap() - before
	runtime.KeepAlive(g)
	return held, store.Close()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// folderOf writes small files in folders of 256, and a large one for each 64 MB.
func folderOf(dir string, size int64) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(11, 13))
	zipf := rand.NewZipf(r, 1.1, 8, 199_999)
	for n, written := 0, int64(0); written < size; n++ {
		bytes := smallFile
		if written>>26 != (written-smallFile)>>26 || n == 0 {
			bytes = largeFile
		}
		path := filepath.Join(dir, fmt.Sprintf("%04d", n/256), fmt.Sprintf("%06d.txt", n))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, prose(r, zipf, bytes), 0o600); err != nil {
			return err
		}
		written += int64(bytes)
	}
	return nil
}

// prose is made up: words by Zipf's law in sentences and paragraphs.
func prose(r *rand.Rand, zipf *rand.Zipf, size int) []byte {
	b := make([]byte, 0, size+64)
	for len(b) < size {
		for range 5 + r.IntN(15) {
			b = fmt.Appendf(b, "w%d ", zipf.Uint64())
		}
		b = append(b[:len(b)-1], ". "...)
		if r.IntN(5) == 0 {
			b = append(b, "\n\n"...)
		}
	}
	return b
}

// stub is an embedder that costs next to nothing. It gives no token states:
// they lie on the disk.
type stub struct{}

// Info implements models.Embedder.
func (stub) Info() models.EmbedderInfo {
	return models.EmbedderInfo{Name: "stub", Precision: "none", Dimensions: dims, Window: 512}
}

// EmbedQuery implements models.Embedder.
func (s stub) EmbedQuery(_ context.Context, text string) (models.Embedding, error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v, sum := make([]float32, dims), 0.0
	for i := range v {
		v[i] = float32(r.Float64() - 0.5)
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return models.Embedding{Vector: v, Tokens: s.CountTokens(text)}, nil
}

// EmbedPassages implements models.Embedder.
func (s stub) EmbedPassages(ctx context.Context, texts []string) ([]models.Embedding, error) {
	out := make([]models.Embedding, len(texts))
	for i, t := range texts {
		out[i], _ = s.EmbedQuery(ctx, t)
	}
	return out, ctx.Err()
}

// CountTokens implements models.Embedder: about four bytes each.
func (stub) CountTokens(text string) int { return len(text) / 4 }
