// Package render turns replies into Discord messages.
//
// Its one idea: a message is built of whole pieces, a sentence, a source, a
// button, and each piece is escaped and measured before it is placed. What is
// too long goes on in a further part, at most three, and what then is left
// out is said to be.
//
// Everything that we did not write ourselves is escaped, so that it shows as
// it stands: no mark of Markdown, mention, time, command, emoji, link or
// preview comes out of a document or a question. Mentions are switched off
// besides, in every message.
//
// Lengths are UTF-16 units, kept a little below Discord's limits.
//
// It makes no calls, and takes no decision about who may see what.
package render

import (
	"regexp"
	"strings"
	"unicode"
)

// marks begin something in Discord's Markdown, anywhere in a line.
const marks = "\\*_~`|>#-+[]()<:@"

var numbered = regexp.MustCompile(`(?m)^([ \t]*\d+)(\. )`)

// Escape makes text show on Discord as it stands, on its own lines.
func Escape(text string) string {
	text = numbered.ReplaceAllString(visible(text), "$1\x00$2")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == 0:
			b.WriteByte('\\')
			continue
		case strings.ContainsRune(marks, r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// line makes text one escaped line.
func line(text string) string { return Escape(strings.Join(strings.Fields(text), " ")) }

// visible drops what does not show: it could hide a mark or turn text around.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case r == '\u200d' || r == '\u200c' || r == '\ufe0f':
			return r // they join emoji and letters
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}

// code puts text in a fence that it cannot leave.
func code(text string) string {
	text = strings.ReplaceAll(visible(text), "`", "`\u200b")
	return "```\n" + strings.Trim(text, "\n") + "\n```"
}

// units is the length of text as Discord counts it at worst.
func units(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// cut shortens plain text to the limit, at a word where it can, and says so by
// an ellipsis.
func cut(text string, limit int) string {
	if units(text) <= limit {
		return text
	}
	head, _ := split(text, limit-1)
	return strings.TrimRight(head, " \n") + "…"
}

// split takes as much of text as fits, up to a line, a word, or, where there is
// neither in its second half, a character that no backslash belongs to.
func split(text string, limit int) (head, rest string) {
	end, n := len(text), 0
	for i, r := range text {
		n++
		if r > 0xffff {
			n++
		}
		if n > limit {
			end = i
			break
		}
	}
	if end == len(text) {
		return text, ""
	}
	head = text[:end]
	for _, at := range []string{"\n", " "} {
		if i := strings.LastIndex(head, at); i > len(head)/2 {
			return head[:i], text[i+1:]
		}
	}
	slashes := len(head) - len(strings.TrimRight(head, `\`))
	if slashes%2 == 1 && len(head) > 1 {
		head = head[:len(head)-1]
	}
	return head, text[len(head):]
}
