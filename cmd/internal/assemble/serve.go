package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/acl"
	"footnote/adapters/discord"
	"footnote/adapters/slack"
	"footnote/adapters/web"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
	"footnote/bot/shelf"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/ingest/follow"
)

// Service is all that footnote serve runs.
type Service struct {
	*App
	Ingester *Ingester // over the same store and models; App closes those
	Ledger   ledger.Store
	Desk     *desk.Desk
	Slack    *slack.Adapter   // nil: not configured
	Discord  *discord.Adapter // nil: not configured

	c        config.Config
	web      *web.Server
	listener net.Listener // nil: no HTTP
	viewer   *web.Viewer  // nil: no links
	notices  *shelf.Notices
	lead     *lead
	log      *slog.Logger
}

// OpenService connects what serving needs: the index, the ledger, the desk, the
// configured platforms and the web server, which listens at once but answers
// in Run. Errors are those of Open.
func OpenService(ctx context.Context, c config.Config, p config.Platforms, log *slog.Logger) (*Service, error) {
	l, err := OpenLibrary(c)
	if err != nil {
		return nil, err
	}
	s := &Service{App: &App{Store: l.state.Ask, state: l.state}, Ingester: &Ingester{Library: l, receives: len(p.Push) > 0, uploads: c.Uploads.On(p)}, c: c, lead: newLead(), log: log}
	if err := s.open(ctx, p); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Service) open(ctx context.Context, p config.Platforms) (err error) {
	if err = s.App.open(ctx, s.c, DefaultTop, s.KeepsUp()); err != nil {
		return err
	}
	s.Ingester.Models = s.Models
	if err = s.Ingester.open(s.c, nil, s.log); err != nil {
		return err
	}
	if s.Ledger, err = s.state.Ledger(); err != nil {
		return err
	}
	if s.Desk, err = desk.New(desk.Options{
		Ledger: s.Ledger, Budget: s.budget(), Workers: s.c.Serve.Workers, Queue: s.c.Serve.Queue, PerAsker: s.c.Serve.PerAsker, PerRoom: s.c.Serve.PerRoom, Log: s.log,
		Deadline: time.Duration(s.c.Serve.Deadline) * time.Second, Grace: time.Duration(s.c.Serve.Grace) * time.Second,
		Lease: time.Duration(s.c.Serve.Lease) * time.Second,
	}); err != nil {
		return err
	}
	if s.viewer, err = s.newViewer(ctx); err != nil {
		return err
	}
	if err = s.openChat(); err != nil {
		return err
	}
	if p.Slack != nil {
		c := slackConfig(s.c, *p.Slack)
		if s.viewer != nil {
			c.Personal = s.viewer.Link
		}
		if s.Slack, err = slack.New(c, slack.Deps{
			Bot: s.Bot, Desk: s.Desk, Ledger: s.Ledger, Files: s.files(), Notices: s.notices, Sources: s.slackSources(), Standing: s.standing(), Share: s.share(), Log: s.log,
		}); err != nil {
			return err
		}
		s.Ingester.trouble = s.Slack.Trouble
	}
	if p.Discord != nil {
		deps := discord.Deps{Handle: s.Bot.Handle, Open: discord.Opening(s.Bot), Ledger: s.Ledger, Desk: s.Desk, Files: s.files(), Notices: s.notices, Standing: s.standing(), Log: s.log.With("platform", discord.Platform)}
		c := discordConfig(s.c, *p.Discord)
		if s.viewer != nil {
			c.Personal = s.viewer.Link
		}
		if s.Discord, err = discord.New(c, deps); err != nil {
			return err
		}
	}
	return s.openWeb(ctx, p.Push)
}

// budget is how long a question may take to be claimed, 0 the default. Both
// platforms give up on a bot after 3 s.
func (s *Service) budget() time.Duration {
	if s.state.Link == nil {
		return 0
	}
	return 1800 * time.Millisecond
}

func slackConfig(c config.Config, s config.SlackSecrets) slack.Config {
	channel := func(x config.SlackChannel) slack.Channel {
		follow := x.FollowUps
		if follow == nil {
			follow = c.Slack.Default.FollowUps
		}
		return slack.Channel{
			Answer:    slack.Visibility(cmp.Or(x.Mode, c.Slack.Default.Mode)),
			FollowUps: follow != nil && *follow,
		}
	}
	out := slack.Config{
		Mode: slack.Mode(c.Slack.Mode), BotToken: s.BotToken.Reveal(), AppToken: s.AppToken.Reveal(), SigningSecret: s.SigningSecret.Reveal(),
		APIURL: c.Slack.APIURL, Replicas: c.Shared(), HumanChannel: c.Slack.HumanChannel, Uploads: uploadRules(c), ExternalLabelled: c.Slack.External == "labelled",
		Default: channel(config.SlackChannel{}), Channels: map[string]slack.Channel{},
	}
	for id, x := range c.Slack.Channels {
		out.Channels[id] = channel(x)
	}
	return out
}

func discordConfig(c config.Config, s config.DiscordSecrets) discord.Config {
	d := c.Discord
	return discord.Config{
		Mode: d.Mode, Token: s.Token.Reveal(), PublicKey: s.PublicKey.Reveal(), APIURL: d.APIURL, Guilds: d.Guilds,
		DevGuild: d.DevelopmentGuild, Channels: d.Channels, Mentions: d.Mentions, Threads: d.Threads, Uploads: uploadRules(c),
	}
}

// openWeb makes the web server and takes its port, if one is configured.
func (s *Service) openWeb(ctx context.Context, tokens []config.PushToken) (err error) {
	if s.c.Web.Listen == "" {
		return nil
	}
	handlers := map[string]http.Handler{}
	boxes := map[string]func() outbox.Health{}
	if s.Slack != nil {
		for path, h := range s.Slack.Handlers() {
			handlers[path] = h
		}
		boxes[slack.Platform] = func() outbox.Health {
			h := s.Slack.Health()
			return outbox.Health{Waiting: h.Waiting, Limited: h.Limited}
		}
	}
	if s.Discord != nil {
		for path, h := range s.Discord.Handlers() {
			handlers[path] = h
		}
		boxes[discord.Platform] = func() outbox.Health { return outbox.Health{Limited: s.Discord.Health().Limited} }
	}
	api, err := s.newPush(tokens)
	if err != nil {
		return err
	}
	s.web = web.New(web.Options{
		Listen: s.c.Web.Listen,
		Mounts: web.Mounts{
			SlackEvents: handlers["/slack/events"], SlackInteractions: handlers["/slack/interactions"],
			SlackCommands: handlers["/slack/commands"], DiscordInteractions: handlers["/discord/interactions"],
		},
		API:   api,
		Ready: append(s.checks(), s.sourcesCheck()),
		Metrics: web.NewMetrics(web.Gathered{
			Desk: s.Desk.Health, Ledger: s.Ledger.Counts, Outbox: boxes,
			Documents: s.Ingester.Catalog.Counts, Levels: s.Ingester.Loop.Levels, Sources: func() []follow.Status { return s.sources(context.Background()) },
		}),
		Viewer: s.viewer, Grace: time.Duration(s.c.Serve.Grace) * time.Second, Log: s.log,
	})
	var lc net.ListenConfig
	if s.listener, err = lc.Listen(ctx, "tcp", s.c.Web.Listen); err != nil {
		return fmt.Errorf("listening on %s (web.listen): %w", s.c.Web.Listen, err)
	}
	return nil
}

// newViewer shows sources under web.public_url, nil without one.
func (s *Service) newViewer(ctx context.Context) (*web.Viewer, error) {
	if s.c.Web.PublicURL == "" {
		return nil, nil
	}
	key, err := s.state.ViewerKey(ctx)
	if err != nil {
		return nil, err
	}
	return web.NewViewer(web.ViewerOptions{
		Base: s.c.Web.PublicURL, Key: key, Answers: s.Ledger, Bot: s.Bot, Identify: s.identify, Log: s.log,
	})
}

// identify asks the platform who somebody of the ledger ("slack|T1|U1") is now.
//
// SECURITY: anything else is nobody.
func (s *Service) identify(ctx context.Context, person string) (acl.Identity, error) {
	platform, rest, _ := strings.Cut(person, "|")
	tenant, user, ok := strings.Cut(rest, "|")
	account := platform + ":" + tenant + ":user/" + user
	switch {
	case ok && platform == slack.Platform && s.Slack != nil:
		return s.Slack.Directory().Identify(ctx, account)
	case ok && platform == discord.Platform && s.Discord != nil:
		return s.Discord.Directory().Identify(ctx, account)
	}
	return acl.Identity{}, acl.ErrUnknown
}

// KeepsUp reports that documents come in while it serves.
func (s *Service) KeepsUp() bool {
	return len(s.c.Sources) > 0 || s.Ingester.FollowsPushed() || s.Ingester.FollowsChat()
}

// checks are the conditions of readiness.
func (s *Service) checks() []web.Check {
	out := []web.Check{
		{Name: "index", Probe: func(ctx context.Context) error {
			n, err := s.Documents(ctx)
			if err == nil && n == 0 {
				err = errors.New("the index holds no documents")
			}
			return err
		}},
		{Name: "ledger", Probe: func(ctx context.Context) error {
			if s.state.Link != nil {
				return s.state.Link.Writes(ctx, key(s.c, "awake"))
			}
			_, err := s.Ledger.Counts(ctx)
			return err
		}},
	}
	if s.state.Link != nil {
		out = append(out, web.Check{Name: "memory", Advisory: true, Probe: func(ctx context.Context) error {
			if full := s.state.patient.Room(ctx, 0); full != "" {
				return errors.New(full)
			}
			return nil
		}})
	}
	for _, p := range s.platforms() {
		out = append(out, web.Check{Name: strings.ToLower(p.name), Probe: func(context.Context) error { return p.up() }})
	}
	return out
}

// platform is a connected platform as the parts above see it.
type platform struct {
	name string
	how  string                      // it is heard: the end of "Slack: …"
	run  func(context.Context) error // serves
	up   func() error                // nil: questions can arrive now
	who  func() string               // the bot there, "" unknown
	note func() string               // what the operator should change, "" nothing; nil: nothing
}

func (s *Service) platforms() []platform {
	var out []platform
	if a := s.Slack; a != nil {
		p := platform{name: "Slack", how: "connected by Socket Mode", run: a.Run, who: a.Self, up: func() error {
			h := a.Health()
			return state(h.Fatal, !h.Connected.IsZero())
		}}
		if s.c.Slack.Mode == string(slack.HTTP) {
			p.how = "ready for deliveries by HTTP"
			p.up = func() error { return state(a.Health().Fatal, a.Self() != "") }
		}
		out = append(out, p)
	}
	if a := s.Discord; a != nil {
		p := platform{name: "Discord", how: "connected by the gateway", run: a.Run, who: func() string { return "" }, up: func() error {
			h := a.Health()
			return state(h.Fatal, !h.Connected.IsZero())
		}}
		p.note = func() string { return a.Health().Warning }
		if s.c.Discord.Mode == discord.HTTP {
			p.how = "ready for deliveries by HTTP"
			p.up = func() error { return state(a.Health().Fatal, true) }
		}
		out = append(out, p)
	}
	return out
}

func state(fatal string, connected bool) error {
	switch {
	case fatal != "":
		return errors.New(fatal)
	case !connected:
		return errors.New("not connected")
	}
	return nil
}

// Sources are those of the configuration that it was opened with.
func (s *Service) Sources() []config.Source { return s.c.Sources }

// Documents counts what is in the index.
func (s *Service) Documents(ctx context.Context) (int, error) {
	g, err := s.Store.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return g.Counts().Documents, nil
}

// Address is where the web server listens, "" if there is none.
func (s *Service) Address() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Run serves until ctx is done, or until a part fails for good that nothing can
// do without. Then no new
// question is started, and what runs may finish for the grace period. say is
// told, in a sentence each, what runs and since when.
func (s *Service) Run(ctx context.Context, say func(string)) error {
	tellRecipe(ctx, s.c, s.Ingester.Store, s.log)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Desk.Run(ctx) })
	if s.state.Link != nil || s.KeepsUp() {
		g.Go(func() error { return s.follow(ctx, say) })
	}
	if s.Ingester.queue != nil {
		g.Go(func() error { return s.Ingester.work(ctx, s.c, 0, s.log) })
		g.Go(func() error { s.Ingester.missWorkers(ctx, s.log); return nil })
	}
	if s.Slack != nil && s.state.Link != nil {
		g.Go(func() error { s.hear(ctx); return nil })
	}
	g.Go(func() error { return s.notices.Run(ctx) })
	if s.web != nil {
		say("HTTP: listening on " + s.Address())
		g.Go(func() error { return s.web.Serve(ctx, s.listener) })
	}
	left := new(atomic.Int64)
	left.Store(int64(len(s.platforms())))
	for _, p := range s.platforms() {
		g.Go(func() error { return s.outlive(p.name, p.run(ctx), left, say) })
		g.Go(func() error { p.announce(ctx, say); return nil })
	}
	return g.Wait()
}

// outlive says what becomes of the service when a platform ends. One whose
// token was taken back does not silence the people of the other: readiness says
// that it is gone. The last one ends the service.
func (s *Service) outlive(platform string, err error, left *atomic.Int64, say func(string)) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", platform, err)
	if left.Add(-1) == 0 {
		return err
	}
	s.log.Error("a platform is out of service, the other goes on", "platform", platform, "error", err)
	say(err.Error() + ". The other platform goes on.")
	return nil
}

// announce says when the platform can be heard for the first time.
func (p platform) announce(ctx context.Context, say func(string)) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for p.up() != nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	as := ""
	if who := p.who(); who != "" {
		as = " as " + who
	}
	say(p.name + ": " + p.how + as)
	if p.note != nil && p.note() != "" {
		say(p.name + ": " + p.note())
	}
}

// Close ends what OpenService opened, in the reverse order.
func (s *Service) Close() error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.Ledger != nil {
		errs = append(errs, s.Ledger.Close())
	}
	errs = append(errs, s.Ingester.closeCaches(), s.Ingester.Catalog.Close())
	return errors.Join(append(errs, s.App.Close())...)
}
