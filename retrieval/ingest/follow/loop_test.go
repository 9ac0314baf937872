package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
)

// source is a Source of which only the name counts.
type source string

func (s source) Root() string                                             { return string(s) }
func (source) Items(context.Context) ([]ingest.Item, error)               { return nil, nil }
func (source) Read(context.Context, string) (c ingest.Content, err error) { return c, nil }
func (source) Gone(string) bool                                           { return false }

// fake is a pipeline that notes what it is asked for.
type fake struct {
	start time.Time

	mu   sync.Mutex
	log  []string
	work job
}

type job func(ctx context.Context, root string, how ingest.How) (ingest.Report, error)

// does sets what passes do from now on.
func (f *fake) does(w job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work = w
}

func (f *fake) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf("%v ", time.Since(f.start))+fmt.Sprintf(format, args...))
}

func (f *fake) Ingest(ctx context.Context, src ingest.Source, how ingest.How) (r ingest.Report, err error) {
	what := "all"
	if how.Only != nil {
		what = strings.Join(how.Only, " ")
	}
	f.note("%s: %s", src.Root(), what)
	f.mu.Lock()
	work := f.work
	f.mu.Unlock()
	if work != nil {
		r, err = work(ctx, src.Root(), how)
	}
	if err != nil {
		f.note("%s: %v", src.Root(), err)
	}
	return r, err
}

func (f *fake) Plan(context.Context, ingest.Source, ingest.How) (p ingest.Plan, err error) {
	return p, nil
}

func (f *fake) Compact(context.Context) error {
	f.note("compact")
	return nil
}

// scene is a loop over one source, with what happens to it.
type scene struct {
	*fake
	loop   *Loop
	change func(path string, urgent bool)
	cancel context.CancelFunc
}

// after lets time pass; synctest has all that is due happen in it.
func (s *scene) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// run plays acts in a bubble and compares what the pipeline was asked for.
func run(t *testing.T, o Options, acts func(s *scene), want ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{fake: &fake{start: time.Now()}}
		changes := make(chan Change)
		s.loop = New(s.fake, []Feed{{Name: "docs", Source: source("/d"), Watch: func(ctx context.Context, changed func(Change)) error {
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case c := <-changes:
					changed(c)
				}
			}
		}}}, o)
		s.change = func(path string, urgent bool) { changes <- Change{path, urgent} }
		ctx, cancel := context.WithCancel(t.Context())
		s.cancel = cancel
		done := make(chan error)
		go func() { done <- s.loop.Run(ctx) }()
		synctest.Wait()
		acts(s)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(want, s.log); d != "" {
			t.Errorf("asked for (-want +got):\n%s", d)
		}
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	// busy makes full passes take long, unless they are interrupted.
	busy := func(ctx context.Context, _ string, how ingest.How) (r ingest.Report, err error) {
		if how.Only == nil && !pause(ctx, 20*time.Second) {
			err = context.Cause(ctx)
		}
		return r, err
	}
	for _, tc := range []struct {
		name string
		acts func(s *scene)
		want []string
	}{
		{"full passes at once and at every interval", func(s *scene) { s.after(2 * time.Minute) },
			[]string{"0s /d: all", "1m0s /d: all", "2m0s /d: all"}},
		{"a change, once it is at rest", func(s *scene) {
			s.after(time.Second)
			s.change("/d/a", false)
			s.after(200 * ms)
			s.change("/d/a", false)
			s.after(time.Second)
		}, []string{"0s /d: all", "1.5s /d: /d/a"}},
		{"a file that never rests", func(s *scene) {
			s.after(time.Second)
			for range 30 {
				s.change("/d/a", false)
				s.after(200 * ms)
			}
		}, []string{"0s /d: all", "4s /d: /d/a", "7s /d: /d/a"}},
		{"the removal of a folder is one", func(s *scene) {
			s.after(time.Second)
			for i := range 5 {
				s.change(fmt.Sprint("/d/", i), true)
				s.after(200 * ms)
			}
			s.after(time.Second)
		}, []string{"0s /d: all", "2.1s /d: /d/0 /d/1 /d/2 /d/3 /d/4"}},
		{"a removal goes before content, but with the other half of a move", func(s *scene) {
			s.after(time.Second)
			s.change("/d/new", false)
			s.after(700 * ms)
			s.change("/d/old", true)
			s.change("/d/moved", false)
			s.change("/d/other", false)
			s.after(time.Second)
		}, []string{"0s /d: all", "1.3s /d: /d/new", "2s /d: /d/moved /d/old /d/other"}},
		{"a removal interrupts a long pass, which is made again", func(s *scene) {
			s.does(busy)
			s.after(59 * time.Second)
			s.after(6 * time.Second) // in the pass that began at 80 s or so
			s.change("/d/a", true)
			s.after(30 * time.Second)
		}, []string{"0s /d: all", "1m0s /d: all", "1m5.3s /d: interrupted by something more urgent", "1m5.3s /d: /d/a", "1m5.3s /d: all"}},
		{"content interrupts nothing that is lost with it", func(s *scene) {
			s.does(busy)
			s.after(65 * time.Second)
			s.change("/d/a", false)
			s.after(20 * time.Second)
		}, []string{"0s /d: all", "1m0s /d: all", "1m20s /d: /d/a"}},
		{"a pass that just began is left in peace", func(s *scene) {
			s.does(busy)
			s.after(60 * time.Second)
			s.change("/d/a", true)
			s.after(30 * time.Second)
		}, []string{"0s /d: all", "1m0s /d: all", "1m1s /d: interrupted by something more urgent", "1m1s /d: /d/a", "1m1s /d: all"}},
		{"a source that cannot be listed is tried at the interval", func(s *scene) {
			s.does(func(context.Context, string, ingest.How) (r ingest.Report, err error) {
				return r, errors.New("not mounted")
			})
			s.after(61 * time.Second)
			if st := s.loop.Status()[0]; st.Error != "not mounted" || st.Waits || !st.Watching {
				s.note("status %+v", st)
			}
		}, []string{"0s /d: all", "1m0s /d: all", "1m0s /d: not mounted"}},
		{"an index that does not answer is asked again soon, and for what was noticed", func(s *scene) {
			s.after(time.Second)
			s.does(func(context.Context, string, ingest.How) (r ingest.Report, err error) {
				return r, fmt.Errorf("sharing: %w", retrieval.ErrUnavailable)
			})
			s.change("/d/a", false)
			s.after(3 * time.Second)
			if st := s.loop.Status()[0]; st.Error == "" || !st.Waits {
				s.note("away: status %+v", st)
			}
			s.does(nil)
			s.after(2 * time.Second)
			if st := s.loop.Status()[0]; st.Error != "" || st.Waits {
				s.note("back: status %+v", st)
			}
		}, []string{"0s /d: all", "1.3s /d: /d/a", "1.3s /d: sharing: the index is unavailable", "3.3s /d: /d/a", "3.3s /d: sharing: the index is unavailable", "5.3s /d: /d/a", "5.3s /d: all"}},
		{"what was published or removed makes compaction worth asking", func(s *scene) {
			s.after(time.Second)
			s.does(func(_ context.Context, _ string, how ingest.How) (r ingest.Report, err error) {
				how.Told(ingest.Event{Path: "/d/a", State: catalog.Removed, Effect: ingest.Removal})
				return r, nil
			})
			s.change("/d/a", true)
			s.after(time.Second)
		}, []string{"0s /d: all", "1.3s /d: /d/a", "1.3s compact"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			run(t, Options{}, tc.acts, tc.want...)
		})
	}
}

// TestResumes: where a pass loses nothing, an edit need not wait for others.
func TestResumes(t *testing.T) {
	t.Parallel()
	run(t, Options{Resumes: true}, func(s *scene) {
		s.does(func(ctx context.Context, _ string, how ingest.How) (r ingest.Report, err error) {
			if how.Only == nil && !pause(ctx, 20*time.Second) {
				err = context.Cause(ctx)
			}
			return r, err
		})
		s.after(65 * time.Second)
		s.change("/d/a", false)
		s.after(25 * time.Second)
	}, "0s /d: all", "1m0s /d: all", "1m5.3s /d: interrupted by something more urgent", "1m5.3s /d: /d/a", "1m5.3s /d: all")
}

func TestRetries(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	work := func(_ context.Context, _ string, how ingest.How) (r ingest.Report, err error) {
		state := catalog.Published
		again := how.Again == nil || how.Again(catalog.Record{Path: "/d/a"})
		if broken.Load() {
			state = catalog.Failed
			r.Failed = []ingest.Trouble{{Path: "/d/a", Retryable: true}, {Path: "/d/b"}}
		}
		if again || !broken.Load() {
			how.Told(ingest.Event{Path: "/d/a", State: state})
		}
		return r, nil
	}
	run(t, Options{Interval: time.Hour}, func(s *scene) {
		s.after(time.Second)
		s.does(work)
		s.change("/d/a", false)
		s.after(10 * time.Minute)
		broken.Store(false)
		s.after(40 * time.Minute)
	}, "0s /d: all", "1.3s /d: /d/a", "31.3s /d: /d/a", "1m31.3s /d: /d/a", "3m31.3s /d: /d/a", "7m31.3s /d: /d/a", "15m31.3s /d: /d/a")
}

func TestLevels(t *testing.T) {
	t.Parallel()
	run(t, Options{}, func(s *scene) {
		s.does(func(_ context.Context, _ string, how ingest.How) (r ingest.Report, err error) {
			time.Sleep(time.Second)
			how.Told(ingest.Event{Path: "/d/sub/a", State: catalog.Published, Effect: ingest.Renewal})
			return r, nil
		})
		s.after(10 * time.Second)
		s.change("/d/sub", false) // the folder tells for what lies in it
		s.after(50 * time.Second)
		s.after(2 * time.Second) // a full pass finds what was not noticed
		var got []string
		for _, l := range s.loop.Levels() {
			got = append(got, fmt.Sprint(l.Kind, " ", l.Count, " ", l.P50, " ", l.P95))
		}
		s.note("%v", got)
	}, "0s /d: all", "10.3s /d: /d/sub", "11.3s compact", "1m0s /d: all", "1m1s compact", "1m2s [content 2 1.3s 1m1s access 0 0s 0s removal 0 0s 0s]")

	c := newClock()
	for i := range 100 {
		c.took(ingest.Removal, time.Duration(i+1)*time.Second)
	}
	want := Level{ingest.Removal, 100, 50 * time.Second, 95 * time.Second, 100 * time.Second}
	if d := cmp.Diff(want, c.levels()[2]); d != "" {
		t.Errorf("levels (-want +got):\n%s", d)
	}
}

// What is in force before its pass counts at once, and only once.
func TestInForceAheadOfThePass(t *testing.T) {
	t.Parallel()
	run(t, Options{}, func(s *scene) {
		pass := func(e ingest.Event) {
			s.does(func(_ context.Context, _ string, how ingest.How) (r ingest.Report, err error) {
				how.Told(e)
				return r, nil
			})
			s.change(e.Path, true)
			s.after(time.Second)
		}
		counts := func() {
			var got []string
			for _, l := range s.loop.Levels() {
				got = append(got, fmt.Sprint(l.Kind, " ", l.Count, " ", l.Max))
			}
			s.note("%v", got)
		}
		s.after(10 * time.Second)
		s.loop.InForce(time.Millisecond, ingest.Event{Path: "/d/a", Effect: ingest.AccessChange}, ingest.Event{Path: "/d/b", Effect: ingest.Removal}, ingest.Event{Path: "/d/c"})
		counts()
		pass(ingest.Event{Path: "/d/a", State: catalog.Embedding})
		pass(ingest.Event{Path: "/d/a", State: catalog.Published, Effect: ingest.AccessChange})
		pass(ingest.Event{Path: "/d/b", State: catalog.Removed})
		counts()
		pass(ingest.Event{Path: "/d/a", State: catalog.Published, Effect: ingest.AccessChange})
		counts()
	}, "0s /d: all", "10s [content 0 0s access 1 1ms removal 1 1ms]",
		"10.3s /d: /d/a", "10.3s compact", "11.3s /d: /d/a", "11.3s compact", "12.3s /d: /d/b", "13s [content 0 0s access 1 1ms removal 1 1ms]",
		"13.3s /d: /d/a", "13.3s compact", "14s [content 0 0s access 2 300ms removal 1 1ms]")
}

func TestSync(t *testing.T) {
	t.Parallel()
	f := &fake{start: time.Now()}
	var hows []ingest.How
	f.does(func(_ context.Context, root string, how ingest.How) (r ingest.Report, err error) {
		hows = append(hows, how)
		if root == "/b" {
			err = errors.New("not mounted")
		}
		return r, err
	})
	l := New(f, []Feed{{Name: "a", Source: source("/a")}, {Name: "b", Source: source("/b")}, {Name: "c", Source: source("/a/c")}}, Options{MaxRemoved: .3})
	if _, err := l.Sync(t.Context(), Request{Sources: []string{"x"}}); err == nil || err.Error() != `there is no source "x"; there is: a, b, c` {
		t.Errorf("an unknown source gives %v", err)
	}
	out, err := l.Sync(t.Context(), Request{Sources: []string{"a", "b"}, Remove: true})
	if err != nil || len(out) != 2 || out[0].Err != nil || out[1].Err == nil || len(hows) != 2 {
		t.Fatalf("sync gives %+v, %v", out, err)
	}
	if h := hows[0]; h.Name != "a" || h.MaxRemoved != 0 || h.Only != nil || h.Again != nil || !h.Prune {
		t.Errorf("an operator's pass was made so: %+v", h)
	}
	if _, err = l.Sync(t.Context(), Request{Sources: []string{"a"}, Only: []string{"/a/x"}}); err != nil || hows[2].MaxRemoved != .3 || len(hows[2].Only) != 1 {
		t.Errorf("a pass over one path was made so: %+v, %v", hows[2], err)
	}
	for path, want := range map[string]string{"/a/x": "a", "/a/c/x": "c", "/b": "b", "/ab": "", "c": ""} {
		if name, ok := l.Owner(path); name != want || ok != (want != "") {
			t.Errorf("%s is of %q", path, name)
		}
	}
}

func TestStatusIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if all, err := ReadStatus(dir); all != nil || err != nil {
		t.Errorf("without a file: %v, %v", all, err)
	}
	want := []Status{{Source: "a", Root: "/a", Scanned: time.Unix(1, 0).UTC(), Held: &ingest.Held{Missing: 3, Of: 4}}}
	if err := WriteStatus(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadStatus(dir)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("status (-want +got), %v:\n%s", err, d)
	}
}
