package bot

import (
	"slices"
	"strings"
)

// Line is a line of a comparison of two revisions.
type Line struct {
	Text string
	Kind LineKind
}

// LineKind says which revision a line is of.
type LineKind string

// The kinds of lines.
const (
	Kept    LineKind = "kept"
	Dropped LineKind = "dropped" // only in the cited revision
	Added   LineKind = "added"   // only in the present one
)

const (
	linesAround  = 3         // lines shown before and after a passage
	comparedArea = 4_000_000 // greatest product of lines that are compared one by one
)

// Changes compares the lines of a superseded passage, and a few around it, with
// what stands in the present revision in their place. It is empty if the
// document has not changed since.
func (o Opened) Changes() []Line {
	if !o.Superseded {
		return nil
	}
	begin := o.text()
	text := []rune(o.Document.Canonical)
	first := strings.Count(string(text[:o.From]), "\n") - strings.Count(o.Document.Canonical[:begin], "\n")
	last := first + strings.Count(o.Quote, "\n")
	was, is := o.Document.Canonical[begin:], o.Current.Canonical[afterFront(o.Current.Canonical):]
	return near(compare(strings.Split(was, "\n"), strings.Split(is, "\n")), first-linesAround, last+linesAround)
}

// near keeps the lines first to last of the old revision, and what was added
// beside them.
func near(all []Line, first, last int) []Line {
	var out []Line
	old := 0
	for _, l := range all {
		in := old >= first && old <= last
		if l.Kind == Added { // before the old line with this number
			in = old > first && old <= last+1
		}
		if in {
			out = append(out, l)
		}
		if l.Kind != Added {
			old++
		}
	}
	return out
}

// compare makes a shortest script from a to b by a longest common subsequence
// of lines, between what both begin and end with. Where that would take too
// long, all of it counts as replaced.
func compare(a, b []string) []Line {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := lines(a[:head], Kept)
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(midA)*len(midB) > comparedArea {
		out = append(append(out, lines(midA, Dropped)...), lines(midB, Added)...)
	} else {
		out = append(out, common(midA, midB)...)
	}
	return append(out, lines(a[len(a)-tail:], Kept)...)
}

// common compares by the lengths of the longest common subsequences of all
// pairs of ends.
func common(a, b []string) []Line {
	length := make([][]int32, len(a)+1)
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []Line
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, Line{a[i], Kept})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			out = append(out, Line{a[i], Dropped})
			i++
		default:
			out = append(out, Line{b[j], Added})
			j++
		}
	}
	return append(append(out, lines(a[i:], Dropped)...), lines(b[j:], Added)...)
}

func lines(texts []string, kind LineKind) []Line {
	out := make([]Line, 0, len(texts))
	for _, t := range texts {
		out = append(out, Line{t, kind})
	}
	return out
}
