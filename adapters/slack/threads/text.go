package threads

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// written are the subtypes under which people write. Whatever else there is,
// or will be, is left out.
var written = []string{"", "file_share", "thread_broadcast", "me_message"}

// counts reports that a message is part of a document.
func (f *Follower) counts(m Message) bool {
	return !m.Bot && m.User != "" && m.User != f.o.Bot && m.User != "USLACKBOT" && slices.Contains(written, m.Subtype) &&
		!strings.Contains(m.Text, "<@"+f.o.Bot+">") && !strings.Contains(m.Text, "<@"+f.o.Bot+"|")
}

// maxTitle bounds a title, in characters.
const maxTitle = 120

// text is a thread in plain text, with its title; "" if nobody wrote anything.
func (f *Follower) text(ctx context.Context, all []Message) (title, text string) {
	var b strings.Builder
	for _, m := range all {
		if !f.counts(m) {
			continue
		}
		said := Plain(m.Text, func(user string) string { return f.api.Name(ctx, user) })
		for _, name := range m.Files {
			said += "\n[file: " + oneLine(name) + "]"
		}
		said = strings.TrimSpace(said)
		if said == "" {
			continue
		}
		if title == "" {
			title, _, _ = strings.Cut(said, "\n")
			title = cut(title, maxTitle)
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(oneLine(f.api.Name(ctx, m.User)) + ", " + timeOf(m.TS).Format("2 Jan 2006 15:04") + ":\n" + said)
	}
	if b.Len() == 0 {
		return "", ""
	}
	return title, b.String() + "\n"
}

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most-1])) + "…"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// Plain is a text as people read it: people by name, channels by theirs, links
// with their address, unescaped once, in NFC, without invisible characters;
// at most one line is empty between two others.
func Plain(text string, name func(user string) string) string {
	var b strings.Builder
	for text != "" {
		open := strings.IndexByte(text, '<')
		end := -1
		if open >= 0 {
			end = strings.IndexByte(text[open:], '>')
		}
		if end < 0 {
			b.WriteString(unescaper.Replace(text))
			break
		}
		b.WriteString(unescaper.Replace(text[:open]))
		b.WriteString(word(text[open+1:open+end], name))
		text = text[open+end+1:]
	}
	clean := norm.NFC.String(strings.ToValidUTF8(b.String(), ""))
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(clean, "\r\n", "\n"), "\n") {
		line = strings.TrimRightFunc(strings.Map(visible, line), unicode.IsSpace)
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// visible drops what does not show; what joins emoji and letters stays.
func visible(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case r == '\u200d', r == '\u200c':
		return r
	case unicode.Is(unicode.Cf, r), unicode.IsControl(r):
		return -1
	}
	return r
}

// word is a token <…> in plain words.
func word(token string, name func(user string) string) string {
	target, label, _ := strings.Cut(token, "|")
	label = unescaper.Replace(label)
	switch {
	case strings.HasPrefix(target, "@"):
		return "@" + oneLine(name(target[1:]))
	case strings.HasPrefix(target, "#") && label != "":
		return "#" + strings.TrimPrefix(label, "#")
	case strings.HasPrefix(target, "#"):
		return target
	case strings.HasPrefix(target, "!date^"):
		return label
	case strings.HasPrefix(target, "!") && label != "":
		return "@" + strings.TrimPrefix(label, "@")
	case strings.HasPrefix(target, "!"):
		kind, _, _ := strings.Cut(target[1:], "^")
		return "@" + kind
	}
	target = unescaper.Replace(strings.TrimPrefix(strings.TrimPrefix(target, "mailto:"), "tel:"))
	if label == "" || label == target {
		return target
	}
	return label + " (" + target + ")"
}
