package push

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/acl"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/inbox"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is the API over an inbox, with a catalog that says what a test wants.
type world struct {
	t        testing.TB
	box      *inbox.Inbox
	api      *API
	enforced []string // ids, in order
	broken   error    // of enforcing
	log      strings.Builder

	mu    sync.Mutex
	known map[string]catalog.Record // by path
}

const (
	secret = "a secret of twenty letters"
	bound  = "another one, with a bound"
)

func newWorld(t testing.TB, tune ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, known: map[string]catalog.Record{}}
	var err error
	w.box, err = inbox.Open(t.TempDir(), "push:", inbox.Options{MaxBytes: 1000, MaxDocuments: 4, Now: func() time.Time { return time.Date(2031, 4, 1, 9, 0, 0, 0, time.UTC) }})
	must(t, err)
	description, err := readDescription()
	must(t, err)
	o := Options{
		Tokens: []Token{{Secret: secret}, {Secret: bound, Prefix: "wiki/", Grants: acl.NewList(acl.Group("hr"), acl.Group("it"))}},
		Box:    w.box, Description: description, Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Known: func(path string) (catalog.Record, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			rec, ok := w.known[path]
			return rec, ok
		},
		Below: func(path string) []catalog.Record {
			w.mu.Lock()
			defer w.mu.Unlock()
			var out []catalog.Record
			for _, at := range slices.Sorted(maps.Keys(w.known)) {
				if strings.HasPrefix(at, path+"/") {
					out = append(out, w.known[at])
				}
			}
			return out
		},
		Enforce: func(_ context.Context, _ catalog.Record, id string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.enforced = append(w.enforced, id)
			return w.broken
		},
	}
	for _, f := range tune {
		f(&o)
	}
	w.api, err = New(o)
	must(t, err)
	return w
}

// request is a request with the token that may do everything.
type request struct {
	method, path string
	headers      []string // "Name: value"
	body         string
}

func (r request) http() *http.Request {
	out := httptest.NewRequest(r.method, "http://x.example"+r.path, strings.NewReader(r.body))
	out.Header.Set("Authorization", "Bearer "+secret)
	for _, h := range r.headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Authorization" {
			out.Header.Del(name)
		}
		out.Header.Add(name, value)
	}
	return out
}

func (w *world) do(r request) *http.Response {
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r.http())
	return rec.Result()
}

// put puts a document, or fails the test.
func (w *world) put(id, body string, headers ...string) *http.Response {
	w.t.Helper()
	r := w.do(request{"PUT", "/v1/documents/" + id, headers, body})
	if r.StatusCode > 299 {
		w.t.Fatalf("PUT %s: %d %s", id, r.StatusCode, text(w.t, r))
	}
	return r
}

// listed is all that the inbox holds.
func (w *world) listed() []inbox.Entry {
	w.t.Helper()
	all, err := w.box.List(context.Background(), "", "", 99)
	must(w.t, err)
	return all
}

// ingested makes the catalog say that the document stands so.
func (w *world) ingested(id string, state catalog.State, change ...func(*catalog.Record)) {
	w.t.Helper()
	e, ok, err := w.box.Get(context.Background(), id)
	must(w.t, err)
	if !ok {
		w.t.Fatalf("there is no %s", id)
	}
	rec := catalog.Record{ID: "d1", Path: w.box.PathOf(id), Revision: e.Revision(), Rules: e.Access}
	rec.Enter(state, time.Unix(1, 0))
	if state == catalog.Published {
		rec.Serving, rec.Chunks, rec.Access = rec.Revision, 3, e.Access
	}
	for _, f := range change {
		f(&rec)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[rec.Path] = rec
}

func text(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	must(t, err)
	r.Body = io.NopCloser(strings.NewReader(string(b)))
	return string(b)
}

var errDisk = errors.New("no space left on the device")
