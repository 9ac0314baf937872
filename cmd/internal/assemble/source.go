package assemble

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"footnote/adapters/files"
	"footnote/cmd/internal/config"
	"footnote/retrieval/extract"
	"footnote/retrieval/extract/tika"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/unpack"
)

// Documents is a folder without the files of formats that are not read, which
// it counts: a picture beside a document is no failed document. Footnote's own
// files are no documents either, wherever they lie. What mails and archives hold
// are documents of their own.
type Documents struct {
	*unpack.Source
	folder *folder
}

// NewDocuments makes the source of a folder.
func NewDocuments(c config.Config, f *files.Folder) *Documents {
	inner := &folder{Folder: f, own: own{[]string{c.PeopleFile(), c.File}, c.Data}, others: c.Ingest.Extract.Tika != ""}
	return &Documents{unpack.New(inner, Unpacking(c)), inner}
}

// Unpacking bounds what mails and archives may hold.
func Unpacking(c config.Config) unpack.Options {
	return unpack.Options{Limits: c.Ingest.Extract.Limits(), Timeout: c.Ingest.Extract.Timeout(), Tika: tikaServer(c)}
}

// tikaServer is the one that is configured, nil if none is. The configuration
// has seen to the address.
func tikaServer(c config.Config) *tika.Server {
	if c.Ingest.Extract.Tika == "" {
		return nil
	}
	s, err := tika.New(c.Ingest.Extract.Tika)
	if err != nil {
		return nil
	}
	return s
}

// LeftOut counts what the last listing left out, by ending.
func (s *Documents) LeftOut() map[string]int {
	s.folder.mu.Lock()
	defer s.folder.mu.Unlock()
	return maps.Clone(s.folder.leftOut)
}

type folder struct {
	*files.Folder
	own    own
	others bool // formats that only a Tika server reads are documents, too

	mu      sync.Mutex
	leftOut map[string]int // by ending
}

// Items lists the documents of the folder. A file named outright, and faults
// of anything but a plain file, stay.
func (s *folder) Items(ctx context.Context) ([]ingest.Item, error) {
	items, err := s.Folder.Items(ctx)
	left := map[string]int{}
	mine := s.own.below(s.Root())
	items = slices.DeleteFunc(items, func(it ingest.Item) bool {
		if mine(it.Path) {
			return true
		}
		if it.Path == s.Root() || extract.Supported(it.Path) || s.others && tika.Reads(it.Path) || it.Fault != nil && !plainFile(it.Path) {
			return false
		}
		left[strings.ToLower(filepath.Ext(it.Path))]++
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leftOut = left
	return items, err
}

// own is what footnote keeps for itself and what may lie among documents.
//
// SECURITY: the people file says who is in which group, the configuration may
// hold tokens, and the index holds every document: with access for everyone
// they would be shown to all.
type own struct {
	files []string // "" is none
	data  string   // a directory; it need not be there yet
}

// below finds what of it lies in the folder at root.
func (o own) below(root string) func(path string) bool {
	data := within(root, o.data)
	return func(path string) bool {
		if data != "" && strings.HasPrefix(path, data+string(filepath.Separator)) {
			return true
		}
		return slices.ContainsFunc(o.files, func(f string) bool { return f != "" && SameFile(path, f) })
	}
}

// within writes dir as a path below root, whatever links lead to either; "" if
// it lies elsewhere or is not there.
func within(root, dir string) string {
	from, err := filepath.EvalSymlinks(root)
	if err != nil {
		return ""
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	to, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.Join(root, rel)
}

// SameFile reports that two paths lead to one file.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func plainFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
