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
	flush := func() {
		if len(prose) > 0 {
			b.WriteString(r.block(strings.Join(prose, " "), ""))
			prose = nil
		}
	}
	for _, s := range sentences {
		if s.Kind == cite.Text {
			prose = append(prose, Line(s.Plain)+" "+marks(s.Cites))
			continue
		}
		flush()
		b.WriteString(verbatim(s.Text, marks(s.Cites)))
	}
	flush()
	return b.String()
}

// verbatim indents a table or code by two columns and sets the marks under it.
func verbatim(text, marks string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(Safe(text), "\n"), "\n") {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString("  " + marks + "\n")
	return b.String()
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
