package files_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/adapters/files"
	"footnote/models/modelstest"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/memindex"
)

// vanishing removes a file after it was listed.
type vanishing struct {
	*files.Folder
	victim string
}

func (v vanishing) Read(ctx context.Context, path string) (ingest.Content, error) {
	if path == v.victim {
		_ = os.Remove(path)
	}
	return v.Folder.Read(ctx, path)
}

// A folder as people leave it, through the whole of ingestion: what each
// document's state is, and how it follows the folder.
func TestFolderThroughIngestion(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		".access.yaml":          "access: everyone\npatterns: [{match: 'security/**', access: security}]",
		"a.md":                  "# A\n\nalpha",
		"copy.md":               "# A\n\nalpha",
		"own.md":                "---\naccess: [user:ada]\n---\n# Own\n\nalpha",
		"security/keys.md":      "# Keys\n\nalpha",
		"closed/.access.yaml":   "access: [not good]",
		"closed/b.md":           "---\naccess: everyone\n---\n# B\n\nalpha",
		"x.md/inner.txt":        "alpha inside a folder named like a file",
		"empty.md":              "",
		"gone.md":               "# Gone\n\nalpha",
		"loop/one.md":           "-> two.md",
		"loop/two.md":           "-> one.md",
		"bad.txt":               "alpha \xff\xfe\xfd broken bytes in the middle of an otherwise readable sentence",
		"huge.md":               "",
		".hidden/ignored.md":    "alpha",
		"pictures/logo.ignored": "alpha",
	})
	must(t, os.Truncate(filepath.Join(root, "huge.md"), 200<<20))
	folder, err := files.New(root, files.Options{Exclude: []string{"**/*.ignored"}})
	must(t, err)
	dir := t.TempDir()
	store, err := memindex.Open(dir)
	must(t, err)
	defer store.Close()
	cat, err := catalog.Open(dir)
	must(t, err)
	defer cat.Close()
	p := ingest.New(store, cat, modelstest.NewEmbedder(), ingest.Options{})

	step := func(src ingest.Source, how ingest.How, want map[string]string) {
		t.Helper()
		_, err := p.Ingest(context.Background(), src, how)
		must(t, err)
		got := map[string]string{}
		for _, r := range cat.List() {
			rel, err := filepath.Rel(root, r.Path)
			must(t, err)
			reason, _, _ := strings.Cut(r.Reason, ":")
			got[rel] = strings.TrimSpace(string(r.State) + " " + strings.Join(r.Access, ",") + strings.ReplaceAll(reason, root, "ROOT"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		diffs, err := p.Verify(context.Background())
		if err != nil || len(diffs) > 0 {
			t.Errorf("catalog and index: %v, %v", diffs, err)
		}
	}
	want := map[string]string{
		"a.md":             "published everyone",
		"copy.md":          "published everyone",
		"own.md":           "published user:ada",
		"security/keys.md": "published group:security",
		"closed/b.md":      "refused the access file ROOT/closed/.access.yaml is not usable, so nothing under it is taken in",
		"x.md/inner.txt":   "published everyone",
		"empty.md":         "failed no text found",
		"gone.md":          "failed the file vanished before it could be read",
		"loop/one.md":      "failed the symbolic link leads nowhere or in a circle; repair or remove it",
		"loop/two.md":      "failed the symbolic link leads nowhere or in a circle; repair or remove it",
		"bad.txt":          "published everyone",
		"huge.md":          "failed the file is too large",
	}
	step(vanishing{folder, filepath.Join(root, "gone.md")}, ingest.How{}, want)

	// Repaired, re-permitted and removed: the next run follows.
	must(t, os.WriteFile(filepath.Join(root, "closed/.access.yaml"), []byte("access: ops"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, ".access.yaml"), []byte("access: staff"), 0o600))
	must(t, os.Remove(filepath.Join(root, "huge.md")))
	must(t, os.RemoveAll(filepath.Join(root, "loop")))
	must(t, os.Remove(filepath.Join(root, "copy.md")))
	for name, state := range map[string]string{
		"a.md": "published group:staff", "security/keys.md": "published group:staff", "x.md/inner.txt": "published group:staff", "bad.txt": "published group:staff",
		"closed/b.md": "published everyone", "copy.md": "removed", "huge.md": "removed", "gone.md": "removed", "loop/one.md": "removed", "loop/two.md": "removed",
	} {
		want[name] = state
	}
	step(folder, ingest.How{Prune: true}, want)

	// A broken rule above all withdraws everything, also what was published.
	must(t, os.WriteFile(filepath.Join(root, ".access.yaml"), []byte("acces: everyone"), 0o600))
	for name := range want {
		if !strings.HasPrefix(want[name], "removed") && name != "empty.md" {
			want[name] = "refused the access file ROOT/.access.yaml is not usable, so nothing under it is taken in"
		}
	}
	want["empty.md"] = "refused the access file ROOT/.access.yaml is not usable, so nothing under it is taken in"
	step(folder, ingest.How{}, want)
	g, err := store.Open(context.Background(), "")
	must(t, err)
	grant := acl.NewGrant(acl.NewIdentity("user:ada", acl.Everyone, acl.Group("security"), acl.Group("staff")), acl.AskerOnly())
	if docs, err := g.Documents(context.Background(), grant); err != nil || len(docs) != 0 {
		t.Errorf("still to be found: %v, %v", docs, err)
	}
}
