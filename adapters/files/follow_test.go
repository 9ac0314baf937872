package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/adapters/files"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/generate"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/catalog"
	"footnote/retrieval/extract/ziptest"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/memindex"
)

// followed is a folder that is followed, with a bot that answers from it. ada
// is in the group hr, ben is not.
type followed struct {
	*testing.T
	root     string
	store    *memindex.Store
	searcher *retrieval.Searcher
	cat      *catalog.Catalog
	pipe     *ingest.Pipeline
	bot      *bot.Bot
	loop     *follow.Loop
	events   chan ingest.Event
}

func newFollowed(t *testing.T, entries map[string]string) *followed {
	t.Helper()
	f := &followed{T: t, root: tree(t, entries), events: make(chan ingest.Event, 10_000)}
	dir := t.TempDir()
	store, err := memindex.Open(dir)
	must(t, err)
	f.cat, err = catalog.Open(dir)
	must(t, err)
	e, r := modelstest.NewEmbedder(), modelstest.NewReranker("en")
	f.pipe = ingest.New(store, f.cat, e, ingest.Options{})
	f.store = store
	f.searcher = retrieval.NewSearcher(e, r, analysis.Terms, analysis.Language, retrieval.Options{})
	f.bot, err = bot.New(bot.Config{
		Current:   func(ctx context.Context) (retrieval.Reader, error) { return store.Open(ctx, "") },
		Searcher:  f.searcher,
		Generator: generate.NewExtractive(e, r, generate.Options{Cuts: generate.Cuts{Reranked: .1, Embedded: .05, Unrelated: .2}}),
		Cuts:      bot.Cuts{Distance: .75, Probability: .2},
	})
	must(t, err)
	folder, err := files.New(f.root, files.Options{Default: acl.NewList(acl.Everyone)})
	must(t, err)
	ready := make(chan struct{})
	f.loop = follow.New(f.pipe, []follow.Feed{{Name: "docs", Source: folder, Watch: folder.Watch}}, follow.Options{
		MaxRemoved: .3,
		Told:       func(e ingest.Event) { f.events <- e },
		Passed: func(s []follow.Status) {
			if !s[0].Scanned.IsZero() && ready != nil {
				close(ready)
				ready = nil
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	first, done := ready, make(chan error)
	go func() { done <- f.loop.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, errors.Join(<-done, f.cat.Close(), store.Close()))
	})
	<-first
	f.removed() // what the first pass told is past
	return f
}

func (f *followed) path(rel string) string { return filepath.Join(f.root, rel) }

func (f *followed) write(rel, content string) {
	f.Helper()
	must(f.T, os.MkdirAll(filepath.Dir(f.path(rel)), 0o755))
	must(f.T, os.WriteFile(f.path(rel), []byte(content), 0o644))
}

// until waits for a document to come into a state with an effect.
func (f *followed) until(rel string, effect ingest.Effect, state catalog.State) {
	f.Helper()
	for {
		select {
		case e := <-f.events:
			if e.Path == f.path(rel) && e.Effect == effect && e.State == state {
				return
			}
		case <-f.Context().Done():
			f.Fatalf("%s did not become %s", rel, state)
		}
	}
}

func person(name string, groups ...acl.Principal) acl.Identity {
	return acl.NewIdentity(acl.User(name), append(groups, acl.Everyone)...)
}

var (
	ada = person("ada", acl.Group("hr"))
	ben = person("ben")
)

// ask returns the quotes of the answer, "" where it is refused, and the first
// source.
func (f *followed) ask(who acl.Identity, question string) (quotes string, first cite.Source) {
	f.Helper()
	r, err := f.bot.Handle(f.Context(), bot.Message{Text: question, Asker: who, Audience: acl.AskerOnly()})
	must(f.T, err)
	var all []string
	for i, s := range r.Sources {
		if i == 0 {
			first = s
		}
		all = append(all, s.Quote)
	}
	return strings.Join(all, " "), first
}

// openSource opens a cited place.
func (f *followed) openSource(who acl.Identity, s cite.Source) (bot.Opened, error) {
	return f.bot.Open(f.Context(), who, acl.AskerOnly(), s.Document, s.Revision, s.From, s.To)
}

func fact(n int) string {
	return fmt.Sprintf("# Part %d\n\nThe zanzibar%d gearbox takes %d litres of oil.\n", n, n, n+100)
}

func question(n int) string {
	return fmt.Sprintf("How many litres of oil does the zanzibar%d gearbox take?", n)
}

// The next question sees only the new state, and an old quote is never served
// under the new revision.
func TestNextQuestionSeesOnlyTheNewState(t *testing.T) {
	t.Parallel()
	entries := map[string]string{}
	for n := range 12 {
		entries[fmt.Sprintf("a/%d.md", n)] = fact(n)
	}
	f := newFollowed(t, entries)

	before, cited := f.ask(ben, question(1))
	f.write("a/1.md", "# Part 1\n\nThe zanzibar1 gearbox takes 777 litres of oil.\n")
	f.until("a/1.md", ingest.Renewal, catalog.Published)
	after, now := f.ask(ben, question(1))
	if !strings.Contains(before, "101 litres") || !strings.Contains(after, "777 litres") || strings.Contains(after, "101 litres") {
		t.Errorf("edited: %q, then %q", before, after)
	}
	if now.Document != cited.Document || now.Revision == cited.Revision {
		t.Errorf("edited: the document was %v and is %v", cited, now)
	}
	old, err := f.openSource(ben, cited)
	must(t, err)
	if !old.Superseded || old.Document.Revision != cited.Revision || !strings.Contains(old.Quote, "101 litres") || strings.Contains(old.Current.Canonical, "101 litres") {
		t.Errorf("the old citation opens %+v", old)
	}
	if o, err := f.openSource(ben, now); err != nil || o.Superseded || strings.Contains(o.Document.Canonical, "101 litres") {
		t.Errorf("the new citation opens %+v, %v", o, err)
	}

	_, moved := f.ask(ben, question(2))
	must(t, os.Rename(f.path("a/2.md"), f.path("b.md")))
	f.until("b.md", ingest.Renewal, catalog.Published)
	if quote, at := f.ask(ben, question(2)); at.Document != moved.Document || at.Path != f.path("b.md") || !strings.Contains(quote, "102 litres") {
		t.Errorf("moved: %q from %+v", quote, at)
	}

	_, secret := f.ask(ben, question(3))
	f.write("a/.access.yaml", "access: [group:hr]\n")
	f.until("a/3.md", ingest.AccessChange, catalog.Published)
	if quote, _ := f.ask(ben, question(3)); strings.Contains(quote, "103 litres") {
		t.Errorf("closed: ben is told %q", quote)
	}
	if _, err := f.openSource(ben, secret); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("closed: ben opens it: %v", err)
	}
	if _, err := f.openSource(ben, cited); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("closed: ben opens an earlier revision: %v", err)
	}
	if quote, _ := f.ask(ada, question(3)); !strings.Contains(quote, "103 litres") {
		t.Errorf("closed: ada is told %q", quote)
	}

	must(t, os.Remove(f.path("a/3.md")))
	f.until("a/3.md", ingest.Removal, catalog.Removed)
	if quote, _ := f.ask(ada, question(3)); strings.Contains(quote, "103 litres") {
		t.Errorf("deleted: ada is told %q", quote)
	}
	if _, err := f.openSource(ada, secret); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("deleted: ada opens it: %v", err)
	}
	f.consistent()
}

func (f *followed) consistent() {
	f.Helper()
	diffs, err := f.pipe.Verify(f.Context())
	must(f.T, err)
	if len(diffs) > 0 {
		f.Errorf("index and catalog differ: %v", diffs)
	}
}

// A folder that is emptied at once is taken for one that is not mounted, until
// somebody says otherwise.
func TestEmptiedFolderIsHeld(t *testing.T) {
	t.Parallel()
	entries := map[string]string{}
	for n := range 8 {
		entries[fmt.Sprintf("%d.md", n)] = fact(n)
	}
	f := newFollowed(t, entries)
	away := f.root + ".away"
	must(t, os.Rename(f.root, away))
	must(t, os.Mkdir(f.root, 0o755))
	sync := func(r follow.Request) ingest.Report {
		t.Helper()
		out, err := f.loop.Sync(t.Context(), r)
		must(t, err)
		must(t, out[0].Err)
		return out[0].Report
	}
	if r := sync(follow.Request{}); r.Held == nil || *r.Held != (ingest.Held{Missing: 8, Of: 8}) || r.Removed != 0 {
		t.Errorf("emptied: %+v", r)
	}
	if quote, _ := f.ask(ben, question(3)); !strings.Contains(quote, "103 litres") {
		t.Errorf("emptied: ben is told %q", quote)
	}
	must(t, os.Remove(f.root))
	must(t, os.Rename(away, f.root))
	if r := sync(follow.Request{}); r.Held != nil || r.Unchanged != 8 {
		t.Errorf("mounted again: %+v", r)
	}
	for n := range 3 {
		must(t, os.Remove(f.path(fmt.Sprintf("%d.md", n))))
	}
	if r := sync(follow.Request{Remove: true}); r.Unchanged != 5 || f.removed() != 3 {
		t.Errorf("removed on purpose: %+v", r)
	}
	f.consistent()
}

// removed counts removed documents of which the events came meanwhile.
func (f *followed) removed() (n int) {
	for {
		select {
		case e := <-f.events:
			if e.Effect == ingest.Removal {
				n++
			}
		default:
			return n
		}
	}
}

// word is a Word document of one paragraph.
func word(t *testing.T, text string) string {
	return ziptest.Archive(t,
		"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
		"_rels/.rels", `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
		"word/document.xml", `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>`+text+`</w:t></w:r></w:p></w:body></w:document>`)
}

// A hundred documents of many formats, seven of them broken: 93 can be found,
// seven say what is wrong with them, and come in once they are repaired.
func TestBrokenDocumentsStopNoOther(t *testing.T) {
	t.Parallel()
	sentence := func(n int) string { return fmt.Sprintf("The zanzibar%d gearbox takes %d litres of oil.", n, n+100) }
	good := func(n int) (ending, content string) {
		switch s := sentence(n); n % 8 {
		case 0:
			return "txt", s
		case 1:
			return "html", "<html><body><article><p>" + s + "</p></article></body></html>"
		case 2:
			return "docx", word(t, s)
		case 3:
			return "eml", "From: a@example.org\r\nTo: b@example.org\r\nSubject: Oil\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + s + "\r\n"
		case 4:
			return "vtt", "WEBVTT\n\n00:01.000 --> 00:04.000\n" + s + "\n"
		case 5:
			return "csv", "part,oil\nzanzibar" + fmt.Sprint(n) + " gearbox," + fmt.Sprint(n+100) + " litres\n"
		case 6:
			return "json", fmt.Sprintf(`{"note": %q}`, s)
		}
		return "md", fact(n)
	}
	broken := []struct{ name, content, reason string }{
		{"empty.md", "", "no text found: the file is empty"},
		{"front.md", "---\naccess: [hr\n---\nThe text.\n", "front matter with an access list cannot be read"},
		{"text.docx", "this is no archive", "not a Word document"},
		{"other.xlsx", ziptest.Archive(t, "xl/other.xml", "<a/>"), "workbook"},
		{"binary.txt", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00\x01\x00\x00\x00", "it holds a program"},
		{"nothing.html", "<html><body><script>var a = 1</script></body></html>", "no text found"},
		{"half.pptx", word(t, "x")[:200], "damaged or cut off"},
	}
	entries := map[string]string{}
	for n := range 93 {
		ending, content := good(n)
		entries[fmt.Sprintf("%d.%s", n, ending)] = content
	}
	for _, b := range broken {
		entries[b.name] = b.content
	}
	f := newFollowed(t, entries)
	found := func(n int) bool {
		reader, err := f.store.Open(t.Context(), "")
		must(t, err)
		got, err := f.searcher.Search(t.Context(), reader, acl.NewGrant(ben, acl.AskerOnly()), fmt.Sprintf("zanzibar%d", n))
		must(t, err)
		return len(got.Lexical) == 1
	}
	for n := range 93 {
		if !found(n) {
			ending, _ := good(n)
			t.Errorf("%d.%s is not found", n, ending)
		}
	}
	failed := 0
	for _, r := range f.cat.List() {
		for _, b := range broken {
			if r.Path == f.path(b.name) {
				failed++
				t.Logf("%s: %s: %s", b.name, r.State, r.Reason)
				if r.State != catalog.Failed || !strings.Contains(strings.ToLower(r.Reason), strings.ToLower(b.reason)) || r.Chunks != 0 {
					t.Errorf("%s is %s because %q, with %d chunks", b.name, r.State, r.Reason, r.Chunks)
				}
			}
		}
	}
	if failed != 7 {
		t.Errorf("%d of 7 broken documents are known", failed)
	}

	var only []string
	for i, b := range broken {
		n := 93 + i
		content := fact(n)
		switch filepath.Ext(b.name) {
		case ".docx":
			content = word(t, sentence(n))
		case ".html":
			content = "<p>" + sentence(n) + "</p>"
		case ".xlsx", ".pptx":
			must(t, os.Remove(f.path(b.name)))
			b.name = strings.TrimSuffix(b.name, filepath.Ext(b.name)) + ".md"
		}
		f.write(b.name, content)
		only = append(only, f.path(b.name))
	}
	out, err := f.loop.Sync(t.Context(), follow.Request{})
	must(t, err)
	if r := out[0].Report; len(r.Failed) != 0 || r.Published+r.Unchanged != 100 {
		t.Errorf("repaired: %+v", r)
	}
	for i, path := range only {
		if !found(93 + i) {
			t.Errorf("%s is not found after its repair", path)
		}
	}
	out, err = f.loop.Sync(t.Context(), follow.Request{Only: only})
	must(t, err)
	if d := cmp.Diff(7, out[0].Report.Unchanged); d != "" {
		t.Errorf("tried once more, nothing may be done (-want +got):\n%s", d)
	}
	f.consistent()
}
