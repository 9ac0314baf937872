package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
)

// planJSON is the contract of sync --dry-run --json, one object for each
// document that would change, and one for each source that would be held.
type planJSON struct {
	Source string `json:"source"`
	Path   string `json:"path"`
	Do     string `json:"do"` // add, replace, move, access, remove, fail, refuse, hold
	Why    string `json:"why,omitempty"`
}

// syncing are the flags of sync.
type syncing struct {
	dryRun, remove bool
}

func (p *program) sync() *cobra.Command {
	var f syncing
	c := &cobra.Command{
		Use:   "sync [NAME...]",
		Short: "Bring the index up to date with the sources of the configuration",
		Long: `sync passes once over the sources of the configuration and over documents that other
systems pushed (push:) or people posted (chat:), or over those named: new and
changed documents are published, those that are gone are removed, access is what
it is now, and what has failed is tried again. footnote serve does so by itself.

If more of a source is gone than sync.max_removed allows, or all of it, nothing of
that source is removed: it may not be mounted. --remove removes it.

It ends with 3 if some documents failed or were refused, with 1 if a source could
not be read or was held. It may be run while footnote serve runs.`,
		Args: cobra.ArbitraryArgs,
	}
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
	c.Flags().BoolVar(&f.remove, "remove", false, "remove what is gone, however much it is")
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runSync(cmd.Context(), f, args) }
	return c
}

var errNoSources = errors.New(`the configuration names no sources; for example
  sources:
    - folder: docs/handbook
      access: [everyone]`)

func (p *program) runSync(ctx context.Context, f syncing, names []string) (err error) {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if _, err := os.Stat(cfg.Data); err != nil && len(cfg.Sources)+len(cfg.Channels) == 0 && !cfg.Shared() {
		return usage(errNoSources) // before a directory is made
	}
	in, done, err := p.openIngester(cfg)
	if err != nil {
		return err
	}
	defer closing(&err, done)
	if err := errors.Join(p.sameSources(cfg), in.State().Keeps(ctx)); err != nil {
		return err
	}
	if len(in.Loop.Status()) == 0 {
		return usage(errNoSources)
	}
	r := follow.Request{Sources: names, Remove: f.remove}
	if f.dryRun {
		outcomes, err := in.Loop.Plan(ctx, r)
		if err != nil {
			return err
		}
		return p.printPlans(cfg, outcomes)
	}
	var outcomes []follow.Outcome
	err = p.alone(ctx, cfg, in, func(ctx context.Context) (err error) {
		outcomes, err = p.passOver(ctx, in, r)
		return err
	})
	if err != nil {
		return err
	}
	return p.printOutcomes(cfg, outcomes)
}

// sameSources refuses to work on the sources that a server was started with
// when the configuration names others now.
func (p *program) sameSources(c config.Config) error {
	if p.served == nil || reflect.DeepEqual(p.served.Sources(), c.Sources) {
		return nil
	}
	return errors.New("the sources of the configuration have changed since footnote serve was started: restart it")
}

// passOver makes passes and shows how they go on.
func (p *program) passOver(ctx context.Context, in *assemble.Ingester, r follow.Request) ([]follow.Outcome, error) {
	progress := p.progress()
	r.Told = progress.event
	outcomes, err := in.Loop.Sync(ctx, r)
	progress.end()
	return outcomes, err
}

// printOutcomes says how each source was taken in. The error says what to do
// about those that were not.
func (p *program) printOutcomes(c config.Config, outcomes []follow.Outcome) error {
	var wrong []error
	bad := 0
	for _, o := range outcomes {
		if o.Err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", o.Name, o.Err))
			continue
		}
		if err := p.printReport(o.Name, o.Source.Root(), leftOut(o.Source), o.Report); err != nil {
			return err
		}
		bad += len(o.Report.Failed) + len(o.Report.Refused)
		if o.Report.Held != nil {
			wrong = append(wrong, errors.New(heldText(c, o.Name, o.Source.Root(), *o.Report.Held)))
		}
	}
	if len(wrong) == 0 && bad > 0 {
		return &exit{code: ExitPartial}
	}
	return errors.Join(wrong...)
}

// heldText says why nothing was removed from a source, and what to do.
func heldText(c config.Config, name, root string, h ingest.Held) string {
	return fmt.Sprintf("%s: %d of %d documents are gone from %s, more than the %d %% that are removed unasked (sync.max_removed): nothing of it was removed. "+
		"If they are meant to be gone: footnote sync --remove %s; else bring the folder back", name, h.Missing, h.Of, root, c.Sync.MaxRemoved, name)
}

func leftOut(s ingest.Source) map[string]int {
	if d, ok := s.(*assemble.Documents); ok {
		return d.LeftOut()
	}
	return nil
}

func (p *program) printPlans(c config.Config, outcomes []follow.Outcome) error {
	var wrong []error
	for _, o := range outcomes {
		if o.Err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", o.Name, o.Err))
			continue
		}
		if err := p.printPlan(c, o); err != nil {
			return err
		}
	}
	return errors.Join(wrong...)
}

func (p *program) printPlan(c config.Config, o follow.Outcome) error {
	show := p.renderer()
	line := func(j planJSON) error {
		if p.json {
			return writeJSON(p.Out, j)
		}
		why := ""
		if j.Why != "" {
			why = ": " + console.Line(j.Why)
		}
		return p.print("%-8s %s%s\n", j.Do, show.Path(j.Path), why)
	}
	for _, s := range o.Plan.Steps {
		if err := line(planJSON{o.Name, s.Path, string(s.Do), s.Why}); err != nil {
			return err
		}
	}
	if o.Plan.Held != nil {
		if err := line(planJSON{o.Name, o.Source.Root(), "hold", heldText(c, o.Name, o.Source.Root(), *o.Plan.Held)}); err != nil {
			return err
		}
	}
	if p.json {
		return nil
	}
	return p.print("%s %s: %d would change, %d unchanged\n", o.Name, show.Path(o.Source.Root()), len(o.Plan.Steps), o.Plan.Unchanged)
}
