package pdf

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// segment is a stretch of words on one line with no more than the gap of a
// word between them: a line of a column, or a cell.
type segment struct {
	word
	chars   int
	id      int  // its place among those that are arranged
	tabular bool // a cell of a table across the columns
}

// row is what stands on one line of a column: one segment, or the cells of a
// table.
type row struct {
	cells    []segment
	top      float64
	bottom   float64
	size     float64
	bold     bool
	breaking bool // the first of a column or band
	aside    bool // turned otherwise than the page
}

func (r row) text() string {
	var out []string
	for _, c := range r.cells {
		out = append(out, c.text)
	}
	return strings.Join(out, "\t")
}

func (r row) left() float64 { return r.cells[0].left }

// layout puts the words of a page into rows in reading order. What is turned
// otherwise than most of the page, such as a note on its margin, comes last; what
// is askew, such as a stamp across it, is left out.
func layout(words []word) []row {
	var turned [4][]word
	for _, w := range words {
		if w.turn >= 0 {
			turned[w.turn] = append(turned[w.turn], w)
		}
	}
	slices.SortStableFunc(turned[:], func(a, b []word) int { return len(b) - len(a) })
	var out []row
	for _, part := range turned {
		if len(part) > 0 {
			some := arrange(segments(part), 0)
			some[0].breaking = true
			for i := range some {
				some[i].aside = len(out) > 0
			}
			out = append(out, some...)
		}
	}
	return out
}

// near is the gap within a segment at most, in sizes of the font.
const near = 1.0

// segments joins words that follow one another on a line, to the right or, in
// scripts that run that way, to the left.
func segments(words []word) []segment {
	var out []segment
	for _, w := range words {
		if n := len(out); n > 0 && sameLine(out[n-1].word, w) {
			l := &out[n-1]
			gap, size := w.left-l.right, max(l.size, w.size)
			if toLeft(w.text) && toLeft(l.text) {
				gap = l.left - w.right
			} else if w.left < l.left {
				gap = math.Inf(1)
			}
			if gap < near*size && gap > -0.5*size {
				l.append(w, gap)
				continue
			}
		}
		out = append(out, segment{word: w, chars: utf8.RuneCountInString(w.text)})
	}
	return rejoin(out)
}

// toLeft reports a script that runs to the left.
func toLeft(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Arabic, unicode.Hebrew) })
}

// append adds a word behind a gap. Without a gap or space it is the same word.
func (s *segment) append(w word, gap float64) {
	if w.spaced || gap > 0.12*max(s.size, w.size) {
		s.text += " "
	}
	s.text += w.text
	s.chars += utf8.RuneCountInString(w.text)
	s.left, s.right, s.top, s.bottom = min(s.left, w.left), max(s.right, w.right), min(s.top, w.top), max(s.bottom, w.bottom)
	s.size = max(s.size, w.size)
	s.bold = s.bold && w.bold
}

// sameLine reports that two words overlap in height by more than half of the
// lower one.
func sameLine(a, b word) bool {
	overlap := min(a.bottom, b.bottom) - max(a.top, b.top)
	return overlap > 0.5*min(a.bottom-a.top, b.bottom-b.top) || math.Abs(a.bottom-b.bottom) < 0.15*min(a.size, b.size)
}

// rejoin joins segments that the file writes in another order than they stand.
func rejoin(all []segment) []segment {
	slices.SortStableFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(math.Round(a.bottom), math.Round(b.bottom)), cmp.Compare(a.left, b.left))
	})
	var out []segment
	for _, s := range all {
		joined := false
		for i := len(out) - 1; i >= max(0, len(out)-24) && !joined; i-- {
			gap := s.left - out[i].right
			if l := &out[i]; sameLine(l.word, s.word) && gap > -0.3*s.size && gap < 0.6*max(l.size, s.size) && s.left > l.left {
				bold := l.bold && s.bold
				l.append(s.word, gap)
				l.bold = bold
				joined = true
			}
		}
		if !joined {
			out = append(out, s)
		}
	}
	return out
}

// maxColumns bounds how often a page is cut in two.
const maxColumns = 4

// arrange reads columns one after another where there are any. What spans
// them, lines and whole tables, cuts the page into bands; bands without columns
// are read row by row.
func arrange(all []segment, depth int) []row {
	markTables(all)
	at, ok := gutter(all)
	if depth >= maxColumns || !ok {
		return rows(all)
	}
	var out []row
	var band []segment
	wide := false
	flush := func() {
		some := rows
		if !wide {
			some = func(band []segment) []row { return bandRows(band, at, depth) }
		}
		if len(band) > 0 {
			next := some(band)
			next[0].breaking = true
			out = append(out, next...)
		}
		band = nil
	}
	byTop(all)
	for _, s := range all {
		if spans := s.tabular || s.left < at && s.right > at; spans != wide {
			flush()
			wide = spans
		}
		band = append(band, s)
	}
	flush()
	return out
}

// maxCell is the length of a cell of a table that is known by its cells alone.
const maxCell = 24

// markTables marks the cells of tables that lie across the columns: at least
// three short cells in line with those of the next row.
func markTables(all []segment) {
	for i := range all {
		all[i].id, all[i].tabular = i, false
	}
	grid := onLines(slices.Clone(all))
	cells := func(r row) bool {
		return len(r.cells) > 2 && !slices.ContainsFunc(r.cells, func(c segment) bool { return c.chars > maxCell })
	}
	for i := 1; i < len(grid); i++ {
		if a, b := grid[i-1], grid[i]; cells(a) && cells(b) && aligned(a, b) {
			for _, c := range append(slices.Clone(a.cells), b.cells...) {
				all[c.id].tabular = true
			}
		}
	}
}

func byTop(all []segment) {
	slices.SortStableFunc(all, func(a, b segment) int { return cmp.Or(cmp.Compare(a.top, b.top), cmp.Compare(a.left, b.left)) })
}

// bandRows reads what lies between two spanning lines.
func bandRows(band []segment, at float64, depth int) []row {
	var left, right []segment
	for _, s := range band {
		if s.right <= at {
			left = append(left, s)
		} else {
			right = append(right, s)
		}
	}
	if len(left) == 0 || len(right) == 0 || !prose(left) || !prose(right) {
		return rows(band)
	}
	a, b := arrange(left, depth+1), arrange(right, depth+1)
	a[0].breaking, b[0].breaking = true, true
	return append(a, b...)
}

// prose tells columns of text from columns of a table: there is one segment
// for each line, or they are long, and they fill their lines.
func prose(side []segment) bool {
	chars, widths, rows := 0, 0.0, 0
	left, right := math.Inf(1), math.Inf(-1)
	bottom := math.Inf(-1)
	sorted := slices.Clone(side)
	byTop(sorted)
	for _, s := range sorted {
		chars += s.chars
		widths += s.right - s.left
		left, right = min(left, s.left), max(right, s.right)
		if s.top > bottom-0.5*(s.bottom-s.top) {
			rows++
			bottom = s.bottom
		}
	}
	single := float64(len(side)) <= 1.35*float64(rows)
	return (single && chars >= 12*len(side) || chars >= 24*len(side)) && widths >= 0.65*float64(rows)*(right-left)
}

// gutter finds the middle of the best white stretch between two columns: few
// lines cross it, and on each side stand several lines of prose.
func gutter(all []segment) (float64, bool) {
	if len(all) < 6 {
		return 0, false
	}
	left, right := math.Inf(1), math.Inf(-1)
	for _, s := range all {
		left, right = min(left, s.left), max(right, s.right)
	}
	width := right - left
	best, bestScore := 0.0, 0.0
	for x := left + 0.12*width; x < right-0.12*width; x += max(width/400, 0.5) {
		if score := columns(all, x); score > bestScore {
			best, bestScore = x, score
		}
	}
	return best, bestScore > 0
}

// columns scores a place for a gutter: the lines beside it, less those that
// cross it, and the white around it. 0: none.
func columns(all []segment, x float64) float64 {
	var left, right []segment
	crossing := 0
	white := math.Inf(1)
	for _, s := range all {
		switch {
		case s.tabular:
		case s.right <= x:
			left = append(left, s)
			white = min(white, 2*(x-s.right))
		case s.left >= x:
			right = append(right, s)
			white = min(white, 2*(s.left-x))
		default:
			crossing++
		}
	}
	side := min(len(left), len(right))
	if side < 4 || crossing > len(left)+len(right) || white < 2 || !prose(left) || !prose(right) {
		return 0
	}
	return float64(side-crossing) + float64(len(all)) + min(white, 30)/30
}

// rows reads segments line by line, cells from left to right.
func rows(all []segment) []row { return tables(onLines(all)) }

// onLines gathers what stands on the same line.
func onLines(all []segment) []row {
	byTop(all)
	var out []row
	for _, s := range all {
		i := len(out) - 1
		for ; i >= max(0, len(out)-6); i-- {
			if r := out[i]; sameLine(word{top: r.top, bottom: r.bottom, size: r.size}, s.word) && free(r, s) {
				break
			}
		}
		if i < 0 || i < len(out)-6 {
			out = append(out, row{cells: []segment{s}, top: s.top, bottom: s.bottom, size: s.size, bold: s.bold})
			continue
		}
		out[i].cells = append(out[i].cells, s)
		out[i].bold = out[i].bold && s.bold
		if s.bottom-s.top > out[i].bottom-out[i].top {
			out[i].top, out[i].bottom, out[i].size = s.top, s.bottom, max(s.size, out[i].size)
		}
	}
	for _, r := range out {
		slices.SortStableFunc(r.cells, func(a, b segment) int {
			if toLeft(a.text) && toLeft(b.text) {
				return cmp.Compare(b.right, a.right)
			}
			return cmp.Compare(a.left, b.left)
		})
	}
	return out
}

// free reports that no cell of a row stands where s does.
func free(r row, s segment) bool {
	for _, c := range r.cells {
		if min(c.right, s.right)-max(c.left, s.left) > 0.3*min(c.right-c.left, s.right-s.left) {
			return false
		}
	}
	return true
}

// tables tells rows of a table from lines with a wide gap: a row of a table has
// a neighbour with a cell, not its first, at the same side. Lines that hang
// below a cell go on with it.
func tables(all []row) []row {
	tabular := make([]bool, len(all))
	for i := range all {
		if j := above(all, i); j >= 0 {
			tabular[i], tabular[j] = true, true
		}
	}
	var out []row
	base := -1 // of all, the last row of the open table
	for i, r := range all {
		if base >= 0 && wraps(all, tabular, base, i) && out[len(out)-1].goesOn(r) {
			continue
		}
		if base = -1; tabular[i] {
			base = i
		} else {
			r = r.line()
		}
		out = append(out, r)
	}
	return out
}

// maxWrap bounds the lines of one cell.
const maxWrap = 12

// above finds the row of a table that stands above i, with nothing but lines
// between them that hang below a cell: -1 none.
func above(all []row, i int) int {
	for j := i - 1; j >= max(0, i-maxWrap); j-- {
		if aligned(all[j], all[i]) && !hangs(all[i], all[j]) {
			return j
		}
		if len(all[j].cells) > 1 && !hangs(all[j], all[max(0, j-1)]) && !hangs(all[j], all[max(0, j-2)]) || all[j+1].top-all[j].bottom > 2*all[j].size {
			break
		}
	}
	if i > 0 && aligned(all[i-1], all[i]) {
		return i - 1
	}
	return -1
}

// hangs reports a row whose first cell lies right of the first of another.
func hangs(r, of row) bool { return r.left() >= of.cells[0].right }

// wraps reports that line i is more of the cells of the row base: it hangs below
// them. One of several cells does only if the lines of a row stand closer than
// the rows; one alone if another row of the table follows, or it begins exactly
// below a cell.
func wraps(all []row, tabular []bool, base, i int) bool {
	r, b := all[i], all[base]
	if !hangs(r, b) || r.top <= b.top {
		return false
	}
	next := i + 1
	for next < len(all) && next < i+maxWrap && hangs(all[next], b) {
		next++
	}
	follows := next < len(all) && tabular[next]
	if len(r.cells) == 1 {
		return follows && (next == i+1 || under(r.cells[0], b)) || under(r.cells[0], b)
	}
	for _, c := range r.cells {
		if !under(c, b) {
			return false
		}
	}
	apart := math.Inf(1)
	switch {
	case follows:
		apart = all[next].top - all[next-1].top
	case base > 0:
		apart = b.top - all[base-1].top
	}
	return r.top-all[i-1].top < 0.85*apart
}

// under reports that a cell begins where one of a row does, or has its middle
// there.
func under(c segment, of row) bool {
	for _, d := range of.cells[1:] {
		if math.Abs(c.left-d.left) < 0.5*c.size || math.Abs(c.left+c.right-d.left-d.right) < c.size {
			return true
		}
	}
	return false
}

// aligned reports that two rows share the side of a cell that is not the first
// of both, or their middle.
func aligned(a, b row) bool {
	if len(a.cells) < 2 || len(b.cells) < 2 {
		return false
	}
	for i, c := range a.cells {
		for j, d := range b.cells {
			near := 0.5 * max(c.size, d.size)
			if i > 0 && j > 0 && (math.Abs(c.left-d.left) < near || math.Abs(c.right-d.right) < near || math.Abs(c.left+c.right-d.left-d.right) < 2*near) {
				return true
			}
		}
	}
	return false
}

// goesOn adds a line to the cells that it stands below, or beside the others
// where it stands below none.
func (r *row) goesOn(line row) bool {
	if line.top-r.bottom > 0.5*line.size {
		return false
	}
	for _, s := range line.cells {
		r.more(s)
	}
	r.bottom = max(r.bottom, line.bottom)
	return true
}

func (r *row) more(s segment) {
	at := len(r.cells)
	for i := range r.cells {
		c := &r.cells[i]
		if min(c.right, s.right) > max(c.left, s.left) {
			c.text = joined(c.text, s.text)
			c.chars += s.chars
			return
		}
		if c.left > s.left && at == len(r.cells) {
			at = i
		}
	}
	r.cells = slices.Insert(r.cells, at, s)
}

// line makes one segment of the cells of a row that is none of a table.
func (r row) line() row {
	one := r.cells[0]
	for _, c := range r.cells[1:] {
		c.spaced = true
		one.append(c.word, math.Abs(c.left-one.right))
	}
	r.cells = []segment{one}
	return r
}
