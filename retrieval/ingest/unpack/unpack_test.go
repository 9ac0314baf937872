package unpack_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models/modelstest"
	"footnote/retrieval/catalog"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/ziptest"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/unpack"
	"footnote/retrieval/memindex"
)

// shelf is a source of files in memory.
type shelf struct {
	files  map[string]string
	access acl.List
	faults map[string]*ingest.Fault // of reading
	reads  int
}

func (s *shelf) Root() string { return "/in" }

func (s *shelf) Items(context.Context) ([]ingest.Item, error) {
	var out []ingest.Item
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		out = append(out, ingest.Item{Path: path, Access: s.access, Mark: string(ingest.RevisionOf([]byte(s.files[path])))})
	}
	return out, nil
}

func (s *shelf) Read(_ context.Context, path string) (ingest.Content, error) {
	s.reads++
	if f := s.faults[path]; f != nil {
		return ingest.Content{}, f
	}
	data, ok := s.files[path]
	if !ok {
		return ingest.Content{}, &ingest.Fault{Reason: "no such file", Retryable: true}
	}
	return ingest.Content{Data: []byte(data), Modified: time.Unix(1e9, 0)}, nil
}

func (s *shelf) Gone(path string) bool { _, ok := s.files[path]; return !ok }

func mail(attachments ...string) string {
	s := "Subject: Printer\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nThe printer is out of toner.\r\n"
	for i := 0; i+1 < len(attachments); i += 2 {
		s += fmt.Sprintf("--b\r\nContent-Disposition: attachment; filename=%q\r\n\r\n%s\r\n", attachments[i], attachments[i+1])
	}
	return s + "--b--\r\n"
}

// desk is a pipeline over a source.
type desk struct {
	t     *testing.T
	src   *unpack.Source
	pipe  *ingest.Pipeline
	cat   *catalog.Catalog
	store *memindex.Store
}

func newDesk(t *testing.T, s *shelf, o unpack.Options) *desk {
	t.Helper()
	dir := t.TempDir()
	store, err := memindex.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cat.Close(); _ = store.Close() })
	d := &desk{t: t, src: unpack.New(s, o), cat: cat, store: store}
	d.pipe = ingest.New(store, cat, modelstest.NewEmbedder(), ingest.Options{Workers: 1})
	return d
}

// run ingests and tells how each path stands: its state, reason or readers.
func (d *desk) run() map[string]string {
	d.t.Helper()
	if _, err := d.pipe.Ingest(context.Background(), d.src, ingest.How{Prune: true}); err != nil {
		d.t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range d.cat.List() {
		switch {
		case r.State == catalog.Published:
			out[r.Path] = strings.Join(r.Access, " ")
		case r.State != catalog.Removed:
			out[r.Path] = string(r.State) + ": " + r.Reason
		}
	}
	return out
}

// served are the paths that the index holds.
func (d *desk) served() []string {
	d.t.Helper()
	g, err := d.store.Open(context.Background(), "")
	if err != nil {
		d.t.Fatal(err)
	}
	infos, err := g.Documents(context.Background(), system.Grant())
	if err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, i := range infos {
		out = append(out, i.Path)
	}
	slices.Sort(out)
	return out
}

func TestMembersAreDocumentsOfTheirOwn(t *testing.T) {
	t.Parallel()
	staff := acl.NewList("group:staff")
	s := &shelf{access: staff, files: map[string]string{
		"/in/mail.eml": mail("note.txt", "Toner is in room five.", "broken.docx", "no zip", "pic.png", "x", "old.zip", ziptest.Archive(t, "a/deep.md", "# Deep\n\nDeep text.\n")),
		"/in/docs.zip": ziptest.Archive(t, "wider.md", "---\naccess: [everyone]\n---\nFor all.\n", "own.md", "---\naccess: [\"group:staff\"]\n---\nFor staff.\n"),
		"/in/note.txt": "A note.",
	}}
	d := newDesk(t, s, unpack.Options{})
	got := d.run()
	for path, reason := range got {
		got[path], _, _ = strings.Cut(reason, ";")
	}
	want := map[string]string{
		"/in/mail.eml":                   "group:staff",
		"/in/mail.eml/note.txt":          "group:staff",
		"/in/mail.eml/broken.docx":       "failed: not a Word document: the file is no zip container",
		"/in/mail.eml/old.zip":           "group:staff",
		"/in/mail.eml/old.zip/a/deep.md": "group:staff",
		"/in/docs.zip":                   "group:staff",
		"/in/docs.zip/own.md":            "group:staff",
		"/in/docs.zip/wider.md":          "refused: its front matter gives access to everyone, and the list that it was sent with does not",
		"/in/note.txt":                   "group:staff",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}

	s.reads = 0
	d.run()
	if s.reads > len(s.files) {
		t.Errorf("%d reads of %d files that did not change", s.reads, len(s.files))
	}

	s.access = acl.NewList("user:ada")
	if got := d.run(); got["/in/mail.eml/old.zip/a/deep.md"] != "user:ada" {
		t.Errorf("the access list of the file is not that of its members: %v", got)
	}
	s.files["/in/mail.eml"] = mail("note.txt", "Toner is in room six.")
	delete(s.files, "/in/docs.zip")
	d.run()
	if diff := cmp.Diff([]string{"/in/mail.eml", "/in/mail.eml/note.txt", "/in/note.txt"}, d.served()); diff != "" {
		t.Error(diff)
	}
}

func TestAFileThatCannotBeReadForNowKeepsItsMembers(t *testing.T) {
	t.Parallel()
	s := &shelf{access: acl.NewList(acl.Everyone), faults: map[string]*ingest.Fault{}, files: map[string]string{"/in/docs.zip": ziptest.Archive(t, "a.txt", "Text of a.")}}
	d := newDesk(t, s, unpack.Options{})
	d.run()
	s.files["/in/docs.zip"] = ziptest.Archive(t, "a.txt", "New text of a.")
	s.faults["/in/docs.zip"] = &ingest.Fault{Reason: "the disk does not answer", Retryable: true}
	d.run()
	both := []string{"/in/docs.zip", "/in/docs.zip/a.txt"}
	if diff := cmp.Diff(both, d.served()); diff != "" {
		t.Error(diff)
	}
	delete(s.faults, "/in/docs.zip")
	d.run()
	if diff := cmp.Diff(both, d.served()); diff != "" {
		t.Error(diff)
	}
	s.files["/in/docs.zip"] = "no archive any more"
	if got := d.run(); !strings.HasPrefix(got["/in/docs.zip"], "failed: the zip archive is damaged") {
		t.Error(got)
	}
	if got := d.served(); len(got) != 0 {
		t.Errorf("members of a file that holds them no more are served: %v", got)
	}
}

func TestMovedWithItsFile(t *testing.T) {
	t.Parallel()
	s := &shelf{access: acl.NewList(acl.Everyone), files: map[string]string{"/in/docs.zip": ziptest.Archive(t, "a.txt", "Text of a.")}}
	d := newDesk(t, s, unpack.Options{})
	d.run()
	before, _ := d.cat.At("/in/docs.zip/a.txt")
	s.files["/in/new.zip"] = s.files["/in/docs.zip"]
	delete(s.files, "/in/docs.zip")
	d.run()
	if after, ok := d.cat.At("/in/new.zip/a.txt"); !ok || after.ID != before.ID {
		t.Errorf("%v is another document than %v", after, before)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	one := ziptest.Archive(t, "a.txt", "Text.")
	two := ziptest.Archive(t, "b.zip", one)
	three := ziptest.Archive(t, "c.zip", two)
	for _, c := range []struct {
		name, file string
		limits     bounds.Limits
		at, want   string
	}{
		{"depth", three, bounds.Limits{Depth: 2}, "/in/docs.zip/c.zip/b.zip", "failed: it lies in 2 files within one another, and no more than 2 are opened"},
		{"members", ziptest.Archive(t, "a.txt", "a", "b.txt", "b", "c.zip", ziptest.Archive(t, "d.txt", "d")), bounds.Limits{Parts: 3}, "/in/docs.zip", "failed: it holds more than 3 files"},
		{"bytes", three, bounds.Limits{Unpacked: int64(len(one) + len(two) - 1)}, "/in/docs.zip", "failed: it unpacks to more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{access: acl.NewList(acl.Everyone), files: map[string]string{"/in/docs.zip": c.file, "/in/other.txt": "Other."}}
			got := newDesk(t, s, unpack.Options{Limits: c.limits}).run()
			if !strings.HasPrefix(got[c.at], c.want) || got["/in/other.txt"] != "everyone" {
				t.Errorf("%v, want %s at %s", got, c.want, c.at)
			}
		})
	}
}

func TestAFolderMayHaveTheNameOfAnArchive(t *testing.T) {
	t.Parallel()
	s := &shelf{access: acl.NewList(acl.Everyone), files: map[string]string{"/in/folder.zip/a.txt": "Text."}}
	if got := newDesk(t, s, unpack.Options{}).run(); got["/in/folder.zip/a.txt"] != "everyone" {
		t.Error(got)
	}
}
