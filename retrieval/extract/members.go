package extract

import (
	"context"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/tika"
)

// Member is a document within another: an attachment of a mail, a file of an
// archive.
type Member struct {
	// Name is its path within, with slashes: relative, clean, one of its kind.
	Name string
	read func(ctx context.Context) ([]byte, error)
}

// Read unpacks the member. What is wrong with it is an *Error and concerns it
// alone.
func (m Member) Read(ctx context.Context) ([]byte, error) { return m.read(ctx) }

// Holds reports whether files with this name may hold documents.
func Holds(name string) bool { e := ending(name); return e == ".eml" || e == ".zip" }

// Members lists what a mail or an archive holds in formats that are read, in
// order. Errors are those of Extract.
func Members(ctx context.Context, src Source) (members []Member, err error) {
	defer func() {
		if r := recover(); r != nil {
			members, err = nil, recovered(r)
		}
	}()
	if err := CheckSize(int64(len(src.Data))); err != nil {
		return nil, err
	}
	src.Limits = src.Limits.Filled()
	switch ending(src.Path) {
	case ".eml":
		m, _, err := openMail(ctx, src)
		if err != nil {
			return nil, err
		}
		return m.held.members, nil
	case ".zip":
		h, err := openZip(src)
		if err != nil {
			return nil, err
		}
		return h.members, nil
	}
	return nil, nil
}

// also are the names that are read besides those of the formats here.
func (s Source) also() func(string) bool {
	if s.Tika == nil {
		return nil
	}
	return tika.Reads
}

// holding gathers members under names of their own.
type holding struct {
	members []Member
	also    func(name string) bool // other names that are read, nil none
	taken   map[string]bool
	left    []string // of formats that are not read
}

func (h *holding) add(name string, read func(context.Context) ([]byte, error)) {
	if name = memberName(name); name == "" || !Supported(name) && (h.also == nil || !h.also(name)) {
		h.left = append(h.left, name)
		return
	}
	if h.taken == nil {
		h.taken = map[string]bool{}
	}
	own := name
	for n := 2; h.taken[own]; n++ {
		ext := path.Ext(name)
		own = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(name, ext), n, ext)
	}
	h.taken[own] = true
	h.members = append(h.members, Member{own, read})
}

// maxName bounds a name in bytes, as file systems do each of its parts.
const maxName = 255

// memberName makes a name out of what a file claims: it leads nowhere else, and
// holds nothing that commands a terminal.
func memberName(s string) string {
	if !utf8.ValidString(s) {
		s = toText([]byte(s), "", false)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return '_'
		}
		return r
	}, strings.ReplaceAll(s, "\\", "/"))
	parts := strings.Split(strings.TrimPrefix(path.Clean("/"+s), "/"), "/")
	for i, p := range parts {
		if len(p) > maxName {
			ext := path.Ext(p)
			if len(ext) > 16 {
				ext = ""
			}
			parts[i] = strings.ToValidUTF8(p[:maxName-len(ext)], "") + ext
		}
	}
	return strings.Join(parts, "/")
}

// names lists what is held as items, and warns of what is left out.
func (h *holding) names(d *draft.Document) {
	d.Break()
	for _, m := range h.members {
		d.Add(doctree.Item, m.Name)
	}
	if n := len(h.left); n > 0 {
		some := h.left[:min(n, 10)]
		more := ""
		if n > len(some) {
			more = ", …"
		}
		d.Warn(fmt.Sprintf("%d of %d files in it are of formats that are not read: %s%s", n, n+len(h.members), oneLine(strings.Join(some, ", ")), more))
	}
	if n := len(h.left) + len(h.members); n > 0 {
		d.Facts = doctree.Facts{Unit: "part", Total: n, Covered: len(h.members)}
	}
}

// legible reads names that are no UTF-8 in the charset that all of them together
// seem to be in.
func legible(names []string) []string {
	var odd []byte
	for _, n := range names {
		if !utf8.ValidString(n) {
			odd = append(append(odd, n...), '\n')
		}
	}
	if odd == nil {
		return names
	}
	charset := statistics(odd)
	out := make([]string, len(names))
	for i, n := range names {
		if out[i] = n; !utf8.ValidString(n) {
			out[i] = toText([]byte(n), charset, false)
		}
	}
	return out
}

// openZip lists the files of an archive.
func openZip(src Source) (*holding, error) {
	a, err := bounds.Zip(src.Data, "zip archive", src.Limits)
	if err != nil {
		return nil, err
	}
	h := &holding{also: src.also()}
	shown := legible(a.Names())
	for i, name := range a.Names() {
		base := path.Base(name)
		if strings.HasPrefix(name, "__MACOSX/") || strings.HasPrefix(base, ".") || base == "Thumbs.db" {
			continue
		}
		h.add(shown[i], func(ctx context.Context) ([]byte, error) {
			if a.Locked(name) {
				return nil, &Error{Reason: "the file is encrypted in its archive: pack it without a password", Retryable: true}
			}
			return a.Read(ctx, name)
		})
	}
	return h, nil
}

// readZip writes the names of what an archive holds. The files themselves are
// documents of their own, see Members.
func readZip(_ context.Context, src Source) (doctree.Tree, error) {
	h, err := openZip(src)
	if err != nil {
		return doctree.Tree{}, err
	}
	if len(h.members) == 0 {
		return doctree.Tree{}, refuse("no text found: the archive holds no file of a format that is read")
	}
	d := draft.New(src.Limits, false)
	h.names(d)
	return d.Tree("", nil)
}
