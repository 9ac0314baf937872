package cite

import (
	"regexp"
	"strconv"
	"strings"

	"footnote/retrieval/analysis"
)

// marker is [1], [1, 2] or a run of them, with the space before it.
var marker = regexp.MustCompile(`\s*(?:\[\d+(?:\s*,\s*\d+)*\]\s*)*\[\d+(?:\s*,\s*\d+)*\]`)

var digits = regexp.MustCompile(`\d+`)

// Parse splits the text of a language model into claims: each run of markers
// belongs to the sentence that it ends or follows. A sentence without a marker
// becomes a claim without numbers, which Resolve drops.
func Parse(text string) []Claim {
	var claims []Claim
	rest := text
	for rest != "" {
		m := marker.FindStringIndex(rest)
		if m == nil {
			break
		}
		said, numbers := rest[:m[0]], numbersIn(rest[m[0]:m[1]])
		rest = rest[m[1]:]
		// "So it is [1]." keeps its full stop.
		stop := len(rest) - len(strings.TrimLeft(rest, ".,;:!?。"))
		said, rest = said+rest[:stop], rest[stop:]
		claims = append(claims, split(said, numbers)...)
	}
	return append(claims, split(rest, nil)...)
}

// split makes a claim of each sentence; the numbers belong to the last.
func split(said string, numbers []int) []Claim {
	var claims []Claim
	for _, s := range analysis.Sentences(said) {
		if t := strings.TrimSpace(said[s.From:s.To]); t != "" {
			claims = append(claims, Claim{Text: t, Kind: Text})
		}
	}
	if len(claims) > 0 {
		claims[len(claims)-1].Numbers = numbers
	}
	return claims
}

// numbersIn reads the numbers of a run of markers. One that fits no int can
// be no evidence's and becomes -1.
func numbersIn(run string) []int {
	var out []int
	for _, d := range digits.FindAllString(run, -1) {
		n, err := strconv.Atoi(d)
		if err != nil {
			n = -1
		}
		out = append(out, n)
	}
	return out
}
