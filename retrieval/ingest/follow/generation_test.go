package follow

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/ingest"
)

// What passes make of the generations is logged when it changes, and all of them
// keep what a person promoted.
func TestLoop_TellsOfGenerations(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := &fake{}
	l := New(f, []Feed{{Name: "a", Source: source("/a")}, {Name: "b", Source: source("/b")}}, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tc := range []struct {
		name   string
		report ingest.Report
		want   []string // the whys and was's of the log
	}{
		{"nothing to say", ingest.Report{Promoted: true}, nil},
		{"kept, both sources", ingest.Report{Generation: "g2", Withheld: "chosen"}, []string{"why=chosen"}},
		{"kept still", ingest.Report{Generation: "g2", Withheld: "chosen"}, nil},
		{"kept for something else", ingest.Report{Generation: "g2", Withheld: "missing"}, []string{"why=missing"}},
		{"in use again", ingest.Report{Generation: "g2", Promoted: true}, nil},
		{"kept again", ingest.Report{Generation: "g2", Withheld: "missing"}, []string{"why=missing"}},
		{"replaced", ingest.Report{Generation: "g2", Promoted: true, Replaced: "g1"}, []string{"was=g1", "was=g1"}},
	} {
		log.Reset()
		f.does(func(_ context.Context, _ string, how ingest.How) (ingest.Report, error) {
			if !how.Keep {
				t.Errorf("%s: a pass may replace what a person promoted", tc.name)
			}
			return tc.report, nil
		})
		if _, err := l.Sync(t.Context(), Request{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, regexp.MustCompile(`(why|was)=\w+`).FindAllString(log.String(), -1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", tc.name, diff, &log)
		}
	}
}
