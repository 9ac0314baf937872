package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/klippa-app/go-pdfium"
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
	memoryPages = 8192 // of 64 kB: 512 MB for each of them
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

// outline is the level of each bookmark by its title, from 1.
func (d *document) outline() map[string]int {
	out := map[string]int{}
	r, err := d.engine.GetBookmarks(&requests.GetBookmarks{Document: d.ref})
	if err != nil {
		return out
	}
	levels(out, r.Bookmarks, 1)
	return out
}

// maxBookmarks bounds how much of an outline is read.
const maxBookmarks = 10_000

func levels(out map[string]int, marks []responses.GetBookmarksBookmark, level int) {
	for _, m := range marks {
		if key := alike(m.Title); key != "" && len(out) < maxBookmarks {
			if _, known := out[key]; !known {
				out[key] = level
			}
		}
		if level < 6 {
			levels(out, m.Children, level+1)
		}
	}
}

// word is a run of characters without space, in points from the top left
// corner of the page as it is shown.
type word struct {
	text                     string
	left, top, right, bottom float64
	size                     float64 // of the font
	bold                     bool
}

// sheet is a page as the engine reads it.
type sheet struct {
	words         []word
	width, height float64
	chars         int // that are no space
	lost          int // of them, whose font does not say what they are
}

// page reads one page, from 0, and closes it again.
func (d *document) page(n int) (sheet, error) {
	loaded, err := d.engine.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: n})
	if err != nil {
		return sheet{}, err
	}
	defer func() { _, _ = d.engine.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}) }()
	r := reading{engine: d.engine, turn: upright}
	if err := r.orient(loaded.Page); err != nil {
		return sheet{}, err
	}
	text, err := d.engine.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: requests.Page{ByReference: &loaded.Page}})
	if err != nil {
		return sheet{}, err
	}
	defer func() {
		_, _ = d.engine.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage})
	}()
	r.text = text.TextPage
	return r.sheet, r.read()
}

// reading is a page being read.
type reading struct {
	sheet
	engine pdfium.Pdfium
	text   references.FPDF_TEXTPAGE
	turn   func(x, y, w, h float64) (float64, float64)
}

// upright turns the coordinates of a page, from its bottom left corner, to
// those of the page as shown, from the top left. w and h are as shown.
func upright(x, y, _, h float64) (float64, float64)  { return x, h - y }
func turned90(x, y, _, _ float64) (float64, float64) { return y, x }
func turned180(x, y, w, _ float64) (float64, float64) {
	return w - x, y
}
func turned270(x, y, w, h float64) (float64, float64) { return w - y, h - x }

func (r *reading) orient(page references.FPDF_PAGE) error {
	ref := requests.Page{ByReference: &page}
	width, err1 := r.engine.FPDF_GetPageWidth(&requests.FPDF_GetPageWidth{Page: ref})
	height, err2 := r.engine.FPDF_GetPageHeight(&requests.FPDF_GetPageHeight{Page: ref})
	rotation, err3 := r.engine.FPDFPage_GetRotation(&requests.FPDFPage_GetRotation{Page: ref})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	r.width, r.height = width.Width, height.Height
	r.turn = []func(x, y, w, h float64) (float64, float64){upright, turned90, turned180, turned270}[int(rotation.PageRotation)&3]
	return nil
}

// maxChars bounds the characters of one page.
const maxChars = 500_000

// read makes words. The engine puts a space or a line end between what stands
// apart; words it took apart for nothing are joined by the layout.
func (r *reading) read() error {
	count, err := r.engine.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: r.text})
	if err != nil {
		return err
	}
	from, high := -1, rune(0)
	var text strings.Builder
	for i := range min(count.Count, maxChars) {
		c, err := r.engine.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: r.text, Index: i})
		if err != nil {
			return err
		}
		ch := rune(c.Unicode)
		if utf16.IsSurrogate(ch) {
			if ch < 0xDC00 {
				if high = ch; from < 0 {
					from = i
				}
				continue
			}
			ch = utf16.DecodeRune(high, ch)
		}
		switch {
		case ch == ' ' || ch == '\r' || ch == '\n' || ch == '\t' || ch == 0xA0 || ch == 0x3000:
			if err := r.add(text.String(), from, i); err != nil {
				return err
			}
			text.Reset()
			from = -1
		default:
			if from < 0 {
				from = i
			}
			text.WriteRune(ch)
		}
	}
	return r.add(text.String(), from, min(count.Count, maxChars))
}

// add keeps the word of the characters [from, to).
func (r *reading) add(text string, from, to int) error {
	if from < 0 || text == "" {
		return nil
	}
	first, err := r.box(from)
	if err != nil {
		return nil // a character that is nowhere on the page
	}
	last, err := r.box(to - 1)
	if err != nil {
		last = first
	}
	w := word{text: text, left: min(first.left, last.left), top: min(first.top, last.top), right: max(first.right, last.right), bottom: max(first.bottom, last.bottom)}
	if size, err := r.engine.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: r.text, Index: from}); err == nil {
		w.size = size.FontSize
	}
	if weight, err := r.engine.FPDFText_GetFontWeight(&requests.FPDFText_GetFontWeight{TextPage: r.text, Index: from}); err == nil {
		w.bold = weight.FontWeight >= 600
	}
	if h := w.bottom - w.top; w.size <= 1 || w.size < 0.5*h && to-from > 1 { // scaled by the matrix
		w.size = max(h, 1)
	}
	n := len([]rune(text))
	r.chars += n
	if bad, err := r.engine.FPDFText_HasUnicodeMapError(&requests.FPDFText_HasUnicodeMapError{TextPage: r.text, Index: from}); err == nil && bad.HasUnicodeMapError {
		r.lost += n
	} else {
		r.lost += unreadable(text)
	}
	r.words = append(r.words, w)
	return nil
}

func (r *reading) box(i int) (word, error) {
	b, err := r.engine.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: r.text, Index: i})
	if err != nil {
		return word{}, err
	}
	x1, y1 := r.turn(b.Left, b.Bottom, r.width, r.height)
	x2, y2 := r.turn(b.Right, b.Top, r.width, r.height)
	return word{left: min(x1, x2), right: max(x1, x2), top: min(y1, y2), bottom: max(y1, y2)}, nil
}

// unreadable counts the characters that stand for none: of private use, without
// a meaning, control characters.
func unreadable(s string) int {
	n := 0
	for _, c := range s {
		if c == 0xFFFD || c >= 0xE000 && c <= 0xF8FF || c < ' ' && c != hyphen || c >= 0x7F && c < 0xA0 {
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
