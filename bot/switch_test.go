package bot

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/acl"
	"footnote/bot/generate"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// switching is a bot on a Redis, and another process that builds and promotes
// generations there. Each generation has texts of its own.
type switching struct {
	*world
	asked, built *redisindex.Store
}

func newSwitching(t *testing.T) *switching {
	t.Helper()
	open := func() *redisindex.Store {
		s, err := redisindex.OpenURL(t.Context(), redistest.URL(t), redisindex.Options{Prefix: "switch:" + t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	s := &switching{world: &world{t: t}, asked: open(), built: open()}
	e, r := modelstest.NewEmbedder(), modelstest.NewReranker("en")
	g := generate.NewExtractive(e, r, generate.Options{Cuts: generate.Cuts{Reranked: .1, Embedded: .05, Unrelated: .2}})
	s.use(g, func(ctx context.Context) (retrieval.Reader, error) { return s.asked.Open(ctx, "") })
	s.bot.c.Generator = g // the world's counts, which is not for many at once
	return s
}

// build makes a shadow generation of so many documents, of which each says that
// it is of the nth one.
func (s *switching) build(n, documents int) string {
	s.t.Helper()
	var err error
	if s.gen, err = s.built.Create(s.t.Context(), retrieval.Manifest{Embedder: modelstest.NewEmbedder().Info()}); err != nil {
		s.t.Fatal(err)
	}
	for i := range documents {
		s.publish(doc{fmt.Sprintf("d%d", i), fmt.Sprintf("Badges are made in room %d%03d.\n\nThe canteen of house %d opens at noon.", n, i, i), everyone})
	}
	return s.gen.Manifest().Name
}

// question asks once and reports what is wrong with the reply.
func (s *switching) question(of map[string]string) error {
	r, err := s.bot.Handle(context.Background(), Message{Text: "Where are badges made?", Asker: ben, Audience: acl.AskerOnly()})
	if err != nil {
		return err
	}
	if r.Outcome != Answered {
		return fmt.Errorf("%s %s", r.Outcome, r.Reason)
	}
	for _, x := range r.Sources {
		if !strings.Contains(x.Quote, "room "+of[r.Generation]) {
			return fmt.Errorf("generation %s cites %q", r.Generation, x.Quote)
		}
	}
	return nil
}

// A shadow build, the switch to it and the way back cost no question an error,
// and no answer mixes generations. With FOOTNOTE_TEST_LONG=1 it goes on for a
// minute under 10 questions a second and prints what it saw.
func TestSwitchUnderQuestions(t *testing.T) {
	t.Parallel()
	s := newSwitching(t)
	documents, pace, rounds := 12, time.Millisecond, 3
	if os.Getenv("FOOTNOTE_TEST_LONG") != "" {
		documents, pace, rounds = 400, 100*time.Millisecond, 100
	}
	of := map[string]string{} // the beginning of a generation's rooms
	var names []string
	for n := range 2 {
		names = append(names, s.build(n+1, documents))
		of[names[n]] = fmt.Sprint(n + 1)
	}
	promote := func(name string) time.Duration {
		t.Helper()
		at := time.Now()
		if err := s.built.Promote(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return time.Since(at)
	}
	promote(names[0])
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var took []time.Duration
	var wrong []error
	var wg sync.WaitGroup
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				at := time.Now()
				err := s.question(of)
				mu.Lock()
				took = append(took, time.Since(at))
				if err != nil {
					wrong = append(wrong, err)
				}
				mu.Unlock()
			}
		})
	}
	var there, back []time.Duration
	for range rounds {
		s.build(9, documents) // a shadow that nobody asks
		there = append(there, promote(names[1]))
		back = append(back, promote(names[0]))
	}
	stop()
	wg.Wait()
	if len(wrong) > 0 || len(took) == 0 {
		t.Errorf("%d of %d questions went wrong: %v", len(wrong), len(took), wrong)
	}
	slices.Sort(took)
	t.Logf("%d questions beside %d shadow builds of %d documents and %d switches: %d errors, p50 %v, p95 %v; switch at most %v, rollback at most %v",
		len(took), rounds, documents, 2*rounds, len(wrong), took[len(took)/2], took[len(took)*95/100], slices.Max(there), slices.Max(back))
}
