package command

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/files"
	"footnote/bot/eval"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval/ingest"
)

// evaluation runs the graders. Each set has an index of its own below the
// data directory, so that a second run embeds nothing.
func (p *program) evaluation() *cobra.Command {
	c := &cobra.Command{Use: "eval", Short: "Grade the retriever on question sets with known answers"}
	quick := &cobra.Command{
		Use:   "quick SET...",
		Short: "Print R@1, R@4, R@20 and MRR of every stage on each set",
		Long: `quick ingests SET/docs into an index of its own and asks the answerable
questions of SET/queries.jsonl. A result is right when a returned chunk holds
the answer's bytes of the source file. Conversations count with their first
turn. Rows: bm25, dense, hybrid (as fused) and hybrid+rerank (the final order).`,
		Args: some("the folder of a question set"),
	}
	p.jsonFlag(quick)
	quick.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := p.config()
		if err != nil {
			return err
		}
		for _, dir := range args {
			if err := p.grade(cmd.Context(), cfg, dir); err != nil {
				return fmt.Errorf("grading %s: %w", dir, err)
			}
		}
		return nil
	}
	c.AddCommand(quick, p.evaluateExtraction(), p.evaluateNotes())
	return c
}

// grade ingests one set and prints its rows.
func (p *program) grade(ctx context.Context, cfg config.Config, dir string) error {
	set, err := eval.Load(dir)
	if err != nil {
		return usage(err)
	}
	cfg.Data = filepath.Join(cfg.Data, "eval", set.Name)
	var rows []eval.Row
	err = p.over(ctx, cfg, set, func(app *assemble.App, grant acl.Grant) error {
		rows, err = eval.Retrieval(ctx, app.Searcher, app.Index, grant, set)
		return err
	})
	if err != nil {
		return err
	}
	if p.json {
		for _, r := range rows {
			if err := writeJSON(p.Out, r); err != nil {
				return err
			}
		}
		return nil
	}
	return p.print("%s", table(set.Name, rows))
}

// over does work on an index of the set's documents.
func (p *program) over(ctx context.Context, cfg config.Config, set eval.Set, work func(*assemble.App, acl.Grant) error) (err error) {
	if err := p.prepare(ctx, cfg, set.Docs); err != nil {
		return err
	}
	app, err := assemble.Open(ctx, cfg, assemble.DefaultTop)
	if err != nil {
		return err
	}
	defer closing(&err, app.Close)
	return work(app, acl.NewGrant(acl.NewIdentity(acl.User("eval"), acl.Everyone), acl.AskerOnly()))
}

// prepare brings the set's own index up to date.
func (p *program) prepare(ctx context.Context, cfg config.Config, docs string) (err error) {
	folder, err := files.New(docs, files.Options{Default: acl.NewList(acl.Everyone)})
	if err != nil {
		return err
	}
	progress := p.progress()
	in, err := assemble.OpenIngester(cfg, progress.event)
	if err != nil {
		return err
	}
	defer closing(&err, in.Close)
	report, err := in.Pipeline.Ingest(ctx, assemble.NewDocuments(cfg, folder), ingest.How{Prune: true})
	progress.end()
	if err == nil && report.Unnoted > 0 {
		err = fmt.Errorf("%d documents have no notes: %s", report.Unnoted, strings.Join(report.Warnings, "; "))
	}
	if err == nil && len(report.Failed)+len(report.Refused) > 0 {
		err = fmt.Errorf("%d documents failed and %d were refused: the figures would not be those of the whole set", len(report.Failed), len(report.Refused))
	}
	return err
}

func table(name string, rows []eval.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-8s %-14s %9s %6s %6s %6s %6s\n", "set", "style", "method", "questions", "R@1", "R@4", "R@20", "MRR")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-12s %-8s %-14s %9d %6.3f %6.3f %6.3f %6.3f\n", name, r.Style, r.Method, r.Questions, r.R1, r.R4, r.R20, r.MRR)
	}
	return b.String()
}
