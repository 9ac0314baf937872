package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPushTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef0123, of a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const good = "0123456789abcdef0123"
	const wiki = "web: {listen: \"127.0.0.1:0\"}\npush: {tokens: {wiki: {prefix: wiki/, may_grant: \"group:hr, staff\"}}}\n"
	for _, c := range []struct {
		name, yaml string
		env        map[string]string
		want       []string // secret, prefix and list of each
		problems   []string // within them, one each
	}{
		{"none", "", nil, nil, nil},
		{"blank is none", "web: {listen: \"127.0.0.1:0\"}", map[string]string{pushToken: " "}, nil, nil},
		{"one", "web: {listen: \"127.0.0.1:0\"}", map[string]string{pushToken: good}, []string{good + "||"}, nil},
		{"of a file", "web: {listen: \"127.0.0.1:0\"}", map[string]string{pushToken + "_FILE": file}, []string{"0123456789abcdef0123, of a file||"}, nil},
		{"blank beside a file", "web: {listen: \"127.0.0.1:0\"}", map[string]string{pushToken: "", pushToken + "_FILE": file}, []string{"0123456789abcdef0123, of a file||"}, nil},
		{"bound", wiki, map[string]string{pushToken + "_WIKI": good}, []string{good + "|wiki/|group:hr, group:staff"}, nil},
		{"both", wiki, map[string]string{pushToken + "_WIKI": good, pushToken: good + "x"}, []string{good + "x||", good + "|wiki/|group:hr, group:staff"}, nil},
		{"bound without a secret", wiki, nil, nil, []string{pushToken + "_WIKI: is not set"}},
		{"bound with a blank secret", wiki, map[string]string{pushToken + "_WIKI": ""}, nil, []string{pushToken + "_WIKI: is not set"}},
		{"one secret for two", wiki, map[string]string{pushToken + "_WIKI": good, pushToken: good}, nil, []string{"two senders"}},
		{"short", "web: {listen: \"127.0.0.1:0\"}", map[string]string{pushToken: "secret"}, nil, []string{"shorter than 20"}},
		{"no place to listen", "", map[string]string{pushToken: good}, nil, []string{"web.listen: is not set"}},
		{"a list that cannot be understood", "push: {tokens: {wiki: {may_grant: Everyone}}}", nil, nil, []string{"may_grant"}},
		{"a blank list", "push: {tokens: {wiki: {may_grant: \"\"}}}", nil, nil, []string{"may_grant"}},
		{"a name that is no part of a variable", "push: {tokens: {Wiki-1: {prefix: a}}}", nil, nil, []string{"is not the name of a token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(at, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
			cfg, err := Load(Flags{File: at, Data: t.TempDir()}, env)
			var found Platforms
			if err == nil {
				found, err = cfg.Platforms(env)
			}
			var got []string
			for _, p := range found.Push {
				got = append(got, p.Secret.Reveal()+"|"+p.Prefix+"|"+p.MayGrant.String())
			}
			var ps *Problems
			if errors.As(err, &ps) != (len(c.problems) > 0) {
				t.Fatalf("%v", err)
			}
			if ps == nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				return
			}
			for _, want := range c.problems {
				if !slices.ContainsFunc(ps.All, func(p Problem) bool { return strings.Contains(p.String(), want) }) {
					t.Errorf("%v, want %q", ps, want)
				}
			}
			if strings.Contains(err.Error(), good) {
				t.Error("the error tells the secret")
			}
		})
	}
}

func TestPushTokensStayHere(t *testing.T) {
	t.Parallel()
	environ := []string{"FOOTNOTE_PUSH_TOKEN=a", "FOOTNOTE_PUSH_TOKEN_WIKI=b", "FOOTNOTE_PUSH_TOKEN_FILE=c", "FOOTNOTE_DATA=d"}
	if diff := cmp.Diff([]string{"FOOTNOTE_DATA=d"}, Public(environ)); diff != "" {
		t.Errorf("handed on (-want +got):\n%s", diff)
	}
	if unknown := Unknown(append(environ, "FOOTNOTE_PUSH_TOKENS=e")); !slices.Equal(unknown, []string{"FOOTNOTE_PUSH_TOKENS"}) {
		t.Errorf("unknown %v", unknown)
	}
}
