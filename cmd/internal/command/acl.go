package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval/catalog"
)

// accessJSON is the contract of acl explain --json.
type accessJSON struct {
	Document string          `json:"document"`
	Path     string          `json:"path"`
	State    string          `json:"state"`
	Access   []string        `json:"access"` // the list in force
	As       string          `json:"as"`
	Asker    acl.Principal   `json:"asker"` // "" if the directory does not vouch for them
	Holds    []acl.Principal `json:"holds"`
	Room     string          `json:"room"` // "": only the asker sees the reply
	Clauses  []clauseJSON    `json:"clauses"`
	Admitted bool            `json:"admitted"`
	Why      string          `json:"why"`
	// AgeMS is how old the oldest fact about people and rooms is.
	AgeMS int64 `json:"age_ms"`
}

// clauseJSON is one condition that the document's list must meet.
type clauseJSON struct {
	Who   string          `json:"who"`
	Holds []acl.Principal `json:"holds"`
	Meets []acl.Principal `json:"meets"` // of the list; none: this denies
}

func (p *program) access() *cobra.Command {
	explain := p.accessExplain()
	c := &cobra.Command{Use: "acl", Short: "Say who may read what", Args: cobra.ArbitraryArgs}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(fmt.Errorf("footnote acl has no command %q; see: footnote acl --help", args[0]))
		}
		return cmd.Help()
	}
	c.AddCommand(explain)
	return c
}

func (p *program) accessExplain() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain --as WHO [--room ROOM] DOCUMENT",
		Short: "Say why somebody may or may not read a document",
		Long: `explain asks who somebody is now, who reads in the room, and holds both to the
document's access list. WHO is a name of the people file, or an account of a
configured platform: slack:T0123:user/U0123, discord:SERVER:user/ID. ROOM is a
room of the same place: a name, slack:T0123:channel/C0123, or
discord:SERVER:channel/ID; without it only the asker sees the reply. DOCUMENT is
the id of a document, the beginning of it, or its path.

It is for operators: it prints lists and groups that askers must not see. It may
be run while footnote serve runs.`,
		Args: exactly(1, "the ID or path of a document"),
	}
	a := p.askerFlags(c)
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runAccess(cmd.Context(), a, args[0]) }
	return c
}

func (p *program) runAccess(ctx context.Context, a *asker, document string) (err error) {
	c, err := p.config()
	if err != nil {
		return err
	}
	docs, release, err := assemble.ReadCatalog(c)
	if err != nil {
		return err
	}
	defer closing(&err, release)
	r, err := find(docs, document)
	if err != nil {
		return err
	}
	who, audience, age, why, err := p.authorityOf(ctx, c, a)
	if err != nil {
		return err
	}
	out := judge(r, who, audience)
	out.As, out.Room, out.AgeMS = a.as, a.room, age.Milliseconds()
	if why != "" {
		out.Why = why
	}
	if p.json {
		return writeJSON(p.Out, out)
	}
	return p.print("%s", out.text(p.renderer()))
}

// find takes an id, the beginning of one, or a path as it is written here.
func find(docs *catalog.Catalog, document string) (catalog.Record, error) {
	if abs, err := filepath.Abs(document); err == nil {
		if r, ok := docs.At(abs); ok {
			return r, nil
		}
	}
	return docs.Find(document)
}

// authorityOf finds out who asks and who reads along. Somebody or a room that
// the directory does not vouch for is no error here but the answer: why says it.
func (p *program) authorityOf(ctx context.Context, c config.Config, a *asker) (who acl.Identity, audience acl.Audience, age time.Duration, why string, err error) {
	platform, _, _ := strings.Cut(a.as, ":")
	if platform != "slack" && platform != "discord" {
		if err := a.open(p, c); err != nil {
			return who, audience, 0, "", err
		}
		who, audience, err = a.authority(ctx, "", "")
		return who, audience, 0, "", err
	}
	found, err := c.Platforms(p.lookup)
	if err != nil {
		return who, audience, 0, "", err
	}
	l, err := assemble.OpenLookout(c, found)
	if err != nil {
		return who, audience, 0, "", err
	}
	defer closing(&err, l.Close)
	d, err := l.Directory(ctx, platform)
	if err != nil {
		return who, audience, 0, "", err
	}
	start := time.Now()
	if who, err = d.Identify(ctx, a.as); err != nil {
		why, err = doubt("the asker", err)
		return acl.Identity{}, acl.AskerOnly(), time.Since(start), why, err
	}
	audience = acl.AskerOnly()
	if a.room != "" {
		if audience, err = d.Audience(ctx, a.room); err != nil {
			why, err = doubt("the room", err)
			return who, acl.Audience{}, time.Since(start), why, err
		}
	}
	return who, audience, time.Since(start), "", nil
}

// doubt makes an answer of what a directory does not vouch for, and leaves
// other errors as they are.
func doubt(what string, err error) (string, error) {
	if errors.Is(err, acl.ErrUnknown) {
		return fmt.Sprintf("denied: the directory does not vouch for %s: %v", what, err), nil
	}
	return "", err
}

// judge holds a document to the grant, clause by clause.
func judge(r catalog.Record, who acl.Identity, audience acl.Audience) accessJSON {
	var list acl.List
	if len(r.Access) > 0 {
		list, _ = acl.ParseList(r.Access) // a list that cannot be read admits nobody
	}
	grant := acl.NewGrant(who, audience)
	out := accessJSON{
		Document: string(r.ID), Path: r.Path, State: string(r.State), Access: append([]string{}, r.Access...), Asker: who.ID(),
		Holds: append([]acl.Principal{}, who.Principals()...), Clauses: []clauseJSON{}, Admitted: grant.Admits(list), Why: grant.Explain(list),
	}
	for i, holds := range grant.Clauses() {
		c := clauseJSON{Who: "the asker", Holds: holds, Meets: []acl.Principal{}}
		if i > 0 {
			c.Who = fmt.Sprintf("viewer %d of the room", i)
		}
		for _, p := range list.Principals() {
			if slices.Contains(holds, p) {
				c.Meets = append(c.Meets, p)
			}
		}
		out.Clauses = append(out.Clauses, c)
	}
	if r.Serving == "" {
		out.Admitted, out.Why = false, "denied: the document is not in the index (it is "+string(r.State)+")"
	}
	return out
}

func (a accessJSON) text(show console.Renderer) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, console.Line(fmt.Sprintf(format, args...)))
	}
	row("document", "%s  %s (%s)", a.Document, show.Path(a.Path), a.State)
	row("list", "%s", orNone(strings.Join(a.Access, ", ")))
	row("asker", "%s", orNone(string(a.Asker)))
	room := "only the asker"
	if a.Room != "" {
		room = "everybody in " + a.Room
	}
	row("readers", "%s", room)
	for _, c := range a.Clauses {
		verdict := "DENIES: none of [" + words(c.Holds) + "] is on the list"
		if len(c.Meets) > 0 {
			verdict = "passes by " + words(c.Meets) + "; holds [" + words(c.Holds) + "]"
		}
		row("clause", "%s %s", c.Who, verdict)
	}
	if platform, _, _ := strings.Cut(a.As, ":"); platform == "slack" || platform == "discord" {
		row("facts", "asked of %s, %.1f s old", platform, float64(a.AgeMS)/1000)
	} else {
		row("facts", "from the people file, as it is now")
	}
	row("decision", "%s", a.Why)
	return b.String()
}

func words(ps []acl.Principal) string {
	s := make([]string, len(ps))
	for i, p := range ps {
		s[i] = string(p)
	}
	return strings.Join(s, ", ")
}
