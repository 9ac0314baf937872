package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "footnote"

// source is one Go file of the tree.
type source struct {
	path    string // relative to the root, slashes
	dir     string
	test    bool
	pkg     string
	doc     string
	imports []string
}

// root is the top of the tree, where go.mod lies.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// sources parses every Go file of the tree.
func sources(t *testing.T) []source {
	t.Helper()
	top := root(t)
	var out []source
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && file != top && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		s, err := parse(file, filepath.ToSlash(rel))
		out = append(out, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found %d Go files: the walk is broken", len(out))
	}
	return out
}

func parse(file, rel string) (source, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	s := source{path: rel, dir: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), pkg: f.Name.Name, doc: docOf(f)}
	for _, im := range f.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, p)
	}
	return s, nil
}

func docOf(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}

// area is the first part of a path of ours: acl, models, retrieval, bot,
// adapters, cmd.
func area(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

// ours cuts the module's name off an import, "" if it is not ours.
func ours(imported string) string {
	if imported == module {
		return "."
	}
	rest, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return ""
	}
	return rest
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
