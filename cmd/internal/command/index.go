package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
)

// generationJSON is the contract of index list --json.
type generationJSON struct {
	retrieval.Manifest
	retrieval.Counts
	Current    bool   `json:"current"`
	Unfinished bool   `json:"unfinished,omitempty"` // its build was begun and not ended
	ByHand     bool   `json:"by_hand,omitempty"`    // a person promoted it
	Otherwise  string `json:"otherwise,omitempty"`  // in what it was made otherwise than the configuration says
	Problem    string `json:"problem,omitempty"`    // why it cannot be opened
}

func (p *program) index() *cobra.Command {
	return p.group("index", "List the generations of the index and switch between them", p.indexList(), p.indexPromote(), p.indexVerify())
}

func (p *program) indexList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the generations, oldest first", Args: exactly(0, "nothing more")}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runIndexList(cmd.Context()) }
	return c
}

func (p *program) runIndexList(ctx context.Context) (err error) {
	s, done, err := p.openLibrary()
	if err != nil {
		return err
	}
	defer closing(&err, done)
	all, current, listed := s.Store.Generations(ctx)
	marks, err := s.Store.Marks(ctx)
	if listed == nil {
		listed = err
	}
	stamp, err := assemble.Stamp(s.Config())
	if err != nil {
		return err
	}
	for _, m := range all {
		g := generationJSON{Manifest: m, Current: m.Name == current, Unfinished: marks.Unfinished[m.Name], Otherwise: ingest.Differs(m, stamp)}
		g.ByHand = g.Current && marks.ByHand
		if opened, err := s.Store.Open(ctx, m.Name); err != nil {
			g.Problem = err.Error()
		} else {
			g.Counts = opened.Counts()
		}
		if err := p.printGeneration(g); err != nil {
			return err
		}
	}
	if len(all) == 0 && listed == nil {
		return fmt.Errorf("%w", retrieval.ErrNoIndex)
	}
	return listed
}

func (p *program) printGeneration(g generationJSON) error {
	if p.json {
		return writeJSON(p.Out, g)
	}
	mark := " "
	if g.Current {
		mark = "*"
	}
	state := fmt.Sprintf("%d documents, %d chunks", g.Documents, g.Chunks)
	if g.Unfinished {
		state += ", unfinished: run the ingest again"
	}
	if g.ByHand {
		state += ", promoted by hand"
	}
	if g.Current && g.Otherwise != "" {
		state += ", made otherwise than the configuration says: " + g.Otherwise
	}
	if g.Problem != "" {
		state = g.Problem
	}
	return p.print("%s %s  %s  %s %s, extractor %s, chunker %s, analysis %s: %s\n", mark, g.Name, g.Created.Format(time.RFC3339),
		g.Embedder.Name, g.Embedder.Precision, g.Extractor, g.Chunker, g.Analysis, state)
}

func (p *program) indexPromote() *cobra.Command {
	c := &cobra.Command{
		Use:   "promote NAME",
		Short: "Answer from another generation (also to go back to an earlier one)",
		Long: `promote switches to another generation in one step. Content is what it was when
that generation was made; access is what it is now: lists that have changed
since are brought up to date first, and documents that were removed or closed
since do not come back. A generation whose build was begun and not finished is
refused.`,
		Args: exactly(1, "the NAME of a generation; see: footnote index list"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runPromote(cmd.Context(), args[0]) }
	return c
}

func (p *program) runPromote(ctx context.Context, name string) (err error) {
	s, done, err := p.openLibrary()
	if err != nil {
		return err
	}
	defer closing(&err, done)
	g, err := s.Store.Open(ctx, name)
	if err != nil {
		return err
	}
	marks, err := s.Store.Marks(ctx)
	if err == nil && marks.Unfinished[name] {
		err = fmt.Errorf("generation %s cannot be promoted: %w", name, retrieval.ErrUnfinished)
	}
	if err != nil && !errors.Is(err, retrieval.ErrCorrupt) { // of the alias, which this mends
		return err
	}
	n, err := presentAccess(ctx, s.Catalog, g)
	if err != nil {
		return fmt.Errorf("bringing the access lists of %s up to date: %w", name, err)
	}
	if err := s.Store.PromoteByHand(ctx, name); err != nil {
		return err
	}
	if err := p.print("questions are answered from generation %s: %d documents, %d access lists brought up to date\n", name, g.Counts().Documents, n); err != nil {
		return err
	}
	r, err := s.Recipe(ctx)
	if err == nil && r.What() != "" {
		err = p.print("%s; %s\n", r.What(), r.Do())
	}
	return err
}

// verification is the contract of index verify --json.
type verification struct {
	Generation string `json:"generation"`
	retrieval.Counts
	Problems []string `json:"problems"`
}

func (p *program) indexVerify() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Recount the current generation and say what is wrong with it; ends with 1 if anything is",
		Args:  exactly(0, "nothing more"),
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runIndexVerify(cmd.Context()) }
	return c
}

func (p *program) runIndexVerify(ctx context.Context) (err error) {
	s, err := p.openCurrent(ctx)
	if err != nil {
		return err
	}
	defer closing(&err, s.Close)
	found, err := assemble.Verify(ctx, s.current, s.Catalog)
	if err != nil {
		return err
	}
	v := verification{s.current.Manifest().Name, s.current.Counts(), append([]string{}, found...)}
	switch {
	case p.json:
		err = writeJSON(p.Out, v)
	case len(found) == 0:
		err = p.print("generation %s is in order: %d documents, %d chunks\n", v.Generation, v.Documents, v.Chunks)
	default:
		err = p.print("%s\n", console.Safe(strings.Join(found, "\n")))
	}
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("generation %s is not in order in %d place(s): build a new one with footnote ingest --rebuild FOLDER", v.Generation, len(found))
	}
	return err
}

// presentAccess gives every document of a generation the access that is in
// force now and removes those that nobody may read any more. It returns how
// many changed.
//
// SECURITY: a rollback brings back content, never access.
func presentAccess(ctx context.Context, c *catalog.Catalog, g retrieval.Generation) (changed int, err error) {
	infos, err := g.Documents(ctx, system.Grant())
	if err != nil {
		return 0, err
	}
	for _, d := range infos {
		list, open := inForce(c, d.ID)
		switch {
		case open && list.Equal(d.Access):
			continue
		case open:
			err = g.SetAccess(ctx, d.ID, list)
		default:
			err = g.Remove(ctx, d.ID)
		}
		if err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// inForce is a document's present access list. A document that the catalog
// does not serve, or does not know, is open to nobody.
func inForce(c *catalog.Catalog, id retrieval.DocumentID) (acl.List, bool) {
	r, known := c.Get(id)
	if !known || r.Serving == "" {
		return acl.List{}, false
	}
	list, err := acl.ParseList(r.Access)
	return list, err == nil && !list.IsZero()
}
