package slack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/desk"
	"footnote/bot/generate"
	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
	"footnote/bot/outbox"
	"footnote/bot/shelf/shelftest"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/memindex"
)

// busy is within what a delivery is acknowledged on a machine that does much
// else; the whole storm holds the bot to a second.
const busy = 20 * time.Second

// TestMain runs many tests at once: nearly all of their time is spent waiting.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8")
	}
	os.Exit(m.Run())
}

// doc is a document of a test: each paragraph is a chunk.
type doc struct {
	id, text string
	access   []string
}

var (
	handbook = doc{"handbook", "Employees get thirty vacation days each year.\n\nThe canteen opens at noon.", []string{"everyone"}}
	plan     = doc{"plan", "The master password of the vault rotates each Friday.", []string{"slack:T0HOME:usergroup/S0SECURITY"}}
	diary    = doc{"diary", "The tiramisu recipe wants mascarpone and coffee.", []string{"slack:T0HOME:user/U0ADA"}}
	leaflet  = doc{"leaflet", "Visitors park their bicycles behind the greenhouse.", []string{"everyone", "slack:T0HOME:guests"}}
	minutes  = doc{"minutes", "The budget committee meets on Tuesdays in Lisbon.", []string{"slack:T0HOME:channel/C0GENERAL"}}
)

const (
	qHandbook = "How many vacation days do employees get each year?"
	qPlan     = "When does the master password of the vault rotate?"
	qDiary    = "What does the tiramisu recipe want?"
	qLeaflet  = "Where do visitors park their bicycles?"
	qMinutes  = "When does the budget committee meet?"
)

// store is an index with documents.
type store struct {
	t   testing.TB
	gen retrieval.Generation
}

func newStore(t testing.TB, docs ...doc) *store {
	t.Helper()
	s, err := memindex.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	gen, err := s.Create(context.Background(), retrieval.Manifest{Embedder: modelstest.NewEmbedder().Info()})
	if err != nil {
		t.Fatal(err)
	}
	out := &store{t, gen}
	for _, d := range docs {
		out.publish(d)
	}
	return out
}

func (s *store) publish(d doc) {
	s.t.Helper()
	list, err := acl.ParseList(d.access)
	if err != nil {
		s.t.Fatal(err)
	}
	p := retrieval.Publication{
		Document: retrieval.Document{
			ID: retrieval.DocumentID(d.id), Revision: revision(d.text), Path: d.id + ".md", Title: "The " + d.id, Canonical: d.text,
			Modified: time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC),
		},
		Access: list,
	}
	e, at := modelstest.NewEmbedder(), 0
	for i, content := range strings.Split(d.text, "\n\n") {
		from := utf8.RuneCountInString(d.text[:at])
		c := retrieval.Chunk{
			ID:      retrieval.ChunkID{Document: p.Document.ID, Revision: p.Document.Revision, Ordinal: i},
			Section: []string{"Part"}, Content: content, Text: "[" + p.Document.Title + " > Part]\n" + content,
			Span: retrieval.Span{From: from, To: from + utf8.RuneCountInString(content), FromByte: at, ToByte: at + len(content), SourceFrom: at, SourceTo: at + len(content)},
		}
		v, err := e.EmbedPassages(context.Background(), []string{c.Text})
		if err != nil {
			s.t.Fatal(err)
		}
		p.Chunks = append(p.Chunks, retrieval.IndexedChunk{Chunk: c, Terms: analysis.Terms(c.Text), Vector: v[0].Vector})
		at += len(content) + 2
	}
	if err := s.gen.Publish(context.Background(), p); err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes a document.
func (s *store) remove(id string) {
	s.t.Helper()
	if err := s.gen.Remove(context.Background(), retrieval.DocumentID(id)); err != nil {
		s.t.Fatal(err)
	}
}

func revision(text string) retrieval.Revision {
	h := 0
	for _, c := range text {
		h = (h*31 + int(c)) % 1_000_003
	}
	return retrieval.Revision(fmt.Sprintf("%016x", h))
}

// drafter is a generator of a test.
type drafter func(ctx context.Context, r generate.Request) (generate.Draft, error)

func (d drafter) Generate(ctx context.Context, r generate.Request) (generate.Draft, error) {
	return d(ctx, r)
}

// verbatim drafts the whole first evidence.
func verbatim(_ context.Context, r generate.Request) (generate.Draft, error) {
	var d generate.Draft
	if len(r.Evidence) > 0 {
		e := r.Evidence[0]
		d.Claims = []cite.Claim{{Text: e.Content, Kind: cite.Text, Numbers: []int{e.N}, From: 0, To: len(e.Content)}}
	}
	return d, nil
}

// program is a running bot with what it lives on. Its ledger outlives it.
type program struct {
	t       testing.TB
	s       *slacktest.Server
	index   *store
	dir     string
	c       slack.Config
	draft   drafter
	options desk.Options
	files   *shelftest.Keeper // nil: no files are taken
	sources []slack.Source
	logs    *syncBuffer
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time
	away    *away // nil: the ledger always answers
	claims  *away // nil: the desk's ledger always answers

	life *ledgertest.Life // nil: it ends with the test

	adapter *slack.Adapter
	desk    *desk.Desk
	ledger  *ledger.Ledger
	web     *httptest.Server
	stop    func()
	ran     chan error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type option func(*program)

func with(f func(*slack.Config)) option     { return func(p *program) { f(&p.c) } }
func withDesk(f func(*desk.Options)) option { return func(p *program) { f(&p.options) } }
func drafting(d drafter) option             { return func(p *program) { p.draft = d } }
func over(mode slack.Mode) option           { return func(p *program) { p.c.Mode = mode } }
func channel(id string, c slack.Channel) option {
	return func(p *program) { p.c.Channels = map[string]slack.Channel{id: c} }
}

// start runs the bot against the fake until the end of the test.
func start(t testing.TB, s *slacktest.Server, index *store, o ...option) *program {
	t.Helper()
	p := prepare(t, s, index, o...)
	p.run()
	p.connected()
	return p
}

func prepare(t testing.TB, s *slacktest.Server, index *store, o ...option) *program {
	t.Helper()
	app := s.App()
	p := &program{t: t, s: s, index: index, dir: t.TempDir(), draft: verbatim, logs: &syncBuffer{}, now: s.Clock().Now, after: s.Clock().After}
	p.c = slack.Config{
		Mode: slack.Socket, BotToken: app.BotToken, AppToken: app.AppToken, SigningSecret: app.SigningSecret, APIURL: s.APIURL(),
		Pace: outbox.Limit{Every: time.Microsecond, Burst: 100}, Arrival: 10 * time.Millisecond,
	}
	p.options = desk.Options{Grace: time.Second, Patience: 5 * time.Second, Budget: 5 * time.Second}
	for _, f := range o {
		f(p)
	}
	s.SetRules(slacktest.Rules{AckWithin: busy, CanRead: canRead, CanReadView: func(u string, v slacktest.View) bool { return canRead(u, slacktest.Message{Blocks: v.Blocks}) }})
	t.Cleanup(func() { p.halt() })
	return p
}

func (p *program) run() {
	p.t.Helper()
	var err error
	if p.ledger, err = ledger.Open(p.dir, ledger.Options{Now: p.now}); err != nil {
		p.t.Fatal(err)
	}
	o := p.options
	o.Ledger, o.Now, o.Log = p.ledger, p.now, slog.New(slog.NewTextHandler(p.logs, nil))
	c := p.c
	var records ledger.Store = p.ledger
	if p.life != nil {
		records = p.life.Ledger(p.ledger)
		o.Ledger, o.Grace, o.Patience = records, 20*time.Millisecond, 20*time.Millisecond // dead, it waits for nothing
		c.HTTP = &http.Client{Transport: p.life.Transport(&http.Transport{}, stepOf)}
	}
	if p.claims != nil {
		p.claims.Store, o.Ledger = p.ledger, p.claims
	}
	if p.desk, err = desk.New(o); err != nil {
		p.t.Fatal(err)
	}
	e, r := modelstest.NewEmbedder(), modelstest.NewReranker("en")
	b, err := bot.New(bot.Config{
		Current:  func(context.Context) (retrieval.Reader, error) { return p.index.gen, nil },
		Searcher: retrieval.NewSearcher(e, r, analysis.Terms, analysis.Language, retrieval.Options{}), Generator: p.draft,
		Cuts: bot.Cuts{Distance: .75, Probability: .2},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	deps := slack.Deps{Bot: b, Desk: p.desk, Ledger: records, Log: o.Log, Now: p.now, After: p.after, Sources: p.sources, Standing: board{}}
	if p.away != nil {
		p.away.Store, deps.Ledger = p.ledger, p.away
	}
	notices := p.shelf(&deps)
	p.adapter, err = slack.New(c, deps)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.c.Mode == slack.HTTP {
		p.serve()
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.ran = make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { _ = p.desk.Run(ctx) })
	work.Go(func() { p.ran <- p.adapter.Run(ctx) })
	work.Go(func() { notices(ctx) })
	p.stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
		_ = p.ledger.Close()
		if p.web != nil {
			p.web.Close()
		}
	})
}

func (p *program) serve() {
	mux := http.NewServeMux()
	for path, h := range p.adapter.Handlers() {
		mux.Handle(path, h)
	}
	p.web = httptest.NewServer(mux)
	p.s.UseHTTP(&slacktest.Webhook{Events: p.web.URL + "/slack/events", Interactions: p.web.URL + "/slack/interactions", Commands: p.web.URL + "/slack/commands"})
}

func (p *program) halt() {
	if p.stop != nil {
		p.stop()
	}
}

// again stops the bot and starts it anew on the same ledger.
func (p *program) again() {
	p.t.Helper()
	p.halt()
	p.s.WaitSockets(0)
	p.run()
	p.connected()
}

func (p *program) connected() {
	p.t.Helper()
	if p.c.Mode == slack.Socket {
		p.s.WaitSockets(1)
		return
	}
	p.s.WaitRequests("auth.test", 1)
}

// mark is what no reply to somebody else may hold: a word of a document.
var words = map[string][]string{ // document -> people who may read it
	"vacation": {"U0ADA", "U0BOB", "U0CYD"}, "mascarpone": {"U0ADA"}, "Friday": {"U0ADA", "U0BOB"},
	"greenhouse": {"U0ADA", "U0BOB", "U0CYD", "U0DAN"}, "Lisbon": {"U0ADA", "U0BOB", "U0CYD"},
}

// canRead is the oracle of the tests: which words of documents may be shown to
// whom. The vacation is everybody's but guests'.
func canRead(user string, m slacktest.Message) bool {
	if user == "U0BOT" {
		return true
	}
	shown := m.Text + string(m.Blocks)
	for word, readers := range words {
		if strings.Contains(shown, word) && !strings.Contains(shown, "looked for") && !slices.Contains(readers, user) {
			return false
		}
	}
	return true
}

// answer waits for the app's message with buttons in the thread.
func (p *program) answer(q slacktest.Message) slacktest.Message {
	p.t.Helper()
	root := q.TS
	if q.ThreadTS != "" {
		root = q.ThreadTS
	}
	return p.s.WaitMessage(q.Channel, func(m slacktest.Message) bool {
		return m.BotID == "B0BOT" && m.ThreadTS == root && slacktest.HasButtons(m) && m.TS > q.TS
	})
}

// answers counts messages of the app with buttons.
func answers(list []slacktest.Message) int {
	n := 0
	for _, m := range list {
		if m.BotID == "B0BOT" && slacktest.HasButtons(m) {
			n++
		}
	}
	return n
}

// quiet waits until nothing is under way any more.
func (p *program) quiet() {
	p.t.Helper()
	p.s.WaitSettled()
	p.s.Eventually("the bot to be idle", func() bool {
		pending, err := p.ledger.Pending(context.Background(), 10)
		h := p.desk.Health()
		return err == nil && len(pending) == 0 && h.Waiting == 0 && h.Running == 0 || nudge(p.s)
	})
}

// nudge wakes those who wait for the fake: what they wait for is the bot's.
func nudge(s *slacktest.Server) bool {
	time.AfterFunc(5*time.Millisecond, func() {
		s.ChangeSilently(func(map[string]*slacktest.User, map[string]*slacktest.Group, map[string]*slacktest.Channel) {})
	})
	return false
}

// done waits until all is quiet and holds the fake's promises.
func (p *program) done() {
	p.t.Helper()
	p.quiet()
	p.s.Eventually("the signs of work to go", func() bool { return len(p.indicators()) == 0 || nudge(p.s) })
	if diff := cmp.Diff([]string(nil), p.s.CheckInvariants()); diff != "" {
		p.t.Errorf("invariants (-want +got):\n%s\nlogs:\n%s", diff, p.logs)
	}
	p.canary()
}

func (p *program) indicators() []string {
	var out []string
	for _, q := range p.s.Questions() {
		if st := p.s.Status(q.Channel, q.Thread); st != "" {
			out = append(out, st)
		}
	}
	return out
}

// canary looks for words of questions and documents, and for tokens, in the logs.
func (p *program) canary() {
	p.t.Helper()
	logs := p.logs.String()
	for _, secret := range []string{"vacation", "mascarpone", "tiramisu", "password", "bicycles", "xoxb-", "xapp-", "/respond/", "ticket-"} {
		if strings.Contains(logs, secret) {
			p.t.Errorf("the logs hold %q:\n%s", secret, logs)
		}
	}
}

// shown is all text of a message's blocks.
func shown(m slacktest.Message) string {
	var v any
	_ = json.Unmarshal(m.Blocks, &v)
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if s, ok := v["text"].(string); ok {
				b.WriteString(s)
			}
			for _, k := range []string{"elements", "text"} {
				walk(v[k])
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return b.String()
}

// gated is a generator that says when it begins and waits until it may go on.
func gated(begun chan<- struct{}, let <-chan struct{}) drafter {
	return func(ctx context.Context, r generate.Request) (generate.Draft, error) {
		select {
		case begun <- struct{}{}:
		case <-let:
		}
		select {
		case <-let:
		case <-ctx.Done():
			return generate.Draft{}, context.Cause(ctx)
		}
		return verbatim(ctx, r)
	}
}

// renew exchanges the refresh token, as an operator's hook does.
func renew(ctx context.Context, s *slacktest.Server) (string, error) {
	a := s.App()
	form := url.Values{"client_id": {a.ClientID}, "client_secret": {a.ClientSecret}, "grant_type": {"refresh_token"}, "refresh_token": {a.RefreshToken}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.APIURL()+"oauth.v2.access", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var out struct {
		Token string `json:"access_token"`
	}
	err = json.NewDecoder(resp.Body).Decode(&out)
	return out.Token, err
}

// board says who asks for what.
type board struct{}

func (board) Text(_ context.Context, asker acl.Identity, document string) (string, error) {
	return fmt.Sprintf("Board for %v: <%s>", asker.ID(), document), nil
}
