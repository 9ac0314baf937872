// Package analysis says what the words, sentences and languages of a text are.
// Documents and questions go through the same functions.
//
// Its one idea: a term is either a word as Unicode separates them (UAX 29), or
// an identifier kept whole beside its parts, or a pair of neighbouring
// characters in scripts that write words without spaces between all of them.
//
//	"ERR-4012 in /etc/hosts"  err-4012 err 4012 in /etc/hosts etc hosts
//	"비밀번호를 API키로"          비밀 밀번 번호 호를 api 키로 키
//
// Text is normalised (NFKC) and case-folded. No term is left out and none is
// stemmed; refine is the one place for that. Function tells apart what a
// question can do without. The package knows no
// format and keeps nothing.
package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Version changes whenever the same text would give other terms. An index
// records it: question and index must have been analysed alike.
const Version = "1"

// Limits in bytes. What is longer is hardly a word: encoded data, rules,
// hashes of hashes.
const (
	maxTerm     = 192 // a longer identifier or word gives no term of its own
	maxTermRune = 64  // the same in characters
	maxCompound = 1024
)

// Terms returns the terms of a text in order, with repetitions. It takes
// linear time and gives the same terms for the same text everywhere.
func Terms(text string) []string {
	a := analyser{text: norm.NFKC.String(strings.ToValidUTF8(text, "\ufffd")), fold: cases.Fold()}
	it := words.FromString(a.text)
	for it.Next() {
		a.segment(it.Start(), it.End())
	}
	a.flush()
	return a.terms
}

type analyser struct {
	text     string
	fold     cases.Caser
	terms    []string
	from, to int // the compound so far: words and connectors without a gap
}

// connectors hold identifiers together and, of those, hardLinks separate
// parts that may be identifiers again.
const (
	connectors = "-./:@=#+&~%$\\?_"
	hardLinks  = "/:@=#+&~%$\\?"
)

// segment adds one UAX 29 segment to the compound or ends it.
func (a *analyser) segment(from, to int) {
	s := a.text[from:to]
	// A mark may sit on white space, in some compatibility forms too.
	first, _ := utf8.DecodeRuneInString(s)
	joins := !unicode.IsSpace(first) && !unicode.IsControl(first) && (len(s) == 1 && strings.Contains(connectors, s) || strings.ContainsFunc(s, isWord))
	if !joins || from != a.to || to-a.from > maxCompound {
		a.flush()
		a.from = from
	}
	if a.to = to; !joins {
		a.from = to
	}
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || other(r)
}

// other lets symbols that people search for through: emoji and the like.
func other(r rune) bool { return unicode.Is(unicode.So, r) }

// flush takes the compound apart: runs of scripts without spaces become pairs,
// the rest identifiers.
func (a *analyser) flush() {
	s := a.text[a.from:max(a.from, a.to)]
	a.from = a.to
	for s != "" {
		class, n := run(s)
		if class == spaced {
			a.identifier(s[:n])
		} else {
			a.pairs(s[:n], class)
		}
		s = s[n:]
	}
}

// class of writing.
type class int

const (
	spaced  class = iota // words between spaces
	hangul               // words with particles attached
	unbound              // no spaces: Han, Kana, Thai, Lao, Khmer, Myanmar
)

func classOf(r rune) class {
	switch {
	case r < 0x0E00:
		return spaced
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case r == 'ー' || r == '々' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return unbound
	}
	return spaced
}

// run returns the class of the first character and the length of its run.
func run(s string) (class, int) {
	first, n := utf8.DecodeRuneInString(s)
	c := classOf(first)
	for i, r := range s[n:] {
		if classOf(r) != c && !unicode.IsMark(r) {
			return c, n + i
		}
	}
	return c, len(s)
}

// particles are the one-syllable endings of Korean nouns. A noun of one
// syllable is found under them only if it is a term of its own.
const particles = "은는이가을를에의도로와과만"

// pairs emits neighbouring characters; a single one stays alone.
func (a *analyser) pairs(s string, c class) {
	var at [3]int // starts of the last two characters and the end
	n := 0
	for i, r := range s {
		if unicode.IsMark(r) && n > 0 {
			continue
		}
		if n >= 2 {
			a.emit(s[at[0]:i])
		}
		at[0], at[1] = at[1], i
		if n++; n == 1 {
			at[0] = i
		}
	}
	if n == 1 {
		a.emit(s)
		return
	}
	a.emit(s[at[0]:])
	if last := s[at[1]:]; c == hangul && n == 2 && strings.Contains(particles, last) {
		a.emit(s[:at[1]])
	}
}

// identifier emits a compound whole and in parts, in two steps: at hard links,
// then at all the rest.
func (a *analyser) identifier(s string) {
	s = strings.TrimRight(s, ".:?=-&~_\\@")
	s = strings.TrimLeft(s, ":?=-&~+%\\_")
	if s = trimDots(s); !strings.ContainsFunc(s, isWord) {
		return
	}
	hard := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(hardLinks, r) })
	if len(hard) > 1 || strings.Trim(hard[0], ".-_") != s {
		a.emit(s)
	}
	for _, h := range hard {
		h = strings.Trim(h, ".-_")
		parts := split(h)
		if len(parts) != 1 || parts[0] != h {
			a.emit(h)
		}
		for _, p := range parts {
			if len(parts) == 1 || len(p) > 1 {
				a.emit(p)
			}
		}
	}
}

// trimDots drops leading dots of prose ("...and") but not of a name (.env).
func trimDots(s string) string {
	if strings.HasPrefix(s, "..") && !strings.HasPrefix(s, "../") {
		return strings.TrimLeft(s, ".")
	}
	return s
}

// split cuts a name at dots, hyphens and underscores, and where lower case
// turns to upper (fooBar) or an acronym ends (HTTPServer). Numbers with a dot
// or comma stay whole.
func split(s string) []string {
	var out []string
	from := 0
	cut := func(at, next int) {
		if at > from {
			out = append(out, s[from:at])
		}
		from = next
	}
	if isDecimal(s) {
		return []string{s}
	}
	var before, last rune
	lastAt := 0
	for i, r := range s {
		switch {
		case r == '.' || r == '-' || r == '_' || r == '‐' || r == '‑':
			cut(i, i+utf8.RuneLen(r))
		case unicode.IsUpper(r) && unicode.IsLower(last):
			cut(i, i)
		case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
			cut(lastAt, lastAt)
		}
		before, last, lastAt = last, r, i
	}
	cut(len(s), len(s))
	return out
}

// isDecimal reports digits with at most one dot or any commas: 3.14, 1,000.
func isDecimal(s string) bool {
	dots := 0
	for _, r := range s {
		switch {
		case r == '.':
			dots++
		case r != ',' && !unicode.IsDigit(r):
			return false
		}
	}
	return dots <= 1
}

// emit folds a term and appends it, unless it is too long or nothing.
func (a *analyser) emit(s string) {
	if s == "" || len(s) > maxTerm || len(s) > maxTermRune && utf8.RuneCountInString(s) > maxTermRune {
		return
	}
	if s = refine(a.folded(s)); s != "" {
		a.terms = append(a.terms, s)
	}
}

func (a *analyser) folded(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return a.fold.String(s)
		}
	}
	return strings.ToLower(s)
}

// refine is the last step of every term, the place for stemming: "" drops the
// term. It takes the English possessive off.
func refine(term string) string {
	if n := len(term); n > 2 && term[n-1] == 's' {
		if t := strings.TrimSuffix(term, "'s"); t != term {
			return t
		}
		return strings.TrimSuffix(term, "’s")
	}
	return term
}
