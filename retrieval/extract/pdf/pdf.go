// Package pdf reads PDF files with PDFium, built for WebAssembly, so that it
// needs no library of the system and no fault in it reaches the process.
//
//	page -> words with boxes -> segments -> columns -> rows -> paragraphs
//
// Its one idea: a PDF says where each character stands and nothing else, so
// reading order is geometry. Words on a line with no wide gap are a segment; a
// white stretch with prose on both sides parts two columns; what is left is
// read row by row, and a row of several segments is one of a table. Lines that
// come again at the same place of other pages are headers and footers and left
// out. Larger or bold lines, and those of the outline, are headings.
//
// Blocks are placed by their page: "page=3". A page without text, or in a font
// that does not say what its characters are, is read by tesseract where that
// is installed, else named in the warnings.
//
// Addresses below words that do not show them are listed at the end. Filled
// fields and notes on a page read as part of it. It reads no comments or
// attachments.
package pdf

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/draft"
)

// Read builds the tree of a PDF. One page at a time is open; ctx is seen
// between pages and stops the engine within one.
func Read(ctx context.Context, data []byte, password string, l bounds.Limits) (doctree.Tree, error) {
	if !strings.Contains(string(data[:min(len(data), 4096)]), "%PDF-") {
		return doctree.Tree{}, bounds.Refuse("not a PDF: the file does not begin as one; it may be damaged or have the wrong name")
	}
	d, err := open(ctx, data, password)
	if err != nil {
		return doctree.Tree{}, err
	}
	defer d.close()
	if d.pages > l.Pages {
		return doctree.Tree{}, bounds.Refuse("the PDF has %d pages, the limit is %d (ingest.extract.pages): split it", d.pages, l.Pages)
	}
	if d.pages == 0 {
		return doctree.Tree{}, bounds.Refuse("no text found: the PDF has no pages")
	}
	b := book{outline: d.outline(), limits: l, until: recogniseUntil(ctx)}
	for n := range d.pages {
		if err := b.add(ctx, d, n); err != nil {
			return doctree.Tree{}, err
		}
	}
	if err := b.readable(); err != nil {
		return doctree.Tree{}, err
	}
	return b.tree(d.title())
}

// leaf is a page as lines.
type leaf struct {
	rows   []row
	number int // from 1
	ocr    bool
}

// book gathers pages.
type book struct {
	outline map[string]int
	limits  bounds.Limits
	pages   []leaf
	size    int
	total   int
	blank   []int // pages without text
	garbled []int // pages whose text is none
	broken  []int // pages that cannot be opened
	seen    []recognised
	links   []link
	missing error  // why there is no recognition
	program string // that recognises, with its languages
	langs   string
	until   time.Time // recognition stops then, so that what was read until then counts; zero: never
}

// garbled is the share of characters of an unknown meaning from which a page
// counts as one without text.
const garbled = 0.3

// add reads one page.
func (b *book) add(ctx context.Context, d *document, n int) error {
	b.total++
	s, err := d.page(n)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		b.broken = append(b.broken, n+1)
		return b.full()
	}
	bad := float64(s.lost) > garbled*float64(s.chars)
	if s.chars > 0 && !bad {
		b.keep(layout(s.words), n+1, false)
		for _, l := range s.links {
			l.page = n + 1
			b.links = append(b.links, l)
			b.size += len(l.text) + len(l.address)
		}
		return b.full()
	}
	rows, err := b.recognise(ctx, d, n)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(rows) > 0:
		b.keep(rows, n+1, true)
	case bad:
		b.garbled = append(b.garbled, n+1)
	default:
		b.blank = append(b.blank, n+1)
	}
	if err != nil {
		b.missing = err
	}
	return b.full()
}

func (b *book) keep(rows []row, number int, ocr bool) {
	for _, r := range rows {
		for _, c := range r.cells {
			b.size += len(c.text) + 1
		}
	}
	b.pages = append(b.pages, leaf{rows, number, ocr})
}

func (b *book) full() error {
	if b.size > b.limits.Text {
		return bounds.Refuse("the PDF holds more than %d MB of text, which is the limit (ingest.extract.text_megabytes): split it", b.limits.Text>>20)
	}
	return nil
}

// readable refuses a book without any text, with the reason.
func (b *book) readable() error {
	if len(b.pages) > 0 {
		return nil
	}
	switch {
	case len(b.broken) == b.total:
		return bounds.Refuse("the PDF is damaged: none of its %d pages can be opened", b.total)
	case len(b.garbled) > 0:
		return retry("no text found: the fonts do not say which characters they show on %d of %d pages; %s", len(b.garbled), b.total, b.advice())
	}
	return retry("no text found: %d of %d pages hold only pictures; %s", len(b.blank), b.total, b.advice())
}

func retry(format string, args ...any) *bounds.Error {
	e := bounds.Refuse(format, args...)
	e.Retryable = true
	return e
}

// advice says what would make pages without text readable.
func (b *book) advice() string {
	if b.missing != nil {
		return b.missing.Error()
	}
	return "text recognition found nothing there either"
}

// warnings says what of the book is not read.
func (b *book) warnings(d *draft.Document) {
	for _, w := range []struct {
		pages []int
		what  string
	}{
		{b.blank, "have no text; " + b.advice()},
		{b.garbled, "have text in fonts that do not say which characters they show, which is left out; " + b.advice()},
		{b.broken, "are damaged and cannot be opened"},
	} {
		if len(w.pages) > 0 {
			d.Warn(fmt.Sprintf("%d of %d pages %s (pages %s)", len(w.pages), b.total, w.what, numbers(w.pages)))
		}
	}
	if n := len(b.seen); n > 0 {
		var pages []int
		least := b.seen[0]
		for _, r := range b.seen {
			pages = append(pages, r.page)
			if r.confidence < least.confidence {
				least = r
			}
		}
		d.Warn(fmt.Sprintf("%d of %d pages were read by text recognition, with confidence %d of 100, the least %d on page %d (pages %s)", n, b.total, b.facts().Confidence, least.confidence, least.page, numbers(pages)))
	}
}

// facts counts the pages.
func (b *book) facts() doctree.Facts {
	f := doctree.Facts{Unit: "page", Total: b.total, Covered: len(b.pages), Recognised: len(b.seen)}
	for _, r := range b.seen {
		f.Confidence += r.confidence
	}
	f.Confidence /= max(1, len(b.seen))
	return f
}

// numbers lists pages, the first of many.
func numbers(pages []int) string {
	var out []string
	for i, p := range pages {
		if i == 20 {
			return strings.Join(out, ", ") + ", …"
		}
		out = append(out, fmt.Sprint(p))
	}
	return strings.Join(out, ", ")
}

// tree writes all pages.
func (b *book) tree(title string) (doctree.Tree, error) {
	d := draft.New(b.limits, false)
	d.Facts = b.facts()
	for _, text := range b.strip() {
		d.Warn("left out of every page: " + text)
	}
	b.warnings(d)
	w := writing{d: d, body: b.body(), outline: b.outline}
	w.levels = b.sizes(w.body)
	for _, p := range b.pages {
		w.page(p)
	}
	w.flush()
	writeLinks(d, b.links)
	if generic.MatchString(title) {
		title = ""
	}
	if title == "" {
		title = w.largest
	}
	return d.Tree(title, nil)
}

// generic are titles that programs write.
var generic = regexp.MustCompile(`(?i)^(untitled|\(?anonymous\)?|microsoft (word|powerpoint|excel) - .*|.*\.(docx?|pptx?|xlsx?|pdf|dvi|indd|tex|qxd|rtf)|powerpoint presentation|document\d*)$`)

// body is the size of the font that most characters have.
func (b *book) body() float64 {
	chars := map[float64]int{}
	for _, p := range b.pages {
		for _, r := range p.rows {
			for _, c := range r.cells {
				chars[half(c.size)] += c.chars
			}
		}
	}
	best := 0.0
	for size, n := range chars {
		if n > chars[best] || n == chars[best] && size < best {
			best = size
		}
	}
	return best
}

// half rounds to half points.
func half(size float64) float64 { return math.Round(2*size) / 2 }

// larger is how much larger than the body a heading is at least.
const larger = 1.15

func placeOf(page int) string { return fmt.Sprintf("page=%d", page) }

// sizes are the sizes of headings, the largest first.
func (b *book) sizes(body float64) []float64 {
	var out []float64
	for _, p := range b.pages {
		for _, r := range p.rows {
			if s := half(r.size); !p.ocr && !r.aside && len(r.cells) == 1 && s >= larger*body && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// alike is a text as headings of the outline and the page are compared.
func alike(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), ""))
}
