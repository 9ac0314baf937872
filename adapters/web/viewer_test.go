package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"footnote/acl"
	"footnote/bot"
	"footnote/bot/ledger"
	"footnote/retrieval"
)

// C16: who may read an answer's source may open it, and who may not, not: the
// same rule as in the search, for the same person and 20 documents.
func TestCase_C16_OneRuleForSearchAndOpening(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	lists := [][]string{{"everyone"}, {"security"}, {"user:ben"}, {"user:eve", "security"}}
	for i := range 20 {
		id := fmt.Sprint("doc", i)
		text := fmt.Sprintf("The zanzibar%d procedure takes %d days.", i, i+2)
		l.publish(id, "r1", text, lists[i%len(lists)]...)
		l.answer(id, id, "r1", 0, len(text))
	}
	shown := 0
	for name, who := range l.people {
		for i := range 20 {
			reply, err := l.bot.Handle(t.Context(), bot.Message{Text: fmt.Sprintf("How many days does the zanzibar%d procedure take?", i), Asker: who, Audience: acl.AskerOnly()})
			must(t, err)
			found := false
			for _, s := range reply.Sources {
				found = found || s.Document == retrieval.DocumentID(fmt.Sprint("doc", i))
			}
			status, body := l.open(l.viewer.Link(fmt.Sprint("doc", i), 1, name))
			if found {
				shown++
				l.wantShown(fmt.Sprintf("%s opening doc%d", name, i), status, body, fmt.Sprintf("zanzibar%d", i))
			} else {
				l.wantUnavailable(fmt.Sprintf("%s opening doc%d", name, i), status, body)
			}
		}
	}
	if shown != 15+10+5 {
		t.Errorf("%d of 60 could be opened", shown)
	}
}

// P10: the address alone opens nothing, whoever asked.
func TestCase_P10_LinkOfAStranger(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.publish("plan", "r1", "The master password rotates on Fridays.", "security")
	l.answer("a", "plan", "r1", 4, 19)
	own := l.viewer.Link("a", 1, "slack|T1|ada")
	status, body := l.open(own)
	l.wantShown("ada's own link", status, body, `<mark id="passage">master password</mark>`)

	// change makes another link of ada's.
	change := func(what func(u *url.URL, q url.Values)) string {
		u, err := url.Parse(own)
		must(t, err)
		q := u.Query()
		what(u, q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for name, link := range map[string]string{
		"without a signature":     change(func(_ *url.URL, q url.Values) { q.Del("s") }),
		"with an empty one":       change(func(_ *url.URL, q url.Values) { q.Set("s", "") }),
		"cut":                     change(func(_ *url.URL, q url.Values) { q.Set("s", q.Get("s")[:20]) }),
		"for another person":      change(func(_ *url.URL, q url.Values) { q.Set("p", "slack|T1|ben") }),
		"for nobody":              change(func(_ *url.URL, q url.Values) { q.Del("p") }),
		"with a later end":        change(func(_ *url.URL, q url.Values) { q.Set("e", "99999999999") }),
		"without an end":          change(func(_ *url.URL, q url.Values) { q.Del("e") }),
		"with an end of no sense": change(func(_ *url.URL, q url.Values) { q.Set("e", "soon") }),
		"to another source":       change(func(u *url.URL, _ url.Values) { u.Path = "/source/a/2" }),
		"to no number":            change(func(u *url.URL, _ url.Values) { u.Path = "/source/a/x" }),
		"to another answer":       change(func(u *url.URL, _ url.Values) { u.Path = "/source/b/1" }),
		"of one who may not":      l.viewer.Link("a", 1, "slack|T1|ben"),
		"of a guest":              l.viewer.Link("a", 1, "slack|T1|eve"),
		"of somebody unknown":     l.viewer.Link("a", 1, "slack|T1|zoe"),
		"to an unknown answer":    l.viewer.Link("unknown", 1, "slack|T1|ada"),
		"to an unknown source":    l.viewer.Link("a", 2, "slack|T1|ada"),
		"to source 0":             l.viewer.Link("a", 0, "slack|T1|ada"),
	} {
		status, body := l.open(link)
		l.wantUnavailable("a link "+name, status, body)
	}
	l.clock.Advance(10*time.Minute - time.Second)
	status, body = l.open(own)
	l.wantShown("ada's link a second before its end", status, body)
	l.clock.Advance(time.Second)
	status, body = l.open(own)
	l.wantUnavailable("ada's link at its end", status, body)
}

// Links that differ in anything have different signatures.
func TestLinksCannotBeForged(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	foreign := &Viewer{o: ViewerOptions{Key: make([]byte, keyLen)}}
	type link struct {
		answer, person string
		n              int
		until          int64
	}
	text := rapid.StringMatching("[ab|]{0,3}")
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) link {
			return link{text.Draw(t, "answer"+name), text.Draw(t, "person"+name), rapid.IntRange(0, 2).Draw(t, "n"+name), rapid.Int64Range(0, 2).Draw(t, "until"+name)}
		}
		sign := func(v *Viewer, x link) string { return v.sign(x.answer, x.n, x.person, x.until) }
		x, y := draw(" 1"), draw(" 2")
		if (sign(l.viewer, x) == sign(l.viewer, y)) != (x == y) {
			t.Fatalf("%+v and %+v: signatures %s and %s", x, y, sign(l.viewer, x), sign(l.viewer, y))
		}
		if sign(l.viewer, x) == sign(foreign, x) {
			t.Fatal("another key signs alike")
		}
	})
}

// A revocation is in force at the next click (P12).
func TestAccessIsDecidedAtEachOpening(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.publish("plan", "r1", "The master password rotates on Fridays.", "security")
	l.answer("a", "plan", "r1", 0, 3)
	link := l.viewer.Link("a", 1, "slack|T1|ada")
	status, body := l.open(link)
	l.wantShown("before", status, body)
	l.people["slack|T1|ada"] = acl.NewIdentity(acl.User("ada"), acl.Everyone) // left the group
	status, body = l.open(link)
	l.wantUnavailable("after she left the group", status, body)
	must(t, l.gen.SetAccess(t.Context(), "plan", acl.NewList(acl.Everyone)))
	status, body = l.open(link)
	l.wantShown("after the document was opened", status, body)
	delete(l.people, "slack|T1|ada")
	status, body = l.open(link)
	l.wantUnavailable("after she left", status, body)
	if diff := cmp.Diff([]string{
		"slack|T1|ada a/1 shown", "slack|T1|ada a/1 not_available", "slack|T1|ada a/1 shown", "slack|T1|ada a/1 not_available",
	}, l.audits()); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

// C14: the passage is marked where it lies, with emoji before it.
func TestCase_C14_PassageInItsSurroundings(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	before := strings.Repeat("Line with 🙂 and é.\n", 200)
	after := strings.Repeat("\nAfter it.", 400)
	text := before + "The badge 🙂 costs nine euros." + after
	l.publish("badges", "r1", text, "everyone")
	from := len([]rune(before))
	l.answer("a", "badges", "r1", from, from+29)
	status, body := l.as("ben", "a")
	l.wantShown("the passage", status, body,
		".\n<mark id=\"passage\">The badge 🙂 costs nine euros.</mark>\nAfter it.", "[1] Title of badges", "badges.md", "3 February 2026",
		`<p class="cut">…</p>`+"\n"+`<div class="text">Line with 🙂`)
	if n := strings.Count(body, "Line with"); n < 50 || n > 80 {
		t.Errorf("%d lines before it", n)
	}
	if strings.Contains(body, "earlier revision") {
		t.Error("the current revision is called an earlier one")
	}
}

// C17: an answer outlives its document. A revision that is replaced is one to
// those who may read the document; a document that is removed has no readers
// any more, and the one page for all says that it may have been removed.
func TestCase_C17_DeletedAndReplaced(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.publish("plan", "r1", "The master password rotates on Fridays.", "security")
	l.answer("a", "plan", "r1", 4, 19)
	l.publish("plan", "r2", "The master password rotates on Mondays.", "security")
	status, body := l.as("ada", "a")
	l.wantShown("the cited revision", status, body, "earlier revision", `<mark id="passage">master password</mark> rotates on Fridays`)
	l.wantShown("what has changed", status, body, `<a href="#changes">`, "<del>The master password rotates on Fridays.</del>", "<ins>")
	status, body = l.as("ben", "a")
	l.wantUnavailable("for one who may not", status, body)

	l.o.Bot = withoutRevision{l.bot, "r1"}
	l.start()
	status, body = l.as("ada", "a")
	if status != http.StatusGone || !strings.Contains(body, "Title of plan") || strings.Contains(body, "Fridays") || strings.Contains(body, "Mondays") {
		t.Errorf("a revision that is no longer kept gives %d:\n%s", status, body)
	}
	status, body = l.as("ben", "a")
	l.wantUnavailable("for one who may not", status, body)

	must(t, l.gen.Remove(t.Context(), "plan"))
	status, body = l.as("ada", "a")
	l.wantUnavailable("removed, for one who could read it", status, body)
	if !strings.Contains(body, "the document was removed") || !strings.Contains(body, "out of date") {
		t.Errorf("the page does not say that the document may have been removed:\n%s", body)
	}
	_, other := l.as("ben", "a")
	if diff := cmp.Diff(body, other); diff != "" {
		t.Errorf("removed is told from forbidden (-reader, +other):\n%s", diff)
	}
}

// withoutRevision is a bot whose index was compacted.
type withoutRevision struct {
	*bot.Bot
	rev retrieval.Revision
}

func (w withoutRevision) Open(ctx context.Context, asker acl.Identity, audience acl.Audience, id retrieval.DocumentID, rev retrieval.Revision, from, to int) (bot.Opened, error) {
	if rev == w.rev {
		return bot.Opened{}, &bot.UserError{Text: "not available", Err: retrieval.ErrNotFound}
	}
	return w.Bot.Open(ctx, asker, audience, id, rev, from, to)
}

// Whatever a document holds, its page is text: no element, attribute or
// address comes from it.
func TestDocumentTextIsText(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for i, text := range []string{
		`<script>alert(1)</script>`, `</mark></div><img src=x onerror=alert(1)>`, `<a href="javascript:alert(1)">x</a>`,
		"{{.}} &lt;b&gt; &#60;i&#62;", "\u202ereversed", "]]> <!-- -->", `<meta http-equiv="refresh" content="0;url=//evil.example">`,
	} {
		id := fmt.Sprint("d", i)
		whole := text + "|" + text + "|" + text
		l.publish(id, "r1", whole, "everyone")
		n := len([]rune(text))
		l.answer(id, id, "r1", n+1, 2*n+1)
		status, body := l.as("ben", id)
		l.wantShown(text, status, body)
		names, shown := elements(t, body)
		if diff := cmp.Diff("html head meta meta meta meta title style body h1 p div mark", names); diff != "" {
			t.Errorf("%q makes elements (-want +got):\n%s", text, diff)
		}
		if !strings.Contains(shown, whole) {
			t.Errorf("%q is shown as\n%s", whole, shown)
		}
	}
}

// elements names the elements of a page in order, and gives its text.
func elements(t *testing.T, body string) (names, text string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	must(t, err)
	var out []string
	var b strings.Builder
	for n := range doc.Descendants() {
		switch n.Type {
		case html.ElementNode:
			out = append(out, n.Data)
		case html.TextNode:
			b.WriteString(n.Data)
		}
	}
	return strings.Join(out, " "), b.String()
}

func TestPagesAreKeptByNobody(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.publish("plan", "r1", "The master password rotates on Fridays.", "security")
	l.answer("a", "plan", "r1", 0, 3)
	for _, person := range []string{"ada", "ben"} {
		r := serve(l.server, http.MethodGet, l.viewer.Link("a", 1, "slack|T1|"+person), "")
		got := map[string]string{}
		for _, name := range []string{"Cache-Control", "Referrer-Policy", "X-Robots-Tag", "X-Content-Type-Options", "X-Frame-Options", "Content-Type"} {
			got[name] = r.Header.Get(name)
		}
		want := map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow, noarchive",
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Content-Type": "text/html; charset=utf-8",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: headers (-want +got):\n%s", person, diff)
		}
		body := read(t, r)
		_, rest, _ := strings.Cut(body, "<style>")
		css, _, _ := strings.Cut(rest, "</style>")
		sum := sha256.Sum256([]byte(css))
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; ") || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy %q does not let the style through, or more", policy)
		}
	}
}

// C8: the numbers of an answer mean the same after a restart.
func TestCase_C8_NumbersAfterARestart(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.publish("one", "r1", "First text here.", "everyone")
	l.publish("two", "r1", "Second text here.", "everyone")
	dir := t.TempDir()
	open := func() *ledger.Ledger {
		led, err := ledger.Open(dir, ledger.Options{Now: l.clock.Now})
		must(t, err)
		l.o.Answers = led
		l.start()
		return led
	}
	led := open()
	must(t, led.PutAnswer(t.Context(), ledger.Answer{ID: "a", Asker: "x", Sources: []ledger.Source{
		{N: 1, Document: "two", Revision: "r1", From: 0, To: 6}, {N: 2, Document: "one", Revision: "r1", From: 0, To: 5},
	}}))
	for range 2 {
		for n, word := range []string{"Second", "First"} {
			status, body := l.open(l.viewer.Link("a", n+1, "slack|T1|ben"))
			l.wantShown("the source", status, body, `<mark id="passage">`+word+`</mark>`)
		}
		must(t, led.Close())
		led = open()
	}
	must(t, led.Close())
}

// When it is not known what somebody may see, nothing is shown, and it is not
// said to be absent.
func TestUnknownForNow(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.publish("plan", "r1", "The master password rotates on Fridays.", "security")
	l.answer("a", "plan", "r1", 0, 3)
	down := errors.New("directory down")
	l.o.Identify = func(context.Context, string) (acl.Identity, error) { return acl.Identity{}, down }
	l.start()
	status, body := l.as("ada", "a")
	if status != http.StatusServiceUnavailable || strings.Contains(body, "plan") || strings.Contains(body, "directory") {
		t.Errorf("%d: %s", status, body)
	}
	if !strings.Contains(l.logs.String(), "directory down") {
		t.Error("the log does not say why")
	}
}

func TestKeyOfTheViewer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != keyLen || string(k) != string(keys[0]) {
			t.Fatal("two processes have two keys")
		}
	}
	other, err := LoadKey(t.TempDir())
	must(t, err)
	if string(other) == string(keys[0]) {
		t.Error("two directories have one key")
	}
	path := filepath.Join(dir, "viewer.key")
	must(t, os.Chmod(path, 0o644))
	if _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read gives %v", err)
	}
	must(t, os.Chmod(path, 0o600))
	must(t, os.WriteFile(path, []byte("short"), 0o600))
	if _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a short key gives %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".viewer-*"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestViewerIsWhollyConnected(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	for name, change := range map[string]func(*ViewerOptions){
		"no address":      func(o *ViewerOptions) { o.Base = "" },
		"a bare host":     func(o *ViewerOptions) { o.Base = "footnote.example.org" },
		"another scheme":  func(o *ViewerOptions) { o.Base = "ftp://footnote.example.org" },
		"with a query":    func(o *ViewerOptions) { o.Base = "https://footnote.example.org?x=1" },
		"no key":          func(o *ViewerOptions) { o.Key = nil },
		"a short key":     func(o *ViewerOptions) { o.Key = []byte("short") },
		"no bot":          func(o *ViewerOptions) { o.Bot = nil },
		"no answers":      func(o *ViewerOptions) { o.Answers = nil },
		"nobody is known": func(o *ViewerOptions) { o.Identify = nil },
	} {
		o := l.o
		change(&o)
		if _, err := NewViewer(o); err == nil {
			t.Errorf("%s: a viewer was made", name)
		}
	}
	o := l.o
	o.Base = "https://example.org/footnote/"
	v, err := NewViewer(o)
	must(t, err)
	if link := v.Link("a", 1, "p"); !strings.HasPrefix(link, "https://example.org/footnote/source/a/1?") {
		t.Errorf("the link is %s", link)
	}
}
