package acl

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestParsePrincipal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     Principal
	}{
		{"everyone", "everyone", Everyone},
		{"everyone with space around", " everyone\t", Everyone},
		{"person of the people file", "user:ada", "user:ada"},
		{"group of the people file", "group:security", "group:security"},
		{"bare word is a group", "security", "group:security"},
		{"case of groups is kept", "HR", "group:HR"},
		{"group in Korean", "보안팀", "group:보안팀"},
		{"group with dots and dashes", "eu.on-call_2", "group:eu.on-call_2"},
		{"group in decomposed Korean", norm.NFD.String("보안팀"), "group:보안팀"},
		{"person with a combining accent", "user:rene\u0301", User("rené")},
		{"e-mail", "ada@example.org", "ada@example.org"},
		{"e-mail in capitals", "Ada@Example.ORG", "ada@example.org"},
		{"Slack person", "slack:T1:user/U1", "slack:T1:user/U1"},
		{"Slack user group", "slack:T1:usergroup/S1", "slack:T1:usergroup/S1"},
		{"Slack channel", "slack:T1:channel/C1", "slack:T1:channel/C1"},
		{"Slack members", "slack:T1:everyone", "slack:T1:everyone"},
		{"Slack guests", "slack:T1:guests", "slack:T1:guests"},
		{"Discord person", "discord:1:user/2", "discord:1:user/2"},
		{"Discord role", "discord:1:role/2", "discord:1:role/2"},
		{"Discord channel", "discord:1:channel/2", "discord:1:channel/2"},
		{"Discord members", "discord:1:everyone", "discord:1:everyone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParsePrincipal(c.in)
			if got != c.want || err != nil {
				t.Errorf("ParsePrincipal(%q) = %q, %v, want %q", c.in, got, err, c.want)
			}
		})
	}
}

func TestParsePrincipalRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in string }{
		{"nothing", ""}, {"space", "  "}, {"separator of lists", "a,b"}, {"separator of tags", "a|b"}, {"quote", `a"b`},
		{"space inside", "all staff"}, {"no-break space inside", "all\u00a0staff"}, {"line break inside", "a\nb"}, {"control character", "a\x1bb"},
		{"NUL", "a\x00"}, {"invalid UTF-8", "a\xff"}, {"bidirectional override", "a\u202eb"}, {"zero-width space", "hr\u200b"},
		{"user without name", "user:"}, {"group without name", "group:"}, {"nested group", "group:a:b"}, {"group with slash", "group:a/b"},
		{"unknown kind", "role:admin"}, {"everyone in capitals", "Everyone"}, {"everyone in other capitals", "EVERYONE"},
		{"everyone as a group", "group:everyone"}, {"kind in capitals", "User:ada"}, {"star", "*"}, {"pattern", "h*"},
		{"address without domain", "ada@"}, {"address with name", "Ada <ada@example.org>"}, {"address of two", "a@b@c"},
		{"Slack without team", "slack::user/U1"}, {"Slack role", "slack:T1:role/R1"}, {"Slack without id", "slack:T1:user/"},
		{"Slack without kind", "slack:T1"}, {"Slack id with slash", "slack:T1:user/U1/x"}, {"Discord guests", "discord:1:guests"},
		{"Discord user group", "discord:1:usergroup/2"}, {"team with slash", "slack:T/1:user/U1"}, {"platform alone", "slack"}, {"Discord alone", "discord"},
		{"user alone", "user"}, {"group alone", "group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParsePrincipal(c.in)
			if err == nil {
				t.Fatalf("ParsePrincipal(%q) = %q", c.in, got)
			}
			if !strings.Contains(err.Error(), "is not a principal") {
				t.Errorf("the error does not say what is wrong: %v", err)
			}
		})
	}
}

// FuzzParsePrincipal: what is read reads again as itself, and holds nothing
// that any list, file or query uses as a separator.
func FuzzParsePrincipal(f *testing.F) {
	for _, s := range []string{"everyone", "hr", "user:ada", "a@b.c", "A@B.C", "slack:T1:user/U1", "discord:1:role/2", "group:x", "ſ@x.y", "İ@x.y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePrincipal(s)
		if err != nil {
			return
		}
		again, err := ParsePrincipal(string(p))
		if again != p || err != nil {
			t.Fatalf("%q gives %q, which gives %q, %v", s, p, again, err)
		}
		if strings.ContainsAny(string(p), ", |\"\n\t\x00") || p == "" {
			t.Fatalf("%q gives %q", s, p)
		}
	})
}
