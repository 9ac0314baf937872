package analysis

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

// Span is a half-open range of bytes.
type Span struct{ From, To int }

var (
	// newBlock matches lines at which a sentence begins whatever came before.
	newBlock = regexp.MustCompile(`^[ \t]*(?:[-*+•·] |\d{1,3}[.)] |[|>#]|$)`)
	fence    = regexp.MustCompile("^[ \t>]*(```+|~~~+)")
	// koreanEnd matches a line that ends as Korean sentences do, without a stop.
	koreanEnd = regexp.MustCompile(`[\p{Hangul}](?:다|요|까|죠|음|함|됨|임)["'”’)\]]*[ \t]*$`)
	code      = regexp.MustCompile("`[^`\n]+`")
	// shortened ends with a stop that ends no sentence.
	shortened = regexp.MustCompile(`(?i)(?:^|[\s("'“‘\[*_])(?:mr|mrs|ms|dr|prof|sr|jr|st|vs|etc|e\.g|i\.e|cf|approx|no|nos|fig|figs|eq|sec|ch|vol|pp|p|ed|eds|inc|ltd|co|corp|dept|est|ext|tel|al|z\.b|d\.h|bzw|ca|nr|usw|[A-Z]|(?:[A-Z]\.)+[A-Z])\.\s*$`)
	// number is all of a "sentence" that only numbers the next one.
	number = regexp.MustCompile(`^(?:\d{1,3}|[A-Za-z])[.)]\s*$`)
)

// Sentences splits a text into sentences in order, as byte ranges without the
// white space around them; together they cover all else. It follows UAX 29,
// and beyond it:
//
//   - a line end ends a sentence only before an empty line, a list item, a
//     table row, a heading or a quoted line, and after a Korean sentence ending;
//   - abbreviations, initials and list numbers end none;
//   - nothing is split inside inline code or a fenced code block.
//
// It takes linear time.
func Sentences(text string) []Span {
	var out []Span
	for _, p := range passages(text) {
		if p.code {
			out = appendTrimmed(out, text, p.From, p.To)
			continue
		}
		out = appendSentences(out, text, p.From, p.To)
	}
	return out
}

type passage struct {
	Span
	code bool
}

// passages cuts a text at the line ends that always end a sentence.
func passages(text string) []passage {
	var out []passage
	open, from := "", 0
	cut := func(at int, code bool) {
		if at > from {
			out = append(out, passage{Span{from, at}, code})
		}
		from = at
	}
	last := ""
	for at := 0; at < len(text); {
		end := at + strings.IndexByte(text[at:], '\n') + 1
		if end == at {
			end = len(text)
		}
		line := strings.TrimRight(text[at:end], "\r\n")
		head := line[:min(len(line), 64)]
		f := fence.FindStringSubmatch(head)
		switch {
		case open == "" && f != nil:
			cut(at, false)
			open = f[1]
		case open != "" && f != nil && strings.HasPrefix(f[1], open):
			open = ""
			cut(end, true)
		case open == "" && (newBlock.MatchString(head) || koreanEnd.MatchString(last)):
			cut(at, false)
		}
		last = line[suffix(line, 64):]
		at = end
	}
	cut(len(text), open != "")
	return out
}

// suffix is where the last n bytes of s begin, at a rune boundary.
func suffix(s string, n int) int {
	i := max(len(s)-n, 0)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// appendSentences splits one passage.
func appendSentences(out []Span, text string, from, to int) []Span {
	// The segmenter sees line ends as spaces and code as letters.
	seen := code.ReplaceAllStringFunc(text[from:to], func(s string) string { return strings.Repeat("x", len(s)) })
	seen = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, seen)
	if len(seen) != to-from { // invalid bytes would be widened: leave them alone
		seen = text[from:to]
	}
	it := sentences.FromString(seen)
	start := from
	for it.Next() {
		end := closed(text, from+it.End(), to)
		if end > start && !goesOn(text, start, end, to) {
			out = appendTrimmed(out, text, start, end)
			start = end
		}
	}
	return appendTrimmed(out, text, start, to)
}

// closed moves a boundary behind the markup, brackets and quotes that close a
// sentence, if white space follows them.
func closed(text string, end, to int) int {
	rest := strings.TrimLeft(text[end:min(to, end+16)], "*_~)]}\"'")
	if next, n := utf8.DecodeRuneInString(rest); n > 0 && unicode.IsSpace(next) {
		return min(to, end+16) - len(rest) + n
	}
	return end
}

// goesOn reports that the boundary at end is none.
func goesOn(text string, start, end, to int) bool {
	if end >= to {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	if !unicode.IsSpace(last) && last < 0x2000 {
		return true // no space after the stop: a URL, a version, a file name
	}
	return shortened.MatchString(text[end-(end-start-suffix(text[start:end], 32)):end]) || end-start < 8 && number.MatchString(text[start:end])
}

func appendTrimmed(out []Span, text string, from, to int) []Span {
	s := text[from:to]
	from += len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	if s = strings.TrimSpace(s); s == "" {
		return out
	}
	return append(out, Span{from, from + len(s)})
}
