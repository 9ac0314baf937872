package shelf

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"footnote/acl"
)

// Rules say who may add files from a chat, and which. The zero Rules let
// nobody.
type Rules struct {
	By        acl.List // zero: nobody
	MaxBytes  int64    // of a file
	MaxFiles  int      // of a message
	Types     []string // endings without a dot, in small letters; none: all that are read
	Supported func(name string) bool
}

// On reports that anybody may add files.
func (r Rules) On() bool { return !r.By.IsZero() }

// May reports that somebody may add files.
//
// SECURITY: the zero list names nobody, and the zero identity is named by none.
func (r Rules) May(who acl.Identity) bool {
	named := r.By.Principals()
	return who.ID() != "" && (slices.Contains(named, who.ID()) || slices.ContainsFunc(who.Principals(), func(p acl.Principal) bool { return slices.Contains(named, p) }))
}

// Objection says why a file is not taken and what to do, "" if it may be. size
// is in bytes, 0 if it is not known.
func (r Rules) Objection(name string, size int64) string {
	ending := strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
	switch {
	case len(r.Types) > 0 && !slices.Contains(r.Types, ending):
		return "files of this type are not taken here. Taken are: " + strings.Join(r.Types, ", ") + "."
	case r.Supported != nil && !r.Supported(name):
		return "I cannot read files of this type. Post it as text, PDF, Office document, HTML or Markdown."
	case size > r.MaxBytes:
		return fmt.Sprintf("it has %s, and at most %s are taken. Post it in parts.", megabytes(size), megabytes(r.MaxBytes))
	}
	return ""
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

// requests are the words that ask to add a file, in their plain form.
var requests = []string{
	"add", "add this", "add it", "add this file", "add these", "add these files", "add the file", "add the files", "add this document",
	"add this to the documents", "add this to your documents", "add these to the documents", "add this please", "please add this",
	"please add", "please add this file", "ingest this",
	"추가", "추가해", "추가해줘", "추가해주세요", "이거추가", "이거추가해줘", "이것추가해줘", "이파일추가해줘", "이파일을추가해줘", "이문서추가해줘", "이문서를추가해줘",
	"이거추가해주세요", "이것을추가해주세요", "이파일추가해주세요", "이파일을추가해주세요", "이문서를추가해주세요", "파일추가", "파일추가해줘", "문서추가", "문서추가해줘", "문서에추가해줘",
}

// Asks reports that a text, without the bot's name, asks to add a file and
// says nothing else.
func Asks(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(norm.NFC.String(text)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return slices.Contains(requests, strings.Join(words, " ")) || slices.Contains(requests, strings.Join(words, ""))
}
