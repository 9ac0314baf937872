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

	"github.com/fsnotify/fsnotify"

	"footnote/retrieval/ingest/follow"
)

// Watch tells of changes below the root until ctx is done. A change of an
// access file is one of its folder. What the system lost track of is a change
// of the root. It ends with an error when the root is gone, and when the system
// cannot watch so many folders.
//
// Access files above the root and targets of links that leave it are not
// watched: full passes find what changes there.
func (f *Folder) Watch(ctx context.Context, changed func(follow.Change)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.root, err)
	}
	defer func() { _ = w.Close() }() // nothing is written
	info, err := os.Stat(f.root)
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.root, err)
	}
	o := watch{folder: f, w: w, changed: changed}
	if info.IsDir() {
		err = o.add(f.root)
	} else {
		err = w.Add(filepath.Dir(f.root))
	}
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.root, err)
	}
	return o.listen(ctx)
}

// watch is one call of Watch.
type watch struct {
	folder  *Folder
	w       *fsnotify.Watcher
	changed func(follow.Change)
}

func (o watch) listen(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-o.w.Events:
			if !ok {
				return errors.New("the system ended it")
			}
			if err := o.event(e); err != nil {
				return err
			}
		case err, ok := <-o.w.Errors:
			if !ok {
				return errors.New("the system ended it")
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watching %s: %w", o.folder.root, err)
			}
			o.changed(follow.Change{Path: o.folder.root, Urgent: true})
		}
	}
}

// event tells of what concerns documents.
func (o watch) event(e fsnotify.Event) error {
	path, root := filepath.Clean(e.Name), o.folder.root
	gone := o.folder.Gone(path)
	switch {
	case path == root && gone:
		o.changed(follow.Change{Path: root, Urgent: true})
		return fmt.Errorf("watching %s: it is gone", root)
	case !within(root, path):
		return nil // beside a root that is a file
	case slices.Contains(accessNames, strings.ToLower(filepath.Base(path))):
		o.changed(follow.Change{Path: filepath.Dir(path), Urgent: true})
		return nil
	case hidden(root, path):
		return nil
	case !gone && e.Has(fsnotify.Create):
		if err := o.add(path); err != nil {
			return fmt.Errorf("watching %s: %w", path, err)
		}
	}
	o.changed(follow.Change{Path: path, Urgent: gone})
	return nil
}

// add watches a folder and all below it that may hold documents; anything else
// needs no watching of its own. A folder that vanishes or cannot be read meanwhile
// is left to the listing.
func (o watch) add(dir string) error {
	w := walk{folder: o.folder}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // the listing says what is wrong with it
		}
		if path != o.folder.root && (hidden(o.folder.root, path) || w.excluded(path)) {
			return fs.SkipDir
		}
		err = o.w.Add(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
}

// hidden reports that a name on the way from the root starts with a dot.
func hidden(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != "." && slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(name string) bool {
		return strings.HasPrefix(name, ".")
	})
}
