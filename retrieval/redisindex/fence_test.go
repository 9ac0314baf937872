package redisindex

import (
	"context"
	"errors"
	"testing"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
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
