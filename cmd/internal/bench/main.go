package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// settings of a run.
type settings struct {
	cache   string // work folder, below the repository's cache
	python  string // with faiss-cpu and tantivy
	chunks  int
	queries int
	rounds  int
}

func main() {
	var s settings
	peer := flag.String("peer", "", "be the peer of this name (used by the program itself)")
	threads := flag.Int("threads", 1, "of the peer")
	library := flag.String("library", "", "ONNX runtime of the peer")
	flag.StringVar(&s.cache, "cache", ".cache/bench", "work `FOLDER`")
	flag.StringVar(&s.python, "python", "python3", "`PROGRAM` with the peers from PyPI")
	flag.IntVar(&s.chunks, "chunks", 50_000, "`NUMBER` of chunks")
	flag.IntVar(&s.queries, "queries", 200, "`NUMBER` of questions in a round")
	flag.IntVar(&s.rounds, "rounds", 5, "`NUMBER` of rounds")
	flag.Parse()
	run := func() error { return bench(context.Background(), s) }
	if *peer == "hugot" {
		run = func() error { return hugotPeer(s.cache, *library, *threads) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, s settings) error {
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return err
	}
	fmt.Printf("%d chunks, %d questions a round, %d rounds; ratio = ours / peer, median (least to greatest)\n\n", s.chunks, s.queries, s.rounds)
	c := newCorpus(s)
	if err := c.write(s.cache); err != nil {
		return err
	}
	if err := embedding(ctx, s); err != nil {
		return fmt.Errorf("embedding: %w", err)
	}
	if err := searching(ctx, s, c); err != nil {
		return fmt.Errorf("searching: %w", err)
	}
	return nil
}

// contender does the same work as its rival and says how long one unit of it
// took, as the median over the round.
type contender func() (time.Duration, error)

// compare lets both take turns and prints one row.
func compare(rounds int, label, peerName string, target float64, ours, peer contender) error {
	var a, b []time.Duration
	var ratios []float64
	for range rounds {
		x, err := ours()
		if err != nil {
			return err
		}
		y, err := peer()
		if err != nil {
			return fmt.Errorf("%s: %w", peerName, err)
		}
		a, b, ratios = append(a, x), append(b, y), append(ratios, float64(x)/float64(y))
	}
	verdict := "reached"
	if median(ratios) > target {
		verdict = "MISSED"
	}
	fmt.Printf("%-34s %10s   %-20s %10s   ratio %.2f (%.2f to %.2f), target %.2f: %s\n", label, round(median(a)), peerName, round(median(b)),
		median(ratios), slices.Min(ratios), slices.Max(ratios), target, verdict)
	return nil
}

func median[T ~int64 | ~float64](v []T) T {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

func quantile(v []time.Duration, q float64) time.Duration {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(int(q*float64(len(v))), len(v)-1)]
}

func round(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// timed runs f for each of n and returns the median time of one.
func timed(n int, f func(i int) error) (time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range n {
		start := time.Now()
		if err := f(i); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	return median(took), nil
}

// here is the program itself, to be started as a peer.
func here() string {
	p, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return filepath.Clean(p)
}
