package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	"footnote/cmd/internal/config"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
)

// What doctor says of a source, and what it tells to do: a folder is brought back
// only where it is the folder that is not there.
func TestSourceFindings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s      follow.Status
		err    error
		shared bool
		state  string
		says   string
		does   string // "": nothing
	}{
		"passed over":         {s: follow.Status{Scanned: time.Unix(1, 0)}, state: good, says: "was last passed over"},
		"not yet":             {state: warning, says: "not taken in yet", does: "footnote sync"},
		"its folder is gone":  {s: follow.Status{Error: "reading the source of documents: stat /srv/a: no such file"}, state: failure, says: "no such file", does: "bring the folder back"},
		"Redis is away":       {s: follow.Status{Error: "opening the index: Redis does not answer", Waits: true}, shared: true, state: failure, says: "does not answer", does: "see the check of redis"},
		"Redis refuses":       {s: follow.Status{Error: "opening the index: NOPERM"}, shared: true, state: failure, says: "NOPERM"},
		"too much is gone":    {s: follow.Status{Scanned: time.Unix(1, 0), Held: &ingest.Held{Missing: 3, Of: 4}}, state: warning, says: "3 of 4 documents are gone"},
		"unreadable file":     {err: errors.New("bad JSON"), state: failure, says: "bad JSON", does: "delete sync.json"},
		"unreadable on Redis": {err: errors.New("no answer"), shared: true, state: failure, says: "no answer", does: "see the check of redis"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			cfg.Sources = []config.Source{{Name: "a", Folder: "/srv/a"}}
			if cfg.Index = config.Embedded; c.shared {
				cfg.Index = config.OnRedis
			}
			c.s.Source, c.s.Root = "a", "/srv/a"
			found := checkSources(cfg, func() ([]follow.Status, error) { return []follow.Status{c.s}, c.err })
			if len(found) != 1 || found[0].State != c.state || !strings.Contains(found[0].What, c.says) || !strings.Contains(found[0].Do, c.does) || c.does == "" && found[0].Do != "" {
				t.Errorf("it says %+v, want %s, %q and to %q", found, c.state, c.says, c.does)
			}
		})
	}
}

// An index of which the server has thrown something away is not called right.
func TestIndexFinding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		evicted int64
		state   string
		does    string
	}{
		"whole":        {0, good, ""},
		"thrown from":  {929, failure, "footnote index verify"},
		"a single key": {1, failure, "footnote index verify"},
	} {
		f := indexFinding("generation g", c.evicted)
		if f.State != c.state || !strings.Contains(f.What, "generation g") || !strings.Contains(f.Do, c.does) || c.does == "" && f.Do != "" {
			t.Errorf("%s: it says %+v", name, f)
		}
	}
}
