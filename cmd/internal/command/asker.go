package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
)

// asker is who asks and who will see the reply, as the flags say.
type asker struct {
	as     string
	room   string
	people string

	directory acl.Directory
	file      string // the people file in use, "" none
}

func (p *program) askerFlags(c *cobra.Command) *asker {
	a := &asker{}
	c.Flags().StringVar(&a.as, "as", "", "`NAME` of who asks (also FOOTNOTE_AS)")
	c.Flags().StringVar(&a.room, "room", "", "`ROOM` in which everyone will see the reply; default: only the asker")
	c.Flags().StringVar(&a.people, "people", "", "people `FILE`; default: people.yaml in the data directory")
	return a
}

// open reads the people file.
func (a *asker) open(p *program, c config.Config) (err error) {
	if a.as == "" {
		a.as, _ = p.lookup("FOOTNOTE_AS")
	}
	if a.file = p.abs(a.people); a.file == "" {
		a.file = c.PeopleFile()
	}
	if a.directory, err = assemble.People(a.file); err != nil {
		return usage(err)
	}
	return nil
}

// authority is the identity and the audience of one question; as and room ""
// mean those of the flags.
//
// SECURITY: with a people file nobody is anybody by default.
func (a *asker) authority(ctx context.Context, as, room string) (acl.Identity, acl.Audience, error) {
	if as == "" {
		as = a.as
	}
	if room == "" {
		room = a.room
	}
	if as == "" && a.file != "" {
		return acl.Identity{}, acl.Audience{}, usage(fmt.Errorf("say who asks, with --as NAME or FOOTNOTE_AS: %s says who there is", a.file))
	}
	who, err := a.directory.Identify(ctx, as)
	if err != nil {
		return acl.Identity{}, acl.Audience{}, unknown(err)
	}
	if room == "" {
		return who, acl.AskerOnly(), nil
	}
	audience, err := a.directory.Audience(ctx, room)
	return who, audience, unknown(err)
}

// unknown marks a name that the directory does not know as the caller's
// mistake.
func unknown(err error) error {
	if errors.Is(err, acl.ErrUnknown) {
		return usage(err)
	}
	return err
}

// session is what a command that asks works with.
type session struct {
	*assemble.App
	asker *asker
	show  console.Renderer
	log   *slog.Logger
}

// session opens the people file, checks who asks, and opens the index and the
// models. top is the number of hits that a search returns. lenient leaves the
// asker to the lines of a batch.
func (p *program) session(ctx context.Context, a *asker, top int, lenient bool) (*session, error) {
	c, err := p.config()
	if err != nil {
		return nil, err
	}
	if err := a.open(p, c); err != nil {
		return nil, err
	}
	if !lenient {
		if _, _, err := a.authority(ctx, "", ""); err != nil {
			return nil, err
		}
	}
	app, err := p.openApp(ctx, c, top)
	if err != nil {
		return nil, err
	}
	return &session{App: app, asker: a, show: p.renderer(), log: p.logger(c)}, nil
}

// openApp opens what answers, or lends what the server has.
func (p *program) openApp(ctx context.Context, c config.Config, top int) (*assemble.App, error) {
	if p.served != nil {
		return p.served.Lend(ctx, c, top)
	}
	return assemble.Open(ctx, c, top)
}

func (p *program) renderer() console.Renderer {
	return console.Renderer{Width: p.width(), Base: p.workingDir()}
}

// workingDir is the caller's, "" if it is not known.
func (p *program) workingDir() string {
	if p.served != nil {
		return p.request.Dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// abs makes a path of the caller's absolute. An empty one stays empty.
func (p *program) abs(path string) string {
	if path == "" || filepath.IsAbs(path) || p.served == nil {
		return path
	}
	return filepath.Join(p.request.Dir, path)
}
