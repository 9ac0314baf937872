package cite

import (
	"regexp"
	"strings"
)

var (
	comment   = regexp.MustCompile(`(?s)<!--.*?-->|\{/\*.*?\*/\}`)
	image     = regexp.MustCompile(`!\[([^\]]*)\]\([^)\s]*(?:\s+"[^"]*")?\)`)
	link      = regexp.MustCompile(`\[([^\]]+)\]\([^)\s]*(?:\s+"[^"]*")?\)`)
	reference = regexp.MustCompile(`\[([^\]]+)\]\[[^\]]*\]`)
	note      = regexp.MustCompile(`\[\^[^\]]+\]`)
	tag       = regexp.MustCompile(`</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>`)
	strong    = regexp.MustCompile(`\*\*([^*\n]+)\*\*|__([^_\n]+)__`)
	emphasis  = regexp.MustCompile(`(^|[\s(“"'])[*_]([^*_\s](?:[^*_\n]*[^*_\s])?)[*_]($|[\s).,;:!?”"'은는이가을를의로])`)
	codeSpan  = regexp.MustCompile("``?[^`\n]+``?")
)

// Plain reads a piece of prose as a person does: links and images as their
// text, without comments, tags and emphasis, on one line. Code between
// backticks stays as it is.
func Plain(text string) string {
	var code []string
	text = strings.ReplaceAll(comment.ReplaceAllString(text, " "), "\x00", "")
	text = codeSpan.ReplaceAllStringFunc(text, func(s string) string {
		code = append(code, s)
		return "\x00"
	})
	text = unmark(text)
	for _, s := range code {
		text = strings.Replace(text, "\x00", s, 1)
	}
	return strings.Join(strings.Fields(text), " ")
}

// unmark drops the marks of Markdown and HTML.
func unmark(s string) string {
	s = image.ReplaceAllString(s, "$1")
	s = link.ReplaceAllString(s, "$1")
	s = reference.ReplaceAllString(s, "$1")
	s = note.ReplaceAllString(s, "")
	s = tag.ReplaceAllString(s, " ")
	s = strong.ReplaceAllString(s, "$1$2")
	return emphasis.ReplaceAllString(s, "$1$2$3")
}
