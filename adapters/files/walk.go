package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"footnote/acl"
	"footnote/retrieval/ingest"
)

// walk is one pass over a root.
type walk struct {
	folder *Folder
	real   string // the root without links, to tell inside from outside
	rules  *ruleBook
	seen   map[string]bool // folders outside the root, by real path
	items  []ingest.Item
}

// dir lists one folder; real is its path without links. Its error is ctx's.
func (w *walk) dir(ctx context.Context, dir, real string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.fault(dir, unreadable("the folder could not be read", err))
	}
	for _, e := range entries {
		if err := w.entry(ctx, filepath.Join(dir, e.Name()), filepath.Join(real, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(ctx context.Context, path, real string, e fs.DirEntry) error {
	if strings.HasPrefix(e.Name(), ".") {
		return nil
	}
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		return w.link(ctx, path)
	case e.IsDir():
		if w.excluded(path) {
			return nil
		}
		return w.dir(ctx, path, real)
	case !w.wanted(path):
		return nil
	}
	info, err := e.Info()
	if err != nil {
		w.fault(path, unreadable("the file could not be examined", err))
		return nil
	}
	w.file(path, real, info)
	return nil
}

// link follows a symbolic link as the package comment says.
func (w *walk) link(ctx context.Context, path string) error {
	if w.excluded(path) {
		return nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		// A link whose target cannot be told from a document is reported only
		// if its own name would be wanted.
		if w.wanted(path) {
			w.fault(path, brokenLink(err))
		}
		return nil
	}
	if within(w.real, target) {
		return nil
	}
	info, err := os.Stat(target)
	if err != nil {
		w.fault(path, brokenLink(err))
		return nil
	}
	if !info.IsDir() && !w.wanted(path) {
		return nil
	}
	if !w.folder.options.FollowOutside {
		w.fault(path, &ingest.Fault{Reason: "the symbolic link leads outside the folder, to " + target + "; ingest that place itself, or follow it (--follow-links, or follow_links of the source)"})
		return nil
	}
	if !info.IsDir() {
		w.file(path, target, info)
		return nil
	}
	if w.seen[target] {
		return nil
	}
	w.seen[target] = true
	return w.dir(ctx, path, target)
}

// file lists one file, or what is wrong with it before it is opened; real is
// its path without links.
func (w *walk) file(path, real string, info fs.FileInfo) {
	if fault := w.folder.gate(info); fault != nil {
		w.fault(path, fault)
		return
	}
	if !utf8.ValidString(path) {
		// Paths are kept as text; two such names could become one.
		w.fault(strings.ToValidUTF8(path, "\uFFFD"), &ingest.Fault{Reason: "the name is not valid UTF-8; rename the file"})
		return
	}
	list, fault := w.access(path, real)
	if fault == nil && list.IsZero() {
		list = w.folder.options.Default
	}
	w.items = append(w.items, ingest.Item{Path: path, Access: list, Fault: fault, Bytes: info.Size(), Mark: mark(info, time.Now())})
}

// access asks the rules of the real place, then those of the place where a
// link to it lies.
//
// SECURITY: a link in an open folder does not open what it points to; one in a
// closed folder keeps closed what has no rules of its own.
func (w *walk) access(path, real string) (acl.List, *ingest.Fault) {
	list, fault := w.rules.access(real)
	if fault != nil || !list.IsZero() || path == real {
		return list, fault
	}
	return w.rules.access(path)
}

func (w *walk) fault(path string, f *ingest.Fault) {
	w.items = append(w.items, ingest.Item{Path: path, Fault: f})
}

// sorted orders the listing by path, whatever order the folders came in.
func (w *walk) sorted() []ingest.Item {
	slices.SortStableFunc(w.items, func(a, b ingest.Item) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(w.items, func(a, b ingest.Item) bool { return a.Path == b.Path })
}

// wanted reports whether the patterns take a file.
func (w *walk) wanted(path string) bool {
	in := w.folder.options.Include
	return !w.excluded(path) && (len(in) == 0 || w.matches(in, path))
}

func (w *walk) excluded(path string) bool { return w.matches(w.folder.options.Exclude, path) }

func (w *walk) matches(patterns []string, path string) bool {
	rel, err := filepath.Rel(w.folder.root, path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, filepath.ToSlash(rel)) })
}

// gate refuses by size and kind, before a byte is read.
func (f *Folder) gate(info fs.FileInfo) *ingest.Fault {
	switch {
	case info.IsDir():
		return &ingest.Fault{Reason: "it is a folder, not a file", Retryable: true}
	case !info.Mode().IsRegular():
		return &ingest.Fault{Reason: "it is not a regular file but a " + kind(info.Mode())}
	case info.Size() > f.options.MaxBytes:
		return tooLarge(info.Size(), f.options.MaxBytes)
	}
	return nil
}

func tooLarge(size, limit int64) *ingest.Fault {
	return &ingest.Fault{Reason: fmt.Sprintf("the file is too large: %s, over the limit of %s; split it or raise ingest.max_megabytes", megabytes(size), megabytes(limit))}
}

func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

func brokenLink(err error) *ingest.Fault {
	if errors.Is(err, fs.ErrPermission) {
		return unreadable("the target of the symbolic link could not be reached", err)
	}
	return &ingest.Fault{Reason: "the symbolic link leads nowhere or in a circle; repair or remove it", Cause: bare(err)}
}

// unreadable is a fault of the file system, which may pass.
func unreadable(what string, err error) *ingest.Fault {
	if errors.Is(err, fs.ErrPermission) {
		what += "; give this user the right to read it"
	}
	return &ingest.Fault{Reason: what, Retryable: true, Cause: bare(err)}
}

// bare drops the path from a file system error: the fault's item names it.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// within reports whether path is root or lies below it; both are clean.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}
