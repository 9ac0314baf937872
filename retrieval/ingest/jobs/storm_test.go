package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/redisindex/redistest"
)

// TestStorm: three workers under a loop that follows a folder, while documents
// are edited, added and removed, workers are killed and stopped, and the server
// is killed, at random. Seconds, or minutes where FOOTNOTE_STORM is full; then
// -v prints figures.
func TestStorm(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	st := &storm{rand: rand.New(rand.NewPCG(seed, 0)), documents: 40, lasts: 5 * time.Second, changes: make(chan follow.Change, 1000)}
	if os.Getenv("FOOTNOTE_STORM") == "full" {
		st.documents, st.lasts = 300, 2*time.Minute
	}
	st.server = redistest.New(t, t.TempDir(), "--appendfsync", "everysec")
	st.site = newSite(t, "redis://"+st.server.Address)
	for i := range st.documents {
		st.edit(i)
	}
	for range 3 {
		st.workers = append(st.workers, st.worker(""))
	}
	loop := follow.New(st.pipeline, []follow.Feed{{Name: "docs", Source: st.site, Watch: st.notices}}, follow.Options{Interval: 10 * time.Second, Resumes: true})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = loop.Run(ctx) })
	stop := st.watch()
	for end := time.Now().Add(st.lasts); time.Now().Before(end); time.Sleep(time.Duration(st.rand.IntN(300)) * time.Millisecond) {
		st.step()
	}
	st.calm()
	// What is edited once it is calm is measured with what was edited before.
	time.Sleep(2 * lease)
	cancel()
	running.Wait()
	st.settle()
	stop()
	st.check()
	t.Logf("%d documents, %d edits and removals; killed: %d workers, %d times Redis; stopped: %d workers", st.documents, st.edits, st.killed, st.restarts, st.stopped)
	for _, l := range loop.Levels() {
		t.Logf("%-8s %4d changes  p50 %v  p95 %v  max %v", l.Kind, l.Count, l.P50, l.P95, l.Max)
	}
}

// storm is a site with what befalls it.
type storm struct {
	*site
	rand      *rand.Rand
	server    *redistest.Server
	workers   []*process
	changes   chan follow.Change
	documents int
	lasts     time.Duration
	version   int

	edits, killed, stopped, restarts int
}

// notices tells the loop of changes, as a watched folder does.
func (s *storm) notices(ctx context.Context, changed func(follow.Change)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-s.changes:
			changed(c)
		}
	}
}

func (s *storm) edit(i int) {
	s.version++
	name := fmt.Sprintf("%03d.txt", i)
	s.write(name, s.version)
	s.changes <- follow.Change{Path: filepath.Join(s.root, name)}
}

func (s *storm) remove(i int) {
	path := filepath.Join(s.root, fmt.Sprintf("%03d.txt", i))
	if os.Remove(path) == nil { // it may be gone already
		s.changes <- follow.Change{Path: path, Urgent: true}
	}
}

// step lets one thing happen.
func (s *storm) step() {
	w := s.rand.IntN(len(s.workers))
	switch n := s.rand.IntN(20); {
	case n < 12:
		s.edits++
		s.edit(s.rand.IntN(s.documents))
	case n < 14:
		s.edits++
		s.remove(s.rand.IntN(s.documents))
	case n < 17:
		s.killed++
		s.workers[w].kill()
		s.workers[w] = s.worker("")
	case n < 19:
		s.stopped++
		p := s.workers[w].cmd.Process
		_ = p.Signal(syscall.SIGSTOP)
		time.AfterFunc(3*lease/2, func() { _ = p.Signal(syscall.SIGCONT) })
	default:
		s.restarts++
		s.server.Restart(s.t)
	}
}

// calm lets all that is stopped go on.
func (s *storm) calm() {
	for _, w := range s.workers {
		_ = w.cmd.Process.Signal(syscall.SIGCONT)
	}
}
