package files_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/files"
)

func TestAccessRules(t *testing.T) {
	t.Parallel()
	const broken = "refused: the access file ROOT/%s is not usable, so nothing under it is taken in: "
	bad := func(file, why string) string { return strings.Replace(broken, "%s", file, 1) + why }
	for _, tc := range []struct {
		name    string
		entries map[string]string
		options files.Options
		want    map[string]string
	}{
		{
			name:    "no file: the default, or nothing",
			entries: map[string]string{"a.md": ""},
			want:    map[string]string{"a.md": ""},
		},
		{
			name:    "the nearest file wins over the root and the default",
			entries: map[string]string{".access.yaml": "access: everyone", "a.md": "", "hr/.access.yaml": "access: [group:hr, bob@Example.org]", "hr/b.md": "", "hr/deep/c.md": ""},
			options: everyone(),
			want:    map[string]string{"a.md": "everyone", "hr/b.md": "bob@example.org, group:hr", "hr/deep/c.md": "bob@example.org, group:hr"},
		},
		{
			name: "the first pattern that matches, then the folder's own",
			entries: map[string]string{
				".access.yaml":  "access: everyone\npatterns:\n- {match: 'security/**', access: security}\n- {match: '**/*.md', access: [user:ada]}\n",
				"a.txt":         "",
				"b.md":          "",
				"security/c.md": "",
			},
			want: map[string]string{"a.txt": "everyone", "b.md": "user:ada", "security/c.md": "group:security"},
		},
		{
			name:    "patterns alone leave the rest to the next file upward",
			entries: map[string]string{".access.yaml": "access: staff", "d/.access.yaml": "patterns: [{match: 'x*', access: everyone}]", "d/x.md": "", "d/y.md": "", "d/e/x.md": ""},
			want:    map[string]string{"d/x.md": "everyone", "d/y.md": "group:staff", "d/e/x.md": "group:staff"},
		},
		{
			name:    "a bad file closes all below, even under a good one, and nothing beside",
			entries: map[string]string{"a.md": "", "d/.access.yaml": "access: [everyone, 'no good']", "d/b.md": "", "d/e/.access.yaml": "access: everyone", "d/e/c.md": ""},
			options: everyone(),
			want: map[string]string{
				"a.md":     "everyone",
				"d/b.md":   bad("d/.access.yaml", `line 1: "no good" is not a principal: it holds ' '`),
				"d/e/c.md": bad("d/.access.yaml", `line 1: "no good" is not a principal: it holds ' '`),
			},
		},
		{
			name:    "every problem at once, with its line",
			entries: map[string]string{".access.yaml": "acces: everyone\naccess: ['user:']\npatterns:\n- match: '../x'\n  access: []\n", "a.md": ""},
			want: map[string]string{"a.md": bad(".access.yaml", "line 1: unknown key acces; line 2: \"user:\" is not a principal: "+forms+
				"; line 4: the pattern \"../x\" matches nothing: patterns are relative to their folder, for example security/**; line 5: an access list needs at least one principal, for example everyone")},
		},
		{
			name:    "an empty file",
			entries: map[string]string{".access.yaml": "# nothing\n", "a.md": ""},
			options: everyone(),
			want:    map[string]string{"a.md": bad(".access.yaml", "it gives no access: write access: [everyone], or patterns")},
		},
		{
			name:    "a key without a value is not an absent key",
			entries: map[string]string{".access.yaml": "access: everyone", "d/.access.yaml": "access:\npatterns: [{match: x, access: ops}]\n", "d/a.md": ""},
			want:    map[string]string{"d/a.md": bad("d/.access.yaml", "line 1: there is no value; an empty access list admits nobody and is not allowed")},
		},
		{
			name:    "no YAML",
			entries: map[string]string{".access.yaml": "access: [everyone", "a.md": ""},
			want:    map[string]string{"a.md": bad(".access.yaml", "line 1: did not find expected ',' or ']'")},
		},
		{
			name:    "the wrong name is told, not passed over",
			entries: map[string]string{".access.yml": "access: ops", "a.md": ""},
			options: everyone(),
			want:    map[string]string{"a.md": bad(".access.yml", "it must be named .access.yaml")},
		},
		{
			name:    "a folder in the file's place",
			entries: map[string]string{".access.yaml/": "", "a.md": ""},
			options: everyone(),
			want:    map[string]string{"a.md": bad(".access.yaml", "it is not a regular file")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, listing(t, tree(t, tc.entries), tc.options)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A part of a tree stays as closed as the whole of it, however it is reached.
func TestAccessRulesAboveTheRoot(t *testing.T) {
	t.Parallel()
	top := tree(t, map[string]string{
		".access.yaml": "access: everyone\npatterns: [{match: 'sec/**', access: board}]", "sec/a.md": "", "sec/deep/b.md": "", "open/c.md": "",
		"bad/.access.yaml": "access: [", "bad/in/d.md": "",
	})
	elsewhere := tree(t, map[string]string{
		"link": "-> " + top + "/sec", "one.md": "-> " + top + "/sec/a.md", "broken": "-> " + top + "/bad/in",
		"hr/.access.yaml": "access: hr", "hr/free": "-> " + tree(t, map[string]string{"e.md": ""}),
	})
	follow := everyone()
	follow.FollowOutside = true
	for _, tc := range []struct {
		name, root string
		options    files.Options
		want       map[string]string
	}{
		{"a folder inside", top + "/sec", everyone(), map[string]string{"a.md": "group:board", "deep/b.md": "group:board"}},
		{"a folder deeper inside", top + "/sec/deep", everyone(), map[string]string{"b.md": "group:board"}},
		{"a file", top + "/sec/a.md", everyone(), map[string]string{".": "group:board"}},
		{"a folder under a bad file", top + "/bad/in", everyone(), map[string]string{
			"d.md": "refused: the access file " + top + "/bad/.access.yaml is not usable, so nothing under it is taken in: line 1: did not find expected node content"}},
		{"links: the real place, else the link's", elsewhere, follow, map[string]string{
			"link/a.md": "group:board", "link/deep/b.md": "group:board", "one.md": "group:board", "hr/free/e.md": "group:hr",
			"broken/d.md": "refused: the access file " + top + "/bad/.access.yaml is not usable, so nothing under it is taken in: line 1: did not find expected node content"}},
		{"a link as the root", elsewhere + "/link", everyone(), map[string]string{"a.md": "group:board", "deep/b.md": "group:board"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, listing(t, tc.root, tc.options)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const forms = "use everyone, user:NAME, group:NAME, an e-mail address, slack:TEAM:usergroup/ID, slack:TEAM:channel/ID, slack:TEAM:user/ID, discord:GUILD:role/ID or discord:GUILD:user/ID"
