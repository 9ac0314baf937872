package files_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/adapters/files"
	"footnote/retrieval/ingest"
)

// tree writes files by relative path; a value "-> x" makes a link to x, and a
// name that ends in a slash a folder.
func tree(t *testing.T, entries map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range entries {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		must(t, os.MkdirAll(dir, 0o755))
		target, isLink := strings.CutPrefix(content, "-> ")
		switch {
		case isLink:
			must(t, os.Symlink(target, path))
		case dir != path:
			must(t, os.WriteFile(path, []byte(content), 0o644))
		}
	}
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listing is what a walk found: access or fault text by relative path.
func listing(t *testing.T, root string, o files.Options) map[string]string {
	t.Helper()
	f, err := files.New(root, o)
	must(t, err)
	items, err := f.Items(context.Background())
	must(t, err)
	got := map[string]string{}
	last := ""
	for _, it := range items {
		if it.Path <= last || !filepath.IsAbs(it.Path) || filepath.Clean(it.Path) != it.Path {
			t.Errorf("path %q after %q: want absolute, clean, ascending", it.Path, last)
		}
		last = it.Path
		rel, err := filepath.Rel(root, it.Path)
		must(t, err)
		got[rel] = it.Access.String()
		if it.Fault != nil {
			got[rel] = describe(it.Fault, root)
		}
	}
	return got
}

func describe(f *ingest.Fault, root string) string {
	kind := "failed: "
	if f.Refused {
		kind = "refused: "
	} else if f.Retryable {
		kind = "retry: "
	}
	return kind + strings.ReplaceAll(f.Error(), root, "ROOT")
}

func everyone() files.Options { return files.Options{Default: acl.NewList(acl.Everyone)} }

func TestItems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		entries map[string]string
		options files.Options
		want    map[string]string
	}{
		{
			name:    "all visible files in order, folders named like files",
			entries: map[string]string{"b.md": "b", "a.md": "a", "x.md/in.md": "i", "empty.md": "", ".hidden.md": "h", ".git/config": "c", "d-e.md": "1", "d/e.md": "2"},
			want:    map[string]string{"a.md": "", "b.md": "", "x.md/in.md": "", "empty.md": "", "d-e.md": "", "d/e.md": ""},
		},
		{
			name:    "include and exclude, exclude wins",
			entries: map[string]string{"a.md": "a", "b.html": "b", "c.png": "c", "drafts/d.md": "d", "sub/e.md": "e"},
			options: files.Options{Include: []string{"**/*.md", "*.html"}, Exclude: []string{"drafts"}},
			want:    map[string]string{"a.md": "", "b.html": "", "sub/e.md": ""},
		},
		{
			name:    "a link inside the root adds nothing, nor does a circle of folders",
			entries: map[string]string{"a.md": "a", "same.md": "-> a.md", "d/up": "-> ..", "d/e.md": "e"},
			want:    map[string]string{"a.md": "", "d/e.md": ""},
		},
		{
			name:    "links that lead nowhere or to each other are faults",
			entries: map[string]string{"a.md": "-> b.md", "b.md": "-> a.md", "c.md": "-> none.md"},
			want: map[string]string{
				"a.md": "failed: the symbolic link leads nowhere or in a circle; repair or remove it: too many links",
				"b.md": "failed: the symbolic link leads nowhere or in a circle; repair or remove it: too many links",
				"c.md": "failed: the symbolic link leads nowhere or in a circle; repair or remove it: no such file or directory",
			},
		},
		{
			name:    "a file over the size limit",
			entries: map[string]string{"big.md": "123456", "ok.md": "12345"},
			options: files.Options{MaxBytes: 5},
			want:    map[string]string{"big.md": "failed: the file is too large: 6 bytes, over the limit of 5 bytes; split it or raise ingest.max_megabytes", "ok.md": ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := listing(t, tree(t, tc.entries), tc.options)
			for k, v := range got {
				got[k] = strings.Replace(v, "EvalSymlinks: ", "", 1)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestItems_LinksOutOfTheRoot(t *testing.T) {
	t.Parallel()
	out := tree(t, map[string]string{"o.md": "o", "back": "-> .", "in/p.md": "p", "notes.txt": "n"})
	root := tree(t, map[string]string{"a.md": "a", "link": "-> " + out, "again": "-> " + out, "one.md": "-> " + out + "/o.md", "two.txt": "-> " + out + "/notes.txt"})
	only := files.Options{Include: []string{"**/*.md"}}

	want := map[string]string{"a.md": ""}
	for _, l := range []struct{ name, target string }{{"link", ""}, {"again", ""}, {"one.md", "/o.md"}} {
		want[l.name] = "failed: the symbolic link leads outside the folder, to " + out + l.target + "; ingest that place itself, or follow it (--follow-links, or follow_links of the source)"
	}
	if diff := cmp.Diff(want, listing(t, root, only)); diff != "" {
		t.Errorf("not allowed (-want +got):\n%s", diff)
	}

	only.FollowOutside = true
	want = map[string]string{"a.md": "", "again/o.md": "", "again/in/p.md": "", "one.md": ""}
	if diff := cmp.Diff(want, listing(t, root, only)); diff != "" {
		t.Errorf("allowed: each folder once (-want +got):\n%s", diff)
	}
}

func TestItems_SpecialFilesAndNames(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.md": "a", "caf\xe9.md": "latin 1 name"})
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe.md"), 0o644))
	want := map[string]string{
		"a.md":         "",
		"caf\uFFFD.md": "failed: the name is not valid UTF-8; rename the file",
		"pipe.md":      "failed: it is not a regular file but a named pipe",
	}
	if diff := cmp.Diff(want, listing(t, root, files.Options{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A file of 200 MB (sparse: nothing is written) fails before it is read.
func TestItems_File200MB(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"huge.md": ""})
	must(t, os.Truncate(filepath.Join(root, "huge.md"), 200<<20))
	want := map[string]string{"huge.md": "failed: the file is too large: 200.0 MB, over the limit of 50.0 MB; split it or raise ingest.max_megabytes"}
	if diff := cmp.Diff(want, listing(t, root, files.Options{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f, err := files.New(root, files.Options{})
	must(t, err)
	if _, err := f.Read(context.Background(), filepath.Join(root, "huge.md")); err == nil || !strings.Contains(err.Error(), "200.0 MB") {
		t.Errorf("Read: %v", err)
	}
}

func TestItems_RootIsOneFileOrMissing(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"d/x.log": "text", "d/.access.yaml": "access: ops", ".access.yaml": "access: everyone"})
	f, err := files.New(filepath.Join(root, "d", "x.log"), files.Options{Include: []string{"*.md"}})
	must(t, err)
	items, err := f.Items(context.Background())
	must(t, err)
	if len(items) != 1 || items[0].Fault != nil || items[0].Access.String() != "group:ops" {
		t.Errorf("a file named outright: %+v, want one item for group:ops", items)
	}
	f, err = files.New(filepath.Join(root, "none"), files.Options{})
	must(t, err)
	if _, err := f.Items(context.Background()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing root: %v, want it not to exist", err)
	}
}

func TestNew_RefusesPatternsThatMatchNothing(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "[", "/abs/*.md", "../x", "a/../b", "./x.md", "{a"} {
		if _, err := files.New("docs", files.Options{Include: []string{p}}); err == nil {
			t.Errorf("pattern %q was taken", p)
		}
	}
	if _, err := files.New("", files.Options{}); err == nil {
		t.Error("an empty root was taken")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.md": "\xff\xfe raw bytes\x00", "empty.md": "", "d/": ""})
	f, err := files.New(root, files.Options{MaxBytes: 100})
	must(t, err)
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	must(t, os.Chtimes(filepath.Join(root, "a.md"), at, at))
	c, err := f.Read(context.Background(), filepath.Join(root, "a.md"))
	if err != nil || !bytes.Equal(c.Data, []byte("\xff\xfe raw bytes\x00")) || !c.Modified.Equal(at) {
		t.Errorf("Read: %q %v %v", c.Data, c.Modified, err)
	}
	if c, err := f.Read(context.Background(), filepath.Join(root, "empty.md")); err != nil || len(c.Data) != 0 {
		t.Errorf("empty: %q %v", c.Data, err)
	}
	for name, want := range map[string]string{
		"gone.md": "retry: the file vanished before it could be read",
		"d":       "retry: it is a folder, not a file",
	} {
		_, err := f.Read(context.Background(), filepath.Join(root, name))
		var fault *ingest.Fault
		if !errors.As(err, &fault) || describe(fault, root) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Read(ctx, filepath.Join(root, "a.md")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// SECURITY: what was a file when listed and a link to elsewhere when read
// does not lead out.
func TestRead_LinkPutInAFilesPlace(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(tree(t, map[string]string{"secret.md": "secret"}), "secret.md")
	root := tree(t, map[string]string{"a.md": "-> " + secret, "p/": ""})
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe.md"), 0o644))
	f, err := files.New(root, files.Options{})
	must(t, err)
	if c, err := f.Read(context.Background(), filepath.Join(root, "a.md")); err == nil {
		t.Errorf("read %q through the link", c.Data)
	}
	if _, err := f.Read(context.Background(), filepath.Join(root, "pipe.md")); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("pipe: %v, want a fault and no waiting", err)
	}
}

// A file that never rests gives whole content or a fault, never a mixture.
func TestRead_FileThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.md": "x"})
	path := filepath.Join(root, "a.md")
	f, err := files.New(root, files.Options{})
	must(t, err)
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		var err error
		for i := 0; !stop.Load() && err == nil; i++ {
			temp := filepath.Join(root, "new")
			err = errors.Join(os.WriteFile(temp, bytes.Repeat([]byte{byte('a' + i%26)}, 1+i%5000), 0o644), os.Rename(temp, path))
		}
		done <- err
	}()
	for range 200 {
		c, err := f.Read(context.Background(), path)
		var fault *ingest.Fault
		if err != nil && (!errors.As(err, &fault) || !fault.Retryable) {
			t.Errorf("unexpected error: %v", err)
		}
		if err == nil && len(bytes.TrimRight(c.Data, string(c.Data[:1]))) != 0 {
			t.Error("two contents were mixed")
		}
	}
	stop.Store(true)
	must(t, <-done)
}

// TestUnreadable runs as a user without rights, since root may read all.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 && os.Getenv("FOOTNOTE_TEST_CHILD") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnreadable$", "-test.count=1")
		cmd.Env = append(os.Environ(), "FOOTNOTE_TEST_CHILD=1", "TMPDIR="+openTemp(t))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	root := tree(t, map[string]string{"a.md": "a", "no.md": "n", "shut/b.md": "b", "rules/c.md": "c", "rules/.access.yaml": "access: everyone", "half/d.md": "d"})
	for _, p := range []string{"no.md", "shut", "rules/.access.yaml"} {
		must(t, os.Chmod(filepath.Join(root, p), 0))
	}
	must(t, os.Chmod(filepath.Join(root, "half"), 0o600))
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(root, "shut"), 0o700)
		_ = os.Chmod(filepath.Join(root, "half"), 0o700)
	})
	want := map[string]string{
		"a.md":       "everyone",
		"no.md":      "everyone",
		"half/d.md":  "retry: the file could not be examined; give this user the right to read it: permission denied",
		"shut":       "retry: the folder could not be read; give this user the right to read it: permission denied",
		"rules/c.md": "refused: the access file ROOT/rules/.access.yaml is not usable, so nothing under it is taken in: this user may not read it",
	}
	if diff := cmp.Diff(want, listing(t, root, everyone())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f, err := files.New(root, everyone())
	must(t, err)
	_, err = f.Read(context.Background(), filepath.Join(root, "no.md"))
	var fault *ingest.Fault
	if !errors.As(err, &fault) || describe(fault, root) != "retry: the file could not be read; give this user the right to read it: permission denied" {
		t.Errorf("Read: %v", err)
	}
	if f.Gone(filepath.Join(root, "shut", "b.md")) || !f.Gone(filepath.Join(root, "never.md")) {
		t.Error("Gone: what may not be looked at is not gone; what is absent is")
	}
}

// openTemp is a folder that every user may write to, outside the test's own.
func openTemp(t *testing.T) string {
	dir, err := os.MkdirTemp(os.TempDir(), "footnote-files")
	must(t, err)
	must(t, os.Chmod(dir, 0o777))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
