package discord

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"footnote/bot/outbox"
)

// Intents: GUILDS for the facts from which audiences are computed. Messages
// only if mentions are answered; their content comes without the privileged
// intent where the bot is mentioned or written to.
const (
	intentsAlways   = discordgo.IntentGuilds
	intentsMessages = discordgo.IntentGuildMessages | discordgo.IntentDirectMessages
)

// Identifications that one token may make in 24 h are 1000; more reset it.
const (
	manyIdentifies = 100
	maxIdentifies  = 500
)

// gateway owns the connection. Nobody else opens or closes it.
type gateway struct {
	a         *Adapter
	transport *rewriter

	mu         sync.Mutex
	session    *discordgo.Session // nil: the next one is new
	generation int                // of the session; events of earlier ones do not count
	tap        *tap               // of the connection, nil before it
	gone       chan struct{}      // the library has let go of the connection
	isReady    bool
	readyOnce  bool // this session can be resumed
	replaying  bool
	served     bool // this connection became ready
	since      time.Time
	me         string
	identifies []time.Time
	reconnects int
	registered bool

	known     chan struct{} // closed at the first complete facts
	knownOnce sync.Once
}

func newGateway(a *Adapter, w *rewriter) *gateway {
	return &gateway{a: a, transport: w, known: make(chan struct{})}
}

// final are close codes after which no attempt can succeed.
var final = map[closeError]string{
	4004: "the token is not valid: set FOOTNOTE_DISCORD_TOKEN to the token of the bot, from the page Bot of the developer portal",
	4010: "the shard is not valid",
	4011: "the bot is in so many servers that it needs several shards, which footnote does not have",
	4012: "the version of the gateway is not valid",
	4013: "the intents are not valid",
	4014: "an intent is not allowed: switch it on in the developer portal, page Bot, Privileged Gateway Intents, or switch discord.mentions off",
}

// errBudget says that the token would be reset if it went on.
var errBudget = errors.New("the bot identified too often within a day; to go on would make Discord reset its token")

// run keeps the connection up until ctx is done, or Discord says for good that
// it cannot be.
func (g *gateway) run(ctx context.Context) error {
	defer g.end(context.Canceled)
	err := g.keep(ctx)
	if ctx.Err() != nil {
		return nil
	}
	var c closeError
	if errors.As(err, &c) && final[c] != "" {
		err = fmt.Errorf("Discord does not let the bot in (%d): %s", int(c), final[c])
	}
	g.a.count(func(h *Health) { h.Fatal = err.Error() })
	return err
}

// permanent reports that no further connection can succeed.
func permanent(err error) bool {
	var c closeError
	return errors.Is(err, errBudget) || errors.As(err, &c) && final[c] != ""
}

// keep makes one connection after the other, and returns why there can be no
// further one. The pauses grow to a minute while none becomes ready. After one
// that did they are short, since what people ask in a longer gap is lost.
func (g *gateway) keep(ctx context.Context) error {
	p := g.a.c.pace
	failed, soon := outbox.Backoff{Least: p.least, Most: p.most}, outbox.Backoff{Least: p.least / 10, Most: min(p.soon, p.most)}
	for {
		start := time.Now()
		err := g.connect(ctx)
		if ctx.Err() != nil || permanent(err) {
			return err
		}
		pauses := &failed
		if g.wasReady() {
			pauses = &soon
			failed.Reset()
			if time.Since(start) > 2*p.soon {
				soon.Reset()
			}
		}
		pause := pauses.Next()
		var limited *outbox.Limited
		if errors.As(err, &limited) {
			pause = max(pause, limited.After)
		}
		var at *url.Error // its address is Discord's own, whatever discord.api_url says
		if errors.As(err, &at) {
			err = at.Err
		}
		g.a.d.Log.Warn("there is no connection to Discord", "error", err, "pause", pause)
		if outbox.Pause(ctx, pause) != nil {
			return err
		}
	}
}

func (g *gateway) wasReady() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.served
}

// connect makes a connection and returns why it ended.
func (g *gateway) connect(ctx context.Context) error {
	s, err := g.prepare(ctx)
	if err != nil {
		return err
	}
	opened := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				opened <- fmt.Errorf("opening the gateway panicked: %T", v)
			}
		}()
		opened <- s.Open()
	}()
	deadline := time.NewTimer(g.a.c.pace.open)
	defer deadline.Stop()
	select {
	case err = <-opened:
	case <-deadline.C:
		err = g.abandon(opened, errStuck)
	case <-ctx.Done():
		err = g.abandon(opened, context.Cause(ctx))
	}
	if err == nil {
		err = g.watch(ctx)
	}
	return g.sort(ctx, err)
}

// prepare gives the session for the next attempt, and keeps the budget of
// identifications.
func (g *gateway) prepare(ctx context.Context) (*discordgo.Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil || !g.readyOnce {
		now := time.Now()
		for len(g.identifies) > 0 && now.Sub(g.identifies[0]) > 24*time.Hour {
			g.identifies = g.identifies[1:]
		}
		if len(g.identifies) >= maxIdentifies {
			return nil, errBudget
		}
		g.identifies = append(g.identifies, now)
		g.generation++
		g.readyOnce = false
		g.session = g.fresh(ctx, g.generation)
	}
	g.replaying, g.isReady, g.served = g.readyOnce, false, false
	g.gone = make(chan struct{}, 1)
	g.tap = nil
	return g.session, nil
}

// fresh makes a session. Its client, dialer and handlers are ours; nothing
// package-level of the library is touched.
func (g *gateway) fresh(ctx context.Context, generation int) *discordgo.Session {
	s := newSession(g.a.c.Token, g.transport)
	s.Identify.Compress = false
	s.Identify.Intents = g.a.intents()
	dialer := *s.Dialer
	dialer.HandshakeTimeout = g.a.c.pace.open
	plain := &net.Dialer{Timeout: g.a.c.pace.open, KeepAlive: 15 * time.Second}
	dialer.NetDialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return g.tapped(generation)(plain.DialContext(ctx, network, addr))
	}
	dialer.NetDialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return g.tapped(generation)((&tls.Dialer{NetDialer: plain}).DialContext(ctx, network, addr))
	}
	dialer.Proxy = nil
	s.Dialer = &dialer
	s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) { g.event(ctx, generation, e.Type, e.RawData) })
	s.AddHandler(func(_ *discordgo.Session, _ *discordgo.Disconnect) { g.disconnected(generation) })
	return s
}

func (a *Adapter) intents() discordgo.Intent {
	if a.c.Mentions {
		return intentsAlways | intentsMessages
	}
	return intentsAlways
}

func (g *gateway) tapped(generation int) func(net.Conn, error) (net.Conn, error) {
	return func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		t := newTap(c)
		g.mu.Lock()
		defer g.mu.Unlock()
		if generation != g.generation {
			_ = c.Close()
			return nil, net.ErrClosed
		}
		g.tap = t
		return t, nil
	}
}

// abandon ends an Open that takes too long. If the library does not return
// even then, it holds its own locks for ever, and the session is given up.
func (g *gateway) abandon(opened <-chan error, why error) error {
	g.end(why)
	select {
	case <-opened: //nolint:errcheck // why is the cause, this only its consequence
	case <-time.After(min(time.Second, g.a.c.pace.open)):
	}
	g.drop()
	return why
}

// end ends the connection, without a lock of the library.
func (g *gateway) end(why error) {
	g.mu.Lock()
	t := g.tap
	g.isReady, g.since = false, time.Time{}
	g.mu.Unlock()
	if t != nil {
		t.cut(why)
	}
}

// drop gives the session up; the next one identifies anew. A connection that it
// made meanwhile ends with it: nobody would listen to it.
func (g *gateway) drop() {
	g.mu.Lock()
	g.session, g.readyOnce = nil, false
	g.generation++
	t := g.tap
	g.mu.Unlock()
	if t != nil {
		t.cut(net.ErrClosed)
	}
}

// watch returns why an open connection ended.
func (g *gateway) watch(ctx context.Context) error {
	g.mu.Lock()
	t, gone := g.tap, g.gone
	g.mu.Unlock()
	tick := time.NewTicker(g.a.c.pace.tick)
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case <-ctx.Done():
			t.cut(context.Cause(ctx))
			return context.Cause(ctx)
		case <-t.done:
			select { // the session is usable again once the library let go
			case <-gone:
			case <-time.After(5 * time.Second):
				g.drop()
			}
			return t.why()
		case <-tick.C:
			g.mu.Lock()
			ready := g.isReady
			g.mu.Unlock()
			switch {
			case t.quiet() > g.a.c.pace.silence:
				t.cut(errSilent)
			case !ready && time.Since(start) > g.a.c.pace.open:
				t.cut(errStuck)
			case ready:
				g.a.book.Confirm()
			}
		}
	}
}

// sort says what the end of a connection means for the next one.
func (g *gateway) sort(ctx context.Context, err error) error {
	g.mu.Lock()
	t := g.tap
	g.isReady, g.since = false, time.Time{}
	g.reconnects++
	many := len(g.identifies) > manyIdentifies
	g.mu.Unlock()
	if t != nil && t.why() != nil && !errors.Is(t.why(), net.ErrClosed) {
		err = t.why()
	}
	var c closeError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errInvalid), errors.As(err, &c) && (c == 4007 || c == 4009):
		g.drop()
		// Discord asks for 1 to 5 s at random.
		p := g.a.c.pace.invalid
		if outbox.Pause(ctx, p+time.Duration(rand.Float64()*4*float64(p))) != nil {
			return err
		}
	}
	if many {
		if g.spent() {
			return errors.Join(errBudget, err)
		}
		return errors.Join(&outbox.Limited{After: 3 * time.Minute, Err: errors.New("many identifications today")}, err)
	}
	return cmp.Or(err, errReconnect)
}

// spent reports that the next connection would need an identification and
// there is none left.
func (g *gateway) spent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.readyOnce && len(g.identifies) >= maxIdentifies
}

func (g *gateway) disconnected(generation int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if generation != g.generation {
		return
	}
	select {
	case g.gone <- struct{}{}:
	default:
	}
}

// ready is the first event of a session, with all fields optional.
type ready struct {
	User        user                  `json:"user"`
	Application struct{ ID string }   `json:"application"`
	Guilds      []struct{ ID string } `json:"guilds"`
}

// event handles an event in the order in which they come. It never waits for
// anything, since the library reads nothing meanwhile.
func (g *gateway) event(ctx context.Context, generation int, name string, raw json.RawMessage) {
	defer func() {
		if v := recover(); v != nil {
			g.a.count(func(h *Health) { h.Panics++ })
			g.a.d.Log.Error("an event panicked", "event", name, "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			g.a.book.Forget()
		}
	}()
	g.mu.Lock()
	current, replaying := generation == g.generation, g.replaying
	g.mu.Unlock()
	if !current {
		return
	}
	g.a.count(func(h *Health) { h.LastInbound = g.a.d.Now() })
	switch name {
	case "READY":
		g.begin(ctx, raw)
	case "RESUMED":
		g.resumed()
	case "INTERACTION_CREATE":
		in, ok := readInteraction(raw)
		if ok && !(replaying && g.dead(in.ID)) {
			g.a.fly(func() { _ = g.a.dispatch(context.Background(), &in) })
		}
	case "MESSAGE_CREATE":
		if g.a.c.Mentions {
			g.a.fly(func() { g.a.message(context.Background(), raw) })
		}
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		g.a.fly(func() { g.a.deleted(raw) })
	case "GUILD_MEMBER_UPDATE", "GUILD_MEMBER_REMOVE", "GUILD_ROLE_DELETE":
		var of struct {
			Guild string `json:"guild_id"`
		}
		_ = json.Unmarshal(raw, &of)
		g.a.dir.forget(of.Guild)
		g.a.book.Apply(name, raw)
	case "GUILD_CREATE", "GUILD_DELETE":
		g.a.book.Apply(name, raw)
		g.a.warn()
	default:
		g.a.book.Apply(name, raw)
	}
	g.complete()
}

// fly runs something beside the connection.
func (a *Adapter) fly(what func()) {
	go func() {
		a.inflight.RLock()
		defer a.inflight.RUnlock()
		what()
	}()
}

// begin starts a new session: what was known before it may have changed.
func (g *gateway) begin(ctx context.Context, raw json.RawMessage) {
	var r ready
	if json.Unmarshal(raw, &r) != nil {
		r = ready{}
	}
	ids := make([]string, 0, len(r.Guilds))
	for _, guild := range r.Guilds {
		if isID(guild.ID) {
			ids = append(ids, guild.ID)
		}
	}
	g.a.learn(r.Application.ID)
	g.a.book.Forget()
	g.a.book.Join(ids...)
	g.a.book.Self(r.User.ID)
	g.mu.Lock()
	g.readyOnce, g.me = true, r.User.ID
	g.mu.Unlock()
	g.resumed()
	g.a.warn()
	g.mu.Lock()
	first := !g.registered
	g.registered = true
	g.mu.Unlock()
	if first {
		g.a.fly(func() { g.a.registerSoon(ctx) })
		g.a.fly(func() { g.a.revisit(ctx) })
	}
}

func (g *gateway) resumed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isReady, g.served, g.replaying, g.since = true, true, false, g.a.d.Now()
}

// complete notes that all that READY named is known.
func (g *gateway) complete() {
	g.mu.Lock()
	ready := g.isReady
	g.mu.Unlock()
	if ready && g.a.book.Complete() {
		g.knownOnce.Do(func() { close(g.known) })
	}
}

func (g *gateway) self() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.me
}

// epoch is the zero of the times in Discord's ids, in ms.
const epoch = 1420070400000

// dead reports that a replayed interaction is too old to be responded to. Only
// what is replayed is judged by the clock, since clocks differ; an id that is
// no time of the last day is not judged.
func (g *gateway) dead(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return false
	}
	age := g.a.d.Now().Sub(time.UnixMilli(int64(n>>22) + epoch))
	if age <= g.a.c.pace.late || age > 24*time.Hour {
		return false
	}
	g.a.count(func(h *Health) { h.Late++ })
	return true
}

func (g *gateway) health(h *Health) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.Connected, h.Reconnects, h.Identifies = g.since, max(0, g.reconnects), len(g.identifies)
}

// registerSoon registers the commands, again and again until that works or
// cannot.
func (a *Adapter) registerSoon(ctx context.Context) {
	err := outbox.Retry(ctx, outbox.Retrying{
		Backoff:   outbox.Backoff{Least: a.c.pace.least, Most: a.c.pace.most},
		Permanent: refusedCall,
	}, a.register)
	if err != nil && ctx.Err() == nil {
		a.d.Log.Error("the commands could not be registered", "error", err)
	}
}

// warm waits a moment for the first facts.
func (a *Adapter) warm(ctx context.Context) bool { return a.facts(ctx, a.c.pace.warm) }

// facts waits for the first facts.
func (a *Adapter) facts(ctx context.Context, patience time.Duration) bool {
	known := a.loaded
	if a.gate != nil {
		known = a.gate.known
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-known:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}
