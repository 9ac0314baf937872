package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/acl"
	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/threads"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
	"footnote/bot/shelf"
)

// Platform is the name under which questions from here are kept.
const Platform = "slack"

// Mode is how deliveries come.
type Mode string

// Modes. Slack uses one at a time: while Socket Mode is on, nothing comes by
// HTTP.
const (
	Socket Mode = "socket"
	HTTP   Mode = "http"
)

// Visibility is how a channel is answered.
type Visibility string

// Ways to answer a channel.
const (
	PublicSafe    Visibility = "public-safe"    // in the thread, with what everybody there may read
	PrivateAlways Visibility = "private-always" // to the asker alone
	Off           Visibility = "off"            // not at all
)

// Channel is what an operator sets for a channel. The zero value is the
// default.
type Channel struct {
	Answer    Visibility
	FollowUps bool // answer the asker's further messages in a thread without a mention
}

// Config of the adapter. BotToken is needed, and AppToken for Socket or
// SigningSecret for HTTP; zero values mean the defaults.
type Config struct {
	Mode          Mode // socket
	BotToken      string
	AppToken      string
	SigningSecret string
	APIURL        string // ends in /; "" is Slack's own
	AppID         string // checked when given
	Name          string // by which people mention the bot: footnote

	Channels map[string]Channel // by id
	Default  Channel

	ExternalLabelled bool     // answer outsiders' channels from documents labelled external, instead of not at all
	ExternalSilent   bool     // say nothing to people from outside
	FlatDM           bool     // answer direct messages beside them, not in a thread
	Replicas         bool     // others answer in this workspace, too, and hear a part of its events
	Bots             []string // ids of bots whose mentions are answered, once a thread
	Edits            bool     // answer a question again when its author changes it within 5 min
	DeleteAnswers    bool     // delete an answer with its question
	Viewer           func(cite.Source) string
	// Personal is the address of source n of an answer for one person, "" for
	// none. It is shown to that person alone, in the modal. nil: Viewer's.
	Personal     func(answer string, n int, person string) string
	HumanChannel string      // channel that is told when somebody asks for a human
	Uploads      shelf.Rules // who may add files; the zero Rules let nobody

	MaxAge      time.Duration // of facts about people and rooms: 5 min
	MaxPrivate  int           // members up to which a private channel is enumerated: 500
	FollowFor   time.Duration // after an answer: 30 min
	Silence     time.Duration // without a sign from Slack after which a socket is replaced: 30 s
	Connections int           // sockets that are expected: 1
	Arrival     time.Duration // in which a post that was under way at a crash still arrives: 3 s
	Pace        outbox.Limit  // of messages in a channel: 1 a second, 3 at once
	ScanEvery   time.Duration // between scans of a channel that is a source: 5 min
	ScanPace    time.Duration // between the calls of a scan: 1.2 s

	// Renew returns a new bot token when the old one has expired; nil where
	// tokens are not rotated. It keeps the refresh token itself.
	Renew func(ctx context.Context) (string, error)
	HTTP  *http.Client // nil: one with a timeout of 30 s
}

// Deps are the parts that the adapter works with; Log, Now and After may be nil.
type Deps struct {
	Bot     *bot.Bot
	Desk    *desk.Desk
	Ledger  ledger.Store
	Files   shelf.Keeper   // of files that people post; nil: none are taken, whatever Uploads says
	Notices *shelf.Notices // needed with Files
	Sources []Source       // channels whose threads are documents
	// Standing says how documents stand; nil: /footnote status says nothing of them.
	Standing standing
	// Share gives a word to Changed of every other replica; nil: there are none.
	Share func(ctx context.Context, word []byte) error
	Log   *slog.Logger
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time // until a status is refreshed
}

// standing says to the asker alone how the documents stand that the asker may
// read, or one of them.
type standing interface {
	Text(ctx context.Context, asker acl.Identity, document string) (string, error)
}

// Adapter is the bot in one Slack workspace. It is safe for concurrent use.
type Adapter struct {
	c       Config
	d       Deps
	log     *slog.Logger
	now     func() time.Time
	api     *client
	out     *outbox.Outbox
	health  health
	asides  asides
	marks   marks
	memory  memory
	follows map[string]*atomic.Pointer[threads.Follower] // by channel; nil until the bot knows itself

	dir    atomic.Pointer[directory.Directory]
	self   atomic.Pointer[self]
	ready  chan struct{} // closed when the installation is known
	failed chan error    // what ends Run

	sockets atomic.Int32  // that are open
	slots   chan struct{} // of deliveries that are taken at once
	workers tasks
}

// self is the installation.
type self struct {
	event.Self
	team, enterprise string
	address          string   // of the workspace, ends in /
	scopes           []string // nil: unknown
}

// New makes an adapter and registers it with the desk. It makes no calls.
func New(c Config, d Deps) (*Adapter, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if d.Bot == nil || d.Desk == nil || d.Ledger == nil {
		return nil, errors.New("the Slack adapter needs a bot, a desk and a ledger")
	}
	a := &Adapter{c: c, d: d, log: d.Log, now: d.Now, ready: make(chan struct{}), failed: make(chan error, 1), slots: make(chan struct{}, 256)}
	if a.log == nil {
		a.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	a.log = a.log.With("platform", Platform)
	if a.now == nil {
		a.now = time.Now
	}
	if a.d.After == nil {
		a.d.After = time.After
	}
	a.api = newClient(c, a.fail)
	a.api.missing = a.missingScope
	a.out = outbox.New(outbox.Options{})
	a.marks.a = a
	a.memory.init()
	a.follows = map[string]*atomic.Pointer[threads.Follower]{}
	for _, s := range d.Sources {
		a.follows[s.Channel] = &atomic.Pointer[threads.Follower]{}
	}
	d.Desk.Handle(Platform, a)
	if d.Notices != nil {
		d.Notices.Handle(Platform, a.tellState)
	}
	return a, nil
}

// check fills defaults in and says what is wrong, all at once.
func (c *Config) check() error {
	both := c.Mode == "" && strings.TrimSpace(c.AppToken) != "" && strings.TrimSpace(c.SigningSecret) != ""
	c.Mode, c.Name = cmp.Or(c.Mode, Socket), cmp.Or(c.Name, "footnote")
	c.FollowFor, c.Silence = cmp.Or(c.FollowFor, 30*time.Minute), cmp.Or(c.Silence, 30*time.Second)
	c.Arrival = cmp.Or(c.Arrival, 3*time.Second)
	c.Pace = cmp.Or(c.Pace, outbox.Limit{Every: time.Second, Burst: 3})
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	c.BotToken, c.AppToken = strings.TrimSpace(c.BotToken), strings.TrimSpace(c.AppToken)
	switch {
	case c.BotToken == "":
		add("FOOTNOTE_SLACK_BOT_TOKEN is not set: copy the Bot User OAuth Token (xoxb-…) from OAuth & Permissions")
	case strings.HasPrefix(c.BotToken, "xapp-"):
		add("FOOTNOTE_SLACK_BOT_TOKEN holds an app token (xapp-…): it needs the bot token (xoxb-…)")
	case strings.HasPrefix(c.BotToken, "xoxp-"), strings.HasPrefix(c.BotToken, "xoxe.xoxp-"):
		add("FOOTNOTE_SLACK_BOT_TOKEN holds a user token (xoxp-…): it needs the bot token (xoxb-…)")
	}
	if both {
		add("FOOTNOTE_SLACK_APP_TOKEN and FOOTNOTE_SLACK_SIGNING_SECRET are both set, and an app uses one of Socket Mode and HTTP: set slack.mode to socket or http, or unset one of them")
	}
	switch c.Mode {
	case Socket:
		if c.AppToken == "" {
			add("FOOTNOTE_SLACK_APP_TOKEN is not set: make an app-level token (xapp-…) with connections:write under Basic Information, or set slack.mode to http")
		} else if strings.HasPrefix(c.AppToken, "xoxb-") || strings.HasPrefix(c.AppToken, "xoxp-") || strings.HasPrefix(c.AppToken, "xoxe") {
			add("FOOTNOTE_SLACK_APP_TOKEN holds a bot or user token: it needs the app-level token (xapp-…)")
		}
	case HTTP:
		// SECURITY: without a secret anybody could speak as Slack.
		if strings.TrimSpace(c.SigningSecret) == "" {
			add("FOOTNOTE_SLACK_SIGNING_SECRET is not set: copy the Signing Secret from Basic Information")
		}
	default:
		add("slack.mode is %q: it must be socket or http", c.Mode)
	}
	if c.APIURL != "" {
		if u, err := url.Parse(c.APIURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			add("slack.api_url is %q: it must be an address like https://slack.com/api/", c.APIURL)
		} else if !strings.HasSuffix(c.APIURL, "/") {
			c.APIURL += "/"
		}
	}
	for id, ch := range c.Channels {
		if !slices.Contains([]Visibility{"", PublicSafe, PrivateAlways, Off}, ch.Answer) {
			add("slack.channels.%s.answer is %q: it must be public-safe, private-always or off", id, ch.Answer)
		}
	}
	if !slices.Contains([]Visibility{"", PublicSafe, PrivateAlways, Off}, c.Default.Answer) {
		add("slack.default.answer is %q: it must be public-safe, private-always or off", c.Default.Answer)
	}
	return errors.Join(wrong...)
}

// channel is what is set for a channel.
func (a *Adapter) channel(id string) Channel {
	ch, ok := a.c.Channels[id]
	if !ok {
		ch = a.c.Default
	}
	ch.Answer = cmp.Or(ch.Answer, PublicSafe)
	return ch
}

// Run serves until ctx is done or Slack says that it is of no use. Trouble that
// passes is waited out.
func (a *Adapter) Run(ctx context.Context) error {
	defer a.workers.wait()
	defer a.marks.close()
	if err := a.meet(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { a.revisit(ctx); return nil })
	a.followers()
	for _, s := range a.d.Sources {
		g.Go(func() error { return a.follower(s.Channel).Run(ctx) })
	}
	g.Go(func() error {
		select {
		case err := <-a.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	if a.c.Mode == Socket {
		g.Go(func() error { return a.note(newSupervisor(a).run(ctx)) })
	}
	return g.Wait()
}

func (a *Adapter) note(err error) error {
	if err != nil {
		a.health.mu.Lock()
		defer a.health.mu.Unlock()
		a.health.fatal = err.Error()
	}
	return err
}

// fail ends Run with an error.
func (a *Adapter) fail(err error) {
	_ = a.note(err)
	a.log.Error("the Slack adapter stops", "error", err)
	select {
	case a.failed <- err:
	default:
	}
}

// meet asks Slack who the bot is, until it says so.
func (a *Adapter) meet(ctx context.Context) error {
	select {
	case <-a.ready:
		return nil
	default:
	}
	err := outbox.Retry(ctx, outbox.Retrying{
		Permanent: func(err error) bool { _, is := fatal[codeOf(err)]; return is || errors.Is(err, errSetup) },
		Before: func(err error, pause time.Duration) {
			a.log.Warn("Slack cannot be reached", "error", err, "next attempt in", pause)
		},
	}, func(ctx context.Context) error {
		w, err := a.api.whoami(ctx)
		if err != nil {
			return err
		}
		return a.install(w)
	})
	if err == nil || ctx.Err() != nil {
		return nil //nolint:nilerr // a shutdown is no fault
	}
	if what, is := fatal[codeOf(err)]; is {
		err = fmt.Errorf("FOOTNOTE_SLACK_BOT_TOKEN: %w: %s", err, what)
	}
	return a.note(err)
}

var errSetup = errors.New("the Slack app is not set up completely")

// install notes who the bot is, unless something that it needs is missing.
func (a *Adapter) install(w whoami) error {
	if w.user == "" || w.team == "" {
		return fmt.Errorf("asking Slack who the bot is: %w", &failure{code: codeEmpty})
	}
	if lacks := missing(w.scopes, true); len(lacks) > 0 {
		return fmt.Errorf("%w: these bot scopes are missing: %s. Add them under OAuth & Permissions and install the app again", errSetup, strings.Join(lacks, ", "))
	}
	for _, s := range missing(w.scopes, false) {
		a.log.Info("an optional scope is missing", "scope", s, "without it", reasonOf(s))
	}
	me := &self{Self: event.Self{User: w.user, Bot: w.bot}, team: w.team, enterprise: w.enterprise, address: w.url, scopes: w.scopes}
	a.self.Store(me)
	a.dir.Store(directory.New(facts{a.api, w.team, w.enterprise != ""}, directory.Options{
		Team: w.team, Enterprise: w.enterprise, MaxAge: a.c.MaxAge, MaxPrivate: a.c.MaxPrivate, Labelled: a.c.ExternalLabelled, Now: a.now,
	}))
	close(a.ready)
	return nil
}

// setApp notes the app's id, which only a socket tells.
func (a *Adapter) setApp(id string) {
	old := a.self.Load()
	if id == "" || old == nil || old.App == id {
		return
	}
	now := *old
	now.App = id
	a.self.Store(&now)
}

// can reports that a scope is held, or may be.
func (a *Adapter) can(scope string) bool {
	me := a.self.Load()
	return me == nil || me.scopes == nil || slices.Contains(me.scopes, scope)
}

// missingScope is told of a call that lacked a scope, or whose method the bot
// may not use.
func (a *Adapter) missingScope(method string, f *failure) {
	if f.code != "missing_scope" {
		if a.memory.hourly("method "+method, a.now()) {
			a.log.Warn("Slack withholds a method: a part of the bot does not work", "method", method, "error", f)
		}
		return
	}
	if a.memory.hourly("scope "+f.needed, a.now()) {
		a.log.Warn("a scope is missing: a part of the bot does not work", "scope", f.needed)
	}
}

// Directory knows people and rooms once the bot is connected.
func (a *Adapter) Directory() acl.Directory { return later{a} }

// later is the directory from when there is one.
type later struct{ a *Adapter }

func (l later) Identify(ctx context.Context, account string) (acl.Identity, error) {
	d, err := l.a.directory(ctx)
	if err != nil {
		return acl.Identity{}, err
	}
	return d.Identify(ctx, account)
}

func (l later) Audience(ctx context.Context, room string) (acl.Audience, error) {
	d, err := l.a.directory(ctx)
	if err != nil {
		return acl.Audience{}, err
	}
	return d.Audience(ctx, room)
}

// Facts returns an identity or audience with its age, for operators.
func (a *Adapter) Facts(ctx context.Context) (*directory.Directory, error) { return a.directory(ctx) }

// directory asks Slack who the bot is if that is not known yet: commands of an
// operator do not Run.
func (a *Adapter) directory(ctx context.Context) (*directory.Directory, error) {
	if d := a.dir.Load(); d != nil {
		return d, nil
	}
	w, err := a.api.whoami(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking Slack who the bot is: %w", err)
	}
	return directory.New(facts{a.api, w.team, w.enterprise != ""}, directory.Options{
		Team: w.team, Enterprise: w.enterprise, MaxAge: a.c.MaxAge, MaxPrivate: a.c.MaxPrivate, Labelled: a.c.ExternalLabelled, Now: a.now,
	}), nil
}

// work does one piece of work beside the reader. A panic ends the piece, not
// the process.
func (a *Adapter) work(ctx context.Context, f func(context.Context)) {
	select {
	case a.slots <- struct{}{}:
	default:
		a.log.Warn("too many deliveries at once: one is left for Slack to repeat")
		return
	}
	a.workers.run(func() {
		defer func() { <-a.slots }()
		defer a.recovered("taking a delivery")
		f(ctx)
	})
}

// background does what need not be waited for, with a time limit.
func (a *Adapter) background(f func(context.Context)) {
	a.workers.run(func() {
		defer a.recovered("working in the background")
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		f(ctx)
	})
}

func (a *Adapter) recovered(doing string) {
	if v := recover(); v != nil {
		// The value may hold text of a question; its type does not.
		a.log.Error("a panic was caught", "doing", doing, "type", fmt.Sprintf("%T", v), "reference", ledger.NewID()[:10])
	}
}

// tasks are goroutines that are waited for. Unlike those of a WaitGroup, more
// may be started while somebody waits.
type tasks struct {
	mu   sync.Mutex
	none *sync.Cond
	n    int
}

func (t *tasks) run(f func()) {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
	go func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.n--; t.n == 0 && t.none != nil {
				t.none.Broadcast()
			}
		}()
		f()
	}()
}

func (t *tasks) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.none == nil {
		t.none = sync.NewCond(&t.mu)
	}
	for t.n > 0 {
		t.none.Wait()
	}
}
