package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
)

func TestSources(t *testing.T) {
	t.Parallel()
	file := writeFile(t, `sources:
  - name: handbook
    folder: docs/handbook
    include: ["**/*.md", "**/*.pdf"]
    exclude: drafts/**
    access: [everyone]
  - folder: docs/hr files
    access: group:hr
    follow_links: true
`)
	c, err := Load(Flags{File: file}, environment())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	want := []Source{
		{"handbook", filepath.Join(dir, "docs/handbook"), []string{"**/*.md", "**/*.pdf"}, []string{"drafts/**"}, acl.NewList(acl.Everyone), false},
		{"hr-files", filepath.Join(dir, "docs/hr files"), nil, nil, acl.NewList("group:hr"), true},
	}
	equal := cmp.Comparer(func(a, b acl.List) bool { return a.Equal(b) })
	if d := cmp.Diff(want, c.Sources, equal); d != "" {
		t.Errorf("sources (-want +got):\n%s", d)
	}
}

func TestSources_Problems(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"no list", "sources: docs\n", "F:1: sources: must be a list; accepted: a list of folders, for example - folder: docs/handbook"},
		{"a group", "sources:\n  handbook: {folder: a}\n", "F:2: sources: must be a list; accepted: a list of folders, for example - folder: docs/handbook"},
		{"an entry that is a word", "sources: [docs]\n", "F:1: sources[1]: must be a group of settings; accepted: keys access, exclude, folder, follow_links, include, name"},
		{"no folder", "sources: [{name: a}]\n", "F:1: sources[1].folder: is missing; accepted: a path"},
		{"an unknown key", "sources: [{folder: a, acess: everyone}]\n", "F:1: sources[1].acess: is not a setting; accepted: one of access, exclude, folder, follow_links, include, name"},
		{"a key twice", "sources:\n  - folder: a\n    folder: b\n", "F:3: sources[1].folder: is set twice; accepted: one value"},
		{"a name twice", "sources: [{folder: a/x}, {folder: b/x}]\n", `F:1: sources[2].name: "x" is the name of two sources; accepted: another name`},
		{"a name that is none", "sources: [{folder: a, name: '- '}]\n", `F:1: sources[1].name: "- " is not a name; accepted: letters, digits and . _ -, at most 64`},
		{"an access list of nobody", "sources: [{folder: a, access: []}]\n", "F:1: sources[1].access: is empty; accepted: one or more of everyone, group:NAME, user:NAME, an e-mail address"},
		{"no access at all", "sources: [{folder: a, access: }]\n", "F:1: sources[1].access: must be a single value; accepted: one or more of everyone, group:NAME, user:NAME, an e-mail address"},
		{"a pattern from the top", "sources: [{folder: a, include: /b/**}]\n", `F:1: sources[1].include: the pattern "/b/**" matches nothing: patterns are relative to their folder, for example security/**; accepted: patterns, for example "**/*.md"`},
		{"neither true nor false", "sources: [{folder: a, follow_links: maybe}]\n", `F:1: sources[1].follow_links: "maybe" is neither true nor false; accepted: one of true, false`},
		{"the same folder twice", "sources: [{folder: a, name: x}, {folder: ./a/, name: y}]\n", "sources: y: has the folder of x; accepted: each folder once"},
		{"one in the other", "sources: [{folder: a/b}, {folder: a}]\n", `sources: b: lies in the folder of a; accepted: there also exclude: ["b"]`},
		{"one in the other, excluded", "sources: [{folder: a/b}, {folder: a, exclude: b}]\n", ""},
		{"one below what the other excludes", "sources: [{folder: a/b/c}, {folder: a, exclude: b}]\n", ""},
		{"twice", "sources: []\nsources: []\n", "F:2: sources: is set twice; accepted: one value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := writeFile(t, tt.file)
			_, err := Load(Flags{File: file}, environment())
			var got []string
			var p *Problems
			if errors.As(err, &p) {
				for _, x := range p.All {
					got = append(got, strings.ReplaceAll(x.String(), file, "F"))
				}
			}
			if d := cmp.Diff(tt.want, strings.Join(got, "\n")); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}
