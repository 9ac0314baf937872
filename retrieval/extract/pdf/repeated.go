package pdf

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxEdge is how many lines from the top and from the bottom of a page may be
// header and footer.
const maxEdge = 12

// pageNumber is a line that only counts the pages, in common languages.
var pageNumber = regexp.MustCompile(`(?i)^[-–— ]*((page|seite|página|pagina|p\.|strana|стр\.?|쪽|페이지|ページ)\s*)?\d{1,4}(\s*(of|von|de|sur|di|/)\s*\d{1,5})?\s*(쪽|페이지|ページ|页)?[-–— ]*$`)

var digits = regexp.MustCompile(`[0-9]+`)

// edgeLine is a line at an edge of pages, without what counts the pages.
type edgeLine struct {
	text string
	at   float64 // of its top, rounded
}

func lineOf(r row) edgeLine {
	return edgeLine{digits.ReplaceAllString(strings.Join(strings.Fields(r.text()), " "), "#"), math.Round(r.top / 4)}
}

// strip takes headers and footers off the pages and returns their texts. A
// line is one of them if it stands at the same place on at least half of the
// pages, or on three, with nothing but such lines between it and the edge, and
// its numbers are the same or count the pages. The
// first row of cells stays: it names the columns of a table that goes on. So does
// the first of large text, which is the title or the sender. What comes several
// times on one page is content.
func (b *book) strip() []string {
	count, texts, varies, other := map[edgeLine]int{}, map[edgeLine]string{}, map[edgeLine]bool{}, map[edgeLine]bool{}
	last := map[edgeLine]counting{}
	for _, p := range b.pages {
		seen, often := map[edgeLine]bool{}, map[string]int{}
		for _, r := range p.rows {
			often[lineOf(r).text]++
		}
		for _, i := range edges(p.rows) {
			if l := lineOf(p.rows[i]); !seen[l] {
				seen[l] = true
				count[l]++
				other[l] = other[l] || often[l.text] > 2
				now := counting{p.number, figures(p.rows[i])}
				if old, ok := last[l]; ok && !old.goesOn(now) {
					other[l] = true
				}
				last[l] = now
				if text := p.rows[i].text(); texts[l] == "" {
					texts[l] = text
				} else if texts[l] != text {
					varies[l] = true
				}
			}
		}
	}
	need := min(3, max(2, (len(b.pages)+1)/2))
	body := b.body()
	s := stripper{many: len(b.pages) > 1, repeated: func(l edgeLine) bool {
		// The rounding may fall either way.
		return !other[l] && max(count[l], count[edgeLine{l.text, l.at - 1}]+count[l], count[edgeLine{l.text, l.at + 1}]+count[l]) >= need && len(b.pages) > 1
	}, counted: func(r row) bool {
		// Large text that counts is "Step 1", "Step 2": a heading.
		return varies[lineOf(r)] && r.size > 1.1*body
	}, large: func(r row) bool { return r.size >= larger*body }, tables: map[string]bool{}}
	kept, left := make([][]row, len(b.pages)), 0
	for i := range b.pages {
		kept[i] = s.page(b.pages[i].rows)
		left += len(kept[i])
	}
	if left == 0 {
		return nil // pages that are all alike are no headers
	}
	for i := range b.pages {
		b.pages[i].rows = kept[i]
	}
	return s.texts
}

// counting is what the numbers of a line are on a page.
type counting struct {
	page    int
	figures []string
}

func figures(r row) []string { return digits.FindAllString(r.text(), -1) }

// goesOn reports that the numbers of a line on a later page are the same, count
// the pages, or begin again at 1. Others are content, as those of a table whose
// rows are otherwise alike.
func (c counting) goesOn(next counting) bool {
	for i, was := range c.figures {
		is := next.figures[i]
		from, err1 := strconv.Atoi(was)
		to, err2 := strconv.Atoi(is)
		if was != is && (err1 != nil || err2 != nil || to-from != next.page-c.page && to != 1) {
			return false
		}
	}
	return true
}

// edges are the lines that may be header or footer: top to bottom the first
// and the last.
func edges(rows []row) []int {
	order := byPlace(rows)
	if len(order) <= 2*maxEdge {
		return order
	}
	return append(slices.Clone(order[:maxEdge]), order[len(order)-maxEdge:]...)
}

// byPlace orders lines from the top of the page, whatever the reading order.
func byPlace(rows []row) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(math.Round(rows[a].top)) - int(math.Round(rows[b].top))
	})
	return order
}

// bareNumber is a line of a number only, which may be more than that of a page.
var bareNumber = regexp.MustCompile(`^\d+$`)

// counts reports a line that counts the pages.
func (s *stripper) counts(text string) bool {
	text = strings.TrimSpace(text)
	return pageNumber.MatchString(text) && (!bareNumber.MatchString(text) || s.many && len(text) < 4)
}

type stripper struct {
	many     bool // pages
	repeated func(edgeLine) bool
	counted  func(row) bool  // a heading with a number of its own
	large    func(row) bool  // a title
	tables   map[string]bool // column names kept once
	texts    []string
}

func (s *stripper) page(rows []row) []row {
	drop := map[int]bool{}
	order := byPlace(rows)
	walk := func(order []int) {
		for n, i := range order {
			l := lineOf(rows[i])
			switch {
			case n == 0 && s.counts(rows[i].text()):
				drop[i] = true
			case n < maxEdge && s.repeated(l) && !s.counted(rows[i]):
				drop[i] = s.take(rows[i], l)
			default:
				return
			}
		}
	}
	walk(order)
	slices.Reverse(order)
	walk(order)
	var kept []row
	for i, r := range rows {
		if !drop[i] {
			kept = append(kept, r)
		}
	}
	return kept
}

// take notes a line to leave out, and reports whether it is to be.
func (s *stripper) take(r row, l edgeLine) bool {
	if (len(r.cells) > 2 || s.large(r)) && !s.tables[l.text] {
		s.tables[l.text] = true
		return false
	}
	if text := strings.Join(strings.Fields(r.text()), " "); strings.Trim(l.text, "# /|-–.") != "" && !s.tables[l.text] {
		s.tables[l.text] = true
		s.texts = append(s.texts, text)
	}
	return true
}
