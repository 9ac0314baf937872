package doctree

import (
	"fmt"
	"strconv"
	"strings"
)

// Reach is the place from the beginning of one place to the end of a later
// one. Places are fragments of "key=value" joined by "&":
//
//	page=3, slide=2     the first of both
//	row=5               row=5-9, as RFC 7111 has it for CSV
//	t=3605,3610         the times from the first start to the last end, in seconds
//	sheet=Prices&range=A2:D9   the smallest range around both
//	part=2              a part of a message; the first of both
//
// Places of different sheets or parts do not join: the first is taken.
func Reach(first, last string) string {
	if first == last || last == "" {
		return first
	}
	if first == "" {
		return last
	}
	a, b := strings.Split(first, "&"), strings.Split(last, "&")
	if len(a) != len(b) {
		return first
	}
	for i := range a {
		key, from, _ := strings.Cut(a[i], "=")
		other, to, _ := strings.Cut(b[i], "=")
		joined, ok := reach(key, from, to)
		if key != other || !ok {
			return first
		}
		a[i] = key + "=" + joined
	}
	return strings.Join(a, "&")
}

func reach(key, from, to string) (string, bool) {
	switch key {
	case "t":
		start, _, _ := strings.Cut(from, ",")
		_, end, _ := strings.Cut(to, ",")
		return start + "," + end, true
	case "row":
		start, _, _ := strings.Cut(from, "-")
		_, end, ok := strings.Cut(to, "-")
		if !ok {
			end = to
		}
		return start + "-" + end, true
	case "range":
		return around(from, to)
	}
	return from, from == to
}

// around is the smallest range of cells around two.
func around(a, b string) (string, bool) {
	c1, r1, c2, r2, ok1 := corners(a)
	c3, r3, c4, r4, ok2 := corners(b)
	if !ok1 || !ok2 {
		return a, false
	}
	return Range(min(c1, c3), min(r1, r3), max(c2, c4), max(r2, r4)), true
}

// Range names a range of cells, columns and rows from 1: A2:D9.
func Range(fromColumn, fromRow, toColumn, toRow int) string {
	return fmt.Sprintf("%s%d:%s%d", Column(fromColumn), fromRow, Column(toColumn), toRow)
}

// Column names a column from 1 with letters: A, Z, AA.
func Column(n int) string {
	s := ""
	for ; n > 0; n = (n - 1) / 26 {
		s = string(rune('A'+(n-1)%26)) + s
	}
	return s
}

func corners(s string) (c1, r1, c2, r2 int, ok bool) {
	from, to, found := strings.Cut(s, ":")
	if !found {
		to = from
	}
	c1, r1, ok1 := cell(from)
	c2, r2, ok2 := cell(to)
	return c1, r1, c2, r2, ok1 && ok2
}

func cell(s string) (column, row int, ok bool) {
	i := 0
	for ; i < len(s) && i < 4 && s[i] >= 'A' && s[i] <= 'Z'; i++ {
		column = column*26 + int(s[i]-'A') + 1
	}
	row, err := strconv.Atoi(s[i:])
	return column, row, err == nil && i > 0
}
