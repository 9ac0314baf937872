// Package files offers a folder, or a single file, as a source of documents.
//
// Its one idea: a walk never stops. Whatever is wrong with one entry (no
// permission, too large, a link that leads nowhere, a file that vanishes)
// becomes a fault of that entry, with its reason, and the walk goes on.
//
// Which files: those that an include pattern names (none given: all) and no
// exclude pattern does, in doublestar form relative to the root ("**/*.md").
// Names that start with a dot are left out. A file named outright as the root
// is taken whatever the patterns say.
//
// Links: one to something inside the root adds nothing, since its target is
// listed in its own place and under its own access rules. One that leads
// outside is a fault, unless Options.FollowOutside: then it is followed, each
// folder once, under the access rules of the place it leads to, and where those
// say nothing, of the place of the link.
//
// Access: `.access.yaml` files, documented at rules.go. The front matter of a
// document is not read here; it goes before what is found here.
//
// Watch tells of changes; it is a help, not the truth, which only Items knows.
//
// It does not know formats.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"footnote/acl"
	"footnote/retrieval/ingest"
)

// DefaultMaxBytes is the size above which a file is not read.
const DefaultMaxBytes = 50 << 20

// Options says what of a folder is offered. The zero value offers every
// visible file up to DefaultMaxBytes and gives access to none of them.
type Options struct {
	Include       []string // doublestar patterns relative to the root; none: everything
	Exclude       []string // the same; they win over Include and close folders
	Default       acl.List // access where no access file speaks
	MaxBytes      int64    // 0: DefaultMaxBytes
	FollowOutside bool     // follow links that leave the root
}

// Folder is a source over one root. It keeps nothing between calls.
type Folder struct {
	root    string // absolute, clean
	options Options
}

var _ ingest.Source = (*Folder)(nil)

// New makes a source of the folder or file at root. The root need not exist
// yet; Items says so if it does not.
func New(root string, o Options) (*Folder, error) {
	if root == "" {
		return nil, errors.New("a folder or a file is needed as the source of documents")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("finding the absolute path of %s: %w", root, err)
	}
	var bad []error
	for _, p := range append(append([]string(nil), o.Include...), o.Exclude...) {
		bad = append(bad, CheckPattern(p))
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	if o.MaxBytes < 0 {
		return nil, fmt.Errorf("the size limit is %d bytes: it must be 0 (the default, %d) or more", o.MaxBytes, DefaultMaxBytes)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return &Folder{root: abs, options: o}, nil
}

// Root is the absolute path of the folder or file.
func (f *Folder) Root() string { return f.root }

// Gone reports that the file system holds nothing at the path. A folder that
// may not be searched leaves the question open, and so does a path of another
// kind of source.
func (f *Folder) Gone(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Items walks the root. Its error is that of the root alone.
func (f *Folder) Items(ctx context.Context) ([]ingest.Item, error) {
	info, err := os.Stat(f.root)
	if err != nil {
		return nil, fmt.Errorf("reading the source of documents: %w", err)
	}
	real, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return nil, fmt.Errorf("reading the source of documents: %w", err)
	}
	if !info.IsDir() {
		return f.single(real, info), nil
	}
	if _, err := os.ReadDir(f.root); err != nil {
		return nil, fmt.Errorf("reading the source of documents: %w", err)
	}
	w := &walk{folder: f, real: real, rules: newRuleBook(), seen: map[string]bool{}}
	if err := w.dir(ctx, f.root, real); err != nil {
		return nil, err
	}
	return w.sorted(), nil
}

// single lists a root that is one file.
func (f *Folder) single(real string, info fs.FileInfo) []ingest.Item {
	w := &walk{folder: f, rules: newRuleBook()}
	w.file(f.root, real, info)
	return w.items
}

// Excludes reports that the patterns close the path below the root, or a
// folder above it.
func (f *Folder) Excludes(path string) bool {
	w := walk{folder: f}
	for ; path != f.root && path != filepath.Dir(path); path = filepath.Dir(path) {
		if w.excluded(path) {
			return true
		}
	}
	return false
}

// Matches reports that a pattern of the same form matches a whole path, with
// slashes on every system. A pattern that is none matches nothing.
func Matches(pattern, path string) bool {
	ok, err := doublestar.Match(pattern, filepath.ToSlash(path))
	return ok && err == nil
}

// ValidPattern reports that a text is a pattern, of whatever paths.
func ValidPattern(pattern string) bool { return pattern != "" && doublestar.ValidatePattern(pattern) }

// CheckPattern refuses what would never match, so that a mistake is seen.
func CheckPattern(p string) error {
	switch {
	case !ValidPattern(p):
		return fmt.Errorf("%q is not a pattern: write for example **/*.md", p)
	case strings.HasPrefix(p, "/") || strings.HasPrefix(p, "./") || p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, "/../"):
		return fmt.Errorf("the pattern %q matches nothing: patterns are relative to their folder, for example security/**", p)
	}
	return nil
}
