package jobs

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/catalog/rediscatalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// TestMain turns this binary into a worker process, when a test starts it so.
func TestMain(m *testing.M) {
	if os.Getenv("FOOTNOTE_WORKER_URL") != "" {
		child()
		return
	}
	os.Exit(redistest.Main(m))
}

// lease is short, so that what died is found soon.
const lease = time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parts are what a process has open.
type parts struct {
	link     *redislink.Link
	store    *redisindex.Store
	queue    *Queue
	pipeline *ingest.Pipeline
	cat      *catalog.Catalog
}

// connect opens the parts of a leader, or of a worker, which has no catalog.
func connect(ctx context.Context, url, prefix string, leads bool) (p parts, err error) {
	if p.link, err = redislink.Open(redislink.Options{URL: url, Deadline: 5 * time.Second}); err != nil {
		return p, err
	}
	if p.store, err = redisindex.Open(ctx, p.link, redisindex.Options{Prefix: prefix}); err != nil {
		return p, err
	}
	o := ingest.Options{Wait: func(context.Context, int) error { return nil }}
	model := modelstest.NewEmbedder()
	stamp := ingest.New(p.store, nil, model, o).Stamp()
	if p.queue, err = New(p.link, p.store, stamp, Options{Prefix: prefix, Lease: lease, Room: p.link.Room}); err != nil {
		return p, err
	}
	if leads {
		o.Hands = p.queue
		if p.cat, err = rediscatalog.Open(ctx, p.link, prefix); err != nil {
			return p, err
		}
	}
	p.pipeline = ingest.New(p.store, p.cat, model, o)
	return p, nil
}

func (p parts) close() {
	if p.cat != nil {
		_ = p.cat.Close()
	}
	_ = p.link.Close()
}

// site is a folder of documents, who decides about it, and its workers.
type site struct {
	parts
	t      testing.TB
	url    string
	prefix string
	root   string

	mu       sync.Mutex
	versions map[retrieval.Revision]int // of all contents ever written
}

func newSite(t testing.TB, url string) *site {
	t.Helper()
	s := &site{t: t, url: url, prefix: "jobs-" + strings.ToLower(rand.Text())[:12], root: t.TempDir(), versions: map[retrieval.Revision]int{}}
	var err error
	s.parts, err = connect(context.Background(), url, s.prefix, true)
	must(t, err)
	t.Cleanup(s.close)
	return s
}

func (s *site) Root() string { return s.root }

func (s *site) Items(context.Context) ([]ingest.Item, error) {
	entries, err := os.ReadDir(s.root)
	var out []ingest.Item
	for _, e := range entries {
		out = append(out, ingest.Item{Path: filepath.Join(s.root, e.Name()), Access: acl.NewList(acl.Everyone)})
	}
	return out, err
}

func (s *site) Read(_ context.Context, path string) (ingest.Content, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return ingest.Content{}, &ingest.Fault{Reason: "the file vanished", Retryable: true}
	}
	return ingest.Content{Data: data, Modified: time.Unix(1_700_000_000, 0)}, nil
}

func (s *site) Gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// write writes a version of a document, which says which it is.
func (s *site) write(name string, version int) {
	s.t.Helper()
	text := fmt.Sprintf("The document %s is in version %d.\n\nalpha %s\n", name, version, strings.Repeat("some more words of it ", 20))
	s.mu.Lock()
	s.versions[ingest.RevisionOf([]byte(text))] = version
	s.mu.Unlock()
	tmp := filepath.Join(s.t.TempDir(), name)
	must(s.t, os.WriteFile(tmp, []byte(text), 0o600))
	must(s.t, os.Rename(tmp, filepath.Join(s.root, name)))
}

func (s *site) ingest(ctx context.Context) (ingest.Report, error) {
	return s.pipeline.Ingest(ctx, s, ingest.How{Prune: true})
}

// settle ingests until there is nothing left to do, and returns how often a
// document was published on the way.
func (s *site) settle() (published int) {
	s.t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for ; ; time.Sleep(20 * time.Millisecond) {
		r, err := s.ingest(context.Background())
		published += r.Published
		switch {
		case err == nil && len(r.Failed) == 0 && r.Published+r.Removed == 0:
			return published
		case time.Now().After(end):
			s.t.Fatalf("it does not settle: %+v, %v", r, err)
		case err != nil && !errors.Is(err, retrieval.ErrUnavailable):
			s.t.Fatalf("ingesting: %v", err)
		}
	}
}

// check compares folder, index, catalog and queue when all is settled.
func (s *site) check() {
	s.t.Helper()
	ctx := context.Background()
	g, err := s.store.Open(ctx, "")
	must(s.t, err)
	items, err := s.Items(ctx)
	must(s.t, err)
	want, got := map[string]retrieval.Revision{}, map[string]retrieval.Revision{}
	for _, it := range items {
		data, err := os.ReadFile(it.Path)
		must(s.t, err)
		want[it.Path] = ingest.RevisionOf(data)
	}
	docs, err := g.Documents(ctx, system.Grant())
	must(s.t, err)
	for _, d := range docs {
		got[d.Path] = d.Revision
	}
	if d := cmp.Diff(want, got); d != "" || len(docs) != len(want) {
		s.t.Errorf("%d documents in the index for %d files (-folder +index):\n%s", len(docs), len(want), d)
	}
	report, err := g.(*redisindex.Generation).Verify(ctx)
	must(s.t, err)
	differ, err := ingest.Compare(ctx, g, s.cat)
	must(s.t, err)
	if len(report.Problems)+len(differ) != 0 {
		s.t.Errorf("the index has %v, the catalog differs in %v", report.Problems, differ)
	}
	s.empty()
}

// empty checks that no job is left.
func (s *site) empty() {
	s.t.Helper()
	ctx := context.Background()
	open, err := s.queue.Open(ctx)
	must(s.t, err)
	waiting, err := s.link.XLen(ctx, s.queue.stream()).Result()
	must(s.t, err)
	kept, err := s.link.Keys(ctx, s.queue.at+":[jb]:*").Result()
	must(s.t, err)
	kept = slices.DeleteFunc(kept, func(key string) bool { // of an upload that was cut off
		return s.link.TTL(ctx, key).Val() <= uploading
	})
	fences, err := s.link.Keys(ctx, s.prefix+":*:f").Result()
	must(s.t, err)
	if len(open)+int(waiting)+len(kept)+len(fences) != 0 {
		s.t.Errorf("jobs are left: %v, %d in the stream, %v, %v", open, waiting, kept, fences)
	}
}

// process is a worker in a process of its own.
type process struct {
	cmd   *exec.Cmd
	lines chan string
	stdin interface{ Write([]byte) (int, error) }
}

// worker starts one. at ("stage name") is where it waits for a word, "" nowhere.
func (s *site) worker(at string) *process {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FOOTNOTE_WORKER_URL="+s.url, "FOOTNOTE_WORKER_PREFIX="+s.prefix, "FOOTNOTE_WORKER_AT="+at)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(s.t, err)
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	p := &process{cmd: cmd, stdin: in, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.lines <- sc.Text()
		}
	}()
	s.t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Wait()
}

// says waits for a line that begins so.
func (p *process) says(t testing.TB, begin string) string {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case line, more := <-p.lines:
			if strings.HasPrefix(line, begin) {
				return line
			}
			if !more {
				t.Fatalf("the worker ended before it said %q", begin)
			}
		case <-timeout:
			t.Fatalf("the worker does not say %q", begin)
		}
	}
}

// child is the worker process.
func child() {
	p, err := connect(context.Background(), os.Getenv("FOOTNOTE_WORKER_URL"), os.Getenv("FOOTNOTE_WORKER_PREFIX"), false)
	for errors.Is(err, retrieval.ErrUnavailable) {
		time.Sleep(100 * time.Millisecond) // the server starts
		p, err = connect(context.Background(), os.Getenv("FOOTNOTE_WORKER_URL"), os.Getenv("FOOTNOTE_WORKER_PREFIX"), false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	stage, name, _ := strings.Cut(os.Getenv("FOOTNOTE_WORKER_AT"), " ")
	w := &halting{worker: p.pipeline, stage: stage, name: name}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _ = p.queue.Work(context.Background(), w, slog.New(slog.DiscardHandler)) })
	}
	all.Wait()
}

// halting is a worker that waits for a word at a stage of one document.
type halting struct {
	worker
	stage, name string
	once        sync.Once
}

func (h *halting) at(t ingest.Task, stage string) {
	if stage == h.stage && strings.HasSuffix(t.Path, h.name) {
		h.once.Do(func() {
			fmt.Println("at", stage)
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		})
	}
}

func (h *halting) Work(ctx context.Context, t ingest.Task, data []byte, open func(string) (retrieval.Generation, error), told func(catalog.State)) (ingest.Done, error) {
	if strings.Contains(string(data), "poison") && h.stage != "immune" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	d, err := h.worker.Work(ctx, t, data, func(name string) (retrieval.Generation, error) {
		g, err := open(name)
		return &halted{g, h, t}, err
	}, func(s catalog.State) {
		told(s)
		h.at(t, string(s))
	})
	fmt.Printf("worked on %s: %v\n", filepath.Base(t.Path), err)
	return d, err
}

type halted struct {
	retrieval.Generation
	h *halting
	t ingest.Task
}

func (g *halted) Publish(ctx context.Context, p retrieval.Publication) error {
	g.h.at(g.t, "publishing")
	err := g.Generation.Publish(ctx, p)
	g.h.at(g.t, "published")
	return err
}

var stages = []string{string(catalog.Extracting), string(catalog.Chunking), string(catalog.Embedding), "publishing", "published"}

// passing is a pass that runs beside the test.
type passing struct {
	report ingest.Report
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

func (s *site) begin() *passing {
	ctx, cancel := context.WithCancel(context.Background())
	p := &passing{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		p.report, p.err = s.ingest(ctx)
	}()
	return p
}

// interrupt ends the pass wherever it is, as something more urgent does.
func (p *passing) interrupt() {
	p.cancel()
	<-p.done
}

// TestWorkers: three workers and sixty documents, each done once, edits on the
// way, and no document ever goes back.
func TestWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	const documents = 60
	for i := range documents {
		s.write(fmt.Sprintf("%02d.txt", i), 1)
	}
	var all []*process
	for range 3 {
		all = append(all, s.worker(""))
	}
	r, err := s.ingest(t.Context())
	must(t, err)
	if r.Published != documents || len(r.Failed) != 0 || !r.Promoted {
		t.Fatalf("the first pass: %+v", r)
	}
	s.check()
	did := 0
	for _, p := range all {
		mine := 0
		for len(p.lines) > 0 {
			if line := <-p.lines; strings.HasPrefix(line, "worked on") {
				mine++
			}
		}
		if mine == 0 {
			t.Error("a worker did nothing")
		}
		did += mine
	}
	if did != documents {
		t.Errorf("the workers did %d jobs for %d documents", did, documents)
	}
	stop := s.watch()
	for v := 2; v < 6; v++ {
		pass := s.begin()
		for i := range 20 {
			s.write(fmt.Sprintf("%02d.txt", i*v%documents), v)
		}
		pass.interrupt()
	}
	must(t, os.Remove(filepath.Join(s.root, "07.txt")))
	s.settle()
	stop()
	s.check()
}

// watch sees to it that no document goes back to an older version. It returns
// what ends it.
func (s *site) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	seen := map[string]int{}
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; _ = redislink.Pause(ctx, 5*time.Millisecond) {
			g, err := s.store.Open(ctx, "")
			if err != nil {
				continue
			}
			docs, err := g.Documents(ctx, system.Grant())
			if err != nil {
				continue
			}
			for _, d := range docs {
				s.mu.Lock()
				v := s.versions[d.Revision]
				s.mu.Unlock()
				if v < seen[d.Path] {
					s.t.Errorf("%s went back from version %d to %d", filepath.Base(d.Path), seen[d.Path], v)
				}
				seen[d.Path] = v
			}
		}
	}()
	return func() { cancel(); <-done }
}

// TestWorkerKilled: a worker that dies at any stage loses nothing; another one
// takes its job when the lease has run out.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	for _, stage := range stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, redistest.URL(t))
			for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
				s.write(name, 1)
			}
			first := s.worker(stage + " b.txt")
			pass := s.begin()
			first.says(t, "at "+stage)
			first.kill()
			s.worker("")
			<-pass.done
			if pass.err != nil || pass.report.Published != 3 {
				t.Errorf("the pass gives %+v, %v", pass.report, pass.err)
			}
			s.check()
		})
	}
}

// TestWorkerStopped: a worker that sleeps through its lease at any stage
// changes nothing when it wakes: neither the same revision's successor nor what
// was removed meanwhile.
func TestWorkerStopped(t *testing.T) {
	t.Parallel()
	for _, stage := range stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, redistest.URL(t))
			for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
				s.write(name, 1)
			}
			first := s.worker(stage + " b.txt")
			pass := s.begin()
			first.says(t, "at "+stage)
			must(t, first.cmd.Process.Signal(syscall.SIGSTOP))
			s.worker("")
			<-pass.done
			if pass.err != nil || pass.report.Published != 3 {
				t.Errorf("the pass gives %+v, %v", pass.report, pass.err)
			}
			stop := s.watch()
			s.write("b.txt", 2)
			must(t, os.Remove(filepath.Join(s.root, "c.txt")))
			s.settle()
			s.check()
			_, err := first.stdin.Write([]byte("go on\n"))
			must(t, err)
			must(t, first.cmd.Process.Signal(syscall.SIGCONT))
			if line := first.says(t, "worked on b.txt"); stage != "published" && strings.HasSuffix(line, "<nil>") {
				t.Errorf("it was let: %s", line)
			}
			stop()
			s.check()
		})
	}
}

// TestReplaced: work on a document that has changed meanwhile is given up; the
// same worker goes on with the newer one.
func TestReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	s.write("a.txt", 1)
	w := s.worker("publishing a.txt")
	pass := s.begin()
	w.says(t, "at publishing")
	pass.interrupt()
	s.write("a.txt", 2)
	again := s.begin()
	_, err := w.stdin.Write([]byte("go on\n"))
	must(t, err)
	<-again.done
	if again.err != nil || again.report.Published != 1 {
		t.Errorf("the second pass gives %+v, %v", again.report, again.err)
	}
	s.check()
}

// TestJoined: what was worked on when the process that waits for it died is not
// done twice.
func TestJoined(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	s.write("a.txt", 1)
	w := s.worker("embedding a.txt")
	pass := s.begin()
	w.says(t, "at embedding")
	pass.interrupt()
	_, err := w.stdin.Write([]byte("go on\n"))
	must(t, err)
	if line := w.says(t, "worked on"); !strings.HasSuffix(line, "<nil>") {
		t.Errorf("it was not let: %s", line)
	}
	if n := s.settle(); n != 1 {
		t.Errorf("it was published %d times", n)
	}
	if len(w.lines) != 0 {
		t.Errorf("it was done again: %s", <-w.lines)
	}
	s.check()
}

// TestPoison: a document that kills whoever works on it fails after three of
// them; the others are taken in, and it is when it is asked for again and does
// so no more.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	s.write("a.txt", 1)
	must(t, os.WriteFile(filepath.Join(s.root, "bad.txt"), []byte("this is poison"), 0o600))
	s.write("c.txt", 1)
	pass := s.begin()
	deaths := 0
	for ended := false; !ended; {
		w := s.worker("")
		died := make(chan struct{})
		go func() { _ = w.cmd.Wait(); close(died) }()
		select {
		case <-died:
			deaths++
		case <-pass.done:
			ended = true
		}
	}
	must(t, pass.err)
	r := pass.report
	if r.Published != 2 || len(r.Failed) != 1 || !strings.HasPrefix(r.Failed[0].Reason, "it ended the worker 3 times") || deaths != 3 {
		t.Errorf("after %d deaths: %+v", deaths, r)
	}
	s.empty()
	s.worker("immune")
	if n := s.settle(); n != 1 {
		t.Errorf("then %d are published", n)
	}
	s.check()
}

// TestRedisKilled: the server dies while workers work and comes back with all
// that it had acknowledged.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	server := redistest.New(t, t.TempDir(), "--appendfsync", "everysec")
	s := newSite(t, "redis://"+server.Address)
	for i := range 30 {
		s.write(fmt.Sprintf("%02d.txt", i), 1)
	}
	for range 2 {
		s.worker("")
	}
	stop := s.watch()
	for v := 1; v < 4; v++ {
		pass := s.begin()
		time.Sleep(time.Duration(v) * 60 * time.Millisecond) // anywhere in the pass
		server.Restart(t)
		<-pass.done
		s.write(fmt.Sprintf("%02d.txt", v), v+1)
	}
	s.settle()
	stop()
	s.check()
}

// TestFailover: the master dies while workers work, and a replica takes over.
// Documents whose jobs or records it had not received are looked at again.
func TestFailover(t *testing.T) {
	t.Parallel()
	redistest.URL(t) // says what is missing
	servers := redistest.NewReplicated(t)
	s := newSite(t, servers.URL())
	for i := range 30 {
		s.write(fmt.Sprintf("%02d.txt", i), 1)
	}
	for range 2 {
		s.worker("")
	}
	stop := s.watch()
	pass := s.begin()
	redistest.Await(t, func() string {
		if open, err := s.queue.Open(context.Background()); err != nil || len(open) < 2 {
			return fmt.Sprintf("%d jobs (%v)", len(open), err)
		}
		return ""
	})
	servers.Master.Kill()
	<-pass.done
	for i := range 5 {
		s.write(fmt.Sprintf("%02d.txt", i), 2)
	}
	s.settle()
	stop()
	s.check()
}

// TestRepliesCut: connections end in the middle of answers, of workers and of
// the process that decides.
func TestRepliesCut(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, strings.TrimPrefix(redistest.URL(t), "redis://"))
	s := newSite(t, proxy.URL())
	for i := range 20 {
		s.write(fmt.Sprintf("%02d.txt", i), 1)
	}
	s.worker("")
	stop := s.watch()
	for v, n := range []int{1, 30, 300, 3000} {
		pass := s.begin()
		time.Sleep(50 * time.Millisecond) // anywhere in the pass
		proxy.Cut(n)
		time.Sleep(300 * time.Millisecond) // some are cut
		proxy.Heal()
		<-pass.done
		s.write(fmt.Sprintf("%02d.txt", v), 2)
	}
	s.settle()
	stop()
	s.check()
}

// TestGivenBack: a worker that is told to stop gives its job back at once, and
// has not tried.
func TestGivenBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	s.write("a.txt", 1)
	pass := s.begin()
	for range 5 { // more than may end badly
		ctx, cancel := context.WithCancel(t.Context())
		must(t, s.queue.Work(ctx, stopping{cancel}, slog.New(slog.DiscardHandler)))
	}
	s.worker("")
	<-pass.done
	if pass.err != nil || pass.report.Published != 1 {
		t.Errorf("the pass gives %+v, %v", pass.report, pass.err)
	}
	s.check()
}

// stopping is a worker that is stopped by its first task.
type stopping struct{ stop func() }

func (s stopping) Work(ctx context.Context, _ ingest.Task, _ []byte, _ func(string) (retrieval.Generation, error), _ func(catalog.State)) (ingest.Done, error) {
	s.stop()
	<-ctx.Done()
	return ingest.Done{}, ctx.Err()
}

// TestLate: a job that takes longer than its deadline has tried.
func TestLate(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	s.queue.o.Deadline = 50 * time.Millisecond
	s.write("a.txt", 1)
	pass := s.begin()
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error)
	go func() { worked <- s.queue.Work(ctx, stopping{func() {}}, slog.New(slog.DiscardHandler)) }()
	<-pass.done
	cancel()
	must(t, <-worked)
	reasons := slices.Collect(func(yield func(string) bool) {
		for _, f := range pass.report.Failed {
			yield(f.Reason)
		}
	})
	if pass.err != nil || len(reasons) != 1 || !strings.Contains(reasons[0], "kept it longer than 50ms") {
		t.Errorf("the pass gives %v, %v", reasons, pass.err)
	}
	s.empty()
}

// TestDeserted: jobs that nobody does are seen.
func TestDeserted(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.URL(t))
	s.write("a.txt", 1)
	s.write("b.txt", 1)
	look := func(want int) {
		t.Helper()
		n, err := s.queue.Deserted(t.Context())
		must(t, err)
		if n != want {
			t.Errorf("%d jobs are deserted instead of %d", n, want)
		}
	}
	look(0)
	pass := s.begin()
	for open := 0; open < 2; {
		all, err := s.queue.Open(t.Context())
		must(t, err)
		open = len(all)
	}
	look(2)
	w := s.worker("embedding a.txt")
	w.says(t, "at embedding")
	look(0)
	_, err := w.stdin.Write([]byte("go on\n"))
	must(t, err)
	<-pass.done
	must(t, pass.err)
	look(0)
}
