package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
)

// differenceJSON is the contract of docs verify --json, one object for each
// document of which index and catalog say different things, and one without ID
// and path for each thing that the index itself lacks.
type differenceJSON struct {
	ID   string `json:"id"`
	Path string `json:"path"`
	What string `json:"what"`
}

func (p *program) docsVerify() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Recount the index and say where the catalog differs; ends with 1 if it does",
		Args:  exactly(0, "nothing more"),
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runDocsVerify(cmd.Context()) }
	return c
}

func (p *program) runDocsVerify(ctx context.Context) (err error) {
	s, err := p.openCurrent(ctx)
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	all, err := ingest.Compare(ctx, s.current, s.Catalog)
	if err != nil {
		return err
	}
	lacks, err := assemble.Recount(ctx, s.current)
	if err != nil {
		return err
	}
	for _, what := range lacks {
		all = append(all, ingest.Difference{What: what})
	}
	if err := p.printDifferences(all); err != nil {
		return err
	}
	if len(lacks) > 0 {
		return fmt.Errorf("the index is not in order in %d place(s), see above: build a new one with footnote ingest --rebuild FOLDER", len(lacks))
	}
	if len(all) > 0 {
		return fmt.Errorf("index and catalog differ in %d document(s): footnote sync, or ingest their folders again", len(all))
	}
	if p.json {
		return nil
	}
	n := s.current.Counts()
	return p.print("index and catalog agree: %d documents, %d chunks\n", n.Documents, n.Chunks)
}

func (p *program) printDifferences(all []ingest.Difference) (err error) {
	show := p.renderer()
	for _, d := range all {
		switch {
		case p.json:
			err = writeJSON(p.Out, differenceJSON{string(d.ID), d.Path, d.What})
		case d.ID == "":
			err = p.print("%s\n", console.Line(d.What))
		default:
			err = p.print("%s  %s: %s\n", d.ID, show.Path(d.Path), console.Line(d.What))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) docsRetry() *cobra.Command {
	c := &cobra.Command{
		Use:   "retry [ID...]",
		Short: "Try documents again that failed or were refused: all, or those named",
		Long: `retry takes in documents again that failed or were refused, from the sources of the
configuration, and those that were pushed or posted. One that has succeeded since costs nothing. It ends with 3 if some
fail again.`,
		Args: cobra.ArbitraryArgs,
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runDocsRetry(cmd.Context(), args) }
	return c
}

func (p *program) runDocsRetry(ctx context.Context, ids []string) (err error) {
	c, err := p.config()
	if err != nil {
		return err
	}
	in, done, err := p.openIngester(c)
	if err != nil {
		return err
	}
	defer closing(&err, done)
	if err := errors.Join(p.sameSources(c), in.State().Keeps(ctx)); err != nil {
		return err
	}
	records, err := p.troubled(in.Catalog, ids)
	if err != nil {
		return err
	}
	if len(records) == 0 && !p.json {
		return p.print("No document has failed.\n")
	}
	bySource, homeless := bySource(in.Loop, records)
	var outcomes []follow.Outcome
	for _, name := range slices.Sorted(maps.Keys(bySource)) {
		more, err := p.passOver(ctx, in, follow.Request{Sources: []string{name}, Only: bySource[name]})
		if err != nil {
			return err
		}
		outcomes = append(outcomes, more...)
	}
	err = p.printOutcomes(c, outcomes)
	if len(homeless) > 0 {
		return errors.Join(err, fmt.Errorf("%d document(s) are of no source of the configuration, the first is %s: footnote ingest their folder again", len(homeless), homeless[0]))
	}
	return err
}

// troubled lists the documents named, or all that failed or were refused.
func (p *program) troubled(c *catalog.Catalog, ids []string) ([]catalog.Record, error) {
	var out []catalog.Record
	for _, id := range ids {
		r, err := p.find(c, id)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if len(ids) > 0 {
		return out, nil
	}
	for _, r := range c.List() {
		if r.State == catalog.Failed || r.State == catalog.Refused {
			out = append(out, r)
		}
	}
	return out, nil
}

// bySource are the paths of documents by the source that answers for them.
func bySource(l *follow.Loop, records []catalog.Record) (paths map[string][]string, homeless []string) {
	paths = map[string][]string{}
	for _, r := range records {
		if name, ok := l.Owner(r.Path); ok {
			paths[name] = append(paths[name], r.Path)
		} else {
			homeless = append(homeless, r.Path)
		}
	}
	return paths, homeless
}

// find finds a document by its id, the beginning of it, or its path, which may be
// relative to the caller's directory.
func (p *program) find(c *catalog.Catalog, id string) (catalog.Record, error) {
	if dir := p.workingDir(); dir != "" && id != "" {
		if r, ok := c.At(filepath.Join(dir, id)); ok {
			return r, nil
		}
	}
	return c.Find(id)
}

func plainFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
