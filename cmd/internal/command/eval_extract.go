package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/bot/eval"
)

// evaluateExtraction grades the readers of file formats.
func (p *program) evaluateExtraction() *cobra.Command {
	c := &cobra.Command{
		Use:   "extract DIR",
		Short: "Print, file by file, what extraction found of what is expected",
		Long: `extract reads DIR/files as ingestion does and compares the text of the chunks
with DIR/expect.jsonl, after collapsing white space. It needs no model and no
index. The exit status is 1 if one expectation fails.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("footnote eval extract needs one folder with expect.jsonl and files/"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.gradeExtraction(cmd.Context(), args[0]) },
	}
	p.jsonFlag(c)
	return c
}

func (p *program) gradeExtraction(ctx context.Context, dir string) error {
	all, err := eval.LoadExtraction(dir)
	if err != nil {
		return usage(err)
	}
	failed, phrases, found := 0, 0, 0
	var broken error
	err = eval.Extract(ctx, dir, all, func(e eval.Extracted) {
		phrases, found = phrases+len(e.Held)+len(e.Failed), found+len(e.Held)
		if len(e.Failed) > 0 {
			failed++
		}
		if p.json {
			broken = errors.Join(broken, writeJSON(p.Out, e))
		} else {
			broken = errors.Join(broken, p.print("%s", extractedRow(e)))
		}
	})
	if err = errors.Join(err, broken); err != nil {
		return err
	}
	if !p.json {
		if err := p.print("\n%d of %d files hold, %d of %d expectations\n", len(all)-failed, len(all), found, phrases); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files do not hold what is expected", failed, len(all))
	}
	return nil
}

// extractedRow is a line for a file, and below it what failed and what an
// operator would be told.
func extractedRow(e eval.Extracted) string {
	var b strings.Builder
	verdict := "ok"
	if len(e.Failed) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(&b, "%-4s %-54s %-24s %-16s %2d/%-2d %7d characters %4d chunks %6d ms\n", verdict, e.File, e.Kind, e.Expect, len(e.Held), len(e.Held)+len(e.Failed), e.Characters, e.Chunks, e.Millis)
	if e.Outcome != "text" {
		fmt.Fprintf(&b, "       says: %s\n", console.Line(e.Outcome))
	}
	for _, w := range e.Warnings {
		fmt.Fprintf(&b, "       warns: %s\n", console.Line(w))
	}
	for _, f := range e.Failed {
		fmt.Fprintf(&b, "       lacks: %s\n", console.Line(f))
	}
	return b.String()
}
