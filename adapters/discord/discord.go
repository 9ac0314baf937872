package discord

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"footnote/acl"
	"footnote/adapters/discord/guild"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
	uploads "footnote/bot/shelf"
)

// Platform is the name of this adapter in the ledger and at the desk.
const Platform = "discord"

// Ways to receive interactions.
const (
	Gateway = "gateway"
	HTTP    = "http"
)

// Modes of a channel.
const (
	PublicSafe    = "public-safe"    // answer for all who can read it
	PrivateAlways = "private-always" // answer the asker alone
	Off           = "off"            // do not answer
)

// Config says how to connect and whom to serve. Only Token is required, and in
// the mode HTTP PublicKey.
type Config struct {
	Mode      string // Gateway ("") or HTTP
	Token     string
	PublicKey string // of the application, in hexadecimal
	APIURL    string // base address of the API, "" Discord's; the gateway is asked of it
	// Guilds are the tenants. None: the guild that the bot is in; if it is
	// in several, nobody holds "everyone", since it is not known whose
	// organisation is meant.
	Guilds   []string
	DevGuild string // register the commands in this guild alone
	// Channels gives channels, their threads and the channels of categories
	// a mode, by id.
	Channels       map[string]string
	Mentions       bool // answer mentions and direct messages too
	Threads        bool // open a thread for each public answer
	DistrustAdmins bool // count administrators as readers of every channel
	// Link is where a source can be read, "" nowhere. nil: no links.
	Link func(cite.Source) string
	// Personal is the address of source n of an answer for one person, "" for
	// none. It is shown to that person alone, with the passage. nil: none.
	Personal func(answer string, n int, person string) string
	Uploads  uploads.Rules // who may add files; the zero Rules let nobody
	MaxAge   time.Duration // of what is known of people and channels: 5 min
	// Recheck is the time after which rights are looked at again before an
	// answer is posted: 20 s.
	Recheck time.Duration

	pace pace
}

// Records are what the adapter needs of the ledger besides claims.
type Records interface {
	PutAnswer(ctx context.Context, a ledger.Answer) error
	Answer(ctx context.Context, id string) (ledger.Answer, error)
	AnswerTo(ctx context.Context, key string) (ledger.Answer, error)
	Posted(ctx context.Context, id string, message []byte) error
	Rate(ctx context.Context, f ledger.Feedback) error
	AskHuman(ctx context.Context, id, user string) (fresh bool, err error)
	NoteGap(ctx context.Context, id, question string) error
	NoteAudit(ctx context.Context, a ledger.Audit) error
	Of(ctx context.Context, asker string, limit int) ([]ledger.Delivery, error)
}

// Deps are what the adapter works with. All but Files, Notices, Log and Now are
// required.
type Deps struct {
	// Handle is bot.Bot.Handle.
	Handle func(ctx context.Context, m bot.Message) (bot.Reply, error)
	// Open shows a source to a person after a check of that moment; see
	// Opening.
	Open    func(ctx context.Context, asker acl.Identity, audience acl.Audience, s ledger.Source) (bot.Opened, error)
	Ledger  Records
	Desk    *desk.Desk
	Files   uploads.Keeper   // of files that people post; nil: none are taken, whatever Uploads says
	Notices *uploads.Notices // needed with Files
	// Standing says how documents stand; nil: /footnote status says nothing of them.
	Standing standing
	Log      *slog.Logger
	Now      func() time.Time
}

// standing says to the asker alone how the documents stand that the asker may
// read, or one of them.
type standing interface {
	Text(ctx context.Context, asker acl.Identity, document string) (string, error)
}

// Opening makes Deps.Open of a bot.
func Opening(b *bot.Bot) func(context.Context, acl.Identity, acl.Audience, ledger.Source) (bot.Opened, error) {
	return func(ctx context.Context, asker acl.Identity, audience acl.Audience, s ledger.Source) (bot.Opened, error) {
		return b.Open(ctx, asker, audience, s.Document, s.Revision, s.From, s.To)
	}
}

// Adapter connects the bot to Discord.
type Adapter struct {
	c    Config
	d    Deps
	key  ed25519.PublicKey
	rest *rest
	book *guild.Book
	dir  *Directory
	gate *gateway // nil in the mode HTTP

	inflight sync.RWMutex  // read by what runs, written to wait for it
	loaded   chan struct{} // closed at the first facts, in the mode HTTP
	seen     replays
	renewed  renewed

	mu       sync.Mutex
	app      string              // application id, "" until it is known
	deferred map[string]*outcome // first responses on their way, by interaction
	counts   Health
	firsts   []time.Duration // the latest first responses, as a ring
	next     int             // in it
	warned   string
}

// New checks the configuration and makes an adapter. It makes no calls.
func New(c Config, d Deps) (*Adapter, error) {
	a := &Adapter{c: c, d: d, deferred: map[string]*outcome{}, loaded: make(chan struct{}), renewed: renewed{make(chan struct{}, 1), map[string]time.Time{}}}
	if err := a.configure(); err != nil {
		return nil, err
	}
	if d.Handle == nil || d.Open == nil || d.Ledger == nil || d.Desk == nil {
		return nil, errors.New("the Discord adapter needs a bot, a ledger and a desk")
	}
	w, err := newRewriter(c.APIURL, a.c.pace.transport)
	if err != nil {
		return nil, err
	}
	a.rest = newREST(c.Token, w)
	a.book = guild.NewBook(a.c.MaxAge, a.d.Now)
	a.dir = newDirectory(a)
	if a.c.Mode == Gateway {
		a.gate = newGateway(a, w)
	}
	d.Desk.Handle(Platform, a)
	if d.Notices != nil {
		d.Notices.Handle(Platform, a.tellState)
	}
	return a, nil
}

// configure fills in defaults and reports all problems at once.
func (a *Adapter) configure() error {
	c := &a.c
	c.Mode = cmp.Or(c.Mode, Gateway)
	c.MaxAge, c.Recheck = cmp.Or(c.MaxAge, 5*time.Minute), cmp.Or(c.Recheck, 20*time.Second)
	c.pace.fill()
	if a.d.Log == nil {
		a.d.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if a.d.Now == nil {
		a.d.Now = time.Now
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Mode != Gateway && c.Mode != HTTP {
		problem("discord.mode: %q is neither gateway nor http", c.Mode)
	}
	if c.Token == "" {
		problem("FOOTNOTE_DISCORD_TOKEN is not set: copy the token of the bot from the developer portal")
	}
	if c.Mode == HTTP {
		key, err := hex.DecodeString(c.PublicKey)
		if err != nil || len(key) != ed25519.PublicKeySize {
			problem("FOOTNOTE_DISCORD_PUBLIC_KEY must be the public key of the application: 64 hexadecimal digits")
		}
		a.key = key
		if c.Mentions {
			problem("discord.mentions needs discord.mode: gateway, since messages come by the gateway alone")
		}
	}
	for _, id := range append(slices.Clone(c.Guilds), c.DevGuild) {
		if id != "" && !isID(id) {
			problem("%q is no id of a Discord server: it has digits only", id)
		}
	}
	for id, mode := range c.Channels {
		if !isID(id) || mode != PublicSafe && mode != PrivateAlways && mode != Off {
			problem("discord.channels: %q: %q must be an id with public-safe, private-always or off", id, mode)
		}
	}
	return errors.Join(problems...)
}

// pace is how fast things go; zero values mean the defaults. Tests change it.
type pace struct {
	open      time.Duration // for a connection to become ready: 20 s
	silence   time.Duration // after which a connection is dead: 90 s
	tick      time.Duration // between looks at the connection: 1 s
	least     time.Duration // pause between connections: 1 s
	most      time.Duration // 1 min
	soon      time.Duration // at most, after a connection that became ready: 5 s
	invalid   time.Duration // pause after an invalid session, doubled at random: 1 s
	late      time.Duration // age at which a replayed interaction is dead: 3 s
	life      time.Duration // of an interaction's token: 14 min of 15
	probe     time.Duration // between looks at the token: 5 min
	warm      time.Duration // for which a question waits for the first facts: 500 ms
	transport http.RoundTripper
}

func (p *pace) fill() {
	p.open, p.silence, p.tick = cmp.Or(p.open, 20*time.Second), cmp.Or(p.silence, 90*time.Second), cmp.Or(p.tick, time.Second)
	p.least, p.most, p.invalid = cmp.Or(p.least, time.Second), cmp.Or(p.most, time.Minute), cmp.Or(p.invalid, time.Second)
	p.soon = cmp.Or(p.soon, 5*time.Second)
	p.late, p.life, p.warm = cmp.Or(p.late, 3*time.Second), cmp.Or(p.life, 14*time.Minute), cmp.Or(p.warm, 500*time.Millisecond)
	p.probe = cmp.Or(p.probe, 5*time.Minute)
	if p.transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 32
		p.transport = t
	}
}

// Run serves until ctx is done, or until Discord says that it is of no use.
func (a *Adapter) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if a.gate != nil {
		g.Go(func() error { return a.gate.run(ctx) })
		g.Go(func() error { return a.probe(ctx) })
	} else {
		g.Go(func() error { return a.refresh(ctx) })
	}
	err := g.Wait()
	a.inflight.Lock()   // what was begun ends within its budget
	a.inflight.Unlock() //nolint:staticcheck // SA2001: the lock is taken only to wait for its readers
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// Handlers are the HTTP handlers, by path. There are none in the mode Gateway.
func (a *Adapter) Handlers() map[string]http.Handler {
	if a.c.Mode != HTTP {
		return nil
	}
	return map[string]http.Handler{"/discord/interactions": http.HandlerFunc(a.serve)}
}

// Directory turns accounts into identities and channels into audiences.
func (a *Adapter) Directory() *Directory { return a.dir }

// Health is how the adapter is doing.
type Health struct {
	Connected   time.Time // since then; zero: not now, or HTTP
	LastInbound time.Time // anything from Discord
	Reconnects  int
	Identifies  int // in the last 24 h
	Late        int // first responses that came too late
	Copies      int // of questions that were taken already
	Foreign     int // interactions that somebody else responded to
	Panics      int
	Limited     int // calls refused for their rate
	Fatal       string
	// First is the time to the first response that 99 in 100 of the latest
	// 256 interactions did not exceed.
	First time.Duration
	// Warning says what the operator should change, "" nothing.
	Warning string
}

// Health says how the adapter is doing.
func (a *Adapter) Health() Health {
	a.mu.Lock()
	h := a.counts
	a.mu.Unlock()
	h.First, h.Warning = a.slowest(), a.unclear(a.book.Guilds())
	h.Limited = a.rest.bot.Health().Limited + a.rest.hooks.Health().Limited
	if a.gate != nil {
		a.gate.health(&h)
	}
	return h
}

func (a *Adapter) count(change func(*Health)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.counts)
}

// remembered is how many first responses the figure of Health is made of.
const remembered = 256

// timed notes how long a first response took.
func (a *Adapter) timed(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.firsts) < remembered {
		a.firsts = append(a.firsts, d)
		return
	}
	a.firsts[a.next] = d
	a.next = (a.next + 1) % remembered
}

func (a *Adapter) slowest() time.Duration {
	a.mu.Lock()
	sorted := slices.Sorted(slices.Values(a.firsts))
	a.mu.Unlock()
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*99+99)/100-1]
}

// unclear says why documents for everyone are shown nowhere, and what to do, ""
// if they are. guilds are those that the bot is in.
func (a *Adapter) unclear(guilds []string) string {
	if len(a.c.Guilds) > 0 || len(guilds) < 2 {
		return ""
	}
	return fmt.Sprintf("the bot is in %d servers (%s) and discord.guilds is not set, so it is not known whose organisation is meant and documents for everyone are shown in none: list the servers of your organisation in discord.guilds", len(guilds), listed(guilds))
}

// listed names a few ids.
func listed(ids []string) string {
	const few = 5
	if len(ids) > few {
		return strings.Join(ids[:few], ", ") + ", ..."
	}
	return strings.Join(ids, ", ")
}

// warn logs what the operator should change, each time that changes.
func (a *Adapter) warn() {
	text := a.unclear(a.book.Guilds())
	a.mu.Lock()
	fresh := text != a.warned
	a.warned = text
	a.mu.Unlock()
	if fresh && text != "" {
		a.d.Log.Warn("documents for everyone are shown to nobody on Discord", "problem", text)
	}
}

// probe looks at the token from time to time: a connection outlives a token that
// was reset, and would go on without being able to say anything.
func (a *Adapter) probe(ctx context.Context) error {
	for outbox.Pause(ctx, a.c.pace.probe) == nil {
		if err := a.get(ctx, "users/@me", &user{}); status(err) == http.StatusUnauthorized {
			err = fmt.Errorf("the token was reset: set FOOTNOTE_DISCORD_TOKEN to the new one, from the page Bot of the developer portal: %w", err)
			a.count(func(h *Health) { h.Fatal = err.Error() })
			return err
		}
	}
	return nil
}
