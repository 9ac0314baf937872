package render

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"footnote/bot"
	"footnote/bot/cite"
)

// Options of a reply.
type Options struct {
	Answer  string // the opaque id in buttons; "" makes none
	Private bool   // only the asker sees it
	Share   bool   // offer to post an answer that only the asker sees
	Parts   int    // at most so many messages, 0: MaxParts
	// Link is where a source can be read, "" nowhere. nil: no links.
	Link func(cite.Source) string
	// Say gives a text of ours in the reader's language. nil: as it is.
	Say func(string) string
}

// links are the masked links that linked makes.
var links = regexp.MustCompile(`\[((?:[^\]\\]|\\.)*)\]\(<[^>]*>\)`)

const shortened = "Shortened. The sources hold the rest."

// Reply renders a reply in one to three parts. The last one holds the sources
// and the buttons.
func Reply(r bot.Reply, o Options) []Message {
	if o.Say == nil {
		o.Say = func(text string) string { return text }
	}
	pieces, tail := refusal(r), ""
	if r.Outcome == bot.Answered {
		pieces, tail = sentences(r.Sentences), sources(r.Sources, o)
	}
	if o.Parts <= 0 || o.Parts > MaxParts {
		o.Parts = MaxParts
	}
	texts := pack(pieces, tail, "*"+o.Say(shortened)+"*", o.Parts)
	out := make([]Message, len(texts))
	for i, t := range texts {
		out[i] = message(t)
	}
	out[len(out)-1].Components = buttons(r, o)
	return out
}

// pack places whole pieces in parts. A piece that fits in no part goes on in
// the next one. The last part has room for the tail.
func pack(pieces []string, tail, shortened string, most int) []string {
	parts, rest := []string{""}, pieces
	reserve := units(tail) + units(shortened) + 4
	for len(rest) > 0 {
		last := len(parts) - 1
		limit := MaxContent
		if last == most-1 {
			limit -= reserve
		}
		joined := join(parts[last], rest[0])
		switch {
		case units(joined) <= limit:
			parts[last], rest = joined, rest[1:]
		case parts[last] == "":
			head, more := divide(rest[0], limit)
			parts[last] = head
			rest = append([]string{more}, rest[1:]...)
		case len(parts) < most:
			parts = append(parts, "")
		default:
			return append(parts[:last], join(join(parts[last], shortened), tail))
		}
	}
	last := len(parts) - 1
	if joined := join(parts[last], tail); units(joined) <= MaxContent {
		parts[last] = joined
		return parts
	}
	return append(parts, tail)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// divide splits a piece; code stays code on both sides.
func divide(piece string, limit int) (head, rest string) {
	const open, end = "```\n", "\n```"
	if inner, ok := strings.CutPrefix(piece, open); ok {
		inner, _, _ = strings.Cut(inner, end)
		_, after, _ := strings.Cut(piece[len(open):], end)
		head, rest = split(inner, limit-len(open)-len(end))
		return open + head + end, open + rest + end + after
	}
	return split(piece, limit)
}

func sentences(list []cite.Sentence) []string {
	var out []string
	for _, s := range list {
		var text string
		switch s.Kind {
		case cite.Text:
			text = Escape(orElse(s.Plain, s.Text))
		case cite.Table:
			text = code(cite.Grid(s.Text))
		default:
			text = code(s.Text)
		}
		if s.Lead != "" {
			text = Escape(s.Lead) + "\n" + text
		}
		for i, n := range s.Cites {
			if i == 0 {
				text += " "
			}
			text += "[" + strconv.Itoa(n) + "]"
		}
		out = append(out, text)
	}
	return out
}

// refusal is the text of a refusal, which holds the nearest documents and the
// way to ask in private.
func refusal(r bot.Reply) []string {
	text := r.Text
	if strings.TrimSpace(text) == "" {
		text = "I cannot answer this from the documents that may be shown here. You can also ask me in a direct message."
	}
	return strings.Split(Say(text).Content, "\n")
}

// maxSourcesText bounds the list of sources, so that an answer has room.
const maxSourcesText = 1100

// sources lists what is cited: number, title, section, date of the revision.
func sources(list []cite.Source, o Options) string {
	if len(list) == 0 {
		return ""
	}
	each := min(240, maxSourcesText/len(list)-20)
	out := "**" + o.Say("Sources") + "**"
	for _, s := range list {
		label := line(s.Title)
		if len(s.Section) > 0 {
			label += " › " + line(strings.Join(s.Section, " › "))
		}
		label = cut(label, each)
		if to := linkOf(s, o); to != "" && units(to) <= each {
			label = "[" + label + "](<" + to + ">)"
		}
		if !s.Modified.IsZero() {
			label += ", " + s.Modified.UTC().Format("2006\\-01\\-02")
		}
		next := fmt.Sprintf("%s\n[%d] %s", out, s.N, label)
		if units(next) > maxSourcesText+300 {
			return out + "\n…"
		}
		out = next
	}
	return out
}

// linkOf leads to the viewer, where there is one, else to the original. It is surely a link: of http or https, without anything that
// could end it early.
func linkOf(s cite.Source, o Options) string {
	to := s.Link
	if o.Link != nil {
		to = o.Link(s)
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(to, " <>()[]\\\"`|\n\r\t") || units(to) > 512 {
		return ""
	}
	return to
}

func buttons(r bot.Reply, o Options) []Row {
	rows := []Row{}
	if o.Answer == "" {
		return rows
	}
	var row []Button
	for _, s := range r.Sources {
		row = append(row, press(cut(fmt.Sprintf("%d: %s", s.N, visible(s.Title)), maxLabel), o.Answer, "s"+strconv.Itoa(s.N)))
		if len(row) == maxRow {
			rows, row = append(rows, Row{1, row}), nil
		}
		if len(rows) == maxRows-1 {
			break
		}
	}
	if len(row) > 0 {
		rows = append(rows, Row{1, row})
	}
	last := []Button{press(o.Say("Helpful"), o.Answer, "yes"), press(o.Say("Not helpful"), o.Answer, "no"), press(o.Say("Ask a human"), o.Answer, "human")}
	if r.Outcome != bot.Answered {
		last = last[2:]
	}
	switch {
	case !o.Private:
		// Offered always: that there is more for somebody must not show.
		last = append(last, press(o.Say("Ask privately"), o.Answer, "private"))
	case o.Share && r.Outcome == bot.Answered:
		last = append(last, press(o.Say("Post to channel"), o.Answer, "post"))
	}
	return append(rows, Row{1, last})
}

// Prefix begins the ids of our buttons.
const Prefix = "fn:"

func press(label, answer, what string) Button {
	return Button{Type: 2, Style: grey, Label: label, ID: Prefix + answer + ":" + what}
}

// Pressed reads the id of a button.
func Pressed(id string) (answer, what string, ok bool) {
	rest, ok := strings.CutPrefix(id, Prefix)
	answer, what, found := strings.Cut(rest, ":")
	return answer, what, ok && found && answer != "" && what != ""
}

// Reasons are why an answer was not helpful, one tap each: a code and a label.
var Reasons = [][2]string{{"wrong", "Wrong"}, {"incomplete", "Incomplete"}, {"outdated", "Out of date"}, {"unclear", "Hard to follow"}}

// Why asks for a reason.
func Why(answer string, say func(string) string) Message {
	m := Say(say("Thank you. What was wrong with it?"))
	row := Row{Type: 1}
	for _, r := range Reasons {
		row.Components = append(row.Components, press(say(r[1]), answer, "no-"+r[0]))
	}
	m.Components = []Row{row}
	return m
}

// Passage shows a cited place in its surroundings, the place itself marked as
// a quotation.
func Passage(p bot.Opened, say func(string) string) Message {
	const around, most = 500, 2400
	near := p.Around(around / 2)
	var quote []string
	for _, l := range strings.Split(cut(Escape(p.Quote), most), "\n") {
		quote = append(quote, "> "+l)
	}
	parts := []string{}
	if b := strings.TrimSpace(near.Before); b != "" {
		b = cut(Escape(b), around)
		if near.CutBefore {
			b = "…" + b
		}
		parts = append(parts, b)
	}
	parts = append(parts, strings.Join(quote, "\n"))
	if a := strings.TrimSpace(near.After); a != "" {
		a = cut(Escape(a), around)
		if near.CutAfter {
			a += "…"
		}
		parts = append(parts, a)
	}
	m := message("")
	m.Flags = 0
	m.Embeds = []Embed{{
		Title:       orElse(cut(line(p.Document.Title), maxTitle), "Source"),
		Description: cut(strings.Join(parts, "\n"), maxDescription),
	}}
	foot := ""
	if !p.Document.Modified.IsZero() {
		foot = say("Revision of") + " " + p.Document.Modified.UTC().Format("2006-01-02")
	}
	if p.Superseded {
		foot = strings.TrimPrefix(foot+"; "+say("the document has changed since"), "; ")
	}
	if foot != "" {
		m.Embeds[0].Footer = &Footer{cut(foot, maxFooter)}
	}
	return m
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
