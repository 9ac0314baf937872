package event

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxText bounds a question, in characters; the bot says what it reads.
const MaxText = 8000

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape escapes the three characters that Slack's text formats know.
func Escape(s string) string { return escaper.Replace(s) }

// Unescape is Escape taken back, once: &amp;lt; becomes &lt;.
func Unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// Clean is a text as a person wrote it: without the bot's name, with tokens in
// plain words, unescaped once, in NFC, without invisible characters.
func Clean(text, botUser string) string {
	var b strings.Builder
	for text != "" {
		open := strings.IndexByte(text, '<')
		if open < 0 {
			b.WriteString(Unescape(text))
			break
		}
		b.WriteString(Unescape(text[:open]))
		text = text[open:]
		end := strings.IndexByte(text, '>')
		if end < 0 {
			b.WriteString(Unescape(text))
			break
		}
		b.WriteString(Unescape(word(text[1:end], botUser)))
		text = text[end+1:]
	}
	clean := norm.NFC.String(strings.ToValidUTF8(b.String(), ""))
	clean = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u200d': // joins emoji
			return r
		case unicode.Is(unicode.Cf, r), unicode.IsControl(r):
			return -1
		}
		return r
	}, clean)
	clean = strings.Join(strings.Fields(clean), " ")
	if r := []rune(clean); len(r) > MaxText {
		clean = string(r[:MaxText])
	}
	return clean
}

// word is a token <…> in plain words.
func word(token, botUser string) string {
	target, label, labelled := strings.Cut(token, "|")
	switch {
	case target == "@"+botUser && botUser != "":
		return " "
	case strings.HasPrefix(target, "@"), strings.HasPrefix(target, "#"):
		mark := target[:1]
		if labelled && label != "" {
			return mark + strings.TrimPrefix(label, mark)
		}
		return target
	case strings.HasPrefix(target, "!date^"):
		return label
	case strings.HasPrefix(target, "!"):
		if labelled && label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		name, _, _ := strings.Cut(target[1:], "^")
		return "@" + name
	case labelled && label != "":
		return label
	}
	return strings.TrimPrefix(target, "mailto:")
}

// Names reports whether a text names the bot.
func Names(text, botUser string) bool {
	return botUser != "" && (strings.Contains(text, "<@"+botUser+">") || strings.Contains(text, "<@"+botUser+"|"))
}
