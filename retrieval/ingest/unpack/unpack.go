// Package unpack offers what mails and archives hold as documents of their own.
//
// Its one idea: a mail or an archive is also a folder. What it holds lies below
// its path: "in/mail.eml/report.pdf", "docs.zip/old.zip/a.txt". So all that
// ingestion knows of folders holds for it as well: a fault at its path closes
// what is below, a run limited to its path takes that along, and what is no
// longer in it is removed.
//
// SECURITY: a member has the access list of the file that it lies in, and its
// own front matter may narrow that and never widen it. Names of members lead
// nowhere outside (extract.Members).
//
// The link of a file, where its source knows one, is also that of its members.
//
// Limits: how deep files lie within one another, how many members one file has
// with all below it, and how many bytes are unpacked. What is over one of them
// is a fault with the reason; a broken member fails alone.
//
// It reads no format itself. It keeps only names, and those only while the file
// is the same by its mark.
package unpack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"footnote/retrieval"
	"footnote/retrieval/extract"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/tika"
	"footnote/retrieval/ingest"
)

// Options bound the work. The zero value of a field is its default.
type Options struct {
	Limits  bounds.Limits
	Tika    *tika.Server  // reads formats of members that nothing else reads; nil: nobody
	Timeout time.Duration // for listing one file with all below it: 2 minutes
}

// Source is another source with the members of its files. It is safe for
// concurrent use if that is.
type Source struct {
	ingest.Source
	options Options

	mu     sync.Mutex
	listed map[string]listing // by path of the file
	open   opened
}

var _ ingest.Bounding = (*Source)(nil)

// naming is a source whose paths do not say what the files are called.
type naming interface {
	// NameAt is the name of the file at exactly this path, "" if there is none.
	NameAt(path string) string
}

// name is the name of what may be a file at the path: its ending names the format.
func (s *Source) name(path string) string {
	if n, ok := s.Source.(naming); ok {
		return n.NameAt(path)
	}
	return path
}

// listing is what a file was found to hold.
type listing struct {
	mark  string
	items []ingest.Item // without access
	fault *ingest.Fault // the file could not be opened, which may pass
}

// opened is the file whose members are being read.
type opened struct {
	path     string
	modified time.Time
	link     string // opens the original
	members  []extract.Member
}

// New makes a source.
func New(src ingest.Source, o Options) *Source {
	o.Limits = o.Limits.Filled()
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	return &Source{Source: src, options: o, listed: map[string]listing{}}
}

// BoundsAccess says that no front matter widens the access to a member.
func (s *Source) BoundsAccess(path string) bool {
	if inner, ok := s.Source.(ingest.Bounding); ok && inner.BoundsAccess(path) {
		return true
	}
	file, _ := s.split(path)
	return file != ""
}

// Items lists the files and their members.
func (s *Source) Items(ctx context.Context) ([]ingest.Item, error) {
	files, err := s.Source.Items(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.open = opened{}
	s.mu.Unlock()
	known := map[string]bool{}
	out := make([]ingest.Item, 0, len(files))
	for _, it := range files {
		if it.Fault != nil || !extract.Holds(s.name(it.Path)) {
			out = append(out, it)
			continue
		}
		l, err := s.list(ctx, it)
		if err != nil {
			return nil, err
		}
		known[it.Path] = true
		it.Fault = l.fault
		out = append(out, it)
		for _, m := range l.items {
			m.Access = it.Access
			out = append(out, m)
		}
	}
	s.forget(known)
	slices.SortStableFunc(out, func(a, b ingest.Item) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// forget drops the listings of files that are gone.
func (s *Source) forget(known map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.listed {
		if !known[path] {
			delete(s.listed, path)
		}
	}
}

// list finds out what a file holds, anew if its mark is another.
func (s *Source) list(ctx context.Context, it ingest.Item) (listing, error) {
	s.mu.Lock()
	l, ok := s.listed[it.Path]
	s.mu.Unlock()
	if ok && it.Mark != "" && l.mark == it.Mark {
		return l, nil
	}
	l = listing{mark: it.Mark}
	content, err := s.Source.Read(ctx, it.Path)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
		w := walk{s: s, ctx: limited, mark: it.Mark, bytes: s.options.Limits.Unpacked}
		err = w.file(it.Path, cmp.Or(content.Name, it.Path), content.Data, 1)
		l.items = w.items
	}
	if ctx.Err() != nil {
		return listing{}, ctx.Err()
	}
	if l.fault = passing(err, s.options.Timeout); l.fault != nil {
		l.items, l.mark = nil, "" // it is looked at again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed[it.Path] = l
	return l, nil
}

// passing is the fault of a file that may be opened another time. Until then
// what it held stays. What is wrong for good the extraction of the file says.
func passing(err error, timeout time.Duration) *ingest.Fault {
	var fault *ingest.Fault
	var known *extract.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &known) && known.Retryable:
		return &ingest.Fault{Reason: known.Reason, Retryable: true}
	case errors.As(err, &known):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &ingest.Fault{Reason: fmt.Sprintf("listing what it holds took longer than %v; split it, or raise ingest.extract.seconds", timeout), Retryable: true}
	}
	return &ingest.Fault{Reason: "it could not be listed what it holds", Retryable: true, Cause: err}
}

// walk lists a file with all below it.
type walk struct {
	s     *Source
	ctx   context.Context
	mark  string
	bytes int64 // that may still be unpacked
	items []ingest.Item
}

// file lists the members of one that lies at a depth from 1. The ending of its
// name names the format.
func (w *walk) file(path, name string, data []byte, depth int) error {
	limits := w.s.options.Limits
	members, err := extract.Members(w.ctx, extract.Source{Path: name, Data: data, Limits: limits, Tika: w.s.options.Tika})
	if err != nil {
		return err
	}
	if len(w.items)+len(members) > limits.Parts {
		return &ingest.Fault{Reason: fmt.Sprintf("it holds more than %d files, which is the limit (ingest.extract.members): split it", limits.Parts), Retryable: true}
	}
	for _, m := range members {
		it := ingest.Item{Path: path + "/" + m.Name}
		if w.mark != "" {
			it.Mark = w.mark + "\x00" + m.Name
		}
		at := len(w.items)
		w.items = append(w.items, it)
		if !extract.Holds(m.Name) {
			continue
		}
		if w.items[at].Fault, err = w.within(it.Path, m, depth); err != nil {
			return err
		}
	}
	return nil
}

// within lists what a member holds. The fault is the member's own.
func (w *walk) within(path string, m extract.Member, depth int) (*ingest.Fault, error) {
	limits := w.s.options.Limits
	if depth >= limits.Depth {
		return &ingest.Fault{Reason: fmt.Sprintf("it lies in %d files within one another, and no more than %d are opened (ingest.extract.depth)", depth, limits.Depth)}, nil
	}
	data, err := m.Read(w.ctx)
	if w.bytes -= int64(len(data)); w.bytes < 0 {
		return nil, &ingest.Fault{Reason: fmt.Sprintf("it unpacks to more than %d MB, which is the limit (ingest.extract.unpacked_megabytes): split it", limits.Unpacked>>20), Retryable: true}
	}
	if err == nil {
		err = w.file(path, path, data, depth+1)
	}
	var known *extract.Error
	if errors.As(err, &known) {
		return nil, w.ctx.Err() // its own extraction says so
	}
	return nil, err
}

// split parts the path of a member into that of its file and the rest; "" if
// it is no member.
func (s *Source) split(path string) (file, rest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := len(s.Root()); at < len(path); at++ {
		if path[at] != '/' || !extract.Holds(s.name(path[:at])) {
			continue
		}
		if _, known := s.listed[path[:at]]; known {
			return path[:at], path[at+1:]
		}
		if file == "" {
			file, rest = path[:at], path[at+1:]
		}
	}
	return file, rest
}

// Read loads a file or a member.
func (s *Source) Read(ctx context.Context, path string) (ingest.Content, error) {
	file, rest := s.split(path)
	if file == "" {
		return s.Source.Read(ctx, path)
	}
	s.mu.Lock()
	_, known := s.listed[file]
	s.mu.Unlock()
	if !known { // perhaps a folder with such a name
		if c, err := s.Source.Read(ctx, path); err == nil || ctx.Err() != nil {
			return c, err
		}
	}
	o, err := s.openFile(ctx, file)
	if err != nil {
		return ingest.Content{}, err
	}
	data, err := s.member(ctx, file, o.members, rest)
	var reason *extract.Error
	switch {
	case ctx.Err() != nil:
		return ingest.Content{}, ctx.Err()
	case errors.As(err, &reason):
		return ingest.Content{}, &ingest.Fault{Reason: reason.Reason, Retryable: reason.Retryable}
	case err != nil:
		return ingest.Content{}, err
	}
	return ingest.Content{Data: data, Modified: o.modified, Link: o.link, Revision: revision(data, o.link)}, nil
}

// revision changes with the link as well, where there is one.
func revision(data []byte, link string) retrieval.Revision {
	if link == "" {
		return ""
	}
	return ingest.RevisionOf(slices.Concat([]byte(link), []byte{0}, data))
}

// openFile opens a file, the last one again without reading it.
func (s *Source) openFile(ctx context.Context, file string) (opened, error) {
	s.mu.Lock()
	o := s.open
	s.mu.Unlock()
	if o.path == file {
		return o, nil
	}
	content, err := s.Source.Read(ctx, file)
	if err != nil {
		return opened{}, err
	}
	o = opened{path: file, modified: content.Modified, link: content.Link}
	o.members, err = extract.Members(ctx, extract.Source{Path: cmp.Or(content.Name, file), Data: content.Data, Limits: s.options.Limits, Tika: s.options.Tika})
	var reason *extract.Error
	if errors.As(err, &reason) {
		return opened{}, &ingest.Fault{Reason: reason.Reason, Retryable: reason.Retryable}
	}
	if err != nil {
		return opened{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = o
	return o, nil
}

// errNotThere says that a file no longer holds a member.
var errNotThere = &ingest.Fault{Reason: "the file that it lay in does not hold it any more", Retryable: true}

// member reads one by its path within a file, through those that it lies in.
func (s *Source) member(ctx context.Context, path string, members []extract.Member, rest string) ([]byte, error) {
	for range s.options.Limits.Depth {
		m, ok := find(members, rest)
		if !ok {
			return nil, errNotThere
		}
		data, err := m.Read(ctx)
		if err != nil || m.Name == rest {
			return data, err
		}
		path, rest = path+"/"+m.Name, rest[len(m.Name)+1:]
		if members, err = extract.Members(ctx, extract.Source{Path: path, Data: data, Limits: s.options.Limits, Tika: s.options.Tika}); err != nil {
			return nil, err
		}
	}
	return nil, errNotThere
}

// find finds the member at a path, or the one that it lies in.
func find(members []extract.Member, rest string) (extract.Member, bool) {
	for _, m := range members {
		if m.Name == rest {
			return m, true
		}
	}
	for _, m := range members {
		if extract.Holds(m.Name) && strings.HasPrefix(rest, m.Name+"/") {
			return m, true
		}
	}
	return extract.Member{}, false
}

// Gone reports that the file of a member is gone, or holds it no more.
func (s *Source) Gone(path string) bool {
	file, _ := s.split(path)
	if file == "" {
		return s.Source.Gone(path)
	}
	if s.Source.Gone(file) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.listed[file]
	if !known || l.fault != nil {
		return false
	}
	for _, it := range l.items {
		if it.Path == path {
			return false
		}
	}
	return true
}
