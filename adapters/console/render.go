package console

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"footnote/bot"
	"footnote/bot/cite"
)

// Renderer writes replies as text for a terminal.
type Renderer struct {
	Width int // columns to wrap to
	// Base is the directory that file paths are shown relative to, where they
	// lie below it; "" shows them whole.
	Base string
}

// Reply is the whole reply: the answer and its sources, or the refusal.
func (r Renderer) Reply(reply bot.Reply) string {
	if reply.Outcome != bot.Answered {
		return r.block(reply.Text, "")
	}
	return r.Answer(reply.Sentences) + "\nSources\n" + r.Sources(reply.Sources)
}

// Answer is the sentences with their numbers: running prose as one paragraph,
// tables and code as they stand.
func (r Renderer) Answer(sentences []cite.Sentence) string {
	var b strings.Builder
	var prose []string
	header := "" // of the table before, while rows follow one another
	flush := func() {
		if len(prose) > 0 {
			b.WriteString(r.block(strings.Join(prose, " "), ""))
			prose = nil
		}
	}
	for _, s := range sentences {
		if s.Kind == cite.Text {
			prose, header = append(prose, Line(s.Plain)+" "+marks(s.Cites)), ""
			continue
		}
		flush()
		b.WriteString(verbatim(s, header))
		header = headerOf(s)
	}
	flush()
	return b.String()
}

// verbatim indents a table or code by two columns. A table has its numbers
// behind its last row, and no header if it is the one of the rows before; code
// has them on a line of its own, so that it can be copied.
func verbatim(s cite.Sentence, header string) string {
	text := strings.TrimRight(s.Text, "\n")
	if s.Kind == cite.Table {
		if header != "" && headerOf(s) == header {
			text = strings.TrimPrefix(text, header)
		}
		text += " " + marks(s.Cites)
	} else {
		text += "\n" + marks(s.Cites)
	}
	return "  " + strings.ReplaceAll(Safe(text), "\n", "\n  ") + "\n"
}

// headerOf is what stands before the last row of a table, "" if nothing does.
func headerOf(s cite.Sentence) string {
	text := strings.TrimRight(s.Text, "\n")
	if i := strings.LastIndex(text, "\n"); s.Kind == cite.Table && i >= 0 {
		return text[:i+1]
	}
	return ""
}

func marks(cites []int) string {
	var b strings.Builder
	for _, n := range cites {
		fmt.Fprintf(&b, "[%d]", n)
	}
	return b.String()
}

// Sources is the numbered list: where it stands, how to open it, and what it
// says there.
func (r Renderer) Sources(sources []cite.Source) string {
	var b strings.Builder
	for _, s := range sources {
		head := fmt.Sprintf("[%d] %s", s.N, r.place(s.Title, s.Section))
		b.WriteString(r.block(head, "    "))
		b.WriteString("    " + r.Path(s.Path) + Line(s.Locator) + "\n")
		if s.Link != "" {
			b.WriteString("    " + Line(s.Link) + "\n")
		}
		b.WriteString(r.indented("“" + Line(s.Quote) + "”"))
	}
	return b.String()
}

// place is "title > section > subsection" on one line.
func (r Renderer) place(title string, section []string) string {
	parts := []string{Line(title)}
	for _, s := range section {
		parts = append(parts, Line(s))
	}
	return strings.Join(parts, " > ")
}

// Path shows a path relative to Base where it lies below it; a URL as it is.
func (r Renderer) Path(path string) string {
	if u, err := url.Parse(path); r.Base != "" && (err != nil || u.Scheme == "") {
		if rel, err := filepath.Rel(r.Base, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return Line(path)
}

// block wraps text; its later lines start with indent.
func (r Renderer) block(text, indent string) string {
	return strings.Join(wrap(Safe(text), r.Width, indent), "\n") + "\n"
}

// indented wraps text with four columns before every line.
func (r Renderer) indented(text string) string {
	lines := wrap(Safe(text), r.Width-4, "")
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
