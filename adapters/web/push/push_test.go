package push

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/inbox"
)

// held is the state that most requests meet: a document that is published, one
// that was taken back, and two others.
func held(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	w.put("wiki/leave.md", "# Leave\n", "Footnote-Access: group:hr", "Footnote-Title: Leave%20and%20%ED%9C%B4%EA%B0%80", "Footnote-Link: https://wiki.example.org/1")
	w.ingested("wiki/leave.md", catalog.Published)
	w.put("gone", "text", "Footnote-Access: everyone", "Content-Type: text/plain")
	w.ingested("gone", catalog.Removed)
	must(t, w.box.Delete(t.Context(), "gone", inbox.Condition{}))
	w.put("other.txt", "text", "Footnote-Access: everyone")
	w.enforced = nil
	return w
}

const everyone = "Footnote-Access: everyone"

// cases are requests to held, with what must come back. The description is
// held to the same.
var cases = []struct {
	name string
	request
	status int
	want   string // within the body
}{
	{"new", request{"PUT", "/v1/documents/new.md", []string{everyone}, "text"}, 202, `"state":"queued"`},
	{"new, with all that can be said", request{"PUT", "/v1/documents/new", []string{
		"Footnote-Access: group:hr, ada@example.org", "Footnote-Access: it", "Footnote-Title: 100%25", "Footnote-Author: %EA%B9%80", "Footnote-Link: https://x.example/?q=%2525",
		"Footnote-Modified: 2031-04-01T09:00:00+01:00", "Content-Type: text/html; charset=utf-8", "If-None-Match: *"}, "<p>text"}, 202,
		`"name":"new.html","title":"100%","link":"https://x.example/?q=%25","author":"김","modified":"2031-04-01T08:00:00Z","access":["ada@example.org","group:hr","group:it"]`},
	{"the same again", request{"PUT", "/v1/documents/wiki/leave.md", []string{"Footnote-Access: hr", "Footnote-Title: Leave%20and%20휴가", "Footnote-Link: https://wiki.example.org/1"}, "# Leave\n"}, 200, `"state":"published"`},
	{"other bytes", request{"PUT", "/v1/documents/wiki/leave.md", []string{everyone}, "# Leave, changed\n"}, 202, `"state":"queued"`},
	{"slashes encoded", request{"PUT", "/v1/documents/wiki%2Fleave.md", []string{everyone, "If-Match: *"}, "x"}, 202, `"id":"wiki/leave.md"`},
	{"an id in Hangul, decomposed", request{"PUT", "/v1/documents/%E1%84%92%E1%85%B2.md", []string{everyone}, "x"}, 202, `"id":"휴.md"`},
	{"as curl sends a file", request{"PUT", "/v1/documents/new.md", []string{everyone, "Content-Type: application/x-www-form-urlencoded"}, "x"}, 202, `"name":"new.md"`},
	{"plain text under an id without an ending", request{"PUT", "/v1/documents/new", []string{everyone, "Content-Type: text/plain"}, "x"}, 202, `"name":"new.txt"`},
	{"a type that goes before the ending", request{"PUT", "/v1/documents/new.md", []string{everyone, "Content-Type: text/html"}, "x"}, 202, `"name":"new.md.html"`},
	{"a date", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Modified: 2031-04-01"}, "x"}, 202, `"modified":"2031-04-01T00:00:00Z"`},
	{"a time of HTTP", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Modified: Tue, 01 Apr 2031 09:00:00 GMT"}, "x"}, 202, `"modified":"2031-04-01T09:00:00Z"`},

	{"no list", request{"PUT", "/v1/documents/new.md", nil, "x"}, 422, `"field":"Footnote-Access"`},
	{"a blank list", request{"PUT", "/v1/documents/new.md", []string{"Footnote-Access: "}, "x"}, 422, `"field":"access"`},
	{"an empty entry", request{"PUT", "/v1/documents/new.md", []string{"Footnote-Access: everyone,,hr"}, "x"}, 422, `"field":"access"`},
	{"a list that cannot be understood", request{"PUT", "/v1/documents/new.md", []string{"Footnote-Access: Everyone"}, "x"}, 422, `for every member write everyone`},
	{"a list that is not encoded well", request{"PUT", "/v1/documents/new.md", []string{"Footnote-Access: group:50%"}, "x"}, 422, `%25`},
	{"a header misspelt", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Acess: hr"}, "x"}, 400, `"field":"Footnote-Acess"`},
	{"the list in the query", request{"PUT", "/v1/documents/new.md?access=everyone", nil, "x"}, 400, `in headers`},
	{"a title twice", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Title: a", "Footnote-Title: b"}, "x"}, 422, `"field":"Footnote-Title"`},
	{"a title that is no UTF-8", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Title: %FF"}, "x"}, 422, `"field":"Footnote-Title"`},
	{"a title of two lines", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Title: a%0Ab"}, "x"}, 422, `"field":"title"`},
	{"a link that runs", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Link: javascript:alert(1)"}, "x"}, 422, `"field":"link"`},
	{"no time", request{"PUT", "/v1/documents/new.md", []string{everyone, "Footnote-Modified: yesterday"}, "x"}, 422, `2031-04-01T09:00:00Z`},
	{"no body", request{"PUT", "/v1/documents/new.md", []string{everyone}, ""}, 422, `Content is empty.`},
	{"a type that is not read", request{"PUT", "/v1/documents/new.md", []string{everyone, "Content-Type: image/png"}, "x"}, 415, `image/png`},
	{"a type that is none", request{"PUT", "/v1/documents/new.md", []string{everyone, "Content-Type: ;"}, "x"}, 415, `"field":"Content-Type"`},
	{"neither type nor ending", request{"PUT", "/v1/documents/new", []string{everyone}, "x"}, 415, `"field":"Content-Type"`},
	{"compressed", request{"PUT", "/v1/documents/new.md", []string{everyone, "Content-Encoding: gzip"}, "x"}, 400, `"field":"Content-Encoding"`},
	{"a part", request{"PUT", "/v1/documents/new.md", []string{everyone, "Content-Range: bytes 0-1/5"}, "x"}, 400, `"field":"Content-Range"`},
	{"too large", request{"PUT", "/v1/documents/new.md", []string{everyone}, strings.Repeat("x", 1001)}, 413, `1000 bytes`},
	{"there already", request{"PUT", "/v1/documents/other.txt", []string{everyone, "If-None-Match: *"}, "x"}, 412, `If-None-Match`},
	{"another tag", request{"PUT", "/v1/documents/other.txt", []string{everyone, `If-Match: "0000000000000000"`}, "x"}, 412, `If-Match`},
	{"a tag without quotes", request{"PUT", "/v1/documents/other.txt", []string{everyone, `If-Match: 0000000000000000`}, "x"}, 400, `TAG`},
	{"two conditions", request{"PUT", "/v1/documents/other.txt", []string{everyone, `If-Match: *`, `If-None-Match: *`}, "x"}, 400, `not both`},

	{"an id that climbs", request{"PUT", "/v1/documents/a/../b.md", []string{everyone}, "x"}, 400, `"field":"id"`},
	{"an id that climbs, encoded", request{"PUT", "/v1/documents/a%2F%2e%2e%2Fb.md", []string{everyone}, "x"}, 400, `"field":"id"`},
	{"an id with two slashes", request{"GET", "/v1/documents/a//b", nil, ""}, 400, `"field":"id"`},
	{"an id with a NUL", request{"GET", "/v1/documents/a%00b", nil, ""}, 400, `"field":"id"`},
	{"an id that is no UTF-8", request{"GET", "/v1/documents/a%FFb", nil, ""}, 400, `"field":"id"`},
	{"no id", request{"GET", "/v1/documents/", nil, ""}, 400, `"field":"id"`},
	{"a long id", request{"DELETE", "/v1/documents/" + strings.Repeat("a", 513), nil, ""}, 400, `512 bytes`},

	{"get", request{"GET", "/v1/documents/wiki/leave.md", nil, ""}, 200, `"state":"published","retryable":false`},
	{"get what was taken back", request{"GET", "/v1/documents/gone", nil, ""}, 410, `"state":"removed"`},
	{"get what never was", request{"GET", "/v1/documents/never", nil, ""}, 404, `no document`},
	{"get with a query", request{"GET", "/v1/documents/gone?x", nil, ""}, 400, `no query`},
	{"delete", request{"DELETE", "/v1/documents/wiki/leave.md", nil, ""}, 204, ``},
	{"delete what was taken back", request{"DELETE", "/v1/documents/gone", nil, ""}, 404, `no document`},
	{"delete what never was", request{"DELETE", "/v1/documents/never", nil, ""}, 404, `no document`},
	{"delete another state", request{"DELETE", "/v1/documents/other.txt", []string{`If-Match: "0000000000000000"`}, ""}, 412, `If-Match`},
	{"post", request{"POST", "/v1/documents/a", nil, "x"}, 405, `DELETE, GET, HEAD, PUT`},

	{"list", request{"GET", "/v1/documents", nil, ""}, 200, `"id":"other.txt"`},
	{"list a page", request{"GET", "/v1/documents?limit=1", nil, ""}, 200, `"next":"/v1/documents?after=other.txt\u0026limit=1\u0026prefix="`},
	{"list behind", request{"GET", "/v1/documents?after=other.txt&prefix=w", nil, ""}, 200, `{"documents":[{"id":"wiki/leave.md"`},
	{"list nothing", request{"GET", "/v1/documents?prefix=x", nil, ""}, 200, `{"documents":[]}`},
	{"list with a limit that is none", request{"GET", "/v1/documents?limit=0", nil, ""}, 400, `"field":"limit"`},
	{"list with something else", request{"GET", "/v1/documents?state=failed", nil, ""}, 400, `"field":"state"`},
	{"put a list", request{"PUT", "/v1/documents", nil, "x"}, 405, `GET, HEAD`},

	{"no token", request{"GET", "/v1/documents/wiki/leave.md", []string{"Authorization: "}, ""}, 401, `Authorization: Bearer`},
	{"another token", request{"PUT", "/v1/documents/new.md", []string{"Authorization: Bearer guess", everyone}, "x"}, 401, ``},
	{"a token by another scheme", request{"DELETE", "/v1/documents/wiki/leave.md", []string{"Authorization: Basic " + secret}, ""}, 401, ``},
	{"no token for the list", request{"GET", "/v1/documents", []string{"Authorization: Bearer"}, ""}, 401, ``},
	{"bound token, its prefix and groups", request{"PUT", "/v1/documents/wiki/new.md", []string{"Authorization: Bearer " + bound, "Footnote-Access: it,hr"}, "x"}, 202, ``},
	{"bound token, too many", request{"PUT", "/v1/documents/wiki/new.md", []string{"Authorization: Bearer " + bound, "Footnote-Access: it,everyone"}, "x"}, 403, `everyone`},
	{"bound token, another prefix", request{"PUT", "/v1/documents/new.md", []string{"Authorization: bearer " + bound, "Footnote-Access: it"}, "x"}, 403, `wiki/`},
	{"bound token, beside its prefix", request{"PUT", "/v1/documents/wikix.md", []string{"Authorization: Bearer " + bound, "Footnote-Access: it"}, "x"}, 403, `wiki/`},
	{"bound token, its prefix encoded", request{"GET", "/v1/documents/wiki%2fleave.md", []string{"Authorization: Bearer " + bound}, ""}, 200, ``},
	{"bound token, get of another", request{"GET", "/v1/documents/other.txt", []string{"Authorization: Bearer " + bound}, ""}, 403, ``},
	{"bound token, get of what never was", request{"GET", "/v1/documents/never", []string{"Authorization: Bearer " + bound}, ""}, 403, ``},
	{"bound token, delete of another", request{"DELETE", "/v1/documents/other.txt", []string{"Authorization: Bearer " + bound}, ""}, 403, ``},
	{"bound token, list", request{"GET", "/v1/documents", []string{"Authorization: Bearer " + bound}, ""}, 200, `{"documents":[{"id":"wiki/leave.md"`},
	{"bound token, list of others", request{"GET", "/v1/documents?prefix=o", []string{"Authorization: Bearer " + bound}, ""}, 403, `wiki/`},

	{"description", request{"GET", "/v1/openapi.yaml", []string{"Authorization: "}, ""}, 200, `openapi: 3.1`},
	{"description, changed", request{"PUT", "/v1/openapi.yaml", nil, "x"}, 405, ``},
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := held(t)
			before := w.listed()
			r := w.do(c.request)
			body := text(t, r)
			if r.StatusCode != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%d %s, want %d with %s", r.StatusCode, body, c.status, c.want)
			}
			if diff := cmp.Diff(before, w.listed()); r.StatusCode >= 400 && diff != "" {
				t.Errorf("a request that failed changed the inbox:\n%s", diff)
			}
			if w.log.Len() > 0 {
				t.Errorf("logged %s", w.log.String())
			}
			for _, name := range []string{"text", "Leave"} {
				if r.StatusCode >= 400 && strings.Contains(body, name+"\\n") {
					t.Errorf("the answer holds content: %s", body)
				}
			}
		})
	}
}

// A refusal tells no more of what is there than of what is not.
func TestForbiddenIsAsAbsent(t *testing.T) {
	t.Parallel()
	w := held(t)
	for _, method := range []string{"GET", "DELETE", "PUT"} {
		said := map[string]string{}
		for _, id := range []string{"other.txt", "gone", "never"} {
			r := w.do(request{method, "/v1/documents/" + id, []string{"Authorization: Bearer " + bound, "Footnote-Access: it"}, "x"})
			said[id] = r.Status + text(t, r) + r.Header.Get("ETag")
		}
		if said["other.txt"] != said["never"] || said["gone"] != said["never"] {
			t.Errorf("%s: %v", method, said)
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		state catalog.State
		rec   func(*catalog.Record)
		want  Document // State, Reason, Retryable, Chunks, Serving set: 1
	}{
		{"published", catalog.Published, func(*catalog.Record) {}, Document{State: "published", Chunks: 3}},
		{"on its way", catalog.Embedding, func(*catalog.Record) {}, Document{State: "embedding"}},
		{"an earlier revision", catalog.Published, func(r *catalog.Record) { r.Revision, r.Serving = "old", "old" }, Document{State: "queued", Chunks: 3}},
		{"its new list not yet in force", catalog.Published, func(r *catalog.Record) { r.Access = []string{"group:hr"} }, Document{State: "queued", Chunks: 3}},
		{"narrowed by its front matter", catalog.Published, func(r *catalog.Record) { r.Declared, r.Access = []string{"hr"}, []string{"everyone"} }, Document{State: "published", Chunks: 3}},
		{"front matter under an earlier list", catalog.Published, func(r *catalog.Record) { r.Declared, r.Access = []string{"it"}, []string{"group:it"} }, Document{State: "queued", Chunks: 3}},
		{"failed for good", catalog.Failed, func(r *catalog.Record) { r.Reason = "no text found" }, Document{State: "failed", Reason: "no text found"}},
		{"failed, is tried again", catalog.Failed, func(r *catalog.Record) {
			r.Reason, r.Retryable, r.Serving = "the disk is full", true, "old"
		}, Document{State: "failed", Reason: "the disk is full", Retryable: true}},
		{"refused", catalog.Refused, func(r *catalog.Record) { r.Reason = "its front matter" }, Document{State: "refused", Reason: "its front matter"}},
		{"refused under an earlier list", catalog.Refused, func(r *catalog.Record) { r.Rules = []string{"group:hr"} }, Document{State: "queued"}},
		{"put again after it was removed", catalog.Removed, func(*catalog.Record) {}, Document{State: "queued"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("a.md", "text", "Footnote-Access: everyone")
			w.ingested("a.md", c.state, c.rec)
			var got Document
			must(t, json.Unmarshal([]byte(text(t, w.do(request{"GET", "/v1/documents/a.md", nil, ""}))), &got))
			got = Document{State: got.State, Reason: got.Reason, Retryable: got.Retryable, Chunks: got.Chunks}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What lies in an archive is listed with it, and put in force with it even before
// the archive itself is known.
func TestMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "PK", "Footnote-Access: everyone", "Content-Type: application/zip")
	if diff := cmp.Diff([]string{"a"}, w.enforced); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	for path, change := range map[string]func(*catalog.Record){
		"push:/a/leave.md": func(r *catalog.Record) { r.Serving, r.Revision, r.Chunks = "1", "1", 2 },
		"push:/a/old/pay.pdf": func(r *catalog.Record) {
			r.Enter(catalog.Failed, time.Unix(2, 0))
			r.Reason, r.Retryable = "no text", true
		},
		"push:/a/removed.md": func(r *catalog.Record) { r.Enter(catalog.Removed, time.Unix(2, 0)) },
		"push:/a.md":         func(*catalog.Record) {},
	} {
		rec := catalog.Record{Path: path}
		rec.Enter(catalog.Published, time.Unix(1, 0))
		change(&rec)
		w.known[path] = rec
	}
	r := w.do(request{"GET", "/v1/documents/a", nil, ""})
	var got Document
	must(t, json.Unmarshal([]byte(text(t, r)), &got))
	want := []Member{{Path: "leave.md", State: "published", Chunks: 2}, {Path: "old/pay.pdf", State: "failed", Reason: "no text", Retryable: true}}
	if diff := cmp.Diff(want, got.Members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	r = w.do(request{"DELETE", "/v1/documents/a", nil, ""})
	if diff := cmp.Diff([]string{"a", "a"}, w.enforced); r.StatusCode != 204 || diff != "" {
		t.Errorf("deleted: %d, in force (-want +got):\n%s", r.StatusCode, diff)
	}
}

// What becomes narrower is put in force before the answer, and again when that
// has failed.
func TestInForceBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w := held(t)
	enforced := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.enforced); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		w.enforced = nil
	}
	w.put("wiki/leave.md", "# Leave\n", "Footnote-Access: group:hr", "Footnote-Title: Leave%20and%20%ED%9C%B4%EA%B0%80", "Footnote-Link: https://wiki.example.org/1")
	enforced("the same again")
	w.put("new.md", "text", everyone)
	enforced("not known to the index")
	w.broken = errDisk
	change := request{"PUT", "/v1/documents/wiki/leave.md", []string{"Footnote-Access: it"}, "# Leave\n"}
	r := w.do(change)
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || strings.Contains(text(t, r), "space") {
		t.Errorf("%d %s", r.StatusCode, text(t, r))
	}
	if !strings.Contains(w.log.String(), "no space left") || strings.Contains(w.log.String(), "leave") {
		t.Errorf("logged %s", w.log.String())
	}
	enforced("another list, the disk full", "wiki/leave.md")
	w.broken = nil
	if r := w.do(change); r.StatusCode != 200 {
		t.Errorf("again: %d %s", r.StatusCode, text(t, r))
	}
	enforced("the same request again", "wiki/leave.md")

	w.broken = errDisk
	if r := w.do(request{"DELETE", "/v1/documents/wiki/leave.md", nil, ""}); r.StatusCode != 503 {
		t.Errorf("delete, the disk full: %d", r.StatusCode)
	}
	w.broken = nil
	if r := w.do(request{"DELETE", "/v1/documents/wiki/leave.md", nil, ""}); r.StatusCode != 204 {
		t.Errorf("delete again: %d", r.StatusCode)
	}
	enforced("deleted twice", "wiki/leave.md", "wiki/leave.md")
}

func TestTagsAndPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.put("a%20b/%3F.md", "text", everyone)
	if got := r.Header.Get("Location"); got != "/v1/documents/a%20b/%3F.md" {
		t.Errorf("Location %s", got)
	}
	tag := r.Header.Get("ETag")
	r = w.do(request{"PUT", "/v1/documents/a%20b/%3F.md", []string{everyone, "If-Match: " + tag}, "text, changed"})
	if r.StatusCode != 202 || r.Header.Get("ETag") == tag {
		t.Errorf("with its tag: %d %s", r.StatusCode, r.Header.Get("ETag"))
	}
	r = w.do(request{"DELETE", "/v1/documents/a%20b/%3F.md", []string{"If-Match: " + tag}, ""})
	if r.StatusCode != 412 {
		t.Errorf("delete with an old tag: %d", r.StatusCode)
	}
}

func TestFullInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"1.md", "2.md", "3.md", "4.md"} {
		w.put(id, "x", everyone)
	}
	if r := w.do(request{"PUT", "/v1/documents/5.md", []string{everyone}, "x"}); r.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("%d", r.StatusCode)
	}
}

// As many bodies are read at once as is allowed; the next sender is told to
// wait, and nothing else waits.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Uploads = 1 })
	body, writer := io.Pipe()
	req := request{"PUT", "/v1/documents/slow.md", []string{everyone}, ""}.http()
	req.Body, req.ContentLength = body, -1
	first := httptest.NewRecorder()
	var wg sync.WaitGroup
	wg.Go(func() { w.api.ServeHTTP(first, req) })
	_, err := writer.Write([]byte("text")) // taken: the body is being read
	must(t, err)
	r := w.do(request{"PUT", "/v1/documents/a.md", []string{everyone}, "x"})
	if r.StatusCode != 429 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("second body: %d", r.StatusCode)
	}
	if r := w.do(request{"GET", "/v1/documents/a.md", nil, ""}); r.StatusCode != 404 {
		t.Errorf("get meanwhile: %d", r.StatusCode)
	}
	must(t, writer.Close())
	wg.Wait()
	if first.Code != 202 {
		t.Errorf("first body: %d", first.Code)
	}
	w.put("a.md", "x", everyone)
}

func TestBodyThatEndsEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := request{"PUT", "/v1/documents/a.md", []string{everyone}, ""}.http()
	body, writer := io.Pipe()
	must(t, writer.CloseWithError(io.ErrUnexpectedEOF))
	req.Body = body
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, req)
	if _, held, err := w.box.Get(context.Background(), "a.md"); err != nil || rec.Code != 408 || held {
		t.Errorf("%d %s, held %t", rec.Code, rec.Body, held)
	}
}

func TestOneDocumentByManySenders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Uploads = 100 })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			group := string(rune('a' + i))
			for range 10 {
				r := w.do(request{"PUT", "/v1/documents/x.md", []string{"Footnote-Access: " + group}, group})
				if r.StatusCode != 200 && r.StatusCode != 202 {
					t.Errorf("put: %d", r.StatusCode)
				}
				if r := w.do(request{"DELETE", "/v1/documents/x.md", nil, ""}); r.StatusCode != 204 && r.StatusCode != 404 {
					t.Errorf("delete: %d", r.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	if left, err := w.box.List(t.Context(), "", "", 9); err != nil || len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// Two senders with the same tag: one wins, the other is told.
func TestOneOfTwoWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tag := w.put("a.md", "x", everyone).Header.Get("ETag")
	status := make(chan int, 8)
	for i := range 4 {
		go func() {
			status <- w.do(request{"PUT", "/v1/documents/a.md", []string{everyone, "If-Match: " + tag}, "new " + string(rune('a'+i))}).StatusCode
		}()
	}
	count := map[int]int{}
	for range 4 {
		count[<-status]++
	}
	if diff := cmp.Diff(map[int]int{202: 1, 412: 3}, count); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoTokenNoAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tokens := range map[string][]Token{"none": nil, "blank": {{Secret: secret}, {Secret: " \n"}}, "empty": {{}}} {
		o := w.api.o
		o.Tokens = tokens
		if a, err := New(o); err == nil || a != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

// Whatever the path, an id is in its one form and within the token's prefix.
func FuzzReadID(f *testing.F) {
	for _, s := range []string{"wiki/a", "wiki%2Fa", "wiki/..%2Fother", "%77iki/a", "wiki%2f%2e%2e%2fa", "%ZZ", "wiki/%00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := readID(s, Token{Prefix: "wiki/"})
		if err != nil {
			return
		}
		if again, err := inbox.ParseID(id); again != id || err != nil || !strings.HasPrefix(id, "wiki/") || strings.Contains(id, "/../") {
			t.Errorf("%q gives %q, %v", s, id, err)
		}
		if back, err := readID(strings.TrimPrefix(address(id), documents+"/"), Token{}); back != id || err != nil {
			t.Errorf("%q is addressed as %s, which gives %q, %v", id, address(id), back, err)
		}
	})
}

// Whatever the headers, what is read either is refused or can be stored, with
// a list, and never grants more than the token may.
func FuzzReadMeta(f *testing.F) {
	f.Add("everyone", "Title", "https://x.example", "2031-04-01", "text/html")
	f.Add("group:hr,%2c", "%E1", "javascript:x", "", "")
	f.Add("", "a\x00", "//x", "Tue", "text/plain; charset")
	f.Fuzz(func(t *testing.T, access, title, link, modified, kind string) {
		w := newWorld(t)
		r := request{"PUT", "/v1/documents/wiki/a.md", nil, "text"}.http()
		r.Header = http.Header{"Authorization": {"Bearer " + bound}, hAccess: {access}, hTitle: {title}, hLink: {link}, hModified: {modified}, "Content-Type": {kind}}
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		e, held, err := w.box.Get(context.Background(), "wiki/a.md")
		must(w.t, err)
		switch {
		case rec.Code >= 500 || (rec.Code < 300) != held:
			t.Errorf("%d %s, held %t", rec.Code, rec.Body, held)
		case held && (e.List().IsZero() || mayGrant(w.api.o.Tokens[1], e.Access) != nil):
			t.Errorf("held under %v", e.Access)
		}
	})
}
