package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"footnote/acl"
	"footnote/bot"
	"footnote/bot/generate"
	"footnote/bot/ledger"
	"footnote/bot/ledger/ledgertest"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/memindex"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// serve answers one request without a network.
func serve(h http.Handler, method, target, body string) *http.Response {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, r))
	return w.Result()
}

func read(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	must(t, err)
	return string(b)
}

// library is a server with a viewer over a real bot, index and ledger. ada is
// in the group security, ben is not, eve is a guest.
type library struct {
	*testing.T
	clock  *ledgertest.Clock
	gen    retrieval.Generation
	bot    *bot.Bot
	ledger *ledger.Ledger
	o      ViewerOptions
	viewer *Viewer
	server *Server
	logs   buffer
	people map[string]acl.Identity
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{T: t, clock: ledgertest.NewClock(), people: map[string]acl.Identity{
		"slack|T1|ada": acl.NewIdentity(acl.User("ada"), acl.Everyone, acl.Group("security")),
		"slack|T1|ben": acl.NewIdentity(acl.User("ben"), acl.Everyone),
		"slack|T1|eve": acl.NewIdentity(acl.User("eve")),
	}}
	l.openIndex()
	var err error
	l.ledger, err = ledger.Open(t.TempDir(), ledger.Options{Now: l.clock.Now})
	must(t, err)
	t.Cleanup(func() { l.ledger.Close() })
	key, err := LoadKey(t.TempDir())
	must(t, err)
	l.o = ViewerOptions{
		Base: "https://footnote.example.org", Key: key, Answers: l.ledger, Bot: l.bot, Now: l.clock.Now, Log: l.logs.logger(),
		Identify: func(_ context.Context, person string) (acl.Identity, error) {
			who, ok := l.people[person]
			if !ok {
				return acl.Identity{}, acl.ErrUnknown
			}
			return who, nil
		},
	}
	l.start()
	return l
}

// start makes the server anew from the options.
func (l *library) start() {
	l.Helper()
	v, err := NewViewer(l.o)
	must(l, err)
	l.viewer = v
	l.server = New(Options{Viewer: v, Log: l.logs.logger()})
}

func (l *library) openIndex() {
	l.Helper()
	store, err := memindex.Open(l.TempDir())
	must(l, err)
	l.Cleanup(func() { store.Close() })
	e, r := modelstest.NewEmbedder(), modelstest.NewReranker("en")
	l.gen, err = store.Create(l.Context(), retrieval.Manifest{Embedder: e.Info()})
	must(l, err)
	l.bot, err = bot.New(bot.Config{
		Current:   func(context.Context) (retrieval.Reader, error) { return l.gen, nil },
		Searcher:  retrieval.NewSearcher(e, r, analysis.Terms, analysis.Language, retrieval.Options{}),
		Generator: generate.NewExtractive(e, r, generate.Options{Cuts: generate.Cuts{Reranked: .1, Embedded: .05, Unrelated: .2}}),
		Cuts:      bot.Cuts{Distance: .75, Probability: .2},
	})
	must(l, err)
}

// publish publishes a document of one chunk.
func (l *library) publish(id, rev, text string, access ...string) {
	l.Helper()
	list, err := acl.ParseList(access)
	must(l, err)
	d := retrieval.Document{ID: retrieval.DocumentID(id), Revision: retrieval.Revision(rev), Path: id + ".md", Title: "Title of " + id, Canonical: text, Modified: time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)}
	c := retrieval.Chunk{
		ID: retrieval.ChunkID{Document: d.ID, Revision: d.Revision}, Content: text, Text: d.Title + "\n" + text,
		Span: retrieval.Span{To: utf8.RuneCountInString(text), ToByte: len(text)},
	}
	v, err := modelstest.NewEmbedder().EmbedPassages(l.Context(), []string{c.Text})
	must(l, err)
	must(l, l.gen.Publish(l.Context(), retrieval.Publication{
		Document: d, Access: list, Chunks: []retrieval.IndexedChunk{{Chunk: c, Terms: analysis.Terms(c.Text), Vector: v[0].Vector}},
	}))
}

// answer records an answer that cites code points from to to of a document as
// its only source.
func (l *library) answer(id, document, rev string, from, to int) {
	l.Helper()
	must(l, l.ledger.PutAnswer(l.Context(), ledger.Answer{
		ID: id, Delivery: "q", Asker: "slack|T1|ada", Room: "r", Question: "?",
		Sources: []ledger.Source{{N: 1, Document: retrieval.DocumentID(document), Revision: retrieval.Revision(rev), From: from, To: to}},
	}))
}

// open follows a link.
func (l *library) open(link string) (status int, body string) {
	l.Helper()
	r := serve(l.server, http.MethodGet, link, "")
	return r.StatusCode, read(l, r)
}

// as opens source 1 of an answer as a person.
func (l *library) as(person, answer string) (status int, body string) {
	l.Helper()
	return l.open(l.viewer.Link(answer, 1, "slack|T1|"+person))
}

// unavailable is the one page for all that is not to be seen.
func (l *library) unavailable() string {
	l.Helper()
	status, body := l.open("/source/none/1")
	if status != http.StatusNotFound || !strings.Contains(body, "not available") {
		l.Fatalf("a link without signature gives %d:\n%s", status, body)
	}
	return body
}

// wantUnavailable wants that page, byte for byte.
func (l *library) wantUnavailable(what string, status int, body string) {
	l.Helper()
	if status != http.StatusNotFound || body != l.unavailable() {
		l.Errorf("%s gives %d:\n%s", what, status, body)
	}
}

func (l *library) wantShown(what string, status int, body string, parts ...string) {
	l.Helper()
	if status != http.StatusOK {
		l.Errorf("%s gives %d:\n%s", what, status, body)
	}
	for _, p := range parts {
		if !strings.Contains(body, p) {
			l.Errorf("%s does not show %q:\n%s", what, p, body)
		}
	}
}

// audits are the noted openings, oldest first.
func (l *library) audits() (out []string) {
	l.Helper()
	all, err := l.ledger.Audits(l.Context(), 1000)
	must(l, err)
	for _, a := range all {
		out = append([]string{fmt.Sprint(a.Actor, " ", a.Subject, " ", a.Result)}, out...)
	}
	return out
}
