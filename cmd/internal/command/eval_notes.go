package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/bot/eval"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
)

// evaluateNotes says what notes on chunks are worth on question sets.
func (p *program) evaluateNotes() *cobra.Command {
	c := &cobra.Command{
		Use:   "notes SET...",
		Short: "Compare how well questions are answered with notes on chunks and without",
		Long: `notes ingests SET/docs twice, as the configuration says and without notes, and
asks the questions of SET/queries.jsonl of both. Chunks are smaller with notes,
as they would be in use. found and lost are the questions with a right result
among the first 4 only with notes, and only without; chance is how likely that
split is if notes make no difference (McNemar), and how likely the difference of
the MRR is (permutations).

It needs notes.url and notes.model, and asks the model of every chunk: what it
wrote is kept.`,
		Args: some("the folder of a question set"),
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := p.config()
		if err != nil {
			return err
		}
		if cfg.Notes.URL == "" {
			return usage(errors.New("there is nobody to write notes: set notes.url and notes.model, or FOOTNOTE_NOTES_URL and FOOTNOTE_NOTES_MODEL"))
		}
		cfg.Index = config.Embedded // each set has indexes of its own
		cfg.Notes.PerRun = 0        // half of them would measure nothing
		for _, dir := range args {
			if err := p.compareNotes(cmd.Context(), cfg, dir); err != nil {
				return fmt.Errorf("grading %s: %w", dir, err)
			}
		}
		return nil
	}
	return c
}

func (p *program) compareNotes(ctx context.Context, cfg config.Config, dir string) error {
	set, err := eval.Load(dir)
	if err != nil {
		return usage(err)
	}
	without := cfg
	without.Notes = config.Notes{}
	without.Data = filepath.Join(cfg.Data, "eval", set.Name)
	cfg.Data = filepath.Join(cfg.Data, "eval-notes", set.Name)
	var ranks [2]eval.Ranks
	for i, c := range []config.Config{without, cfg} {
		if ranks[i], err = p.ranks(ctx, c, set); err != nil {
			return err
		}
	}
	changes := eval.Compare(set, ranks[0], ranks[1])
	if !p.json {
		return p.print("%s", changeTable(changes))
	}
	for _, c := range changes {
		if err := writeJSON(p.Out, c); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) ranks(ctx context.Context, c config.Config, set eval.Set) (ranks eval.Ranks, err error) {
	err = p.over(ctx, c, set, func(app *assemble.App, grant acl.Grant) error {
		ranks, err = eval.RanksOf(ctx, app.Searcher, app.Index, grant, set)
		return err
	})
	return ranks, err
}

func changeTable(changes []eval.Change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-14s %9s %-13s %-13s %-13s %-13s %5s %5s %7s %7s\n",
		"set", "method", "questions", "R@1", "R@4", "R@20", "MRR", "found", "lost", "chance", "of MRR")
	for _, c := range changes {
		pair := func(a, b float64) string { return fmt.Sprintf("%.3f > %.3f", a, b) }
		fmt.Fprintf(&b, "%-12s %-14s %9d %-13s %-13s %-13s %-13s %5d %5d %7.4f %7.4f\n", c.Set, c.Method, c.With.Questions,
			pair(c.Without.R1, c.With.R1), pair(c.Without.R4, c.With.R4), pair(c.Without.R20, c.With.R20), pair(c.Without.MRR, c.With.MRR),
			c.Found, c.Lost, c.Chance, c.ChanceMRR)
	}
	return b.String()
}
