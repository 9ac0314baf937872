package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
)

// Platforms are what can be tried.
var Platforms = []string{"slack", "discord"}

// Options of a sandbox.
type Options struct {
	Platform string // one of Platforms
	Listen   string // host:port of the page
	Data     string // directory of documents and index; "": a new one, removed at the end
	// Environment is where settings of models, search and answers come from;
	// what it says of chat platforms does not count.
	Environment config.Lookup
	Log         func(config.Config) *slog.Logger
	Say         func(string)     // is told what happens, in a sentence each
	Ready       func(url string) // is told where the page is, once it can be used
}

// Run serves a sandbox until ctx is done.
func Run(ctx context.Context, o Options) (err error) {
	var s stage
	name := ""
	switch o.Platform {
	case "slack":
		s, name = newWorkspace(), "Slack"
	case "discord":
		s, name = newServer(), "Discord"
	default:
		return fmt.Errorf("there is no sandbox of %q: it must be %s", o.Platform, strings.Join(Platforms, " or "))
	}
	defer s.close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s (--listen): %w", o.Listen, err)
	}
	defer func() { _ = listener.Close() }()
	if o.Data == "" {
		if o.Data, err = os.MkdirTemp("", "footnote-sandbox-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Data)) }()
	}
	service, err := prepare(ctx, s, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	p, err := newPage(s, name)
	if err != nil {
		return err
	}
	return serve(ctx, s, service, p.routes(), listener, o)
}

// prepare takes the demo documents in and connects the adapter.
func prepare(ctx context.Context, s stage, o Options) (*assemble.Service, error) {
	env := environment(o.Environment, s.environment())
	c, err := config.Load(config.Flags{Data: filepath.Join(o.Data, "index")}, env)
	if err != nil {
		return nil, err
	}
	c.Index = config.Embedded // whatever the environment says
	platforms, err := c.Platforms(env)
	if err != nil {
		return nil, err
	}
	o.Say("taking in the demo documents")
	docs := filepath.Join(o.Data, "documents")
	if err := writeDemo(docs, s.lists()); err != nil {
		return nil, err
	}
	if err := ingestDemo(ctx, c, docs); err != nil {
		return nil, err
	}
	return assemble.OpenService(ctx, c, platforms, o.Log(c))
}

// environment is the user's, without their own platforms and configuration
// file, and with the fake's.
func environment(base config.Lookup, fake map[string]string) config.Lookup {
	return func(name string) (string, bool) {
		if v, ok := fake[name]; ok {
			return v, true
		}
		for _, own := range []string{"FOOTNOTE_SLACK_", "FOOTNOTE_DISCORD_", "FOOTNOTE_WEB_", "FOOTNOTE_CONFIG", "FOOTNOTE_DATA", "FOOTNOTE_PEOPLE", "HOME", "XDG_"} {
			if strings.HasPrefix(name, own) {
				return "", false
			}
		}
		return base(name)
	}
}

// serve runs the service and the page beside it. When it ends, the service
// goes first, so that it can say goodbye.
func serve(ctx context.Context, s stage, service *assemble.Service, page http.Handler, l net.Listener, o Options) error {
	g, ctx := errgroup.WithContext(ctx)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	g.Go(func() error { return service.Run(ctx, o.Say) })
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving the page: %w", err)
		}
		return nil
	})
	g.Go(func() error { <-ctx.Done(); return server.Close() })
	g.Go(func() error {
		if s.ready(ctx) == nil {
			o.Ready("http://" + l.Addr().String() + "/")
		}
		return nil
	})
	return g.Wait()
}
