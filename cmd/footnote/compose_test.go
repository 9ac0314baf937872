package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"footnote/cmd/internal/config"
)

// deploy/compose.yaml names commands, variables, files and users that there are.
func TestCompose(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
			Volumes     []string
			Secrets     []string
		}
		Secrets map[string]struct{ File string }
		Volumes map[string]any
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(tree, "deploy/compose.yaml"))), &file); err != nil {
		t.Fatal(err)
	}
	programs := 0
	for name, s := range file.Services {
		var set []string
		for k, v := range s.Environment {
			set = append(set, k+"="+v)
			if path, is := strings.CutPrefix(v, "/run/secrets/"); is && (!slices.Contains(s.Secrets, path) || file.Secrets[path].File == "") {
				t.Errorf("%s: %s is no secret of the file", name, path)
			}
		}
		if unknown := config.Unknown(set); len(unknown) > 0 {
			t.Errorf("%s: the program knows no %v", name, unknown)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := file.Volumes[from]
			made := strings.HasPrefix(from, "../bin") || strings.HasPrefix(from, "../.cache/native/") || strings.HasPrefix(from, "${")
			if found, _ := filepath.Glob(filepath.Join(tree, "deploy", from)); !named && !made && len(found) == 0 {
				t.Errorf("%s: there is no %s to mount", name, from)
			}
		}
		if name == "redis" {
			// Its first word decides whether the Query Engine is loaded.
			if script := s.Command[len(s.Command)-1]; !strings.Contains(script, "exec docker-entrypoint.sh redis-server ") || !strings.Contains(script, "--maxmemory-policy noeviction") {
				t.Errorf("the server is started by %q", script)
			}
			continue
		}
		programs++
		if s.Command[0] != "/opt/footnote/bin/footnote" {
			t.Errorf("%s: runs %q", name, s.Command)
		}
		if got := footnote("", append(slices.Clone(s.Command[1:]), "--help")...); got.code != 0 || !strings.Contains(got.out, "footnote "+s.Command[1]) {
			t.Errorf("%s: footnote %v gives %d: %s%s", name, s.Command[1:], got.code, got.out, got.err)
		}
		if runtime := s.Environment["FOOTNOTE_MODELS_RUNTIME"]; filepath.Base(runtime) != filepath.Base(native) {
			t.Errorf("%s: the runtime is %s, the tree has %s", name, runtime, filepath.Base(native))
		}
		if user := s.Environment["FOOTNOTE_REDIS_USERNAME"]; !strings.HasPrefix(read(t, filepath.Join(tree, "deploy/redis/users.acl")), "user "+user+" on ") {
			t.Errorf("%s: the rules are not for %q", name, user)
		}
	}
	if programs != 2 {
		t.Errorf("%d services run the program, want the replicas and a worker", programs)
	}
}
