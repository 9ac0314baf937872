package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/adapters/files"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval/ingest"
)

// ingestJSON is the contract of ingest --json, one object for each folder.
type ingestJSON struct {
	Name          string         `json:"name,omitempty"` // of the source in the configuration
	Source        string         `json:"source"`
	Published     int            `json:"published"`
	Moved         int            `json:"moved"`
	Unchanged     int            `json:"unchanged"`
	AccessChanged int            `json:"access_changed"`
	Removed       int            `json:"removed"`
	Failed        []troubleJSON  `json:"failed"`
	Refused       []troubleJSON  `json:"refused"`
	Missing       []string       `json:"missing"`
	LeftOut       map[string]int `json:"left_out"` // files of formats that are not read, by ending
	Chunks        int            `json:"chunks"`
	Truncated     int            `json:"truncated"`
	Window        int            `json:"window"`
	Notes         int            `json:"notes"`         // requests for notes that were made
	WithoutNotes  int            `json:"without_notes"` // documents that have none yet, which the next run writes
	Warnings      []string       `json:"warnings"`
	Generation    string         `json:"generation"`
	Promoted      bool           `json:"promoted"`
	Withheld      string         `json:"withheld"`
	Held          bool           `json:"held"` // too much is missing: nothing was removed
}

type troubleJSON struct {
	Document  string `json:"document"`
	Path      string `json:"path"`
	Reason    string `json:"reason"`
	Retryable bool   `json:"retryable"`
}

// ingesting are the flags of ingest.
type ingesting struct {
	access  []string
	options files.Options
	how     ingest.How
}

func (p *program) ingest() *cobra.Command {
	var f ingesting
	c := &cobra.Command{
		Use:   "ingest FOLDER...",
		Short: "Take documents into the index",
		Long: `ingest brings the index up to date with the folders (or single files): new and
changed documents are published, each in one step; the same bytes cost nothing.

Who may read a document is said by its front matter ("access: [everyone]"), else
by the nearest .access.yaml above it, else by --access. A document for which
none of them speaks is refused, never public. The people file, the configuration
and the data directory are no documents, wherever they lie.

It ends with 3 if some documents failed or were refused; the others are in.`,
		Args: some("a folder or a file"),
	}
	c.Flags().StringSliceVar(&f.access, "access", nil, "`WHO` may read what has no list of its own: everyone, group:NAME, user:NAME, an e-mail address; several with commas")
	c.Flags().StringSliceVar(&f.options.Include, "include", nil, "take only files that match the `PATTERN`, for example **/*.md")
	c.Flags().StringSliceVar(&f.options.Exclude, "exclude", nil, "leave out files that match the `PATTERN`")
	c.Flags().BoolVar(&f.options.FollowOutside, "follow-links", false, "follow symbolic links that lead out of the folder")
	c.Flags().BoolVar(&f.how.Prune, "prune", false, "remove documents whose files are no longer there, or are left out by the patterns")
	c.Flags().BoolVar(&f.how.Rebuild, "rebuild", false, "build a new index whatever there is")
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runIngest(cmd.Context(), f, args) }
	return c
}

func (p *program) runIngest(ctx context.Context, f ingesting, roots []string) (err error) {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	for i := range roots {
		roots[i] = p.abs(roots[i])
	}
	sources, err := f.sources(cfg, roots)
	if err != nil {
		return usage(err)
	}
	in, done, err := p.openIngester(cfg)
	if err != nil {
		return err
	}
	defer closing(&err, done)
	if err := in.State().Keeps(ctx); err != nil {
		return err
	}
	bad := 0
	err = p.alone(ctx, cfg, in, func(ctx context.Context) error {
		for _, s := range sources {
			report, err := p.ingestOne(ctx, in, s, f.how)
			if err != nil {
				return err
			}
			bad += len(report.Failed) + len(report.Refused)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if bad > 0 {
		return &exit{code: ExitPartial}
	}
	return nil
}

// alone runs work while no other command takes in documents.
func (p *program) alone(ctx context.Context, c config.Config, in *assemble.Ingester, work func(context.Context) error) error {
	if p.served != nil { // the server has turns of its own
		return work(ctx)
	}
	return in.Alone(ctx, c, func(who string) {
		_, _ = fmt.Fprintf(p.Err, "footnote: waiting: %s takes in documents on this Redis\n", console.Line(who))
	}, work)
}

// ingestOne takes in one folder and says how that went.
func (p *program) ingestOne(ctx context.Context, in *assemble.Ingester, s *assemble.Documents, how ingest.How) (report ingest.Report, err error) {
	progress := p.progress()
	how.Told = progress.event
	err = in.Between(func() error {
		report, err = in.Pipeline.Ingest(ctx, s, how)
		return err
	})
	progress.end()
	if report.Generation != "" {
		err = errors.Join(err, p.printReport("", s.Root(), s.LeftOut(), report))
	}
	return report, err
}

// openIngester opens what ingestion needs, or lends what the server has.
func (p *program) openIngester(c config.Config) (in *assemble.Ingester, done func() error, err error) {
	if p.served != nil {
		return p.served.Ingester, func() error { return nil }, nil
	}
	if in, err = assemble.OpenIngester(c, nil); err != nil {
		return nil, nil, err
	}
	return in, in.Close, nil
}

// sources checks the flags and the roots before anything is opened.
func (f ingesting) sources(c config.Config, roots []string) ([]*assemble.Documents, error) {
	o := f.options
	o.MaxBytes = int64(c.Ingest.MaxMegabytes) << 20
	if len(f.access) > 0 {
		list, err := acl.ParseList(f.access)
		if err != nil {
			return nil, fmt.Errorf("--access: %w", err)
		}
		o.Default = list
	}
	var out []*assemble.Documents
	for _, root := range roots {
		if _, err := os.Stat(root); err != nil {
			return nil, fmt.Errorf("there is nothing to ingest: %w", err)
		}
		folder, err := files.New(root, o)
		if err != nil {
			return nil, err
		}
		if assemble.SameFile(root, c.Data) {
			return nil, fmt.Errorf("%s is the data directory: keep the documents in another folder", root)
		}
		out = append(out, assemble.NewDocuments(c, folder))
	}
	return out, nil
}

// printReport says how a folder was taken in. name is that of its source.
func (p *program) printReport(name, root string, leftOut map[string]int, r ingest.Report) error {
	if p.json {
		return writeJSON(p.Out, reportJSON(name, root, leftOut, r))
	}
	var b strings.Builder
	show := p.renderer()
	for _, t := range r.Failed {
		fmt.Fprintf(&b, "failed   %s: %s\n", show.Path(t.Path), console.Line(t.Reason))
	}
	for _, t := range r.Refused {
		fmt.Fprintf(&b, "refused  %s: %s\n", show.Path(t.Path), console.Line(t.Reason))
	}
	if name != "" {
		name += " "
	}
	fmt.Fprintf(&b, "%s%s: %s", name, show.Path(root), console.Safe(r.String()))
	if n, kinds := others(leftOut); n > 0 {
		fmt.Fprintf(&b, "left out, of formats that are not read: %d (%s)\n", n, console.Line(kinds))
	}
	return p.print("%s", b.String())
}

func reportJSON(name, root string, leftOut map[string]int, r ingest.Report) ingestJSON {
	j := ingestJSON{
		Name: name, Source: root, Published: r.Published, Moved: r.Moved, Unchanged: r.Unchanged, AccessChanged: r.AccessChanged,
		Removed: r.Removed, Failed: troubles(r.Failed), Refused: troubles(r.Refused), Missing: append([]string{}, r.Missing...),
		LeftOut: leftOut, Chunks: r.Chunks, Truncated: r.Truncated, Window: r.Window, Notes: r.Notes, WithoutNotes: r.Unnoted,
		Warnings: append([]string{}, r.Warnings...), Generation: r.Generation, Promoted: r.Promoted, Withheld: r.Withheld, Held: r.Held != nil,
	}
	if j.LeftOut == nil {
		j.LeftOut = map[string]int{}
	}
	return j
}

// others counts what was left out, by ending.
func others(leftOut map[string]int) (n int, kinds string) {
	var parts []string
	for _, ext := range slices.Sorted(maps.Keys(leftOut)) {
		n += leftOut[ext]
		parts = append(parts, fmt.Sprintf("%s %d", ext, leftOut[ext]))
	}
	return n, strings.Join(parts, ", ")
}

func troubles(ts []ingest.Trouble) []troubleJSON {
	out := []troubleJSON{}
	for _, t := range ts {
		out = append(out, troubleJSON{string(t.ID), t.Path, t.Reason, t.Retryable})
	}
	return out
}
