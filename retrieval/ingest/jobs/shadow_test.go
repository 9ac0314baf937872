package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl/system"
	"footnote/models/modelstest"
	"footnote/retrieval/catalog/rediscatalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redisindex/redistest"
)

// serves lists the access lists of the generation in use, by name.
func (s *site) serves() map[string]string {
	s.t.Helper()
	g, err := s.store.Open(s.t.Context(), "")
	must(s.t, err)
	docs, err := g.Documents(s.t.Context(), system.Grant())
	must(s.t, err)
	out := map[string]string{}
	for _, d := range docs {
		out[filepath.Base(d.Path)] = d.Access.String()
	}
	return out
}

// shadow builds by another recipe, in a process that knows what the server
// holds, and ends at the nth event.
func (s *site) shadow(n int, hands ingest.Hands) {
	s.t.Helper()
	ctx, end := context.WithCancel(s.t.Context())
	defer end()
	cat, err := rediscatalog.Open(ctx, s.link, s.prefix)
	must(s.t, err)
	defer func() { must(s.t, cat.Close()) }()
	events, o := 0, ingest.Options{Hands: hands}
	o.Chunk.Budget = 100
	o.Progress = func(ingest.Event) {
		if events++; events == n {
			end()
		}
	}
	if _, err := ingest.New(s.store, cat, modelstest.NewEmbedder(), o).Ingest(ctx, s, ingest.How{}); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Fatal(err)
	}
}

// TestShadowCutOff: a shadow build that ends at any step leaves what is served
// as it was, whether the leader does the work or has handed it out.
func TestShadowCutOff(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 10; n++ {
		for _, given := range []bool{false, true} {
			if given && n > 2 {
				continue // nobody works, so both documents wait
			}
			t.Run(fmt.Sprintf("event %d, handed out %t", n, given), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, redistest.URL(t))
				s.write("a.md", 1)
				must(t, os.WriteFile(filepath.Join(s.root, "own.md"), []byte("---\naccess: [seoul]\n---\n# Title\n\nalpha\n"), 0o600))
				_, err := ingest.New(s.store, s.cat, modelstest.NewEmbedder(), ingest.Options{}).Ingest(t.Context(), s, ingest.How{})
				must(t, err)
				want := map[string]string{"a.md": "everyone", "own.md": "group:seoul"}
				for times := range 4 {
					if diff := cmp.Diff(want, s.serves()); diff != "" {
						t.Fatalf("cut off %d times (-before +after):\n%s", times, diff)
					}
					if given {
						s.shadow(n, s.queue)
					} else {
						s.shadow(n, nil)
					}
				}
			})
		}
	}
}
