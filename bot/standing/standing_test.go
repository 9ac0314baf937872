package standing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/doctree"
)

// shelf is an index and a catalog in memory.
type shelf struct {
	retrieval.Reader
	infos   []retrieval.DocumentInfo
	records []catalog.Record
}

func (s *shelf) Documents(_ context.Context, g acl.Grant) ([]retrieval.DocumentInfo, error) {
	var out []retrieval.DocumentInfo
	for _, d := range s.infos {
		if g.Admits(d.Access) {
			out = append(out, d)
		}
	}
	return out, nil
}

func (s *shelf) List() []catalog.Record { return s.records }

func (s *shelf) Get(id retrieval.DocumentID) (catalog.Record, bool) {
	for _, r := range s.records {
		if r.ID == id {
			return r, true
		}
	}
	return catalog.Record{}, false
}

func (s *shelf) add(id, path, title, source, group string, state catalog.State, change ...func(*catalog.Record)) {
	rec := catalog.Record{ID: retrieval.DocumentID(id), Path: path, Source: source, Revision: "r1", Serving: "r1"}
	rec.Enter(state, time.Date(2031, 4, 1, 9, 0, 0, 0, time.UTC))
	for _, f := range change {
		f(&rec)
	}
	s.records = append(s.records, rec)
	if group != "" {
		s.infos = append(s.infos, retrieval.DocumentInfo{ID: rec.ID, Revision: "r1", Path: path, Title: title, Chunks: 3, Runes: 900, Access: acl.NewList(acl.Group(group))})
	}
}

func newShelf() *shelf {
	s := &shelf{}
	s.add("d1", "/docs/leave.md", "Leave", "handbook", "staff", catalog.Published, func(r *catalog.Record) {
		r.Facts = doctree.Facts{Unit: "page", Total: 12, Covered: 7, Recognised: 2, Confidence: 81}
		r.Truncated, r.Warnings = 1, []string{"5 of 12 pages have no text\ninstall tesseract"}
	})
	s.add("d2", "/docs/travel.md", "Travel", "handbook", "staff", catalog.Embedding, func(r *catalog.Record) { r.Revision = "r2" })
	s.add("d3", "/docs/badges.md", "Badges", "handbook", "staff", catalog.Failed, func(r *catalog.Record) {
		r.Revision, r.Reason, r.Warnings = "r2", "canary: the disk is full", []string{"canary"}
	})
	s.add("d4", "/hr/pay/leave.md", "Leave", "salaries", "hr", catalog.Published)
	s.add("d5", "/docs/broken.pdf", "", "handbook", "", catalog.Failed, func(r *catalog.Record) { r.Reason = "no text found\nin it" })
	s.add("d6", "/hr/none.md", "", "salaries", "", catalog.Refused, func(r *catalog.Record) { r.Reason = "no access list" })
	s.add("d7", "/hr/old.md", "", "salaries", "", catalog.Removed)
	return s
}

func TestText(t *testing.T) {
	t.Parallel()
	passed := time.Date(2031, 4, 2, 8, 30, 0, 0, time.UTC)
	handbook := "Documents that you may read: 3 (1 up to date, 1 being taken in anew, 1 as they were before a change that failed).\n" +
		"- handbook: last passed over at 2031-04-02 08:30 UTC; removals wait for the operator."
	one := "Leave: up to date, since 2031-04-01 09:00 UTC.\n- revision r1, 3 chunks, 900 characters\n- 7 of 12 pages read\n" +
		"- 2 of them by text recognition, confidence 81 of 100\n- 1 chunks are longer than the model reads\n- 5 of 12 pages have no text"
	for _, c := range []struct {
		name     string
		holds    []string // groups
		document string
		want     string
	}{
		{"nobody", nil, "", "There are no documents that you may read."},
		{"one group", []string{"staff"}, "", handbook},
		{"another", []string{"hr"}, "", "Documents that you may read: 1 (1 up to date).\n- salaries: not passed over yet; it cannot be read now, so that changes wait."},
		{"an operator who may read nothing", []string{"ops"}, "", "There are no documents that you may read.\nFor operators:\n" +
			"- not published: 1 embedding, 2 failed, 1 refused\n- 1 × canary: the disk is full\n- 1 × no access list\n- 1 × no text found\n" +
			"- handbook: 40 documents are gone and were not removed; if they are meant to be: footnote sync --remove handbook\n" +
			"- salaries cannot be read: canary: no such folder"},
		{"one document by its title", []string{"staff"}, " leave ", one},
		{"by its id", []string{"staff"}, "d1", one},
		{"by its path", []string{"staff"}, "/docs/leave.md", one},
		{"by its file name", []string{"staff"}, "Travel.md", "Travel: being taken in anew, since 2031-04-01 09:00 UTC.\n- revision r1, 3 chunks, 900 characters"},
		{"whose change failed", []string{"staff"}, "d3", "Badges: as it was before a change that failed, since 2031-04-01 09:00 UTC.\n- revision r1, 3 chunks, 900 characters"},
		{"two of a name", []string{"staff", "hr"}, "leave.md", "More than one document is called so; ask with its id:\n- d1 Leave\n- d4 Leave"},
		{"absent", []string{"staff"}, "d9", notAvailable},
		{"forbidden, by id", []string{"staff"}, "d4", notAvailable},
		{"forbidden, by path", []string{"staff"}, "/hr/pay/leave.md", notAvailable},
		{"failed, for an operator", []string{"ops"}, "d5", notAvailable},
		{"part of a name", []string{"staff"}, "lea", notAvailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			b := New(Options{
				Current: func(context.Context) (retrieval.Reader, error) { return s, nil }, Catalog: s, Operators: acl.NewList(acl.Group("ops")),
				Sources: func() []Source {
					return []Source{{Name: "handbook", Passed: passed, Missing: 40}, {Name: "salaries", Trouble: "canary: no such folder"}}
				},
			})
			var groups []acl.Principal
			for _, g := range c.holds {
				groups = append(groups, acl.Group(g))
			}
			got, err := b.Text(t.Context(), acl.NewIdentity(acl.User("ada"), groups...), c.document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(c.holds) > 0 && c.holds[0] != "ops" && strings.Contains(got, "canary") {
				t.Error("a reason reaches somebody who is no operator")
			}
		})
	}
}

// Without operators in the configuration nobody is one.
func TestNobodyIsAnOperatorUnasked(t *testing.T) {
	t.Parallel()
	s := newShelf()
	b := New(Options{Current: func(context.Context) (retrieval.Reader, error) { return s, nil }, Catalog: s})
	for _, who := range []acl.Identity{{}, acl.NewIdentity(acl.User("ada"), acl.Everyone, acl.Group("ops"))} {
		if got, err := b.Text(t.Context(), who, ""); err != nil || strings.Contains(got, "operators") {
			t.Errorf("%s %v", got, err)
		}
	}
}
