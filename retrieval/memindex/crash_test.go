package memindex

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
)

// step makes the n-th change of an endless, fixed sequence: documents of many
// sizes are published, replaced, given other lists and removed, and the log is
// compacted now and then.
func step(ctx context.Context, g *Generation, n int) error {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	id := fmt.Sprintf("doc%02d", r.IntN(25))
	list := acl.NewList(group(r.IntN(4)), acl.Everyone)
	switch k := r.IntN(20); {
	case k == 0:
		return g.Remove(ctx, docID(id))
	case k == 1:
		return g.Compact(ctx)
	case k < 4:
		if err := g.SetAccess(ctx, docID(id), list); !errors.Is(err, retrieval.ErrNotFound) {
			return err
		}
		return nil
	}
	texts := make([]string, 1+r.IntN(6))
	for i := range texts {
		texts[i] = fmt.Sprintf("common w%d step%d %s", r.IntN(5), n, strings.Repeat("x", 1<<r.IntN(19)))
	}
	return g.Publish(ctx, indextest.Publication(id, fmt.Sprintf("r%d", n), list, texts...))
}

// writeForEver is the child: it says each change once it is acknowledged.
func writeForEver(dir, from string) error {
	n, err := strconv.Atoi(from)
	if err != nil {
		return err
	}
	s, err := Open(dir)
	if err != nil {
		return err
	}
	g, err := s.Open(context.Background(), "")
	if err != nil {
		return err
	}
	for ; ; n++ {
		if err := step(context.Background(), g.(*Generation), n); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
	}
}

// TestKilledWriter kills a writing process at random points, 25 times or as
// often as FOOTNOTE_KILLS says. Every acknowledged change must be there, and
// of the change that was under way all or nothing.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	kills := 25
	if s := os.Getenv("FOOTNOTE_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		kills = n
	}
	dir, s, _ := started(t)
	must(t, s.Close())
	model, done, halfway := newGeneration(t), 0, 0
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for kill := range kills {
		acked := writeAndKill(t, dir, done, r.IntN(12), r.IntN(4000))
		for ; done < acked; done++ {
			must(t, step(t.Context(), model, done))
		}
		s, err := Open(dir)
		must(t, err)
		g, err := s.Open(t.Context(), "")
		if err != nil {
			t.Fatalf("kill %d, after change %d: %v", kill, done, err)
		}
		got := show(t, g)
		must(t, s.Close())
		if cmp.Equal(show(t, model), got) {
			continue
		}
		halfway++ // then the change under way must be there as a whole
		must(t, step(t.Context(), model, done))
		done++
		if diff := cmp.Diff(show(t, model), got); diff != "" {
			t.Fatalf("kill %d, after change %d (-want +got):\n%s", kill, done, diff)
		}
	}
	t.Logf("%d kills, %d changes, %d of them durable without having been acknowledged", kills, done, halfway)
}

// writeAndKill lets a child write from change n on, kills it a little after
// it has acknowledged some changes, and returns the first that was not.
func writeAndKill(t *testing.T, dir string, n, some, little int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"=writer", childDir+"="+dir, fmt.Sprintf("%s=%d", childFrom, n))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		got, err := strconv.Atoi(lines.Text())
		if err != nil || got != n {
			t.Fatalf("the child says %q after change %d", lines.Text(), n-1)
		}
		n++
		if i == some {
			for range little * 100 { // passes time without a clock
				rand.Uint64()
			}
			must(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("the child ended by itself: %v\n%s", err, &stderr)
	}
	return n
}

// fillDisk is the child whose files may have 300 kB: the kernel refuses the
// rest of a write in the middle of a record.
func fillDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	s, err := Open(dir)
	if err != nil {
		return err
	}
	gen, err := s.Open(context.Background(), "")
	if err != nil {
		return err
	}
	g, hard := gen.(*Generation), limit.Cur
	limit.Cur = 300_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	large := strings.Repeat("x", 40_000)
	for n := 0; ; n++ {
		p := indextest.Publication(fmt.Sprintf("doc%d", n%3), fmt.Sprintf("r%d", n), acl.NewList(acl.Everyone), "common w1", large)
		if err = g.Publish(context.Background(), p); err != nil {
			break
		}
		fmt.Println(n)
	}
	if !errors.Is(err, syscall.EFBIG) {
		return err
	}
	// What fits can still be published, and the rest when there is room.
	if err := g.SetAccess(context.Background(), "doc0", acl.NewList(group(1))); err != nil {
		return fmt.Errorf("a small change after the failure: %w", err)
	}
	if err := g.Compact(context.Background()); err != nil && !errors.Is(err, syscall.EFBIG) {
		return err
	}
	limit.Cur = hard
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	return g.Publish(context.Background(), indextest.Publication("later", "r1", acl.NewList(acl.Everyone), large))
}

func TestFullDiskWhilePublishing(t *testing.T) {
	t.Parallel()
	dir, s, _ := started(t)
	must(t, s.Close())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"=full disk", childDir+"="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	acked := strings.Fields(string(out))
	if len(acked) < 2 {
		t.Fatalf("only %d documents were published", len(acked))
	}
	g, err := openStore(t, dir).Open(t.Context(), "")
	must(t, err)
	model, large := newGeneration(t), strings.Repeat("x", 40_000)
	for n := range acked {
		must(t, model.Publish(t.Context(), indextest.Publication(fmt.Sprintf("doc%d", n%3), fmt.Sprintf("r%d", n), acl.NewList(acl.Everyone), "common w1", large)))
	}
	must(t, model.SetAccess(t.Context(), "doc0", acl.NewList(group(1))))
	must(t, model.Publish(t.Context(), indextest.Publication("later", "r1", acl.NewList(acl.Everyone), large)))
	if diff := cmp.Diff(show(t, model), show(t, g)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestChangedByte changes single bytes of every file. Whatever opens must show
// what was written; everything else must be called damaged.
func TestChangedByte(t *testing.T) {
	t.Parallel()
	dir, s, g := started(t)
	busy(t, g)
	want := show(t, g)
	must(t, s.Close())
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	noticed := 0
	for _, file := range []string{s.alias(), s.path(g.manifest.Name, manifestFile), s.path(g.manifest.Name, logFile)} {
		whole, err := os.ReadFile(file)
		must(t, err)
		for range 150 {
			at, change := r.IntN(len(whole)), byte(1+r.IntN(255))
			spoilt := bytes.Clone(whole)
			spoilt[at] ^= change
			must(t, os.WriteFile(file, spoilt, 0o600))
			got, err := openAndRead(t, dir)
			switch {
			case errors.Is(err, retrieval.ErrCorrupt) && err.Error() != "":
				noticed++
			case err != nil:
				t.Errorf("%s byte %d ^%#x: %v", file, at, change, err)
			case !cmp.Equal(want, got):
				t.Errorf("%s byte %d ^%#x: wrong data without an error\n%s", file, at, change, cmp.Diff(want, got))
			}
		}
		must(t, os.WriteFile(file, whole, 0o600))
	}
	if noticed < 340 { // dead chunks are never read
		t.Errorf("only %d of 450 changes were noticed", noticed)
	}
}

func openAndRead(t *testing.T, dir string) (everything, error) {
	s, err := Open(dir)
	must(t, err)
	defer s.Close()
	g, err := s.Open(t.Context(), "")
	if err != nil {
		return everything{}, err
	}
	return readAll(g)
}
