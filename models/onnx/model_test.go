package onnx

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"footnote/models/catalog"
)

var soak = flag.Int("soak", 60, "calls of the soak test; 2000 for the full one: go test ./models/onnx -run Soak -soak 2000 -timeout 30m")

// Texts over the window are cut, told of, and their tokens counted to the end;
// texts that differ inside it never share a vector.
func TestCase_Q12_SamePrefixDifferentTails(t *testing.T) { sameTails(t) }

// The cut is counted before the library sees the text.
func TestCase_Q13(t *testing.T) { sameTails(t) }

func sameTails(t *testing.T) {
	t.Helper()
	e := embedder(t)
	head := strings.Repeat("word ", 600)
	vs, err := e.EmbedPassages(context.Background(), []string{head + "canteen menu", head + "password reset, how it is done"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		if !v.Truncated || v.Tokens < 600 {
			t.Errorf("%d tokens, truncated %t: the cut at %d is silent", v.Tokens, v.Truncated, e.Info().Window)
		}
	}
	if vs[0].Tokens == vs[1].Tokens {
		t.Errorf("both have %d tokens: the tail is not counted", vs[0].Tokens)
	}
}

// A card whose dimensions are another model's does not open: no zero vectors,
// no mixed index.
func TestCase_Q14_CardOfAnotherModel(t *testing.T) {
	for situation, change := range map[string]func(*catalog.Card){
		"768 dimensions":      func(c *catalog.Card) { c.Dimensions = 768 },
		"192 dimensions":      func(c *catalog.Card) { c.Dimensions = 192 },
		"an unknown output":   func(c *catalog.Card) { c.Output = "pooler_output" },
		"an input too many":   func(c *catalog.Card) { c.Inputs = append(c.Inputs, "token_type_ids") },
		"an input too few":    func(c *catalog.Card) { c.Inputs = c.Inputs[:1] },
		"the other kind":      func(c *catalog.Card) { c.Kind = catalog.Reranker },
		"another pooling":     func(c *catalog.Card) { c.Pooling = "cls" },
		"weights not as told": func(c *catalog.Card) { c.Files[0].SHA256 = strings.Repeat("0", 64) },
	} {
		t.Run(situation, func(t *testing.T) {
			rt := opened(t)
			card, dir, err := shippedModel(catalog.DefaultEmbedder)
			if err != nil {
				t.Fatal(err)
			}
			change(&card)
			if _, err = rt.Embedder(card, dir); err == nil || !strings.Contains(err.Error(), card.Name) {
				t.Errorf("opened, or the error does not name the model: %v", err)
			}
		})
	}
}

func TestRerankerCardOfAnotherModel(t *testing.T) {
	for situation, change := range map[string]func(*catalog.Card){
		"no types":                func(c *catalog.Card) { c.Inputs = c.Inputs[:2] },
		"no room for the passage": func(c *catalog.Card) { c.QueryWindow = 222 },
		"unknown output":          func(c *catalog.Card) { c.Output = "score" },
	} {
		t.Run(situation, func(t *testing.T) {
			rt := opened(t)
			card, dir, err := shippedModel(catalog.DefaultReranker)
			if err != nil {
				t.Fatal(err)
			}
			change(&card)
			if _, err = rt.Reranker(card, dir); err == nil || !strings.Contains(err.Error(), card.Name) {
				t.Errorf("opened, or the error does not name the model: %v", err)
			}
		})
	}
}

// One byte of a file changed: the error names file and both sums.
func TestDamagedModel(t *testing.T) {
	card, dir, err := shippedModel(catalog.DefaultReranker)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{catalog.Weights, catalog.Tokenizer} {
		t.Run(name, func(t *testing.T) {
			copied := fstest.MapFS{}
			for _, f := range card.Files {
				data, err := fs.ReadFile(dir, f.Name)
				if err != nil {
					t.Fatal(err)
				}
				if f.Name == name {
					data[len(data)/2] ^= 1
				}
				copied[f.Name] = &fstest.MapFile{Data: data}
			}
			_, err := opened(t).Reranker(card, copied)
			sum, ok := errors.AsType[*catalog.ChecksumError](err)
			if !ok || sum.File != name || !strings.Contains(err.Error(), sum.Expected) || !strings.Contains(err.Error(), sum.Found) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestClosedRuntime(t *testing.T) {
	rt := opened(t)
	card, dir, err := shippedModel(catalog.DefaultReranker)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rt.Reranker(card, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rt.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rerank(context.Background(), "q", []string{"p"}); !errors.Is(err, ErrClosed) {
		t.Errorf("a model of a closed runtime: %v", err)
	}
	if _, err := rt.Reranker(card, dir); !errors.Is(err, ErrClosed) {
		t.Errorf("opening one more: %v", err)
	}
}

func TestEachStopsAtTheFirstError(t *testing.T) {
	rt := &Runtime{slots: make(chan struct{}, 2)}
	failed := errors.New("failed")
	var calls atomic.Int64
	err := rt.each(context.Background(), 10_000, func(i int) error {
		calls.Add(1)
		if i == 3 {
			return failed
		}
		return nil
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if len(rt.slots) != 0 {
		t.Errorf("%d slots are still taken", len(rt.slots))
	}
}

func TestEachEndsWithItsContextBetweenInferences(t *testing.T) {
	rt := &Runtime{slots: make(chan struct{}, 2)}
	ctx, cancel := context.WithCancel(context.Background())
	var calls, before atomic.Int64
	err := rt.each(ctx, 10_000, func(i int) error {
		if calls.Add(1) == 5 {
			cancel()
			before.Store(calls.Load())
		}
		return nil
	})
	// The other thread may be about to make one call when the fifth has cancelled.
	if n := calls.Load(); !errors.Is(err, context.Canceled) || n > before.Load()+1 {
		t.Errorf("%d calls, %d of them before the end, error %v", n, before.Load(), err)
	}
}

// No more than Threads run at once, whoever calls.
func TestThreadsBoundAllCallers(t *testing.T) {
	rt := &Runtime{slots: make(chan struct{}, 2)}
	var running, most atomic.Int64
	work := func(int) error {
		n := running.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		runtime.Gosched()
		running.Add(-1)
		return nil
	}
	done := make(chan error)
	for range 4 {
		go func() { done <- rt.each(context.Background(), 200, work) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d ran at once, want at most 2", most.Load())
	}
}

// 40 passages of the longest kind cost no more memory than a few: they are
// scored one by one.
func TestCase_Q17_ManyLongPassages(t *testing.T) {
	r := reranker(t)
	passage := strings.Repeat("The canteen opens at noon and serves two dishes. ", 60)
	score := func(n int) {
		ps := make([]string, n)
		for i := range ps {
			ps[i] = fmt.Sprint(i, passage)
		}
		if _, err := r.Rerank(context.Background(), "When is lunch?", ps); err != nil {
			t.Fatal(err)
		}
	}
	few := peak(t, func() { score(4) })
	many := peak(t, func() { score(40) })
	// In one batch they would take 250 MB for one layer's activations alone.
	if many-few > 100<<20 {
		t.Errorf("4 passages peak at %d MiB, 40 at %d MiB", few>>20, many>>20)
	}
	t.Logf("4 passages peak at %d MiB, 40 at %d MiB", few>>20, many>>20)
}

// peak is the most resident memory while f runs, in bytes.
func peak(t *testing.T, f func()) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("peak memory is read from /proc")
	}
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets VmHWM
		t.Fatal(err)
	}
	f()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestCase_Q16_Soak embeds and reranks texts of 1 to 200,000 characters and
// watches resident memory after a warm-up with the longest.
func TestCase_Q16_Soak(t *testing.T) {
	if *soak < 10 || *soak%10 != 0 {
		t.Fatalf("-soak %d: a multiple of 10 is wanted", *soak)
	}
	e, r := embedder(t), reranker(t)
	random := rand.New(rand.NewPCG(16, 16))
	call := func(characters int) {
		text := textOf(random, characters)
		if _, err := e.EmbedPassages(context.Background(), []string{text}); err != nil {
			t.Fatal(err)
		}
		// A reranker has no cut: its cost is bounded by its caller's chunks.
		short := text[:min(len(text), 600)]
		if _, err := r.Rerank(context.Background(), short, []string{short}); err != nil {
			t.Fatal(err)
		}
	}
	sizes := []int{1, 10, 100, 1_000, 5_000, 20_000, 200_000}
	for range 2 {
		for _, n := range sizes {
			call(n)
		}
	}
	series := []int64{resident(t)}
	for i := range *soak {
		call(1 + random.IntN(sizes[i%len(sizes)]))
		if (i+1)%(*soak/10) == 0 {
			series = append(series, resident(t))
		}
	}
	for i := range series {
		series[i] >>= 20
	}
	t.Logf("%d calls: MiB after the warm-up and after each tenth: %d", *soak, series)
	// One figure swings by 20 MiB with what the heap has just held; the middle
	// of five does not.
	if first, second := middle(series[1:6]), middle(series[6:11]); second-first > 48 {
		t.Errorf("memory grew from %d to %d MiB between the halves", first, second)
	}
	if grown := slices.Max(series) - series[0]; grown > 96 {
		t.Errorf("memory grew by %d MiB since the warm-up", grown)
	}
}

func middle(of []int64) int64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// textOf makes words of Latin and Hangul, new ones each time, so that a cache
// that never forgets would show.
func textOf(random *rand.Rand, characters int) string {
	var b strings.Builder
	for n := 0; n < characters; n++ {
		switch k := random.IntN(40); {
		case k < 6:
			b.WriteByte(' ')
		case k < 10:
			b.WriteRune(rune(0xAC00 + random.IntN(11172)))
		default:
			b.WriteByte(byte('a' + random.IntN(26)))
		}
	}
	return b.String()
}

// resident is the memory of the process in bytes, without what Go and the C
// heap may give back.
func resident(t *testing.T) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc")
	}
	debug.FreeOSMemory()
	trimHeap()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// opened is a runtime of its own for one test.
func opened(t *testing.T) *Runtime {
	t.Helper()
	rt, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}
