package render

import (
	"fmt"
	"strings"
	"time"

	"footnote/bot"
)

// around is how much of a document is shown on each side of a passage, in
// characters.
const around = 600

// SourceView is a modal with a passage in its surroundings.
func SourceView(n int, o bot.Opened, viewer string) Object {
	near := o.Around(around)
	before, after := near.Before, near.After
	if near.CutBefore {
		before = "…" + before
	}
	if near.CutAfter {
		after += "…"
	}
	about := "Revision of " + o.Document.Modified.UTC().Format("2006-01-02")
	if o.Document.Modified.Equal(time.Time{}) {
		about = "Revision " + string(o.Document.Revision)
	}
	if o.Superseded {
		about += ". The document has changed since: there is a newer revision."
	}
	blocks := []Object{rich(section(text(cut(line(o.Document.Title), 300)+"\n", "bold"), text(about, "italic")))}
	if l := link(viewer, "Open the document"); l != nil {
		blocks = append(blocks, rich(section(l)))
	}
	blocks = append(blocks, Object{"type": "divider"})
	var body []Object
	if strings.TrimSpace(before) != "" {
		body = append(body, section(text(cut(clean(before), 2000))))
	}
	body = append(body, Object{"type": "rich_text_quote", "elements": []Object{text(cut(orSpace(clean(o.Quote)), 2800), "bold")}})
	if strings.TrimSpace(after) != "" {
		body = append(body, section(text(cut(clean(after), 2000))))
	}
	for _, b := range body {
		blocks = append(blocks, rich(b))
	}
	return modal(fmt.Sprintf("Source %d", n), blocks)
}

func orSpace(s string) string {
	if s == "" {
		return " "
	}
	return s
}

// NoticeView is a modal that says one thing.
func NoticeView(title, s string) Object {
	return modal(title, []Object{rich(lines(cut(clean(s), 2800))...)})
}

func modal(title string, blocks []Object) Object {
	return Object{"type": "modal", "title": plain(cut(title, 24)), "close": plain("Close"), "blocks": blocks}
}

// ReasonsFor asks what is wrong with an answer: one tap.
func ReasonsFor(id string) Message {
	m := Literal("What is wrong with it?")
	var b []Object
	for _, r := range Reasons {
		b = append(b, button(ReasonAction+r[0], r[1], id))
	}
	m.Blocks = append(m.Blocks, actions("reasons", b...))
	return m
}

// HelpText says how to use the bot.
func HelpText(name string) string {
	return strings.Join([]string{
		"I answer questions from your organisation's documents, with numbered sources, or say that they do not answer.",
		"- In a channel: mention @" + name + " with a question. I use what you and everybody there may read.",
		"- In a direct message: write the question. I use everything that you may read.",
		"- /ask with a question: only you see the answer.",
		"- On a message, under its menu: Ask footnote about this message.",
		"- /footnote status and /footnote why: how I and the documents are doing, and what became of your questions. /footnote status DOCUMENT: how one document stands.",
		"Press a source's button to see the passage in its document.",
	}, "\n")
}

// Home is the home tab.
func Home(name string) Object {
	return Object{"type": "home", "blocks": []Object{rich(lines(HelpText(name))...)}}
}
