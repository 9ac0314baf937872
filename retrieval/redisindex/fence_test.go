package redisindex

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// TestFence: a worker changes its document until something else happened to
// that, and never anything afterwards.
func TestFence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		then func(t *testing.T, s *Store, g *Generation)
		want string // revision that is visible after the worker came back, "" none
	}{
		{"nothing happened", func(*testing.T, *Store, *Generation) {}, "r2"},
		{"given to another", func(t *testing.T, s *Store, g *Generation) {
			must(t, s.Fence(t.Context(), g.manifest.Name, "doc", "other"))
		}, "r1"},
		{"tried again by another", func(t *testing.T, s *Store, g *Generation) {
			_, err := s.Under(t.Context(), g.manifest.Name, "doc", "token", 2)
			must(t, err)
		}, "r1"},
		{"finished", func(t *testing.T, s *Store, g *Generation) {
			must(t, s.Unfence(t.Context(), g.manifest.Name, "doc", "token"))
		}, "r1"},
		{"another's fence is not ended", func(t *testing.T, s *Store, g *Generation) {
			must(t, s.Unfence(t.Context(), g.manifest.Name, "doc", "toke"))
		}, "r2"},
		{"another document was removed", func(t *testing.T, _ *Store, g *Generation) { must(t, g.Remove(t.Context(), "doc2")) }, "r2"},
		{"removed", func(t *testing.T, _ *Store, g *Generation) { must(t, g.Remove(t.Context(), "doc")) }, ""},
		{"opened to fewer", func(t *testing.T, _ *Store, g *Generation) {
			must(t, g.SetAccess(t.Context(), "doc", acl.NewList(acl.Group("hr"))))
		}, "r1"},
		{"published by who holds no fence", func(t *testing.T, _ *Store, g *Generation) { publish(t, g, "doc", "r3", everyone, "key three") }, "r3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, Options{})
			g := create(t, s)
			publish(t, g, "doc", "r1", everyone, "key one")
			must(t, s.Fence(t.Context(), g.manifest.Name, "doc", "token"))
			worker, err := s.Under(t.Context(), g.manifest.Name, "doc", "token", 1)
			must(t, err)
			tc.then(t, s, g)
			published := worker.Publish(t.Context(), indextest.Publication("doc", "r2", everyone, "key two", "key more"))
			if err := worker.Publish(t.Context(), indextest.Publication("else", "r1", everyone, "key")); !errors.Is(err, retrieval.ErrFenced) {
				t.Errorf("another document gives %v", err)
			}
			holds := tc.want == "r2"
			if holds != (published == nil) || !holds && !errors.Is(published, retrieval.ErrFenced) {
				t.Errorf("publishing gives %v", published)
			}
			if !holds {
				for what, err := range map[string]error{
					"opening":  worker.SetAccess(t.Context(), "doc", everyone),
					"removing": worker.Remove(t.Context(), "doc"),
				} {
					absent := tc.want == "" && (err == nil || errors.Is(err, retrieval.ErrNotFound))
					if !errors.Is(err, retrieval.ErrFenced) && !absent {
						t.Errorf("%s gives %v", what, err)
					}
				}
			}
			d, err := g.Document(t.Context(), member("hr"), "doc", "")
			if string(d.Revision) != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("visible is %q, %v; want %q", d.Revision, err, tc.want)
			}
			report, err := g.Verify(t.Context())
			must(t, err)
			if len(report.Problems) != 0 {
				t.Errorf("Verify gives %+v", report)
			}
		})
	}
}

// TestFenceOfWhatIsNotThere: a document that was given away and is removed
// before it was ever published does not come afterwards.
func TestFenceOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	g := create(t, s)
	must(t, s.Fence(t.Context(), g.manifest.Name, "doc", "token"))
	worker, err := s.Under(t.Context(), g.manifest.Name, "doc", "token", 1)
	must(t, err)
	must(t, g.Remove(t.Context(), "doc"))
	if err := worker.Publish(t.Context(), indextest.Publication("doc", "r1", everyone, "key")); !errors.Is(err, retrieval.ErrFenced) {
		t.Errorf("publishing gives %v", err)
	}
	if _, err := s.Under(context.Background(), g.manifest.Name, "doc", "token", 2); !errors.Is(err, retrieval.ErrFenced) {
		t.Errorf("another try gives %v", err)
	}
	if n := g.Counts(); n.Documents != 0 {
		t.Errorf("there are %+v", n)
	}
}

// TestConditions: what was decided by something that is not so any more is not
// done, whatever it is: a change, or a fence for the work of others.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		then func(t *testing.T, s *Store, at string)
		done bool
	}{
		{"all is as it was", func(*testing.T, *Store, string) {}, true},
		{"the key is another's", func(t *testing.T, s *Store, at string) {
			must(t, s.client.Set(t.Context(), at+"lease", "you", 0).Err())
		}, false},
		{"the key is gone", func(t *testing.T, s *Store, at string) { must(t, s.client.Del(t.Context(), at+"lease").Err()) }, false},
		{"the field is another", func(t *testing.T, s *Store, at string) {
			must(t, s.client.HSet(t.Context(), at+"docs", "a", "2").Err())
		}, false},
		{"the field that was absent is there", func(t *testing.T, s *Store, at string) {
			must(t, s.client.HSet(t.Context(), at+"docs", "b", "1").Err())
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, Options{})
			g := create(t, s)
			publish(t, g, "doc", "r1", everyone, "key one")
			publish(t, g, "doc2", "r1", everyone, "key two")
			at := s.o.Prefix + ":"
			must(t, s.client.Set(t.Context(), at+"lease", "me", 0).Err())
			must(t, s.client.HSet(t.Context(), at+"docs", "a", "1").Err())
			ctx := redislink.While(t.Context(), redislink.Condition{Key: at + "lease", Value: "me"})
			ctx = redislink.While(ctx, redislink.Condition{Key: at + "docs", Field: "a", Value: "1"}, redislink.Condition{Key: at + "docs", Field: "b"})
			tc.then(t, s, at)
			for what, do := range []func() error{
				func() error { return g.Publish(ctx, indextest.Publication("new", "r1", everyone, "key three")) },
				func() error { return g.SetAccess(ctx, "doc", acl.NewList(acl.Group("hr"))) },
				func() error { return g.Remove(ctx, "doc2") },
				func() error { return s.Fence(ctx, g.manifest.Name, "doc", "token") },
			} {
				if err := do(); tc.done != (err == nil) || err != nil && !errors.Is(err, retrieval.ErrFenced) {
					t.Errorf("change %d gives %v", what, err)
				}
			}
			docs, err := again(t, g).Documents(t.Context(), system.Grant())
			must(t, err)
			got := map[string]string{}
			for _, d := range docs {
				got[string(d.ID)] = d.Access.String()
			}
			want := map[string]string{"doc": "everyone", "doc2": "everyone"}
			if tc.done {
				want = map[string]string{"doc": "group:hr", "new": "everyone"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			fenced, err := s.Fenced(t.Context(), g.manifest.Name, "doc", "token")
			must(t, err)
			if fenced != tc.done {
				t.Errorf("the fence stands: %t", fenced)
			}
		})
	}
}

// TestLeaderThatSlept: of processes that take turns in deciding, one that was
// stopped while another took over lands nothing that it was about to do, also
// where it does not know yet.
func TestLeaderThatSlept(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	g := create(t, s)
	publish(t, g, "doc", "r1", acl.NewList(acl.Group("hr")), "key one")
	link, err := redislink.Open(redislink.Options{URL: redistest.URL(t)})
	must(t, err)
	t.Cleanup(func() { must(t, link.Close()) })
	lead := func(who string) (context.Context, context.CancelFunc) {
		ctx, stop := context.WithCancel(t.Context())
		begun := make(chan context.Context)
		go func() {
			_ = link.NewLease(s.o.Prefix+":sources", who, time.Minute).Hold(ctx, func(ctx context.Context) error {
				begun <- ctx
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		return context.WithoutCancel(<-begun), stop
	}
	first, stop := lead("first")
	defer stop()
	must(t, g.SetAccess(first, "doc", everyone))
	// Its lease runs out while it is stopped.
	must(t, s.client.Del(t.Context(), s.o.Prefix+":sources").Err())
	second, stop := lead("second")
	defer stop()
	must(t, g.SetAccess(second, "doc", acl.NewList(acl.Group("it"))))
	if err := g.SetAccess(first, "doc", everyone); !errors.Is(err, retrieval.ErrFenced) {
		t.Errorf("opening it to all gives %v", err)
	}
	if err := s.Fence(first, g.manifest.Name, "doc", "token"); !errors.Is(err, retrieval.ErrFenced) {
		t.Errorf("giving it away gives %v", err)
	}
	docs, err := again(t, g).Documents(t.Context(), system.Grant())
	if err != nil || len(docs) != 1 || docs[0].Access.String() != "group:it" {
		t.Errorf("in force is %v, %v", docs, err)
	}
}
