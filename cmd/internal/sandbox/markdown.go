package sandbox

import (
	"html"
	"html/template"
	"regexp"
	"strings"
	"unicode/utf8"
)

// markdown shows Discord's markup as HTML: as much of it as bots write. Every
// text is escaped here.
func markdown(s string, names func(user string) string) template.HTML {
	var out strings.Builder
	for i, part := range strings.Split(s, "```") {
		if i%2 == 1 {
			out.WriteString("<pre>" + html.EscapeString(strings.Trim(part, "\n")) + "</pre>")
			continue
		}
		lines(&out, strings.Trim(part, "\n"), names)
	}
	return template.HTML(out.String())
}

func lines(out *strings.Builder, s string, names func(string) string) {
	if s == "" {
		return
	}
	for _, l := range strings.Split(s, "\n") {
		class, open := "said", "div"
		if quoted, ok := strings.CutPrefix(l, "> "); ok {
			l, open, class = quoted, "blockquote", ""
		} else if small, ok := strings.CutPrefix(l, "-# "); ok {
			l, class = small, "said small"
		}
		out.WriteString("<" + open + ` class="` + class + `">` + inline(l, names) + "</" + open + ">")
	}
}

var (
	masked    = regexp.MustCompile(`^\[((?:[^\]\\]|\\.)*)\]\(<?(https?://[^)>\s]+)>?\)`)
	mentioned = regexp.MustCompile(`^<@!?(\d+)>`)
	marks     = []struct{ mark, tag string }{{"**", "b"}, {"__", "u"}, {"~~", "s"}, {"`", "code"}, {"*", "i"}, {"_", "i"}}
)

// inline shows one line.
func inline(s string, names func(string) string) string {
	var out strings.Builder
	for s != "" {
		n, shown := token(s, names)
		out.WriteString(shown)
		s = s[n:]
	}
	return out.String()
}

// token shows what s begins with, and says how long that is.
func token(s string, names func(string) string) (n int, shown string) {
	if m := masked.FindStringSubmatch(s); m != nil {
		return len(m[0]), `<a href="` + html.EscapeString(m[2]) + `" rel="noreferrer" target="_blank">` + inline(m[1], names) + "</a>"
	}
	if m := mentioned.FindStringSubmatch(s); m != nil {
		return len(m[0]), `<b class="who">@` + html.EscapeString(names(m[1])) + "</b>"
	}
	if s[0] == '\\' && len(s) > 1 && s[1] < utf8.RuneSelf {
		return 2, html.EscapeString(s[1:2])
	}
	for _, m := range marks {
		inside, ok := strings.CutPrefix(s, m.mark)
		if end := closing(inside, m.mark); ok && end > 0 {
			shown := html.EscapeString(inside[:end])
			if m.tag != "code" {
				shown = inline(inside[:end], names)
			}
			return len(m.mark)*2 + end, "<" + m.tag + ">" + shown + "</" + m.tag + ">"
		}
	}
	_, size := utf8.DecodeRuneInString(s)
	return size, html.EscapeString(s[:size])
}

// closing is where the mark stands next, not escaped; -1 nowhere.
func closing(s, mark string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && mark != "`" {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], mark) {
			return i
		}
	}
	return -1
}
