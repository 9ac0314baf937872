package console

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Safe makes text that came from a document, a question or a file name
// harmless to a terminal, and shows what was taken away instead of hiding it:
// control characters become their visible pictures (ESC is ␛), other
// characters that move the cursor, reverse the line or show nothing become �.
// Line breaks stay, tabs become a space, a carriage return before a line break
// goes.
//
// SECURITY: without it a document could rewrite the screen, set the window's
// title or answer in the person's name.
func Safe(s string) string {
	if !unsafeIn(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for _, r := range s {
		b.WriteString(visible(r))
	}
	return b.String()
}

// Line is Safe for what must stay on one line.
func Line(s string) string {
	return strings.Join(strings.Fields(Safe(s)), " ")
}

func unsafeIn(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && forbidden(r) })
}

func visible(r rune) string {
	switch {
	case r == '\n':
		return "\n"
	case r == '\t':
		return " "
	case r < 0x20:
		return string('␀' + r)
	case r == 0x7f:
		return "␡"
	case forbidden(r):
		return string(unicode.ReplacementChar)
	}
	return string(r)
}

// forbidden are control characters (C0, DEL, C1), those that change the
// direction of text, invisible separators and tags. Joiners stay: words and
// emoji need them.
func forbidden(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == '\u2028' || r == '\u2029' || r == '\u200e' || r == '\u200f' || r == '\u061c' || r == '\ufeff':
		return true
	case r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069':
		return true
	case r >= '\ufff9' && r <= '\ufffb' || r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// columns is the width of text on a terminal: East Asian wide characters take
// two columns, combining marks none.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// wrap breaks text into lines of at most limit columns between words; a word
// longer than a line is broken. Line breaks of the text stay. Later lines of a
// paragraph start with indent.
func wrap(s string, limit int, indent string) []string {
	var out []string
	for i, paragraph := range strings.Split(s, "\n") {
		first := indent
		if i == 0 {
			first = ""
		}
		out = append(out, wrapParagraph(paragraph, limit, first, indent)...)
	}
	return out
}

func wrapParagraph(s string, limit int, first, indent string) []string {
	limit = max(limit, columns(indent)+8)
	var out []string
	line, used := first, columns(first)
	empty := true
	for _, word := range strings.Fields(s) {
		if !empty && exceeds(word, limit-used-1) {
			out = append(out, line)
			line, used, empty = indent, columns(indent), true
		}
		if !empty {
			line, used = line+" ", used+1
		}
		for exceeds(word, limit-used) {
			head, tail := split(word, limit-used)
			out = append(out, line+head)
			line, used, word = indent, columns(indent), tail
		}
		line, used, empty = line+word, used+columns(word), false
	}
	return append(out, line)
}

// exceeds reports whether s takes more than n columns; it looks no further.
func exceeds(s string, n int) bool {
	for _, r := range s {
		if n -= columnsOf(r); n < 0 {
			return true
		}
	}
	return n < 0
}

// split cuts a word after at most n columns, at least one character.
func split(word string, n int) (head, tail string) {
	used := 0
	for i, r := range word {
		if w := columnsOf(r); i > 0 && used+w > n {
			return word[:i], word[i:]
		}
		used += columnsOf(r)
	}
	return word, ""
}
