package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/memindex"
)

// TestMain turns this binary into the process that is killed or runs out of
// disk, when a test starts it so.
func TestMain(m *testing.M) {
	switch os.Getenv("FOOTNOTE_CHILD") {
	case "":
		os.Exit(m.Run())
	case "ingest":
		childIngest(os.Getenv("FOOTNOTE_CHILD_DATA"), os.Getenv("FOOTNOTE_CHILD_SOURCE"), os.Getenv("FOOTNOTE_CHILD_MODEL"))
	case "full":
		childFull(os.Getenv("FOOTNOTE_CHILD_DATA"), os.Getenv("FOOTNOTE_CHILD_SOURCE"), os.Getenv("FOOTNOTE_CHILD_LIMIT"))
	}
}

func child(mode, data, source, more string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FOOTNOTE_CHILD="+mode, "FOOTNOTE_CHILD_DATA="+data, "FOOTNOTE_CHILD_SOURCE="+source, "FOOTNOTE_CHILD_MODEL="+more, "FOOTNOTE_CHILD_LIMIT="+more)
	cmd.Stderr = os.Stderr
	return cmd
}

// childOpen opens everything; the end of the process closes it.
func childOpen(data, model string, progress func(Event)) (*Pipeline, error) {
	embedder := modelstest.NewEmbedder(modelstest.WithName(model))
	store, err := memindex.Open(data)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Open(data)
	if err != nil {
		return nil, err
	}
	cache, err := OpenCache(data, embedder.Info())
	if err != nil {
		return nil, err
	}
	return New(store, cat, embedder, Options{Cache: cache, Workers: 2, Progress: progress}), nil
}

// childIngest prints a line for each event, so that the parent knows what was
// promised before it killed.
func childIngest(data, source, model string) {
	p, err := childOpen(data, model, func(e Event) { fmt.Printf("%s %s\n", e.State, e.Path) })
	if err == nil {
		_, err = p.Ingest(context.Background(), &folder{root: source, access: map[string]acl.List{"": everyone}}, How{Prune: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// TestKill kills an ingesting process at random points, again and again over
// one data directory whose source changes in between: 25 times, or as often
// as FOOTNOTE_KILLS says.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := 25
	if s := os.Getenv("FOOTNOTE_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		kills = n
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &killer{t: t, rand: rand.New(rand.NewPCG(seed, 0)), model: "fake"}
	for killed := 0; killed < kills; {
		if killed%20 == 0 {
			k.complete()
			k.fresh()
		}
		k.change()
		if k.round() {
			killed++
		}
		k.check()
	}
	k.complete()
}

// killer keeps what must hold.
type killer struct {
	t        *testing.T
	rand     *rand.Rand
	data     string
	model    string
	src      *folder
	names    int
	promised map[string][]retrieval.Revision // published by word of a child, then those written since: one of them must be there
}

func (k *killer) fresh() {
	k.data, k.src, k.promised = k.t.TempDir(), newFolder(k.t, nil), map[string][]retrieval.Revision{}
	for range 12 {
		k.add()
	}
}

// body is a document of the format that the name ends in; one in ten is empty,
// which fails.
func (k *killer) body(name string) string {
	if k.rand.IntN(10) == 0 {
		return ""
	}
	form, before, after := "# Section %d\n\nalpha %x\n\n", "", ""
	switch filepath.Ext(name) {
	case ".html":
		form, before, after = "<h2>Section %d</h2><p>alpha %x</p>", "<html><body><article>", "</article></body></html>"
	case ".txt":
		form = "Section %d\n\nalpha %x\n\n"
	case ".csv":
		form, before = "%d,alpha %x\n", "section,what\n"
	case ".json":
		return fmt.Sprintf(`{"section": %d, "what": "alpha %x"}`, k.rand.IntN(100), k.rand.Uint64())
	}
	var b strings.Builder
	for range 1 + k.rand.IntN(4) {
		fmt.Fprintf(&b, form, k.rand.IntN(100), k.rand.Uint64())
	}
	return before + b.String() + after
}

// name is one that was never used, in some folder, with some ending or the one
// given.
func (k *killer) name(ending string) string {
	k.names++
	if ending == "" {
		ending = []string{".md", ".md", ".txt", ".html", ".csv", ".json"}[k.rand.IntN(6)]
	}
	return filepath.Join([]string{"", "sub", "sub/deep"}[k.rand.IntN(3)], fmt.Sprintf("%03d%s", k.names, ending))
}

func (k *killer) add() {
	name := k.name("")
	k.src.write(k.t, name, k.body(name))
}

// change edits, adds, removes and moves some documents, and sometimes changes
// the model.
func (k *killer) change() {
	items, err := k.src.Items(context.Background())
	must(k.t, err)
	for _, it := range items {
		switch k.rand.IntN(8) {
		case 0, 1:
			body := []byte(k.body(it.Path))
			must(k.t, os.WriteFile(it.Path, body, 0o600))
			if old := k.promised[it.Path]; len(body) == 0 {
				delete(k.promised, it.Path) // withdrawn once it is read
			} else if old != nil {
				k.promised[it.Path] = append(old, RevisionOf(body))
			}
		case 2:
			must(k.t, os.Remove(it.Path))
			delete(k.promised, it.Path)
			k.add()
		case 3:
			to := k.src.path(k.name(filepath.Ext(it.Path)))
			must(k.t, os.MkdirAll(filepath.Dir(to), 0o700))
			must(k.t, os.Rename(it.Path, to))
			delete(k.promised, it.Path)
		}
	}
	if k.rand.IntN(10) == 0 {
		k.model = map[string]string{"fake": "other", "other": "fake"}[k.model]
	}
}

// round runs a child and kills it after a random number of events and a
// random part of the next step. It reports whether the child was still alive.
func (k *killer) round() bool {
	cmd := child("ingest", k.data, k.src.root, k.model)
	out, err := cmd.StdoutPipe()
	must(k.t, err)
	must(k.t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range k.rand.IntN(60) {
		if !lines.Scan() {
			break
		}
		k.promise(lines.Text())
	}
	// Not a wait for anything: it moves the kill to any point between events.
	time.Sleep(time.Duration(k.rand.IntN(3000)) * time.Microsecond)
	must(k.t, cmd.Process.Kill())
	for lines.Scan() { // what it said before it died
		k.promise(lines.Text())
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL) {
		k.t.Fatalf("the child failed by itself: %v", err)
	}
	return err != nil
}

func (k *killer) promise(line string) {
	if path, ok := strings.CutPrefix(line, string(catalog.Published)+" "); ok {
		data, err := os.ReadFile(path)
		must(k.t, err)
		k.promised[path] = []retrieval.Revision{RevisionOf(data)}
	}
}

// check opens what the killed child left behind.
func (k *killer) check() {
	k.t.Helper()
	ctx := context.Background()
	store, err := memindex.Open(k.data)
	must(k.t, err)
	defer func() { must(k.t, store.Close()) }()
	all, _, err := store.Generations(ctx)
	must(k.t, err)
	found := map[string]bool{}
	for _, m := range all {
		g, err := store.Open(ctx, m.Name)
		must(k.t, err)
		docs, err := list(ctx, g)
		must(k.t, err)
		paths, chunks := map[string]bool{}, 0
		for _, d := range docs {
			if paths[d.Path] {
				k.t.Errorf("generation %s holds %s twice", m.Name, d.Path)
			}
			paths[d.Path] = true
			chunks += d.Chunks
			if slices.Contains(k.promised[d.Path], d.Revision) {
				found[d.Path] = true
			}
		}
		if c := g.Counts(); c.Documents != len(docs) || c.Chunks != chunks {
			k.t.Errorf("generation %s counts %+v, holds %d documents with %d chunks", m.Name, c, len(docs), chunks)
		}
	}
	for path, revs := range k.promised {
		if !found[path] {
			k.t.Errorf("%s was published as one of %v and is lost", path, revs)
		}
	}
}

// complete lets a run end and compares index, catalog and source.
func (k *killer) complete() {
	k.t.Helper()
	if k.src == nil {
		return
	}
	b := open(k.t, k.data, modelstest.NewEmbedder(modelstest.WithName(k.model)))
	defer b.close()
	r := b.ingest(k.src, How{Prune: true})
	want, got := map[string]retrieval.Revision{}, map[string]retrieval.Revision{}
	items, err := k.src.Items(context.Background())
	must(k.t, err)
	for _, it := range items {
		data, err := os.ReadFile(it.Path)
		must(k.t, err)
		if len(data) > 0 {
			want[it.Path] = RevisionOf(data)
		}
	}
	if !r.Promoted || len(r.Failed) != len(items)-len(want) || len(r.Refused) != 0 {
		k.t.Errorf("after all kills %d of %d documents are not empty: %+v", len(want), len(items), r)
	}
	if again := b.ingest(k.src, How{Prune: true}); again.Published+again.Removed+again.AccessChanged != 0 || again.Unchanged != len(want) {
		k.t.Errorf("once more: %+v", again)
	}
	g, err := b.store.Open(context.Background(), "")
	must(k.t, err)
	docs, err := list(context.Background(), g)
	must(k.t, err)
	for _, d := range docs {
		got[d.Path] = d.Revision
	}
	if diff := cmp.Diff(want, got); diff != "" || len(docs) != len(want) {
		k.t.Errorf("%d documents in the index for %d files (-source +index):\n%s", len(docs), len(want), diff)
	}
	if n := len(b.search("alpha", acl.Everyone)); n < len(want) && len(want) < 40 {
		k.t.Errorf("%d of %d documents found", n, len(want))
	}
}

// childFull ingests under a limit of file size, which fails writes as a full
// disk does, then without.
func childFull(data, source, limit string) {
	signal.Ignore(syscall.SIGXFSZ) // so that writing fails instead
	n, err := strconv.ParseUint(limit, 10, 64)
	var was syscall.Rlimit
	if err == nil {
		err = syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was)
	}
	var p *Pipeline
	if err == nil {
		p, err = childOpen(data, "fake", nil)
	}
	if err != nil {
		fmt.Println("child:", err)
		os.Exit(1)
	}
	src := &folder{root: source, access: map[string]acl.List{"": everyone}}
	for _, cur := range []uint64{n, was.Cur} {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: cur, Max: was.Max}); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		r, err := p.Ingest(context.Background(), src, How{})
		fmt.Printf("published %d unchanged %d failed %d error %v\n", r.Published, r.Unchanged, len(r.Failed), err)
		for _, f := range r.Failed {
			fmt.Printf("%s retryable %t: %s\n", filepath.Base(f.Path), f.Retryable, f.Reason)
		}
		diffs, err := p.Verify(context.Background())
		fmt.Printf("differences %v %v\n", diffs, err)
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		limit string
		files map[string]string
		want  []string // in this order, in what the child prints
	}{
		{
			name:  "one document is too much: it fails alone, and comes in later",
			limit: "60000",
			files: map[string]string{"big.md": text(strings.Repeat("many words in a row ", 10_000)), "small.md": text("alpha")},
			want: []string{
				"published 1 unchanged 0 failed 1 error <nil>",
				"big.md retryable true: the disk is full, so nothing of it was published; make room and ingest again",
				"differences [] <nil>",
				"published 1 unchanged 1 failed 0 error <nil>",
				"differences [] <nil>",
			},
		},
		{
			name:  "the catalog cannot be written: the run ends, and the next goes on",
			limit: "4000",
			files: map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "c.md": text("gamma")},
			want:  []string{"error writing the catalog: appending to", "file too large", "differences [] <nil>"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src, data := newFolder(t, tc.files), t.TempDir()
			out, err := child("full", data, src.root, tc.limit).Output()
			must(t, err)
			rest := string(out)
			for _, w := range tc.want {
				i := strings.Index(rest, w)
				if i < 0 {
					t.Fatalf("the child did not print %q:\n%s", w, out)
				}
				rest = rest[i+len(w):]
			}
			b := open(t, data, modelstest.NewEmbedder())
			if r := b.ingest(src, How{}); r.Unchanged != len(tc.files) {
				t.Errorf("reopened: %+v\n%s", r, out)
			}
		})
	}
}
