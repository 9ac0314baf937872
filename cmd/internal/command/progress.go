package command

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"

	"footnote/adapters/console"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
)

// progress shows on standard error how ingestion goes on: a bar on a terminal,
// a line at each tenth elsewhere.
type progress struct {
	w     io.Writer
	fancy bool
	bar   *progressbar.ProgressBar
	tenth int
}

func (p *program) progress() *progress {
	_, is := terminal(p.Err)
	return &progress{w: p.Err, fancy: is}
}

func (g *progress) event(e ingest.Event) {
	if e.Total == 0 {
		return
	}
	if g.fancy {
		g.draw(e)
		return
	}
	if tenth := 10 * e.Done / e.Total; tenth > g.tenth {
		g.tenth = tenth
		_, _ = fmt.Fprintf(g.w, "ingest: %d of %d documents\n", e.Done, e.Total)
	}
}

func (g *progress) draw(e ingest.Event) {
	if g.bar == nil {
		g.bar = progressbar.NewOptions(e.Total,
			progressbar.OptionSetWriter(g.w), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(24), progressbar.OptionUseANSICodes(false))
	}
	if e.State == catalog.Embedding {
		g.bar.Describe(shorten(console.Line(filepath.Base(e.Path)), 30))
	}
	_ = g.bar.Set(e.Done) // a bar that cannot be drawn must not end the run
}

// end clears the bar before the report.
func (g *progress) end() {
	if g.bar != nil {
		_ = g.bar.Finish()
	}
	g.bar, g.tenth = nil, 0
}
