package bot

import (
	"slices"
	"strings"
	"unicode"

	"footnote/bot/generate"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
)

// clean makes a question readable: valid UTF-8, no control or invisible
// characters, white space as single spaces.
func clean(text string) string {
	text = strings.ToValidUTF8(text, " ")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u200d' || r == '\u200c' || r == '\ufe0f':
			return r // they join emoji and letters
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar:
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// says reports that there is a letter, a number or a symbol to look for.
func says(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.So, r)
	})
}

// form is a way to read a question.
type form struct {
	text string // complete, as it is searched
	own  string // of a joined follow-up: its own words
}

// openers begin questions that go on from the one before. A question may also
// go on by being short or by pointing back with a pronoun.
var openers = []string{
	"and", "or", "but", "also", "then", "so", "what about", "how about", "what if", "same for", "same with", "why", "why not", "since when", "until when", "even", "only",
	"그럼", "그러면", "그렇다면", "그리고", "그런데", "근데", "그건", "그게", "그거", "그것", "이건", "이게", "거기", "그때", "그중", "그 중", "또는", "아니면", "혹은", "왜",
}

// pointers are words that stand for something said before.
var pointers = map[string]bool{
	"it": true, "its": true, "that": true, "this": true, "these": true, "those": true, "they": true, "them": true, "their": true,
	"he": true, "she": true, "him": true, "her": true, "his": true, "there": true, "one": true, "ones": true, "same": true, "such": true,
}

// forms returns the readings of a question in the order in which to try them.
// One that stands alone is read alone. A follow-up is joined with the last
// question that stood alone; where it might stand alone too, it is tried so
// first.
func forms(question string, history []Turn) []form {
	alone := form{text: question}
	before, ok := standing(history)
	if !ok {
		return []form{alone}
	}
	joined := form{text: join(before, question), own: question}
	switch goesOn(question) {
	case surely:
		return []form{joined}
	case perhaps:
		return []form{alone, joined}
	}
	return []form{alone}
}

// likelihood that a question goes on from the one before.
type likelihood int

const (
	hardly likelihood = iota
	perhaps
	surely
)

func goesOn(question string) likelihood {
	lower := strings.ToLower(question)
	content := generate.Content(analysis.Terms(question))
	words := strings.FieldsFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
	points := slices.ContainsFunc(words, func(w string) bool { return pointers[w] })
	opens := slices.ContainsFunc(openers, func(o string) bool { return opensWith(lower, o) })
	hangul := analysis.Language(question) == "ko"
	short := len(content) <= 2 && !hangul || hangul && len(words) <= 2
	switch {
	case len(content) == 0 || opens && (short || len(words) <= 8) || points && short:
		return surely
	case opens || points || short:
		return perhaps
	}
	return hardly
}

// opensWith reports that the question begins with the words, and in Korean
// also with a particle after them.
func opensWith(question, opener string) bool {
	rest, ok := strings.CutPrefix(question, opener)
	if !ok {
		return false
	}
	next := []rune(rest + " ")[0]
	return !unicode.IsLetter(next) && !unicode.IsDigit(next) || opener[0] >= 0x80 && strings.ContainsRune("은는이가을를도요", next)
}

// standing finds the asker's last question that stands alone.
func standing(history []Turn) (string, bool) {
	last := ""
	for i := len(history) - 1; i >= 0; i-- {
		t := history[i]
		if q := clean(t.Text); t.Speaker != Agent && says(q) {
			if last == "" {
				last = q
			}
			if goesOn(q) == hardly {
				return cut(q), true
			}
		}
	}
	return cut(last), last != ""
}

// maxBefore bounds what an earlier question adds, in characters.
const maxBefore = 400

func cut(q string) string {
	if r := []rune(q); len(r) > maxBefore {
		return string(r[:maxBefore])
	}
	return q
}

func join(before, question string) string {
	if r, _ := lastRune(before); !unicode.IsPunct(r) {
		before += "."
	}
	return before + " " + question
}

func lastRune(s string) (last rune, ok bool) {
	for _, r := range s {
		last, ok = r, true
	}
	return last, ok
}

// missing are the content words of the question that no admitted chunk holds.
// Pairs of characters are no words to show: a Korean word is missing if all
// its pairs are.
func missing(f form, r retrieval.Results) []string {
	gone := map[string]bool{}
	for _, t := range r.Missing {
		gone[t] = true
	}
	var out []string
	for _, w := range strings.FieldsFunc(f.text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`?!,;"“”()`, r) }) {
		terms := generate.Content(analysis.Terms(w))
		all := len(terms) > 0
		for _, t := range terms {
			all = all && gone[t]
		}
		if w = strings.Trim(w, ".:'`"); all && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func languageOf(p retrieval.Passage) string {
	if l := analysis.Language(p.Chunk.Content); l != "" {
		return l
	}
	return p.Language
}
