package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	faults "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"footnote/retrieval/extract/bounds"
)

// Bounds of the engine as a whole.
const (
	maxOpen     = 2    // documents read at the same time; the others wait
	memoryPages = 4096 // of 64 kB: 256 MB for each of them
)

// pool starts the engine when the first PDF is read. It is compiled once, in
// about a second; each document has a fresh instance, whose memory goes with
// it. The engine sees no files and runs in its own memory: a fault in it, or
// an endless loop, ends with the document.
var pool = sync.OnceValues(func() (pdfium.Pool, error) {
	return webassembly.Init(webassembly.Config{
		MaxTotal: maxOpen, FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(memoryPages).
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling),
	})
})

// document is an open PDF.
type document struct {
	engine pdfium.Pdfium
	ref    references.FPDF_DOCUMENT
	pages  int
	close  func()
}

// open opens a PDF. The end of ctx stops the engine wherever it is.
func open(ctx context.Context, data []byte, password string) (*document, error) {
	p, err := pool()
	if err != nil {
		return nil, fmt.Errorf("starting the PDF engine: %w", err)
	}
	engine, err := p.GetInstanceWithContext(ctx)
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = engine.Kill() })
	d := &document{engine: engine, close: func() {
		if stop() {
			_ = engine.Close()
		}
	}}
	if err := d.load(data, password); err != nil {
		d.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return d, nil
}

func (d *document) load(data []byte, password string) error {
	opened, err := d.engine.OpenDocument(&requests.OpenDocument{File: &data, Password: &password})
	switch {
	case errors.Is(err, faults.ErrPassword):
		return bounds.Encrypted("PDF", password)
	case errors.Is(err, faults.ErrSecurity):
		return bounds.Refuse("the PDF is encrypted in a way that is not known here: save it without encryption")
	case err != nil:
		return bounds.Refuse("the PDF is damaged (%v): open and save it again", err)
	}
	d.ref = opened.Document
	count, err := d.engine.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
	if err != nil {
		return bounds.Refuse("the PDF is damaged: it does not say how many pages it has")
	}
	d.pages = count.PageCount
	return nil
}

// title is what the properties name.
func (d *document) title() string {
	r, err := d.engine.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: d.ref, Tag: "Title"})
	if err != nil {
		return ""
	}
	return strings.TrimSpace(r.Value)
}

// outline is the level of each bookmark by its title, from 1. Bookmarks are
// asked for one by one, and bounded: a file may link them in a ring, on which
// the library's own walk never ends.
func (d *document) outline() map[string]int {
	w := bookmarks{d: d, levels: map[string]int{}}
	w.below(nil, 1)
	return w.levels
}

// maxBookmarks bounds how much of an outline is read.
const maxBookmarks = 10_000

type bookmarks struct {
	d      *document
	levels map[string]int
	seen   int
}

// below reads what stands below a bookmark, nil: the whole outline.
func (w *bookmarks) below(parent *references.FPDF_BOOKMARK, level int) {
	first, err := w.d.engine.FPDFBookmark_GetFirstChild(&requests.FPDFBookmark_GetFirstChild{Document: w.d.ref, Bookmark: parent})
	if err != nil {
		return
	}
	for at := first.Bookmark; at != nil && w.seen < maxBookmarks; {
		w.seen++
		if title, err := w.d.engine.FPDFBookmark_GetTitle(&requests.FPDFBookmark_GetTitle{Bookmark: *at}); err == nil {
			if key := alike(title.Title); key != "" && w.levels[key] == 0 {
				w.levels[key] = level
			}
		}
		if level < 6 {
			w.below(at, level+1)
		}
		next, err := w.d.engine.FPDFBookmark_GetNextSibling(&requests.FPDFBookmark_GetNextSibling{Document: w.d.ref, Bookmark: *at})
		if err != nil {
			return
		}
		at = next.Bookmark
	}
}

// word is a run of characters without space. Its place is in points, as the
// text reads: right and down are larger. top and bottom are those of the line,
// whatever letters the word has.
type word struct {
	text                     string
	left, top, right, bottom float64
	size                     float64 // of the font, in points
	bold                     bool
	spaced                   bool // a space stands before it
	turn                     int  // quarters that the text is turned to the left; -1 askew
}

// sheet is a page as the engine reads it.
type sheet struct {
	words []word
	links []link
	chars int // that are no space
	lost  int // of them, whose font does not say what they are
}

// page reads one page, from 0, and closes it again.
func (d *document) page(n int) (sheet, error) {
	s, more, err := d.pageAsIs(n, true)
	if !more || err != nil {
		return s, err
	}
	links := s.links
	if s, _, err = d.pageAsIs(n, false); len(s.links) == 0 {
		s.links = links // drawing the annotations took them away
	}
	return s, err
}

// pageAsIs reads one page. more says that it has filled fields or notes on it,
// which draw has put among its content: it has to be read again.
func (d *document) pageAsIs(n int, draw bool) (s sheet, more bool, err error) {
	loaded, err := d.engine.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: n})
	if err != nil {
		return sheet{}, false, err
	}
	defer func() { _, _ = d.engine.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}) }()
	page := requests.Page{ByReference: &loaded.Page}
	text, err := d.engine.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return sheet{}, false, err
	}
	defer func() {
		_, _ = d.engine.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage})
	}()
	r := reading{engine: d.engine, page: text.TextPage, from: -1}
	r.sheet.links = r.links(d.ref, loaded.Page)
	if draw && d.annotated(page) {
		drawn, err := d.engine.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: page})
		if err == nil && drawn.Result == responses.FPDFPage_FlattenResultSuccess {
			return r.sheet, true, nil
		}
	}
	return r.sheet, false, r.read()
}

// maxAnnotations bounds how many of a page are looked at.
const maxAnnotations = 1000

// annotated reports that a page has annotations that show text.
func (d *document) annotated(page requests.Page) bool {
	count, err := d.engine.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil {
		return false
	}
	for i := range min(count.Count, maxAnnotations) {
		a, err := d.engine.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: page, Index: i})
		if err != nil {
			continue
		}
		kind, err := d.engine.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a.Annotation})
		_, _ = d.engine.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: a.Annotation})
		if err == nil && (kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_WIDGET || kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_FREETEXT || kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_STAMP) {
			return true
		}
	}
	return false
}

// reading is a page being read.
type reading struct {
	sheet
	engine pdfium.Pdfium
	page   references.FPDF_TEXTPAGE

	text   strings.Builder // of the open word
	from   int             // its first character, -1 none is open
	spaced bool            // a space stands before it

	newLine bool // the engine ended a line since the last word
}

var boldName = regexp.MustCompile(`(?i)bold|black|heavy`)

// maxChars bounds the characters of one page.
const maxChars = 500_000

// read makes words. The engine puts a space or a line end between what stands
// apart, and marks the hyphen at a line end, behind which it puts none.
func (r *reading) read() error {
	count, err := r.engine.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: r.page})
	if err != nil {
		return err
	}
	high, n := rune(0), min(count.Count, maxChars)
	units, err := r.units(n)
	if err != nil {
		return err
	}
	for i, unit := range units {
		switch ch := rune(unit); {
		case ch >= 0xD800 && ch < 0xDC00:
			high = ch
			r.start(i)
		case utf16.IsSurrogate(ch):
			r.text.WriteRune(utf16.DecodeRune(high, ch))
		case ch == ' ' || ch == '\t' || ch == 0xA0 || ch == 0x3000:
			r.end(i)
			r.spaced = true
		case ch == '\r' || ch == '\n':
			r.end(i)
			r.newLine = true
		case ch == hyphen || ch == 0xFFFE || ch == 0xAD:
			r.start(i)
			r.text.WriteByte('-')
			r.end(i + 1)
		default:
			r.start(i)
			r.text.WriteRune(ch)
		}
	}
	r.end(n)
	return nil
}

// units are the characters as UTF-16, all at once where the engine's text has
// one for each.
func (r *reading) units(n int) ([]uint16, error) {
	if text, err := r.engine.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: r.page, StartIndex: 0, Count: n}); err == nil {
		if units := utf16.Encode([]rune(strings.TrimRight(text.Text, "\x00"))); len(units) == n {
			return units, nil
		}
	}
	units := make([]uint16, n)
	for i := range units {
		c, err := r.engine.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: r.page, Index: i})
		if err != nil {
			return nil, err
		}
		units[i] = uint16(min(c.Unicode, 0xFFFD))
	}
	return units, nil
}

func (r *reading) start(i int) {
	if r.from < 0 {
		r.from = i
	}
}

// end keeps the open word, whose last character is before to.
func (r *reading) end(to int) {
	if r.from < 0 {
		return
	}
	w := word{text: r.text.String(), spaced: r.spaced}
	from := r.from
	r.text.Reset()
	r.from, r.spaced = -1, false
	if !r.place(&w, from, to-1) {
		return
	}
	n := utf8.RuneCountInString(w.text)
	r.chars += n
	if bad, err := r.engine.FPDFText_HasUnicodeMapError(&requests.FPDFText_HasUnicodeMapError{TextPage: r.page, Index: from}); err == nil && bad.HasUnicodeMapError {
		r.lost += n
	} else {
		r.lost += unreadable(w.text)
	}
	r.words = append(r.words, w)
}

// place fills in where a word stands, by its first and last character; false:
// nowhere.
func (r *reading) place(w *word, first, last int) bool {
	origin, err := r.engine.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: r.page, Index: first})
	if err != nil {
		return false
	}
	scale := 1.0
	if m, err := r.engine.FPDFText_GetMatrix(&requests.FPDFText_GetMatrix{TextPage: r.page, Index: first}); err == nil {
		scale = math.Hypot(float64(m.Matrix.C), float64(m.Matrix.D))
		w.turn = quarter(float64(m.Matrix.A), float64(m.Matrix.B))
	}
	if size, err := r.engine.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: r.page, Index: first}); err == nil {
		w.size = max(math.Abs(size.FontSize)*scale, 1)
	}
	if weight, err := r.engine.FPDFText_GetFontWeight(&requests.FPDFText_GetFontWeight{TextPage: r.page, Index: first}); err == nil {
		w.bold = weight.FontWeight >= 600
	}
	// A font that is not in the file has no weight, but a name. It is asked for
	// where the beginning of the line leaves it open whether all is bold.
	if n := len(r.words); !w.bold && (n == 0 || r.words[n-1].bold || r.newLine) {
		if font, err := r.engine.FPDFText_GetFontInfo(&requests.FPDFText_GetFontInfo{TextPage: r.page, Index: first}); err == nil {
			w.bold = boldName.MatchString(font.FontName)
		}
	}
	r.newLine = false
	x, baseline := turned(origin.X, origin.Y, w.turn)
	w.left, w.right = x, x
	w.top, w.bottom = baseline-0.72*w.size, baseline+0.22*w.size
	if l, r, ok := r.sides(last, w.turn); ok {
		w.left, w.right = min(w.left, l), max(w.right, r)
	}
	return true
}

// sides are the left and right side of a character with the space that its font
// gives it. Every call of the engine counts here, and this one needs fewest.
func (r *reading) sides(i, turn int) (left, right float64, ok bool) {
	b, err := r.engine.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: r.page, Index: i})
	if err != nil {
		return 0, 0, false
	}
	x1, _ := turned(float64(b.Rect.Left), float64(b.Rect.Bottom), turn)
	x2, _ := turned(float64(b.Rect.Right), float64(b.Rect.Top), turn)
	return min(x1, x2), max(x1, x2), true
}

// quarter is the direction of text in quarters to the left, -1 if it is askew.
func quarter(a, b float64) int {
	angle := math.Atan2(b, a) / (math.Pi / 2)
	q := math.Round(angle)
	if math.Abs(angle-q) > 0.1 {
		return -1
	}
	return (int(q) + 4) % 4
}

// turned makes the coordinates of a page, whose y grows upwards, those of text
// that is turned to the left by quarters.
func turned(x, y float64, quarters int) (float64, float64) {
	switch quarters {
	case 1:
		return y, x
	case 2:
		return -x, y
	case 3:
		return -y, -x
	}
	return x, -y
}

// unreadable counts the characters that stand for none: of private use, without
// a meaning, control characters.
func unreadable(s string) int {
	n := 0
	for _, c := range s {
		if c == 0xFFFD || c >= 0xE000 && c <= 0xF8FF || c < ' ' || c >= 0x7F && c < 0xA0 {
			n++
		}
	}
	if strings.Contains(s, "(cid:") {
		return len([]rune(s))
	}
	return n
}

// hyphen is what the engine makes of a hyphen at a line end.
const hyphen = 0x02
