// Package extract turns source files into document trees: Markdown, HTML,
// plain text, tables, captions and mail in every common charset, and PDF, Word,
// PowerPoint and Excel by the packages below this one.
//
// Its one idea: the canonical text stays as close to the source as the format
// allows, so that a quote can be shown where it stands. For Markdown and plain
// text it is the source itself, decoded to UTF-8, without a byte order mark,
// with LF line ends; markup stays in it and is only marked. For HTML it is the
// readable text. In both the tree leads back to source bytes.
//
// Three kinds of characters are changed one for one, so that code points keep
// their numbers: bytes that are no text in the file's charset become U+FFFD;
// form feed, vertical tab and NEL become line ends; all other control
// characters, ESC among them, become U+FFFD. So no canonical text, and no
// quote cut from it, can command a terminal.
//
// There is one file or package per format: a parser takes the decoded text, or
// the bytes of a format that is no text, and builds the tree. Decoding, front
// matter, limits, panics and the final checks are the same for all of them and
// live in this file and decode.go. Where a source has pages, slides, sheets or
// times, blocks say so (doctree.Block.Place, see doctree.Reach).
//
// What a mail or an archive holds are documents of their own: Members lists them,
// and the text of the file itself only names them. What no format here reads may
// go to a Tika server (Source.Tika).
//
// The package reads no files and decides no access: it only carries the raw
// `access:` of the front matter, and refuses a document whose access list it
// sees but cannot read.
package extract

import (
	"context"
	"path"
	"strings"
	"unicode"

	"footnote/retrieval/analysis"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/office"
	"footnote/retrieval/extract/pdf"
	"footnote/retrieval/extract/tika"
	"footnote/retrieval/extract/xlsx"
)

// Version changes whenever the same file would give another tree.
const Version = "3"

// MaxBytes is the largest source that is read. Beyond it a file is far more
// often a dump or a log than a document.
const MaxBytes = 64 << 20

// Source is a file as it was read.
type Source struct {
	Path     string // its name chooses the format
	Data     []byte
	Password string        // opens what is encrypted, "" none
	Limits   bounds.Limits // zero: the defaults
	Tika     *tika.Server  // reads what no format here does, nil: nobody
}

// Error says why a document could not be read, in words for an operator.
type Error = bounds.Error

func refuse(format string, args ...any) *Error { return bounds.Refuse(format, args...) }

// parser builds the tree of one format. in.text is canonical text or, for
// formats that drop markup, the decoded source.
type parser func(ctx context.Context, in input) (doctree.Tree, error)

// input is a decoded document.
type input struct {
	text   string       // valid UTF-8, LF line ends
	source *doctree.Map // from text to source bytes, nil: identity
	body   int          // where the text begins after the front matter
	title  string       // of the front matter, may be ""
	name   string       // of the file
	limits bounds.Limits
}

// reader builds the tree of one format that is no text.
type reader func(ctx context.Context, src Source) (doctree.Tree, error)

// format is how one kind of file is read: by parse if it is text, else by read.
type format struct {
	name       string
	extensions string
	front      bool // it may begin with front matter
	parse      parser
	read       reader
}

// formats are all that are read. It is a function since mail reads its
// attachments by their formats. byName and isPage know the first three.
func formats() []format {
	return []format{
		{"markdown", ".md .markdown .mdown .mkd .mdx", true, parseMarkdown, nil},
		{"html", ".html .htm .xhtml", true, parseHTML, nil},
		{"text", ".txt .text .log .rst .adoc .asciidoc .org", true, parseText, nil},
		{"csv", ".csv .tsv .tab", false, parseTable, nil},
		{"captions", ".vtt .srt", false, parseCaptions, nil},
		{"json", ".json .jsonl .ndjson", false, parseData, nil},
		{"yaml", ".yaml .yml", false, parseData, nil},
		{"mail", ".eml", false, nil, readMail},
		{"zip", ".zip", false, nil, readZip},
		{"pdf", ".pdf", false, nil, func(ctx context.Context, s Source) (doctree.Tree, error) {
			return pdf.Read(ctx, s.Data, s.Password, s.Limits)
		}},
		{"docx", ".docx .docm", false, nil, func(ctx context.Context, s Source) (doctree.Tree, error) {
			return office.ReadWord(ctx, s.Data, s.Password, s.Limits)
		}},
		{"pptx", ".pptx .pptm .ppsx", false, nil, func(ctx context.Context, s Source) (doctree.Tree, error) {
			return office.ReadSlides(ctx, s.Data, s.Password, s.Limits)
		}},
		{"xlsx", ".xlsx .xlsm", false, nil, func(ctx context.Context, s Source) (doctree.Tree, error) {
			return xlsx.Read(ctx, s.Data, s.Password, s.Limits)
		}},
	}
}

// Supported reports whether files with this name are read. A name without an
// extension (README, LICENSE) counts as text.
func Supported(name string) bool {
	ext := ending(name)
	for _, f := range formats() {
		if ext == "" || hasWord(f.extensions, ext) {
			return true
		}
	}
	return false
}

// readByTika reads a document as the XHTML that a Tika server makes of it. No
// byte of it leads back to the source.
func readByTika(ctx context.Context, src Source) (doctree.Tree, error) {
	text, err := src.Tika.XHTML(ctx, src.Path, src.Data, src.Limits)
	if err != nil {
		return doctree.Tree{}, err
	}
	t, err := parseHTML(ctx, input{text: strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\ufffd"), limits: src.Limits})
	if err != nil {
		return doctree.Tree{}, err
	}
	d := draft.New(src.Limits, false)
	graft(d, t, 0)
	return d.Tree(t.Title, nil)
}

func ending(name string) string {
	base := path.Base(strings.ReplaceAll(name, "\\", "/"))
	if strings.HasPrefix(base, ".") {
		base = "x" + base
	}
	return strings.ToLower(path.Ext(base))
}

func hasWord(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

// byName finds the format of a file name.
func byName(name string) (format, error) {
	ext := ending(name)
	for _, f := range formats() {
		if hasWord(f.extensions, ext) {
			return f, nil
		}
	}
	switch ext {
	case "":
		return formats()[2], nil
	case ".doc", ".xls", ".ppt":
		return format{}, refuse("unsupported format %s: save it as %sx", ext, ext)
	case ".tar", ".gz", ".tgz", ".7z", ".rar":
		return format{}, refuse("unsupported format %s: unpack the archive and add what is in it, or pack it as .zip", ext)
	}
	return format{}, refuse("unsupported format %s: convert it to Markdown, HTML, PDF or text", ext)
}

// isPage reports HTML in a file whose name has no ending.
func isPage(name, text string) bool {
	head := strings.ToLower(strings.TrimSpace(text[:min(len(text), 256)]))
	return ending(name) == "" && (strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html"))
}

// CheckSize refuses a source that is too large, best before it is read.
func CheckSize(bytes int64) error {
	if bytes > MaxBytes {
		return refuse("too large: the file holds %d MB, the limit is %d MB; split it", bytes>>20, MaxBytes>>20)
	}
	return nil
}

// Extract reads a source. What is wrong with the document is an *Error; the
// end of ctx is ctx's error. A fault in a parser fails this document alone.
func Extract(ctx context.Context, src Source) (tree doctree.Tree, err error) {
	defer func() {
		if r := recover(); r != nil {
			tree, err = doctree.Tree{}, recovered(r)
		}
	}()
	if err := ctx.Err(); err != nil {
		return doctree.Tree{}, err
	}
	if err := CheckSize(int64(len(src.Data))); err != nil {
		return doctree.Tree{}, err
	}
	f, err := byName(src.Path)
	if err != nil && src.Tika != nil && tika.Reads(src.Path) {
		f, err = format{name: strings.TrimPrefix(ending(src.Path), "."), read: readByTika}, nil
	}
	if err != nil {
		return doctree.Tree{}, err
	}
	if len(src.Data) == 0 {
		return doctree.Tree{}, refuse("no text found: the file is empty (0 bytes)")
	}
	src.Limits = src.Limits.Filled()
	if f.read != nil {
		tree, err = f.read(ctx, src)
	} else {
		f, tree, err = decodeAndParse(ctx, src, f)
	}
	if err != nil {
		return doctree.Tree{}, err
	}
	tree.Format = f.name
	return finish(tree, src.Path)
}

// stopped is what a parser panics with to leave a library at the end of ctx.
type stopped struct{ err error }

func recovered(r any) error {
	if s, ok := r.(stopped); ok {
		return s.err
	}
	return refuse("the parser failed on this file (%v): please report it with the file", r)
}

// decodeAndParse reads a format that is text, and says which it was.
func decodeAndParse(ctx context.Context, src Source, as format) (format, doctree.Tree, error) {
	d, err := decode(src.Data, as.name == "html")
	if err != nil {
		return as, doctree.Tree{}, err
	}
	if isPage(src.Path, d.text) {
		as = formats()[1]
	}
	var f front
	if as.front {
		if f, err = readFront(d.text); err != nil {
			return as, doctree.Tree{}, err
		}
	}
	tree, err := as.parse(ctx, input{text: d.text, source: d.source, body: f.end, title: f.title, name: src.Path, limits: src.Limits})
	tree.Front, tree.Access = f.values, f.access
	tree.Warnings = append(tree.Warnings, d.warnings...)
	return as, tree, err
}

// finish fills what follows from the blocks and refuses a tree without text.
func finish(t doctree.Tree, name string) (doctree.Tree, error) {
	prose := sample(&t)
	if prose == "" {
		return doctree.Tree{}, refuse("no text found: the file holds only white space, markup or front matter")
	}
	t.Language = analysis.Language(prose)
	if t.Title = oneLine(t.Title); t.Title == "" {
		t.Title = readable(name)
	}
	return t, nil
}

// sampleBytes is enough text to know a language by.
const sampleBytes = 20_000

// sample reads the beginning of the document, without code if there is prose.
func sample(t *doctree.Tree) string {
	var prose, code strings.Builder
	for _, s := range t.Sections {
		for _, b := range s.Blocks {
			to := &prose
			if b.Kind == doctree.Code {
				to = &code
			}
			if to.Len() < sampleBytes {
				end := min(b.Span.ToByte, b.Span.FromByte+sampleBytes)
				for end < b.Span.ToByte && t.Canonical[end]&0xC0 == 0x80 {
					end++
				}
				to.WriteString(t.Plain(b.Span.FromByte, end) + "\n")
			}
		}
	}
	if s := strings.TrimSpace(prose.String()); s != "" {
		return s
	}
	return strings.TrimSpace(code.String())
}

// oneLine makes a heading or title out of any text: one line, no control
// characters, at most 200 characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = strings.TrimSpace(string(r[:199])) + "…"
	}
	return s
}

// readable makes a title out of a file name: travel_and-leave.md is
// "travel and leave"; an index file takes the name of its folder.
func readable(name string) string {
	name = strings.ReplaceAll(name, "\\", "/")
	base := path.Base(name)
	base = strings.TrimSuffix(base, path.Ext(base))
	if dir := path.Base(path.Dir(name)); (strings.EqualFold(base, "index") || strings.EqualFold(base, "readme")) && dir != "." && dir != "/" && dir != ".." {
		base = dir
	}
	if s := oneLine(strings.NewReplacer("_", " ", "-", " ").Replace(base)); s != "" {
		return s
	}
	return oneLine(path.Base(name))
}
