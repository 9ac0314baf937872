package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"footnote/adapters/files"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/deploy"
	"footnote/retrieval/extract"
	"footnote/retrieval/ingest"
)

// writeDemo writes the demo documents to a new directory. Their access lists
// name groups of a people file; lists says what these are on the platform.
func writeDemo(dir string, lists map[string]string) error {
	demo, err := fs.Sub(deploy.Demo, "demo")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return fs.WalkDir(demo, ".", func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		raw, err := fs.ReadFile(demo, path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, []byte(translate(string(raw), lists)), 0o600)
	})
}

// translate replaces the entries of access lists, which stand on one line each:
// "access: [everyone, group:guests]".
//
// SECURITY: an entry without a translation stays, and names nobody on the
// platform; it never widens a list.
func translate(document string, lists map[string]string) string {
	lines := strings.Split(document, "\n")
	for i, l := range lines {
		before, list, ok := strings.Cut(l, "access: [")
		list, after, closed := strings.Cut(list, "]")
		if !ok || !closed || strings.TrimSpace(before) != "" {
			continue
		}
		entries := strings.Split(list, ",")
		for j, e := range entries {
			if entries[j] = strings.TrimSpace(e); lists[entries[j]] != "" {
				entries[j] = lists[entries[j]]
			}
		}
		lines[i] = before + "access: [" + strings.Join(entries, ", ") + "]" + after
	}
	return strings.Join(lines, "\n")
}

// readable is a folder without what is no document.
type readable struct{ *files.Folder }

func (r readable) Items(ctx context.Context) ([]ingest.Item, error) {
	items, err := r.Folder.Items(ctx)
	var out []ingest.Item
	for _, it := range items {
		if extract.Supported(it.Path) || it.Fault != nil {
			out = append(out, it)
		}
	}
	return out, err
}

// ingestDemo takes the documents into the index.
func ingestDemo(ctx context.Context, c config.Config, dir string) (err error) {
	in, err := assemble.OpenIngester(c, nil)
	if err != nil {
		return err
	}
	defer func() {
		if e := in.Close(); err == nil {
			err = e
		}
	}()
	folder, err := files.New(dir, files.Options{})
	if err != nil {
		return err
	}
	report, err := in.Pipeline.Ingest(ctx, readable{folder}, ingest.How{Prune: true})
	if err != nil {
		return err
	}
	if bad := append(report.Failed, report.Refused...); len(bad) > 0 {
		return fmt.Errorf("a demo document could not be taken in: %s: %s", bad[0].Path, bad[0].Reason)
	}
	return nil
}
