package assemble

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/files"
	"footnote/cmd/internal/config"
	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/redisindex/redistest"
)

// All replicas say the same of the sources: what was found last by whoever kept
// up with them, and never that the Redis was away for one of them.
func TestSinceBefore(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1, 0).UTC(), time.Unix(2, 0).UTC()
	never, passed := follow.Status{Source: "a", Root: "/a"}, follow.Status{Source: "a", Root: "/a", Scanned: early}
	again, broken := follow.Status{Source: "a", Root: "/a", Scanned: late}, follow.Status{Source: "a", Root: "/a", Error: "not mounted"}
	away, elsewhere := follow.Status{Source: "a", Root: "/a", Error: "Redis does not answer", Waits: true}, follow.Status{Source: "a", Root: "/elsewhere", Scanned: early}
	for name, c := range map[string]struct{ before, now, want follow.Status }{
		"the first pass":                    {follow.Status{}, passed, passed},
		"another pass":                      {passed, again, again},
		"a failure":                         {passed, broken, broken},
		"what failed is right again":        {broken, again, again},
		"no pass yet after another's":       {passed, never, passed},
		"no pass yet after another failed":  {broken, never, broken},
		"the Redis was away":                {passed, away, passed},
		"the Redis was away at a failure":   {broken, away, broken},
		"the Redis was away from the start": {follow.Status{}, away, never},
		"its folder is another now":         {elsewhere, never, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			others := follow.Status{Source: "b", Root: "/b", Scanned: late}
			got := sinceBefore([]follow.Status{c.before, others}, []follow.Status{c.now})
			if diff := cmp.Diff([]follow.Status{c.want}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What one process finds, another one tells; and a replica that gave up the lead
// does not tell what it found when it had it.
func TestSources_Shared(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Redis.URL, c.Index = "redis://"+redistest.New(t, t.TempDir()).Address, config.OnRedis
	states := make([]*State, 2)
	for i := range states {
		c.Data = t.TempDir()
		var err error
		if states[i], err = openShared(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = states[i].Close() })
	}
	if all, err := states[0].Sources(t.Context()); len(all) > 0 || err != nil {
		t.Errorf("before the first pass: %v, %v", all, err)
	}
	folder, err := files.New(t.TempDir(), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []follow.Status{{Source: "a", Root: folder.Root(), Scanned: time.Unix(1, 0).UTC(), Error: "not mounted"}}
	if err := states[0].keepSources(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := states[1].Sources(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("to another process (-want +got), %v:\n%s", err, diff)
	}
	in := &Ingester{Library: &Library{state: states[1]}}
	in.Loop = follow.New(nil, []follow.Feed{{Name: "a", Source: NewDocuments(c, folder)}}, follow.Options{})
	s := &Service{App: &App{state: states[1]}, Ingester: in, lead: newLead()}
	if diff := cmp.Diff(want, s.sources(t.Context())); diff != "" {
		t.Errorf("without the lead it tells (-want +got):\n%s", diff)
	}
	if err := s.lead.during(t.Context(), func(ctx context.Context) error {
		if diff := cmp.Diff(in.Loop.Status(), s.sources(ctx)); diff != "" {
			t.Errorf("with the lead it tells (-want +got):\n%s", diff)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, s.sources(t.Context())); diff != "" {
		t.Errorf("after it gave up the lead it tells (-want +got):\n%s", diff)
	}
}
