package assemble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/adapters/web"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
)

// Await waits until the Redis of the configuration answers. Until then it says
// so, and the web server that is configured says that it is not ready. An error
// is one that waiting does not mend, such as a wrong password.
func Await(ctx context.Context, c config.Config, log *slog.Logger, say func(string)) error {
	err := reach(ctx, c)
	if !errors.Is(err, retrieval.ErrUnavailable) {
		return err
	}
	say(fmt.Sprintf("%v; trying again until it answers", err))
	g, inside := errgroup.WithContext(ctx)
	waiting, done := context.WithCancel(inside)
	g.Go(func() error { return unready(waiting, c, log) })
	g.Go(func() error {
		defer done()
		return retry(waiting, c)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	say("Redis answers")
	return ctx.Err()
}

// reach asks the Redis whether it is there and has what is needed.
func reach(ctx context.Context, c config.Config) error {
	if !c.Shared() {
		return nil
	}
	l, err := OpenLink(c, askDeadline)
	if err != nil {
		return err
	}
	_, err = openIndex(ctx, c, l, askTimeout)
	return errors.Join(err, l.Close())
}

// retry asks again and again, every two seconds at last.
func retry(ctx context.Context, c config.Config) error {
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		if err := reach(ctx, c); !errors.Is(err, retrieval.ErrUnavailable) {
			return err
		}
	}
}

// unready is the web server before there is anything to serve.
func unready(ctx context.Context, c config.Config, log *slog.Logger) error {
	if c.Web.Listen == "" {
		<-ctx.Done()
		return nil
	}
	s := web.New(web.Options{Listen: c.Web.Listen, Grace: time.Second, Log: log, Ready: []web.Check{
		{Name: "redis", Probe: func(context.Context) error { return retrieval.ErrUnavailable }},
	}})
	return s.Run(ctx)
}

// sourcesTerm is how long nobody keeps up with the sources when the replica that
// did so ends without a word.
const sourcesTerm = 15 * time.Second

// SourcesKey is the key of the lease of the replica that keeps up with the
// sources.
func SourcesKey(c config.Config) string { return key(c, "sources") }

// follow keeps up with the sources. Of replicas, one does so at a time.
func (s *Service) follow(ctx context.Context, say func(string)) error {
	work := func(ctx context.Context) error {
		if s.state.Link != nil && !s.Ingester.leads(ctx) {
			return nil // the home of the inboxes does so
		}
		if s.Ingester.FollowsPushed() {
			say("documents of other systems: kept up with")
		}
		if n := len(s.c.Sources); n > 0 {
			say(fmt.Sprintf("sources: %d, kept up with", n))
		}
		if n := len(s.c.Channels); n > 0 {
			say(fmt.Sprintf("Slack channels as sources: %d, kept up with", n))
		}
		return s.Ingester.Loop.Run(ctx)
	}
	if s.state.Link == nil {
		return work(ctx)
	}
	if who, err := s.state.Link.Holder(ctx, SourcesKey(s.c)); err == nil && who != "" {
		say("sources: kept up with by another replica, " + who)
	}
	return s.state.Link.NewLease(SourcesKey(s.c), replica(s.Address()), sourcesTerm).Hold(ctx, func(ctx context.Context) error {
		return s.Ingester.whileHome(ctx, work)
	})
}

// replica names this process for people.
func replica(address string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name := fmt.Sprintf("%s pid %d", host, os.Getpid())
	if _, port, err := net.SplitHostPort(address); err == nil {
		name += " port " + port
	}
	return name
}
