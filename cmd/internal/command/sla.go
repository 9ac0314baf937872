package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
)

// levelJSON is the contract of sla --json, one object for each kind of change.
// Times are seconds.
type levelJSON struct {
	Kind   string  `json:"kind"` // content, access, removal
	Count  int     `json:"count"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	Target float64 `json:"target"` // of p95
}

func (p *program) sla() *cobra.Command {
	c := &cobra.Command{
		Use:   "sla",
		Short: "Print how long changes of the sources took to come in force, since footnote serve was started",
		Long: `sla prints, for changed content, changed access and removals, the time from the
change of a file until no search and no opened source shows the old state any
more: the median and the 95th percentile since the running footnote serve was
started. The targets are 10 s for content (documents of up to 100 kB) and 5 s for
access and removals.`,
		Args: exactly(0, "nothing more"),
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runSLA(cmd.Context()) }
	return c
}

func (p *program) runSLA(context.Context) error {
	if p.served == nil {
		c, err := p.config()
		if err != nil {
			return err
		}
		return fmt.Errorf("%w, %s: it is what measures", errServerOnly, c.Data)
	}
	if !p.served.KeepsUp() {
		return usage(errNoSources)
	}
	for _, l := range p.served.Ingester.Loop.Levels() {
		if err := p.printLevel(l); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printLevel(l follow.Level) error {
	target := follow.Target(l.Kind)
	if p.json {
		return writeJSON(p.Out, levelJSON{string(l.Kind), l.Count, l.P50.Seconds(), l.P95.Seconds(), l.Max.Seconds(), target.Seconds()})
	}
	name := map[ingest.Effect]string{ingest.Renewal: "content", ingest.AccessChange: "access", ingest.Removal: "removal"}[l.Kind]
	if l.Count == 0 {
		return p.print("%-8s no changes yet (target: p95 at most %v)\n", name, target)
	}
	round := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	return p.print("%-8s %5d changes  p50 %s  p95 %s  max %s  (target: p95 at most %v)\n", name, l.Count, round(l.P50), round(l.P95), round(l.Max), target)
}
