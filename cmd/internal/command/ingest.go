package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/adapters/files"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval/extract"
	"footnote/retrieval/ingest"
)

// ingestJSON is the contract of ingest --json, one object for each folder.
type ingestJSON struct {
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
	Warnings      []string       `json:"warnings"`
	Generation    string         `json:"generation"`
	Promoted      bool           `json:"promoted"`
	Withheld      string         `json:"withheld"`
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("footnote ingest needs a folder or a file"))
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&f.access, "access", nil, "`WHO` may read what has no list of its own: everyone, group:NAME, user:NAME, an e-mail address; several with commas")
	c.Flags().StringSliceVar(&f.options.Include, "include", nil, "take only files that match the `PATTERN`, for example **/*.md")
	c.Flags().StringSliceVar(&f.options.Exclude, "exclude", nil, "leave out files that match the `PATTERN`")
	c.Flags().BoolVar(&f.options.FollowOutside, "follow-links", false, "follow symbolic links that lead out of the folder")
	c.Flags().BoolVar(&f.how.Prune, "prune", false, "remove documents whose files are no longer there")
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
	sources, err := f.sources(cfg, roots)
	if err != nil {
		return usage(err)
	}
	progress := p.progress()
	in, err := assemble.OpenIngester(cfg, progress.event)
	if err != nil {
		return err
	}
	defer closing(&err, in.Close)
	bad := 0
	for _, s := range sources {
		report, err := in.Pipeline.Ingest(ctx, s, f.how)
		progress.end()
		if report.Generation != "" {
			err = errors.Join(err, p.printReport(s, report))
		}
		if err != nil {
			return err
		}
		bad += len(report.Failed) + len(report.Refused)
	}
	if bad > 0 {
		return &exit{code: ExitPartial}
	}
	return nil
}

// sources checks the flags and the roots before anything is opened.
func (f ingesting) sources(c config.Config, roots []string) ([]*supported, error) {
	o := f.options
	o.MaxBytes = int64(c.Ingest.MaxMegabytes) << 20
	if len(f.access) > 0 {
		list, err := acl.ParseList(f.access)
		if err != nil {
			return nil, fmt.Errorf("--access: %w", err)
		}
		o.Default = list
	}
	var out []*supported
	for _, root := range roots {
		if _, err := os.Stat(root); err != nil {
			return nil, fmt.Errorf("there is nothing to ingest: %w", err)
		}
		folder, err := files.New(root, o)
		if err != nil {
			return nil, err
		}
		if sameFile(root, c.Data) {
			return nil, fmt.Errorf("%s is the data directory: keep the documents in another folder", root)
		}
		out = append(out, &supported{Folder: folder, own: own{[]string{c.PeopleFile(), c.File}, c.Data}})
	}
	return out, nil
}

// own is what footnote keeps for itself and what may lie among documents.
//
// SECURITY: the people file says who is in which group, the configuration may
// hold tokens, and the index holds every document: with --access everyone they
// would be shown to all.
type own struct {
	files []string // "" is none
	data  string   // a directory; it need not be there yet
}

// below finds what of it lies in the folder at root.
func (o own) below(root string) func(path string) bool {
	data := within(root, o.data)
	return func(path string) bool {
		if data != "" && strings.HasPrefix(path, data+string(filepath.Separator)) {
			return true
		}
		return slices.ContainsFunc(o.files, func(f string) bool { return f != "" && sameFile(path, f) })
	}
}

// within writes dir as a path below root, whatever links lead to either; "" if
// it lies elsewhere or is not there.
func within(root, dir string) string {
	from, err := filepath.EvalSymlinks(root)
	if err != nil {
		return ""
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	to, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.Join(root, rel)
}

// supported is a folder without the files of formats that are not read, which
// it counts: a picture beside a document is no failed document. Footnote's own
// files are no documents either, wherever they lie.
type supported struct {
	*files.Folder
	own     own
	leftOut map[string]int // by ending
}

// Items lists the documents of the folder. A file named outright, and faults
// of anything but a plain file, stay.
func (s *supported) Items(ctx context.Context) ([]ingest.Item, error) {
	items, err := s.Folder.Items(ctx)
	s.leftOut = map[string]int{}
	mine := s.own.below(s.Root())
	return slices.DeleteFunc(items, func(it ingest.Item) bool {
		if mine(it.Path) {
			return true
		}
		if it.Path == s.Root() || extract.Supported(it.Path) || it.Fault != nil && !plainFile(it.Path) {
			return false
		}
		s.leftOut[strings.ToLower(filepath.Ext(it.Path))]++
		return true
	}), err
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func plainFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (p *program) printReport(s *supported, r ingest.Report) error {
	if p.json {
		return writeJSON(p.Out, ingestJSON{
			Source: s.Root(), Published: r.Published, Moved: r.Moved, Unchanged: r.Unchanged, AccessChanged: r.AccessChanged,
			Removed: r.Removed, Failed: troubles(r.Failed), Refused: troubles(r.Refused), Missing: append([]string{}, r.Missing...),
			LeftOut: s.leftOut, Chunks: r.Chunks, Truncated: r.Truncated, Window: r.Window,
			Warnings: append([]string{}, r.Warnings...), Generation: r.Generation, Promoted: r.Promoted, Withheld: r.Withheld,
		})
	}
	var b strings.Builder
	show := p.renderer()
	for _, t := range r.Failed {
		fmt.Fprintf(&b, "failed   %s: %s\n", show.Path(t.Path), console.Line(t.Reason))
	}
	for _, t := range r.Refused {
		fmt.Fprintf(&b, "refused  %s: %s\n", show.Path(t.Path), console.Line(t.Reason))
	}
	fmt.Fprintf(&b, "%s: %s", show.Path(s.Root()), console.Safe(r.String()))
	if n, kinds := s.others(); n > 0 {
		fmt.Fprintf(&b, "left out, of formats that are not read: %d (%s)\n", n, console.Line(kinds))
	}
	return p.print("%s", b.String())
}

// others counts what was left out, by ending.
func (s *supported) others() (n int, kinds string) {
	var parts []string
	for _, ext := range slices.Sorted(maps.Keys(s.leftOut)) {
		n += s.leftOut[ext]
		parts = append(parts, fmt.Sprintf("%s %d", ext, s.leftOut[ext]))
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
