package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redisindex/redistest"
)

// TestSurvey: an operator sees what waits, what is worked on, what failed, and
// who is there to work.
func TestSurvey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newSite(t, redistest.URL(t))
	look := func() []Standing {
		t.Helper()
		all, err := Survey(ctx, s.link, s.prefix)
		must(t, err)
		for i := range all {
			if (all[i].Oldest > 0) != (all[i].Waiting+all[i].Taken > 0) || all[i].Oldest > time.Minute {
				t.Errorf("the oldest is of %v", all[i].Oldest)
			}
			all[i].Oldest = 0
		}
		return all
	}
	check := func(what string, want ...Standing) {
		t.Helper()
		if d := cmp.Diff(want, look()); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	check("before anything")
	recipe := s.queue.at[len(s.queue.at)-8:]
	tokens := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d", "e:q"} {
		token, err := s.queue.put(ctx, ingest.Task{ID: retrieval.DocumentID(id), Generation: "g"}, []byte("bytes"))
		must(t, err)
		tokens[id] = token
	}
	check("five jobs and nobody", Standing{Recipe: recipe, Waiting: 5})

	h := &hand{Queue: s.queue, me: "worker"}
	must(t, h.create(ctx))
	take := func() *taken {
		t.Helper()
		m, err := h.next(ctx)
		must(t, err)
		if m == nil {
			t.Fatal("there is no entry")
		}
		id, _ := m.Values["d"].(string)
		j, err := h.take(ctx, retrieval.DocumentID(id), m.ID)
		must(t, err)
		must(t, h.begin(ctx, j))
		return j
	}
	must(t, h.finish(ctx, take(), ingest.Done{Chunks: 1}))
	must(t, h.finish(ctx, take(), ingest.Done{Reason: "it is empty"}))
	third := take()
	check("a worker", Standing{Recipe: recipe, Waiting: 2, Taken: 1, Ended: 2, Failed: 1, Workers: 1})
	must(t, beginScript.Run(ctx, s.link, []string{s.queue.job(third.id)}, h.me, third.token).Err())
	check("a second try", Standing{Recipe: recipe, Waiting: 2, Taken: 1, Ended: 2, Failed: 1, Again: 1, Workers: 1})
	must(t, s.link.HSet(ctx, s.queue.job(third.id), "until", 1).Err())
	check("a lease that ran out", Standing{Recipe: recipe, Waiting: 3, Ended: 2, Failed: 1, Again: 1, Workers: 1})
	for id := range tokens {
		must(t, s.queue.Forget(ctx, retrieval.DocumentID(id)))
	}
	check("nothing left", Standing{Recipe: recipe, Workers: 1})
}
