package console_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/adapters/console"
)

const peopleYAML = `people:
  ada: {name: Ada Lim, email: Ada@Example.org, groups: [security, "group:ops"]}
  bob: {groups: []}
  지민: {groups: [hr]}
  pat: {guest: true, email: pat@partner.example}
rooms:
  general: {everyone: true}
  leads: {members: [ada, bob]}
  partner: {members: [ada, pat]}
`

func peopleAt(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "people.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openPeople(t *testing.T, content string) acl.Directory {
	t.Helper()
	d, err := console.OpenPeople(peopleAt(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPeople_Identify(t *testing.T) {
	t.Parallel()
	withFile, without := openPeople(t, peopleYAML), console.AnyName()
	for _, tc := range []struct {
		name    string
		dir     acl.Directory
		account string
		want    []acl.Principal // none: unknown
	}{
		{"a person with groups and address", withFile, "ada", []acl.Principal{"ada@example.org", "everyone", "group:ops", "group:security", "user:ada"}},
		{"a person with nothing else", withFile, "bob", []acl.Principal{"everyone", "user:bob"}},
		{"a Korean name", withFile, "지민", []acl.Principal{"everyone", "group:hr", "user:지민"}},
		{"a guest does not hold everyone", withFile, "pat", []acl.Principal{"pat@partner.example", "user:pat"}},
		{"a stranger", withFile, "eve", nil},
		{"no name", withFile, "", nil},
		{"another case is another name", withFile, "Ada", nil},
		{"an address is no name", withFile, "ada@example.org", nil},
		{"no file: any name", without, "eve", []acl.Principal{"everyone", "user:eve"}},
		{"no file: no name", without, "", []acl.Principal{"everyone"}},
		{"no file: not a name", without, "eve,group:security", nil},
		{"no file: a name cannot carry a group", without, "x:group", nil},
		{"no file: blanks around", without, " eve", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.dir.Identify(context.Background(), tc.account)
			if diff := cmp.Diff(tc.want, got.Principals()); diff != "" {
				t.Errorf("principals (-want +got):\n%s", diff)
			}
			if (err != nil) != (tc.want == nil) || err != nil && !errors.Is(err, acl.ErrUnknown) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// The matrix of askers in rooms against lists, through real grants.
func TestPeople_Audience(t *testing.T) {
	t.Parallel()
	d := openPeople(t, peopleYAML)
	for _, tc := range []struct {
		room, list string
		want       bool
	}{
		{"general", "everyone", true},
		{"general", "security", false},
		{"leads", "everyone", true},
		{"leads", "security", false},
		{"leads", "user:ada", false},
		{"partner", "everyone", false},
		{"partner", "security", false},
	} {
		ada, err := d.Identify(context.Background(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		room, err := d.Audience(context.Background(), tc.room)
		if err != nil {
			t.Fatal(err)
		}
		list, err := acl.ParseList([]string{tc.list})
		if err != nil {
			t.Fatal(err)
		}
		if got := acl.NewGrant(ada, room).Admits(list); got != tc.want {
			t.Errorf("ada in %s, list %s: admitted %t, want %t", tc.room, tc.list, got, tc.want)
		}
	}
	for _, dir := range []acl.Directory{d, console.AnyName()} {
		a, err := dir.Audience(context.Background(), "nowhere")
		if !errors.Is(err, acl.ErrUnknown) || !cmp.Equal(a.Private(), false) {
			t.Errorf("unknown room: %v, %v", a, err)
		}
		if ada := acl.NewIdentity("user:ada", acl.Everyone); acl.NewGrant(ada, a).Admits(acl.NewList(acl.Everyone)) {
			t.Error("the audience of an unknown room admits")
		}
	}
}

func TestOpenPeople_Problems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, content, want string }{
		{"empty", "", "there are no people; write people: {ada: {groups: [security]}}"},
		{"no YAML", "people: [", "line 1: did not find expected node content"},
		{
			"everything at once",
			"people:\n  ada: {groups: [security], emial: x}\n  b b: {groups: ['a,b', 'user:x']}\n  c: {email: nobody}\n  d: {email: D@x.org}\n  e: {email: d@X.org}\n  f:\nrooms:\n  r: {}\n  s: {everyone: true, members: [ada]}\n  t: {members: [ada, zoe]}\n",
			`line 7: there is no value
line 2: unknown key emial
line 3: "b b" cannot be a person's name: leave out blanks, commas, quotes, colons and slashes
line 3: "a,b" cannot be a group's name: leave out blanks, commas, quotes, colons and slashes
line 3: "user:x" cannot be a group's name: leave out blanks, commas, quotes, colons and slashes
line 4: "nobody" is not an e-mail address
line 6: d and e have the same e-mail address
line 9: the room "r" needs either everyone: true or members
line 10: the room "s" needs either everyone: true or members
line 11: the room "t" has the member "zoe", who is not among the people`,
		},
		{"a number for a name", "people:\n  007: {}\n", "line 2: a text is needed here, for example ada; put numbers in quotes"},
		{"a person that is a list", "people:\n  ada: [x]\n", "line 2: something else belongs here; write for example ada: {name: Ada Lim, groups: [security]}"},
		{"twice the same person", "people:\n  ada: {}\n  ada: {guest: true}\n", `line 3: ada is given twice, also in line 2`},
		{"a second document", "people: {ada: {}}\n---\npeople: {eve: {}}\n", "the file holds more than one YAML document"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := peopleAt(t, tc.content)
			_, err := console.OpenPeople(path)
			if err == nil {
				t.Fatal("taken without complaint")
			}
			if diff := cmp.Diff("the people file "+path+" has problems:\n"+tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := console.OpenPeople(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// TestCase_P12: who is taken out of a group loses its documents at the next
// question; a file that has become unreadable knows nobody.
func TestCase_P12(t *testing.T) {
	t.Parallel()
	path := peopleAt(t, peopleYAML)
	d, err := console.OpenPeople(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		content string
		known   bool
	}{{"people: {ada: {}}", true}, {"people: {ada: {}", false}, {peopleYAML, true}, {"people: {bob: {}}", false}} {
		if err := os.WriteFile(path, []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := d.Identify(context.Background(), "ada")
		if (err == nil) != step.known {
			t.Errorf("%q: %v", step.content, err)
		}
		security := acl.NewGrant(got, acl.AskerOnly()).Admits(acl.NewList(acl.Group("security")))
		if want := step.content == peopleYAML; security != want {
			t.Errorf("%q: security documents admitted %t, want %t", step.content, security, want)
		}
	}
}
