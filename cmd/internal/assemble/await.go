package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"footnote/adapters/discord"
	"footnote/adapters/slack"
	"footnote/adapters/web"
	"footnote/adapters/web/push"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
)

// Await waits until the Redis of the configuration answers. Until then it says
// why it waits, each time that this changes, and the web server that is
// configured says that it is not ready, and of the paths that it will serve that
// they are not there yet. An error is one that waiting does not
// mend, such as a wrong password.
func Await(ctx context.Context, c config.Config, p config.Platforms, log *slog.Logger, say func(string)) error {
	w := &wait{c: c, p: p, say: say}
	if w.over(ctx) {
		return w.err
	}
	g, inside := errgroup.WithContext(ctx)
	waiting, done := context.WithCancel(inside)
	g.Go(func() error { return w.unready(waiting, log) })
	g.Go(func() error {
		defer done()
		return w.retry(waiting)
	})
	if err := g.Wait(); err != nil || ctx.Err() != nil {
		return err
	}
	say("Redis answers")
	return nil
}

// wait is the waiting for a Redis.
type wait struct {
	c   config.Config
	p   config.Platforms
	say func(string)

	mu  sync.Mutex
	err error // of the last try
}

// over tries once. It reports whether there is nothing more to wait for, and
// says what is waited for if that is something new.
func (w *wait) over(ctx context.Context) bool {
	err := reach(ctx, w.c)
	w.mu.Lock()
	was := w.err
	w.err = err
	w.mu.Unlock()
	if !errors.Is(err, retrieval.ErrUnavailable) {
		return true
	}
	if ctx.Err() == nil && (was == nil || reason(was) != reason(err)) {
		w.say(fmt.Sprintf("%v; trying again until it answers. If it should answer by now: footnote doctor", err))
	}
	return false
}

// reason is what an error says without the numbers that differ from try to try,
// such as ports of our own.
func reason(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
}

// last is the error of the last try.
func (w *wait) last() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
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
	if _, err = openIndex(ctx, c, l, askTimeout); err == nil {
		err = l.Keeps(ctx)
	}
	if err == nil {
		if err = l.Writes(ctx, key(c, "awake")); err != nil {
			err = fmt.Errorf("%s: %w", l.Where(), err)
		}
	}
	return errors.Join(err, l.Close())
}

// retry asks again and again, every two seconds at last.
func (w *wait) retry(ctx context.Context) error {
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		if w.over(ctx) {
			return w.last()
		}
	}
}

// unready is the web server before there is anything to serve.
func (w *wait) unready(ctx context.Context, log *slog.Logger) error {
	if w.c.Web.Listen == "" {
		<-ctx.Done()
		return nil
	}
	return w.server(log).Run(ctx)
}

func (w *wait) server(log *slog.Logger) *web.Server {
	o := web.Options{Listen: w.c.Web.Listen, Grace: time.Second, Log: log, Starting: w.paths(), Ready: []web.Check{
		{Name: "redis", Probe: func(context.Context) error { return cmp.Or(w.last(), retrieval.ErrUnavailable) }},
	}}
	if len(w.p.Push) > 0 {
		o.API = http.HandlerFunc(push.Starting)
	}
	return web.New(o)
}

// paths are those that the configuration has served later on.
func (w *wait) paths() []string {
	out := []string{"/metrics"}
	if w.p.Slack != nil && w.c.Slack.Mode == string(slack.HTTP) {
		out = append(out, "/slack/events", "/slack/interactions", "/slack/commands")
	}
	if w.p.Discord != nil && w.c.Discord.Mode == discord.HTTP {
		out = append(out, "/discord/interactions")
	}
	if w.c.Web.PublicURL != "" {
		out = append(out, web.SourcePath)
	}
	return out
}

// sourcesTerm is how long nobody keeps up with the sources when the replica that
// did so ends without a word.
const sourcesTerm = 15 * time.Second

// SourcesKey is the key of the lease of the replica that keeps up with the
// sources.
func SourcesKey(c config.Config) string { return key(c, "sources") }

// follow keeps up with the sources. Of replicas, one does so at a time.
func (s *Service) follow(ctx context.Context, say func(string)) error {
	if s.state.Link == nil {
		return s.keepUp(ctx, say)
	}
	if who, err := s.state.Link.Holder(ctx, SourcesKey(s.c)); err == nil && who != "" {
		say("sources: kept up with by another replica, " + who)
	}
	return s.state.Link.NewLease(SourcesKey(s.c), replica(s.Address()), sourcesTerm).Hold(ctx, func(ctx context.Context) error {
		if err := s.Ingester.forsake(ctx); err != nil {
			s.log.Warn("what is left of channels that are no sources any more could not be dropped yet", "error", err)
		}
		return s.lead.during(ctx, func(ctx context.Context) error { return s.keepUp(ctx, say) })
	})
}

func (s *Service) keepUp(ctx context.Context, say func(string)) error {
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
