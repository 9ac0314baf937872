// Package bounds holds what no document may exceed, and the error that says
// so. Its one idea: every size that a file claims, or makes us build, is
// checked against a number of the configuration before memory is spent on it,
// and the reason names both.
//
// It knows no format but zip, which Word, PowerPoint and Excel share, and how
// the old and the encrypted ones of these begin.
package bounds

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
)

// Error says why a document could not be read, in words for an operator.
type Error struct {
	Reason    string
	Retryable bool // the same bytes may succeed later
}

func (e *Error) Error() string { return e.Reason }

// Refuse makes an Error that trying again will not cure.
func Refuse(format string, args ...any) *Error { return &Error{Reason: fmt.Sprintf(format, args...)} }

// Encrypted makes the Error of a document that needs a password, or another
// than the one given.
func Encrypted(what, password string) *Error {
	if password != "" {
		return &Error{Reason: "the " + what + " is encrypted and the password given does not open it", Retryable: true}
	}
	return &Error{Reason: "the " + what + " is encrypted: save it without a password, or give the password in FOOTNOTE_DOCUMENT_PASSWORDS", Retryable: true}
}

// Limits bound what one document may unfold to. A field that is 0 has its
// default.
type Limits struct {
	Unpacked int64 // bytes of all parts of an archive or message, 256 MB
	Ratio    int64 // unpacked to packed size once over 16 MB are unpacked, 200
	Parts    int   // files of an archive, parts of a message, 10,000
	Nesting  int   // depth of elements, or of parts of a message, 256
	Depth    int   // archives and messages within one another, 4
	Cells    int   // cells of tables with something in them, 1,000,000
	Pages    int   // pages or slides, 5,000
	Text     int   // bytes of text, 64 MB
}

// Filled sets the defaults.
func (l Limits) Filled() Limits {
	set(&l.Unpacked, 256<<20)
	set(&l.Ratio, 200)
	set(&l.Parts, 10_000)
	set(&l.Nesting, 256)
	set(&l.Depth, 4)
	set(&l.Cells, 1_000_000)
	set(&l.Pages, 5_000)
	set(&l.Text, 64<<20)
	return l
}

func set[T int | int64](at *T, value T) {
	if *at == 0 {
		*at = value
	}
}

// ratioFrom is the unpacked size from which the ratio counts: a small file
// that compresses well is no bomb.
const ratioFrom = 16 << 20

// Archive is an opened zip whose claims are within the limits.
type Archive struct {
	files  map[string]*zip.File
	names  []string
	left   int64
	limits Limits
}

// Zip opens the container of a document. what names it in reasons.
func Zip(data []byte, what string, l Limits) (*Archive, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, Refuse("the %s is damaged or cut off (%v): open and save it again", what, err)
	}
	if len(r.File) > l.Parts {
		return nil, Refuse("the %s holds %d parts, the limit is %d (ingest.extract.members)", what, len(r.File), l.Parts)
	}
	a := &Archive{files: map[string]*zip.File{}, left: l.Unpacked, limits: l}
	total := int64(0)
	for _, f := range r.File {
		total += int64(min(f.UncompressedSize64, 1<<40))
		name := strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(f.Name, "\\", "/")), "/")
		if a.files[name] == nil && !strings.HasSuffix(f.Name, "/") {
			a.names = append(a.names, name)
		}
		a.files[name] = f
	}
	if total > l.Unpacked {
		return nil, Refuse("the %s unpacks to %d MB, the limit is %d MB (ingest.extract.unpacked_megabytes)", what, total>>20, l.Unpacked>>20)
	}
	if total > ratioFrom && total/int64(len(data)) > l.Ratio {
		return nil, Refuse("the %s unpacks to %d times its size, the limit is %d times (ingest.extract.ratio): it looks like a zip bomb", what, total/int64(len(data)), l.Ratio)
	}
	return a, nil
}

// Names lists the parts in their order, without folders. No name leads out of
// the archive.
func (a *Archive) Names() []string { return a.names }

// Locked reports that a part is encrypted.
func (a *Archive) Locked(name string) bool { return a.files[name] != nil && a.files[name].Flags&1 != 0 }

// Has reports whether the archive holds a part.
func (a *Archive) Has(name string) bool { return a.files[name] != nil }

// Read unpacks one part; absent parts are nil. What a part really holds counts,
// whatever the directory of the archive claims.
func (a *Archive) Read(ctx context.Context, name string) ([]byte, error) {
	f := a.files[name]
	if f == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := f.Open()
	if err != nil {
		return nil, Refuse("the part %s is damaged (%v): open and save the document again", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, a.left+1))
	if a.left -= int64(len(data)); a.left < 0 {
		return nil, Refuse("the document unpacks to more than %d MB, which is the limit (ingest.extract.unpacked_megabytes)", a.limits.Unpacked>>20)
	}
	if err != nil {
		return nil, Refuse("the part %s is damaged (%v): open and save the document again", name, err)
	}
	return data, nil
}

// compound is how old Office files and encrypted new ones begin.
const compound = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// Office refuses what is called an Office document and cannot be one, with the
// reason that helps: encrypted, of the old format, or something else.
func Office(data []byte, what, newer, password string) error {
	switch {
	case bytes.HasPrefix(data, []byte("PK")):
		return nil
	case !bytes.HasPrefix(data, []byte(compound)):
		article := "a"
		if strings.HasPrefix(what, "E") {
			article = "an"
		}
		return Refuse("not %s %s: the file is no zip container; it may be damaged or have the wrong name", article, what)
	case bytes.Contains(data, wide("EncryptedPackage")) || bytes.Contains(data, wide("EncryptionInfo")):
		return Encrypted(what, password)
	}
	return Refuse("an Office document of the old binary format: save it as %s", newer)
}

// wide is s as names stand in compound files: UTF-16LE.
func wide(s string) []byte {
	var out []byte
	for i := range len(s) {
		out = append(out, s[i], 0)
	}
	return out
}
