package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"footnote/acl/system"
	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// docJSON is the contract of docs --json: the catalog's record of a document,
// its title, and whether something else than this program's recipe made it.
type docJSON struct {
	catalog.Record
	Title string  `json:"title"`
	Stale bool    `json:"stale"`
	Text  *string `json:"text,omitempty"` // canonical; of show --text
}

func (p *program) docs() *cobra.Command {
	return p.group("docs", "List, show, check, retry and remove documents", p.docsList(), p.docsShow(), p.docsVerify(), p.docsRetry(), p.docsRemove())
}

// shelf is a library with its current generation, nil if there is none.
type shelf struct {
	*assemble.Library
	done    func() error
	current retrieval.Generation
	titles  map[retrieval.DocumentID]string
	stamp   catalog.Stamp // of what is ingested now
}

// openShelf opens the library.
//
// SECURITY: the operator's commands see every document; they answer nobody.
func (p *program) openShelf(ctx context.Context) (*shelf, error) {
	l, done, err := p.openLibrary()
	if err != nil {
		return nil, err
	}
	s := &shelf{Library: l, done: done, titles: map[retrieval.DocumentID]string{}}
	c, err := p.config()
	if err == nil {
		s.stamp, err = assemble.Stamp(c)
	}
	if err == nil {
		err = s.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return s, nil
}

// openCurrent is openShelf for what needs a current generation: ErrNoIndex if
// there is none.
func (p *program) openCurrent(ctx context.Context) (*shelf, error) {
	s, err := p.openShelf(ctx)
	if err == nil && s.current == nil {
		return nil, errors.Join(retrieval.ErrNoIndex, s.Close())
	}
	return s, err
}

// Close gives back what openShelf took.
func (s *shelf) Close() error { return s.done() }

// openLibrary opens the data directory without models, or lends the server's.
func (p *program) openLibrary() (l *assemble.Library, done func() error, err error) {
	if p.served != nil {
		return p.served.Ingester.Library, func() error { return nil }, nil
	}
	c, err := p.config()
	if err != nil {
		return nil, nil, err
	}
	if l, err = assemble.ReadLibrary(c); err != nil {
		return nil, nil, err
	}
	return l, l.Close, nil
}

func (s *shelf) open(ctx context.Context) (err error) {
	s.current, err = s.Store.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) {
		s.current = nil
		return nil
	}
	if err != nil {
		return err
	}
	infos, err := s.current.Documents(ctx, system.Grant())
	for _, d := range infos {
		s.titles[d.ID] = d.Title
	}
	return err
}

func (s *shelf) doc(r catalog.Record) docJSON {
	d := docJSON{Record: r, Title: s.titles[r.ID]}
	d.Stale = r.State == catalog.Published && r.Stamp != s.stamp
	return d
}

func (p *program) docsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List all documents with their state", Args: exactly(0, "nothing more")}
	p.jsonFlag(c)
	all := c.Flags().Bool("all", false, "removed documents as well")
	stale := c.Flags().Bool("stale", false, "only documents that another model, extractor or chunker made than this program's")
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runDocsList(cmd.Context(), *all, *stale) }
	return c
}

const noDocuments = "There are no documents yet: footnote ingest FOLDER, or sources in the configuration and footnote sync\n"

func (p *program) runDocsList(ctx context.Context, all, stale bool) (err error) {
	s, err := p.openShelf(ctx)
	switch {
	case errors.Is(err, retrieval.ErrNoIndex) && p.json:
		return nil
	case errors.Is(err, retrieval.ErrNoIndex):
		return p.print(noDocuments)
	}
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	show := p.renderer()
	counts := map[catalog.State]int{}
	for _, r := range s.Catalog.List() {
		d := s.doc(r)
		if r.State == catalog.Removed && !all || stale && !d.Stale {
			continue
		}
		counts[r.State]++
		if err := p.printDoc(d, show); err != nil {
			return err
		}
	}
	if p.json {
		return nil
	}
	switch {
	case len(counts) == 0 && stale:
		return p.print("No document is stale.\n")
	case len(counts) == 0:
		return p.print(noDocuments)
	}
	if err := p.printHeld(ctx, s.Library); err != nil {
		return err
	}
	return p.print("%d published, %d failed, %d refused (no usable access list), %d under way\n", counts[catalog.Published], counts[catalog.Failed], counts[catalog.Refused],
		counts[catalog.Queued]+counts[catalog.Extracting]+counts[catalog.Chunking]+counts[catalog.Embedding])
}

// printHeld says which sources cannot be read, and of which nothing is removed.
func (p *program) printHeld(ctx context.Context, l *assemble.Library) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	all, err := l.State().Sources(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Error != "" {
			if err := p.print("error  %s: %s\n", console.Line(s.Source), console.Line(s.Error)); err != nil {
				return err
			}
		}
		if s.Held == nil {
			continue
		}
		if err := p.print("held  %s\n", console.Line(heldText(c, s.Source, s.Root, *s.Held))); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printDoc(d docJSON, show console.Renderer) error {
	if p.json {
		return writeJSON(p.Out, d)
	}
	note := ""
	if d.Reason != "" {
		note = "  " + shorten(console.Line(d.Reason), 100)
	}
	note += coverage(d.Record)
	if d.Stale {
		note += "  (stale: ingest again)"
	}
	return p.print("%s  %-10s %-16s %4d chunks %7d characters  %s%s\n", d.ID, d.State, orNone(string(d.Serving)), d.Chunks, d.Characters, show.Path(d.Path), note)
}

// coverage says what of a document is not as it should be.
func coverage(r catalog.Record) string {
	var parts []string
	if f := r.Facts; f.Covered < f.Total {
		parts = append(parts, fmt.Sprintf("%d of %d %ss read", f.Covered, f.Total, f.Unit))
	}
	if f := r.Facts; f.Recognised > 0 {
		parts = append(parts, fmt.Sprintf("%d recognised, confidence %d", f.Recognised, f.Confidence))
	}
	if r.Truncated > 0 {
		parts = append(parts, fmt.Sprintf("%d chunks cut", r.Truncated))
	}
	if n := len(r.Warnings); n > 0 {
		parts = append(parts, fmt.Sprintf("%d warnings: docs show", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

func (p *program) docsShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a document: state, revision, chunks, stamps, and with --text its canonical text",
		Long: `show prints what is known of a document. ID is its id, the beginning of it, or
its path. With --text it prints the canonical text alone, the text that the
places of citations count in: characters from to to of it are the quote.`,
		Args: exactly(1, "the ID or path of a document"),
	}
	p.jsonFlag(c)
	text := c.Flags().Bool("text", false, "print the canonical text")
	rev := c.Flags().String("revision", "", "`REVISION` whose text is printed; default: the current one")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return p.runDocsShow(cmd.Context(), args[0], *text, retrieval.Revision(*rev))
	}
	return c
}

func (p *program) runDocsShow(ctx context.Context, id string, text bool, rev retrieval.Revision) (err error) {
	s, err := p.openShelf(ctx)
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	r, err := p.find(s.Catalog, id)
	if err != nil {
		return err
	}
	d := s.doc(r)
	if text {
		canonical, err := s.canonical(ctx, r.ID, rev)
		if err != nil {
			return err
		}
		if d.Text = &canonical; !p.json {
			return p.printCanonical(canonical)
		}
	}
	if p.json {
		return writeJSON(p.Out, d)
	}
	return p.print("%s", p.described(d))
}

// printCanonical prints the text exactly, so that places can be counted in it;
// only a terminal gets it made safe.
func (p *program) printCanonical(text string) error {
	if _, is := terminal(p.Out); is {
		text = console.Safe(text)
	}
	return p.print("%s", text)
}

func (s *shelf) canonical(ctx context.Context, id retrieval.DocumentID, rev retrieval.Revision) (string, error) {
	if s.current == nil {
		return "", retrieval.ErrNoIndex
	}
	d, err := s.current.Document(ctx, system.Grant(), id, rev)
	if err != nil {
		return "", fmt.Errorf("reading the text of %s: %w", id, err)
	}
	return d.Canonical, nil
}

// described is all that is known of a document, one fact a line.
func (p *program) described(d docJSON) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, console.Line(fmt.Sprintf(format, args...)))
	}
	row("id", "%s", d.ID)
	row("path", "%s", d.Path)
	row("title", "%s", orNone(d.Title))
	row("state", "%s since %s", d.State, d.Since().Format(time.RFC3339))
	if d.Reason != "" {
		row("reason", "%s", d.Reason)
	}
	row("revision", "%s, in the index %s", orNone(string(d.Revision)), orNone(string(d.Serving)))
	row("access", "%s", orNone(strings.Join(d.Access, ", ")))
	if d.Source != "" {
		row("source", "%s", d.Source)
	}
	row("size", "%d bytes, %d characters, %d chunks, %d cut at the window", d.Bytes, d.Characters, d.Chunks, d.Truncated)
	row("made by", "pipeline %s, extractor %s, chunker %s, analysis %s, embedder %s %s", d.Stamp.Pipeline, d.Stamp.Extractor, d.Stamp.Chunker,
		d.Stamp.Analysis, d.Stamp.Embedder.Name, d.Stamp.Embedder.Precision)
	if d.Stale {
		row("stale", "another recipe made it than this program has: sync, or ingest again")
	}
	if f := d.Facts; f.Unit != "" {
		row("read", "%d of %d %ss", f.Covered, f.Total, f.Unit)
		if f.Recognised > 0 {
			row("recognised", "%d %ss by text recognition, confidence %d of 100", f.Recognised, f.Unit, f.Confidence)
		}
	}
	if d.State == catalog.Failed {
		row("attempts", "%d; %s", d.Attempts, map[bool]string{true: "may succeed later, is tried again", false: "fails until the file changes"}[d.Retryable])
	}
	for _, w := range d.Warnings {
		row("warning", "%s", w)
	}
	for _, c := range d.Changes {
		row("", "%s %s", c.At.Format(time.RFC3339), c.State)
	}
	return b.String()
}

func (p *program) docsRemove() *cobra.Command {
	c := &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove documents from every generation of the index",
		Args:  some("the ID or path of a document"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runDocsRemove(cmd.Context(), args) }
	return c
}

func (p *program) runDocsRemove(ctx context.Context, ids []string) (err error) {
	c, err := p.config()
	if err != nil {
		return err
	}
	in, done, err := p.openIngester(c)
	if err != nil {
		return err
	}
	defer closing(&err, done)
	var found []catalog.Record
	for _, id := range ids {
		r, err := p.find(in.Catalog, id)
		if err != nil {
			return err
		}
		found = append(found, r)
	}
	show := p.renderer()
	for _, r := range found {
		remove := func() error {
			if err := in.RemovePushed(ctx, r.Path); err != nil {
				return err
			}
			return in.Pipeline.Remove(ctx, r.ID)
		}
		if err := in.Between(remove); err != nil {
			return err
		}
		if err := p.print("removed %s %s\n", r.ID, show.Path(r.Path)); err != nil {
			return err
		}
		if name, of := in.Loop.Owner(r.Path); of && plainFile(r.Path) {
			if err := p.print("  its file is still there and of the source %s: the next sync takes it in again; delete or exclude it\n", console.Line(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
