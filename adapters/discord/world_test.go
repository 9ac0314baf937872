package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/acl"
	dt "footnote/adapters/discord/discordtest"
	"footnote/adapters/discord/guild"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
	"footnote/bot/shelf/shelftest"
)

// town is a guild: ada owns it, bob is staff, cy is nobody in particular, dan
// has not passed the screening.
type town struct {
	world              dt.World
	guild, staff       string
	ada, bob, cy, dan  string
	open, closed       string
	thread, hidden     string
	forum, voice, news string
	mute               string // where the bot may not write
}

func newTown() *town {
	w := dt.NewWorld()
	x := &town{}
	x.ada, x.bob, x.cy, x.dan = w.AddUser(dt.User{Name: "ada"}), w.AddUser(dt.User{Name: "bob"}), w.AddUser(dt.User{Name: "cy"}), w.AddUser(dt.User{Name: "dan"})
	x.guild = w.AddGuild(dt.Guild{Name: "town", Owner: x.ada})
	x.staff = w.AddRole(x.guild, dt.Role{Name: "staff"})
	w.AddMember(x.guild, x.ada)
	w.AddMember(x.guild, x.bob, x.staff)
	w.AddMember(x.guild, x.cy)
	w.AddMember(x.guild, x.dan)
	private := []dt.Overwrite{{ID: x.guild, Deny: dt.ViewChannel}, {ID: x.staff, Allow: dt.ViewChannel}, {ID: w.App.BotUser, Member: true, Allow: dt.ViewChannel}}
	add := func(c dt.Channel) string { c.GuildID = x.guild; return w.AddChannel(c) }
	x.open = add(dt.Channel{Name: "general", Type: dt.Text})
	x.closed = add(dt.Channel{Name: "staff", Type: dt.Text, Overwrites: private})
	x.forum = add(dt.Channel{Name: "ideas", Type: dt.Forum})
	x.news = add(dt.Channel{Name: "news", Type: dt.Announcement})
	x.voice = add(dt.Channel{Name: "talk", Type: dt.Voice})
	x.thread = add(dt.Channel{Name: "talk", Type: dt.PublicThread, Parent: x.open, Owner: x.bob, Members: []string{x.bob}})
	x.hidden = add(dt.Channel{Name: "staff talk", Type: dt.PublicThread, Parent: x.closed, Owner: x.bob, Members: []string{x.bob}})
	x.mute = add(dt.Channel{Name: "rules", Type: dt.Text, Overwrites: []dt.Overwrite{{ID: w.App.BotUser, Member: true, Deny: dt.SendMessages}}})
	x.world = w
	return x
}

// shelf is a small organisation's documents: a bot that answers with each
// document whose name is in the question and that the grant admits.
type shelf struct {
	mu    sync.Mutex
	lists map[string]acl.List
	say   map[string]string // text of a document, "" its name
	wait  func(ctx context.Context, m bot.Message)
	asked int
	trail []bot.Message
}

func newShelf(lists map[string]acl.List) *shelf {
	return &shelf{lists: lists, say: map[string]string{}}
}

func (s *shelf) set(doc string, l acl.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[doc] = l
}

func (s *shelf) handle(ctx context.Context, m bot.Message) (bot.Reply, error) {
	s.mu.Lock()
	s.asked++
	s.trail = append(s.trail, m)
	wait := s.wait
	s.mu.Unlock()
	if wait != nil {
		wait(ctx, m)
	}
	if strings.Contains(m.Text, "panic") {
		panic("a question")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	grant := acl.NewGrant(m.Asker, m.Audience)
	r := bot.Reply{ID: m.ID, Outcome: bot.Refused, Reason: bot.NoMatch, Question: m.Text, Text: "I cannot answer it.\n- Nearest\nYou can also ask me in a direct message."}
	for doc, list := range s.lists {
		if strings.Contains(m.Text, doc) && grant.Admits(list) {
			n := len(r.Sources) + 1
			text := s.say[doc]
			if text == "" {
				text = "It says doc" + doc + "."
			}
			r.Outcome, r.Reason, r.Text = bot.Answered, "", ""
			for _, line := range strings.Split(text, "\n") {
				r.Sentences = append(r.Sentences, cite.Sentence{Text: line, Plain: line, Cites: []int{n}, Kind: cite.Text})
			}
			src := cite.Source{N: n, Title: "doc" + doc, Section: []string{"Part"}, Quote: text, To: len(text), Modified: time.Unix(1_700_000_000, 0)}
			setDocument(&src, doc)
			r.Sources = append(r.Sources, src)
		}
	}
	return r, ctx.Err()
}

// setDocument avoids naming the index's types.
func setDocument(s *cite.Source, doc string) {
	b, _ := json.Marshal(map[string]string{"document": doc, "revision": "r1"})
	_ = json.Unmarshal(b, s)
}

func (s *shelf) open(_ context.Context, who acl.Identity, audience acl.Audience, src ledger.Source) (bot.Opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc := string(src.Document)
	if !acl.NewGrant(who, audience).Admits(s.lists[doc]) {
		return bot.Opened{}, &bot.UserError{Text: sayNoSource}
	}
	o := bot.Opened{Quote: "the passage of doc" + doc, To: len("the passage of doc" + doc)}
	o.Document.Title, o.Document.Canonical, o.Document.Modified = "doc"+doc, o.Quote+" and more", time.Unix(1_700_000_000, 0)
	return o, nil
}

var noHint = guild.Channel{}

// rig is an adapter at work on a fake.
type rig struct {
	*dt.Server
	t       *testing.T
	town    *town
	shelf   *shelf
	adapter *Adapter
	desk    *desk.Desk
	ledger  *ledger.Ledger
	logs    *logs
	notices func(context.Context) // keeps messages about files up to date
	stop    func() error          // ends it and returns what Run returned
}

// logs keeps what was logged.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// board says who asks for what.
type board struct{}

func (board) Text(_ context.Context, asker acl.Identity, document string) (string, error) {
	return fmt.Sprintf("Board for %v: %q", asker.Principals(), document), nil
}

type setting struct {
	config  func(*Config)
	desk    func(*desk.Options)
	options []dt.Option
	server  *dt.Server
	ledger  *ledger.Ledger
	shelf   *shelf
	now     func() time.Time
	cold    bool              // do not wait for the facts
	files   *shelftest.Keeper // nil: no files are taken
	dir     string            // of notices
	life    *ledgertest.Life  // nil: it ends with the test
}

func quick() pace {
	return pace{open: 5 * time.Second, least: time.Millisecond, most: 20 * time.Millisecond, invalid: time.Millisecond, tick: 5 * time.Millisecond}
}

func (x *town) documents() map[string]acl.List {
	return map[string]acl.List{
		"all":   acl.NewList(acl.Everyone),
		"staff": acl.NewList(of(x.guild, "role/"+x.staff)),
		"bob":   acl.NewList(of(x.guild, "user/"+x.bob)),
	}
}

// canRead is an oracle of its own: who may read what a message cites.
func (x *town) canRead(user string, m dt.Message) bool {
	whole := m.Content + string(m.Embeds)
	// The owner can let herself in everywhere, and is trusted.
	staff := strings.Contains(whole, "docstaff") && user != x.bob && user != x.ada
	bob := strings.Contains(whole, "docbob") && user != x.bob
	return !staff && !bob
}

// inTown is an adapter at work in a town.
func inTown(t *testing.T) (*town, *rig) {
	t.Helper()
	x := newTown()
	return x, newRig(t, x, setting{})
}

func newRig(t *testing.T, x *town, s setting) *rig {
	t.Helper()
	r := &rig{t: t, town: x, Server: s.server, ledger: s.ledger, shelf: s.shelf, logs: &logs{}}
	if r.shelf == nil {
		r.shelf = newShelf(x.documents())
	}
	if r.Server == nil {
		r.Server = dt.New(t, x.world, append([]dt.Option{dt.WithRules(dt.Rules{Explicit: true, CanRead: x.canRead})}, s.options...)...)
	}
	if r.ledger == nil {
		l, err := ledger.Open(t.TempDir(), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		r.ledger = l
	}
	c := Config{Token: r.App().Token, APIURL: r.URL(), pace: quick()}
	if s.config != nil {
		s.config(&c)
	}
	log := slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := desk.Options{Ledger: r.ledger, Log: log, Grace: 2 * time.Second, Patience: 2 * time.Second, Lease: time.Minute, Budget: 2 * time.Second}
	var records ledger.Store = r.ledger
	if s.life != nil {
		records = s.life.Ledger(r.ledger)
		o.Ledger, o.Grace, o.Patience = records, 20*time.Millisecond, 20*time.Millisecond // dead, it waits for nothing
		c.pace.transport = s.life.Transport(&http.Transport{}, stepOf)
	}
	if s.desk != nil {
		s.desk(&o)
	}
	d, err := desk.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.desk = d
	deps := Deps{Handle: r.shelf.handle, Open: r.shelf.open, Ledger: records, Desk: d, Standing: board{}, Log: log, Now: s.now}
	r.keep(s, &deps)
	a, err := New(c, deps)
	if err != nil {
		t.Fatal(err)
	}
	r.adapter = a
	r.run(s)
	return r
}

func (r *rig) run(s setting) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- r.adapter.Run(ctx) }()
	go r.notices(ctx)
	deskDone := make(chan error, 1)
	go func() { deskDone <- r.desk.Run(ctx) }()
	var once sync.Once
	var result error
	r.stop = func() error {
		once.Do(func() {
			cancel()
			result = <-ended
			<-deskDone
		})
		return result
	}
	r.t.Cleanup(func() { _ = r.stop() })
	if !s.cold {
		r.ready()
	}
}

func (r *rig) ready() {
	r.t.Helper()
	known := r.adapter.loaded
	if r.adapter.gate != nil {
		known = r.adapter.gate.known
	}
	select {
	case <-known:
	case <-time.After(20 * time.Second):
		r.t.Fatalf("not ready; log:\n%s", r.logs)
	}
	r.Eventually("the commands are registered", func() bool { return len(r.Commands(""))+len(r.Commands(r.town.guild)) >= 3 })
}

// clean stops everything and checks the invariants, and that no secret and no
// text is in the logs.
func (r *rig) clean() {
	r.t.Helper()
	r.idle()
	if err := r.stop(); err != nil {
		r.t.Errorf("Run returned %v", err)
	}
	for _, broken := range r.CheckInvariants() {
		r.t.Error(broken)
	}
	for _, secret := range []string{r.App().Token, "docall", "docstaff", "what about"} {
		if strings.Contains(r.logs.String(), secret) {
			r.t.Errorf("%q is in the logs", secret)
		}
	}
}

func (r *rig) idle() {
	r.t.Helper()
	r.Eventually("all questions ended", func() bool {
		p, err := r.ledger.Pending(context.Background(), 1)
		return err == nil && len(p) == 0
	})
}

// Eventually looks again and again, also at what the fake knows nothing of.
func (r *rig) Eventually(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s; log:\n%s", what, r.logs)
		}
		time.Sleep(3 * time.Millisecond)
	}
}

func (r *rig) ask(user, channel, question string, o ...dt.Delivery) *dt.Interaction {
	r.t.Helper()
	return r.Command(user, channel, "ask", map[string]any{"question": question}, o...)
}

// heard does something and waits until the adapter has been told of it.
func (r *rig) heard(do func()) {
	r.t.Helper()
	before := r.adapter.book.Version()
	do()
	r.Eventually("the change arrived", func() bool { return r.adapter.book.Version() != before })
}

// button finds the id of a button by its end.
func button(t *testing.T, m dt.Message, end string) string {
	t.Helper()
	var rows []struct {
		Components []struct {
			ID string `json:"custom_id"`
		} `json:"components"`
	}
	if err := json.Unmarshal(m.Components, &rows); err != nil {
		t.Fatalf("components %s: %v", m.Components, err)
	}
	for _, r := range rows {
		for _, c := range r.Components {
			if strings.HasSuffix(c.ID, ":"+end) {
				return c.ID
			}
		}
	}
	t.Fatalf("no button %s in %s", end, m.Components)
	return ""
}
