package pdf

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
)

// writing makes blocks of lines.
type writing struct {
	d       *draft.Document
	body    float64
	levels  []float64
	outline map[string]int
	largest string  // text of the largest heading of the first page
	size    float64 // its size

	open    []row // lines of the open paragraph
	kind    doctree.Kind
	level   int
	pitch   float64 // usual distance of lines
	ocr     bool
	number  int
	inTable bool
}

// page writes the lines of one page.
func (w *writing) page(p leaf) {
	w.flush()
	w.inTable = false
	w.d.Break()
	w.number, w.ocr = p.number, p.ocr
	w.d.Place = placeOf(p.number)
	w.pitch = pitch(p.rows)
	for i, r := range p.rows {
		if len(r.cells) > 1 {
			w.row(r, p.rows, i)
			continue
		}
		w.inTable = false
		w.line(r)
	}
}

// pitch is the most frequent distance between the tops of two lines.
func pitch(rows []row) float64 {
	count := map[float64]int{}
	best := 0.0
	for i := 1; i < len(rows); i++ {
		d := half(rows[i].top - rows[i-1].top)
		if d <= 0 || d > 2.6*rows[i].size {
			continue
		}
		if count[d]++; count[d] > count[best] || count[d] == count[best] && d < best {
			best = d
		}
	}
	return best
}

// row writes a row of a table. The first of a table names its columns if it
// holds words only and another row follows.
func (w *writing) row(r row, rows []row, i int) {
	w.flush()
	if !w.inTable {
		w.d.Break()
	}
	var cells []string
	numbers := false
	for _, c := range r.cells {
		cells = append(cells, tidy(c.text))
		numbers = numbers || draft.Number(c.text)
	}
	head := !w.inTable && !numbers && i+1 < len(rows) && len(rows[i+1].cells) > 1
	w.inTable = true
	w.d.Row(head, cells)
}

var bullet = regexp.MustCompile(`^([•▪◦‣●○■□–—*·\x{F0B7}]\s*|\(?[0-9]{1,2}[.)]\s+|\(?[a-z][.)]\s+|[-]\s+)`)

// line adds a line to the open block or begins another one.
func (w *writing) line(r row) {
	kind, level := w.kindOf(r)
	if len(w.open) > 0 && (kind == doctree.Item || w.breaks(r, kind, level)) {
		w.flush()
	}
	if len(w.open) == 0 {
		w.kind, w.level = kind, level
	}
	w.open = append(w.open, r)
}

// maxHeading is the length of a heading in characters.
const maxHeading = 160

// kindOf says what a line begins if it begins a block.
func (w *writing) kindOf(r row) (doctree.Kind, int) {
	text := tidy(r.text())
	n := utf8.RuneCountInString(text)
	if w.ocr || r.aside || n > maxHeading || !strings.ContainsFunc(text, unicode.IsLetter) {
		return w.plainKind(text), 0
	}
	if level := w.outline[alike(text)]; level > 0 {
		return doctree.Heading, level
	}
	if size := half(r.size); size >= larger*w.body && !strings.HasSuffix(text, ",") {
		return doctree.Heading, min(1+slices.Index(w.levels, size), 5)
	}
	if r.bold && n <= 80 && n > 2 && !strings.ContainsAny(text[len(text)-1:], ".,;:") {
		return doctree.Heading, min(len(w.levels)+1, 6)
	}
	return w.plainKind(text), 0
}

func (w *writing) plainKind(text string) doctree.Kind {
	if bullet.MatchString(text) {
		return doctree.Item
	}
	return doctree.Paragraph
}

// breaks reports that a line begins another block than the open one.
func (w *writing) breaks(r row, kind doctree.Kind, level int) bool {
	last := w.open[len(w.open)-1]
	if w.kind == doctree.Heading || kind == doctree.Heading {
		return w.kind != kind || w.level != level || r.top-last.bottom > 0.9*last.size || r.top < last.top
	}
	if r.breaking || r.top < last.top {
		return !continues(last, r)
	}
	gap := r.top - last.top
	switch {
	case half(r.size) != half(last.size) && (r.size > 1.12*last.size || last.size > 1.12*r.size):
		return true
	case gap > 1.35*max(w.pitch, 1.05*last.size):
		return true
	case r.left() > w.open[0].left()+0.8*r.size && len(w.open) > 1 && w.kind == doctree.Paragraph && r.left() > last.left()+0.8*r.size:
		return true // indented first line
	}
	return false
}

// continues reports that a sentence goes on from the foot of a column to the
// head of the next.
func continues(last, next row) bool {
	a, b := strings.TrimSpace(last.text()), strings.TrimSpace(next.text())
	end, _ := utf8.DecodeLastRuneInString(a)
	start, _ := utf8.DecodeRuneInString(b)
	return unicode.IsLower(start) && !strings.ContainsRune(".!?:;", end)
}

// flush writes the open block.
func (w *writing) flush() {
	if len(w.open) == 0 {
		return
	}
	rows := w.open
	w.open = nil
	text := join(rows)
	switch w.kind {
	case doctree.Heading:
		if w.number == 1 && rows[0].size > w.size {
			w.size, w.largest = rows[0].size, text
		}
		w.d.Heading(max(w.level, 1), text)
	default:
		w.d.Add(w.kind, text)
	}
}

// join makes one text of lines: a word that a hyphen cuts at a line end is
// whole again, and where the script has no spaces none is put.
func join(rows []row) string {
	text := ""
	for _, r := range rows {
		text = joined(text, tidy(r.text()))
	}
	return tidy(text)
}

// joined is a text with one more line.
func joined(text, line string) string {
	cut, ok := hyphenated(text, line)
	switch {
	case text == "", ok:
		return cut + line
	case compound.MatchString(text), spaceless(text, line): // the hyphen is its own
		return text + line
	}
	return text + " " + line
}

// hyphenated takes the hyphen off the end of a line that goes on in small
// letters.
func hyphenated(before, line string) (string, bool) {
	last, n := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(line)
	if last != '-' && last != 0xAD && last != '‐' || !unicode.IsLower(next) {
		return before, false
	}
	cut := before[:len(before)-n]
	letter, _ := utf8.DecodeLastRuneInString(cut)
	return cut, unicode.IsLetter(letter)
}

// compound is a line that ends with a word and a hyphen.
var compound = regexp.MustCompile(`[\pL\pN]-$`)

// spaceless reports that both lines meet in a script without spaces.
func spaceless(before, line string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(line)
	return dense(last) && dense(next)
}

func dense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3001 && r <= 0x3003 || r >= 0xFF01 && r <= 0xFF5E
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st", "\x02", "-", "\ufffe", "-")

// tidy writes ligatures as letters, and hyphens of line ends as such.
func tidy(s string) string { return strings.TrimSpace(ligatures.Replace(s)) }
