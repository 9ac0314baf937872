package redislink_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// A user with the rights of deploy/redis/users.acl lacks nothing; without any one
// of them it is named. Looking changes nothing.
func TestRights(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	file, err := os.ReadFile("../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Fields(strings.TrimSpace(string(file)))[2:]
	server := redistest.New(t, t.TempDir())
	admin := open(t, redislink.Options{URL: "redis://" + server.Address})
	found := func(t *testing.T, prefix string, rules ...string) []string {
		t.Helper()
		name := regexp.MustCompile(`\W`).ReplaceAllString(t.Name(), "_")
		args := []any{"ACL", "SETUSER", name}
		for _, r := range rules {
			args = append(args, r)
		}
		if err := admin.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
		return bad(open(t, redislink.Options{URL: "redis://" + server.Address, Username: name, Password: "CHANGE-ME"}).Check(ctx, prefix))
	}
	if found := found(t, "footnote", rules...); len(found) > 0 {
		t.Errorf("with all rights: %q", found)
	}
	for i, r := range rules {
		if r[0] != '+' || r == "+hello" || r == "+auth" { // without those it is not let in
			continue
		}
		t.Run(r, func(t *testing.T) {
			if found := strings.Join(found(t, "footnote", slices.Delete(slices.Clone(rules), i, i+1)...), "\n"); !strings.Contains(found+" ", " "+r+" ") {
				t.Errorf("found %q; what users.acl allows belongs into needs, and what is not needed not into users.acl", found)
			}
		})
	}
	for name, want := range map[string]string{"keys": "~kb:* ~{kb:*", "channels": "&{kb:*"} {
		t.Run(name, func(t *testing.T) {
			rules := slices.Clone(rules)
			if name == "channels" {
				rules = append(rules, "~kb:*", "~{kb:*")
			}
			if found := strings.Join(found(t, "kb", rules...), "\n"); !strings.Contains(found, want) || name == "channels" && strings.Contains(found, "~") {
				t.Errorf("found %q", found)
			}
		})
	}
	if n, err := admin.DBSize(ctx).Result(); err != nil || n != 0 {
		t.Errorf("looking left %d keys (%v)", n, err)
	}
}
