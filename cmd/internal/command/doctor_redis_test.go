package command

import (
	"strings"
	"testing"
	"time"

	"footnote/retrieval/ingest/jobs"
)

// What doctor says of workers and their jobs.
func TestJobFindings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s     jobs.Standing
		state string // "": nothing is said
		says  string
	}{
		"nobody and nothing":       {jobs.Standing{}, "", ""},
		"workers that wait":        {jobs.Standing{Workers: 2}, good, "2 worker(s), 0 document(s) wait"},
		"workers at work":          {jobs.Standing{Workers: 1, Waiting: 3, Taken: 1, Oldest: 90 * time.Second}, good, "sent 1m30s ago"},
		"nobody for documents":     {jobs.Standing{Waiting: 3, Oldest: time.Second}, warning, "start footnote worker"},
		"who had it is gone":       {jobs.Standing{Taken: 1, Oldest: time.Second}, warning, "start footnote worker"},
		"nobody for ends":          {jobs.Standing{Ended: 2, Failed: 1}, warning, "start footnote serve"},
		"too few":                  {jobs.Standing{Workers: 1, Waiting: 500, Oldest: 2 * time.Hour}, warning, "more workers"},
		"a document ends workers":  {jobs.Standing{Workers: 1, Taken: 1, Again: 1, Oldest: time.Minute}, warning, "give them more memory"},
		"ended, with workers left": {jobs.Standing{Workers: 1, Ended: 2, Failed: 1}, good, "2 are done, 1 of them failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := jobFindings(c.s)
			if c.state == "" {
				if len(found) > 0 {
					t.Errorf("it says %v", found)
				}
				return
			}
			last := found[len(found)-1]
			if last.State != c.state || !strings.Contains(last.What+last.Do, c.says) {
				t.Errorf("it says %+v, want %s and a word on %q", found, c.state, c.says)
			}
		})
	}
}
