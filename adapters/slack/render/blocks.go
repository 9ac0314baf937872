// Package render turns replies into Slack messages and modals.
//
// Its one idea: what comes from documents or people goes into rich_text
// blocks, whose text is literal: it cannot become a mention, a link or markup,
// so nothing has to be escaped and nothing can be escaped wrongly. Links are
// elements that are made here, of addresses that were read as addresses. The
// text beside the blocks, for notifications and screen readers, is escaped and
// says nothing that the blocks do not say.
//
// Limits are met by structure: sentences are laid out into blocks, blocks into
// at most three messages, and what does not fit is said not to be there. The
// sources are in the last message, always.
//
// Buttons carry opaque ids. Formats: Block Kit as JSON objects.
//
// It does no I/O, decides no access and keeps no state.
package render

import (
	"net/url"
	"strings"
	"unicode/utf16"

	"footnote/adapters/slack/event"
)

// Object is a JSON object.
type Object = map[string]any

// Message is one message: blocks, and the same as escaped text.
type Message struct {
	Text   string
	Blocks []Object
}

// Limits, in UTF-16 units, below those of Slack.
const (
	maxText    = 3000   // of the text beside blocks
	maxPlain   = 3900   // of a message without blocks
	maxMessage = 10_000 // of all texts of the blocks of a message
	maxRich    = 2800   // of one rich_text block
	maxBlocks  = 45
	maxParts   = 3
	maxLabel   = 75
	maxURL     = 3000
)

func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// cut shortens a text to at most so many units, at a word if one is near, and
// says so with "…". It never cuts inside a character.
func cut(s string, most int) string {
	if units(s) <= most {
		return s
	}
	head, _ := split(s, most-1)
	return strings.TrimRight(head, " \n") + "…"
}

// split takes at most so many units off the front, preferably up to a line
// break or a space. It takes at least one character.
func split(s string, most int) (head, tail string) {
	n, at, soft := 0, 0, 0
	for i, r := range s {
		n += max(1, utf16.RuneLen(r))
		if n > most && i > 0 {
			break
		}
		at = i + len(string(r))
		if r == '\n' || r == ' ' {
			soft = at
		}
	}
	if at < len(s) && soft > at/2 {
		at = soft
	}
	return s[:at], s[at:]
}

// clean takes out what Slack refuses or nobody sees.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return -1
		}
		return r
	}, s)
}

// line is clean on one line.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

func text(s string, style ...string) Object {
	o := Object{"type": "text", "text": s}
	if len(style) > 0 {
		set := Object{}
		for _, k := range style {
			set[k] = true
		}
		o["style"] = set
	}
	return o
}

func section(in ...Object) Object {
	return Object{"type": "rich_text_section", "elements": in}
}

func rich(elements ...Object) Object { return Object{"type": "rich_text", "elements": elements} }

func preformatted(s string) Object {
	return Object{"type": "rich_text_preformatted", "elements": []Object{text(s)}}
}

func plain(s string) Object { return Object{"type": "plain_text", "text": s, "emoji": false} }

// Button is an element that comes back with its id and value.
func button(id, label, value string) Object {
	return Object{"type": "button", "action_id": id, "text": plain(cut(line(label), maxLabel)), "value": value}
}

func actions(id string, elements ...Object) Object {
	return Object{"type": "actions", "block_id": id, "elements": elements}
}

// link is a link element, or nil if the address is no http address.
func link(address, label string) Object {
	u := Address(address)
	if u == "" {
		return nil
	}
	return Object{"type": "link", "url": u, "text": line(label)}
}

// Address is an http or https address in its canonical form, with what could
// end a link encoded; "" if it is none.
func Address(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	out := strings.NewReplacer("|", "%7C", "<", "%3C", ">", "%3E", " ", "%20", "\n", "", "\t", "").Replace(u.String())
	if strings.ContainsFunc(u.Host, func(r rune) bool { return strings.ContainsRune("|<> \"'", r) }) || len(out) > maxURL {
		return ""
	}
	return out
}

// Literal is a message of nothing but text.
func Literal(s string) Message {
	s = clean(s)
	return Message{Text: escaped(s, maxText), Blocks: []Object{rich(lines(cut(s, maxMessage))...)}}
}

// WithLink is a text and a link after it, or the text alone if the address is
// none.
func WithLink(s, label, address string) Message {
	m := Message{Text: escaped(s, maxText), Blocks: []Object{rich(section(text(cut(clean(s), maxMessage))))}}
	if l := link(address, label); l != nil {
		m.Blocks = append(m.Blocks, rich(section(l)))
	}
	return m
}

// escaped is a text as Slack's text field wants it, at most so many units long:
// cut first, so that no entity is cut.
func escaped(s string, most int) string {
	for n := most; ; n = n * 3 / 4 {
		if e := event.Escape(cut(clean(s), n)); units(e) <= most || n < 8 {
			return e
		}
	}
}

// lines lays a text out: "- " begins an item of a list.
func lines(s string) []Object {
	var out, items []Object
	flush := func() {
		if len(items) > 0 {
			out = append(out, Object{"type": "rich_text_list", "style": "bullet", "elements": items})
			items = nil
		}
	}
	for _, l := range strings.Split(s, "\n") {
		if item, ok := strings.CutPrefix(l, "- "); ok && item != "" {
			items = append(items, section(text(item)))
			continue
		}
		flush()
		if l != "" {
			out = append(out, section(text(l+"\n")))
		}
	}
	flush()
	if len(out) == 0 {
		out = append(out, section(text(" ")))
	}
	return out
}
