package cite

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/width"
)

// maxCell bounds a cell of a table, in characters.
const maxCell = 60

// Grid lays a table out in columns for a font of equal widths, its cells
// without markup: a Markdown table, or rows of cells between bars or tabs. What
// is no table stays as it is.
func Grid(table string) string {
	var rows [][]string
	lines := strings.Split(strings.Trim(table, "\n"), "\n")
	split := cells
	if !slices.ContainsFunc(lines, func(l string) bool { return !strings.Contains(l, "\t") }) {
		split = tabbed
	}
	for _, l := range lines {
		c := split(l)
		if c == nil {
			return table
		}
		if !rule(c) {
			rows = append(rows, c)
		}
	}
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(c))
		}
	}
	var b strings.Builder
	for n, r := range rows {
		writeRow(&b, r, widths)
		if n == 0 && len(rows) > 1 {
			under := make([]string, len(widths))
			for i, w := range widths {
				under[i] = strings.Repeat("-", max(w, 1))
			}
			writeRow(&b, under, widths)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	var l strings.Builder
	for i, c := range row {
		if i > 0 {
			l.WriteString("  ")
		}
		l.WriteString(c + strings.Repeat(" ", max(0, widths[i]-columns(c))))
	}
	b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
}

// tabbed splits a row at its tabs.
func tabbed(l string) []string {
	out := strings.Split(l, "\t")
	for i := range out {
		out[i] = cell(out[i])
	}
	return out
}

// cells splits a row at its unescaped bars, nil if it has none.
func cells(l string) []string {
	l = strings.TrimSpace(l)
	if !strings.Contains(l, "|") {
		return nil
	}
	l = strings.TrimSuffix(strings.TrimPrefix(l, "|"), "|")
	var out []string
	var c strings.Builder
	code := false
	for i := 0; i < len(l); i++ {
		switch {
		case l[i] == '\\' && i+1 < len(l) && l[i+1] == '|':
			c.WriteByte('|')
			i++
		case l[i] == '|' && !code:
			out = append(out, cell(c.String()))
			c.Reset()
		default:
			code = code != (l[i] == '`')
			c.WriteByte(l[i])
		}
	}
	return append(out, cell(c.String()))
}

var (
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	emphasy = regexp.MustCompile("(\\*\\*|__|~~|`)(.+?)(\\*\\*|__|~~|`)")
	breaks  = regexp.MustCompile(`(?i)<br\s*/?>`)
)

// cell is the text of a cell without markup.
func cell(s string) string {
	s = breaks.ReplaceAllString(s, " ")
	s = linked.ReplaceAllString(s, "$1")
	s = emphasy.ReplaceAllString(s, "$2")
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxCell {
		s = strings.TrimRight(string(r[:maxCell-1]), " ") + "…"
	}
	return s
}

// rule reports that a row is the one under the header.
func rule(row []string) bool {
	for _, c := range row {
		if strings.Trim(c, "-: ") != "" || !strings.Contains(c, "-") {
			return false
		}
	}
	return true
}

// columns is the width of a text in a font of equal widths.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
