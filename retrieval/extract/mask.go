package extract

import (
	"regexp"
	"sort"
	"strings"

	"footnote/retrieval/doctree"
)

// Bounds on what the Markdown library sees, since some of its work grows with
// the square of them (measured on 20,000 to 160,000 repetitions).
const (
	maxNesting = 32       // containers opened on one line
	maxRun     = 32 << 10 // bytes of one paragraph whose inline markup is read
	maxBars    = 256      // bars in a line: columns of a table
)

// masked is a copy of a text for the Markdown library, of equal length, in
// which what CommonMark does not know is overwritten, together with marks for
// what was.
type masked struct {
	text   string
	seen   []byte
	marks  []doctree.Mark
	silent []doctree.Mark // whole lines that read as nothing

	fence    string // the fence that is open
	notes    []int  // indents of the admonitions that are open
	run      int    // where the present paragraph began
	comments int    // end of the JSX comment that is open
	endless  int    // no JSX comment ends before this
}

var (
	fenceLine = regexp.MustCompile("^[ \t>]*(?:[-*+] +|[0-9]+[.)] +)*(```+|~~~+)([^`]*)$")
	// jsxLine is a line that is one tag of a component.
	jsxLine = regexp.MustCompile(`^[ \t]*</?[A-Z][\w.]*(?:[ \t][^<]*)?/?>[ \t]*$`)
	// templateTag is a tag of Jekyll, Nunjucks, Hugo and their like.
	templateTag = regexp.MustCompile(`\{%.*?%\}|\{\{[<%].*?[>%]\}\}`)
	comment     = regexp.MustCompile(`\{%-?\s*comment\s*-?%\}.*?\{%-?\s*endcomment\s*-?%\}`)
	quoted      = regexp.MustCompile(`"([^"]*)"`)
	fileName    = regexp.MustCompile(`^\S*(/\S*|\.\w{2,4})$`)
	// attributes are kramdown's and Pandoc's: {: .class} and {#id}.
	attributes = regexp.MustCompile(`[ \t]*\{[:#][^{}\n]*\}[ \t]*$`)
	jsxComment = regexp.MustCompile(`[ \t]*\{/\*.*?\*/\}`)
	footnote   = regexp.MustCompile(`\[\^[^\]\s]{1,40}\]`)
	// admonition opens a note of MkDocs, whose body is indented.
	admonition = regexp.MustCompile(`^ *(?:!!!|\?\?\?\+?|===)[ \t]+`)
	// container opens a note of Docusaurus and others between colons; alert is
	// GitHub's.
	container  = regexp.MustCompile(`^[ \t>]*(:::+)`)
	alert      = regexp.MustCompile(`^[ \t]*>[ \t>]*(\[!)[A-Za-z]+(\])`)
	startsList = regexp.MustCompile(`^[ \t>]*(?:[-*+|#>]|[0-9]+[.)])`)
)

// mask prepares a text whose front matter ends at body.
func mask(text string, body int) masked {
	m := masked{text: text, seen: []byte(text), run: body}
	m.blank(0, body)
	for at := body; at < len(text); {
		end := lineEnd(text, at)
		m.line(at, end)
		at = end + 1
	}
	m.endRun(len(text))
	return m
}

// blank overwrites a range with spaces, keeping line ends.
func (m *masked) blank(from, to int) { m.over(from, to, ' ') }

func (m *masked) over(from, to int, with byte) {
	for i := from; i < to; i++ {
		if m.seen[i] != '\n' {
			m.seen[i] = with
		}
	}
}

// silence takes a whole line out of sight.
func (m *masked) silence(from, to int) {
	m.blank(from, to)
	mark := doctree.Mark{From: from, To: to}
	m.marks, m.silent = append(m.marks, mark), append(m.silent, mark)
}

// cover overwrites a range with letters, so that nothing around it changes its
// meaning, and marks what of it is not kept.
func (m *masked) cover(from, to int, kept [][]int) {
	m.over(from, to, 'x')
	at, as := from, ""
	for _, k := range kept {
		m.marks = append(m.marks, doctree.Mark{From: at, To: from + k[0], As: as})
		at, as = from+k[1], " "
	}
	m.marks = append(m.marks, doctree.Mark{From: at, To: to})
}

// line treats one line.
func (m *masked) line(from, to int) {
	s := m.text[from:to]
	m.indent(from, s)
	if m.fenced(s) {
		m.endRun(from)
		m.run = to + 1
		return
	}
	if from < m.comments {
		m.silence(from, min(to, m.comments))
		return
	}
	if len(s) <= maxRun {
		m.known(from, to, s)
	}
	m.limit(from, to)
	if strings.TrimSpace(s) == "" || startsList.MatchString(s) {
		m.endRun(from)
		m.run = from
	}
}

// fenced reports lines of fenced code, fences included.
func (m *masked) fenced(s string) bool {
	f := fenceLine.FindStringSubmatch(s[:min(len(s), 256)])
	switch {
	case m.fence == "" && f == nil:
		return false
	case m.fence == "":
		m.fence = f[1]
	case f != nil && strings.HasPrefix(f[1], m.fence) && strings.TrimSpace(f[2]) == "":
		m.fence = ""
	}
	return true
}

// known covers what is not CommonMark.
func (m *masked) known(from, to int, s string) {
	switch {
	case jsxLine.MatchString(s):
		m.silence(from, to)
		return
	case strings.HasPrefix(strings.TrimLeft(s, " \t"), "{/*") && !strings.Contains(s, "*/}"):
		if m.commented(from) {
			m.silence(from, to)
			return
		}
	}
	for _, r := range []*regexp.Regexp{comment, jsxComment, attributes} {
		m.each(r, from, s, func(string) [][]int { return nil })
	}
	m.each(footnote, from, s, func(f string) [][]int {
		if strings.HasPrefix(strings.TrimLeft(s, " "), f+":") {
			return [][]int{{0, len(f)}}
		}
		return nil
	})
	m.each(templateTag, from, s, said)
	for _, r := range []*regexp.Regexp{container, alert} {
		if at := r.FindStringSubmatchIndex(s); at != nil {
			for i := 2; i < len(at); i += 2 {
				m.marks = append(m.marks, doctree.Mark{From: from + at[i], To: from + at[i+1]})
			}
		}
	}
}

// commented finds the end of a JSX comment that goes on over lines.
func (m *masked) commented(from int) bool {
	limit := min(len(m.text), from+maxRun)
	if limit <= m.endless {
		return false
	}
	if i := strings.Index(m.text[max(from, m.endless-2):limit], "*/}"); i >= 0 {
		m.comments = max(from, m.endless-2) + i + len("*/}")
		return true
	}
	m.endless = limit
	return false
}

// each covers the matches of r that are not inside inline code, all but the
// ranges that keep names. A line of nothing else is silent.
func (m *masked) each(r *regexp.Regexp, from int, s string, keep func(string) [][]int) {
	for _, at := range r.FindAllStringIndex(s, -1) {
		if strings.Count(s[:at[0]], "`")%2 == 1 {
			continue
		}
		kept := keep(s[at[0]:at[1]])
		if len(kept) == 0 && strings.TrimSpace(s[:at[0]]+s[at[1]:]) == "" {
			m.silence(from, from+len(s))
			continue
		}
		m.cover(from+at[0], from+at[1], kept)
	}
}

// said finds what a template tag says in quotes, file names apart.
func said(tag string) [][]int {
	var out [][]int
	for _, q := range quoted.FindAllStringSubmatchIndex(tag, -1) {
		if !fileName.MatchString(tag[q[2]:q[3]]) {
			out = append(out, q[2:4])
		}
	}
	return out
}

// indent turns the body of an open admonition into a quotation: CommonMark
// would take it for code.
func (m *masked) indent(from int, s string) {
	in := len(s) - len(strings.TrimLeft(s, " "))
	for i, base := range m.notes {
		if in >= base+4 {
			m.seen[from+base] = '>'
		} else if in < len(s) {
			m.notes = m.notes[:i]
			break
		}
	}
	if m.fence == "" && len(m.notes) < maxNesting {
		if at := admonition.FindStringIndex(s); at != nil && at[1] < len(s) {
			m.notes = append(m.notes, in)
			m.marks = append(m.marks, doctree.Mark{From: from + in, To: from + at[1]})
		}
	}
}

// limit bounds containers and columns of a line.
func (m *masked) limit(from, to int) {
	opened, bars := 0, 0
	for i := from; i < to; i++ {
		c := m.seen[i]
		if c == ' ' || c == '\t' {
			continue
		}
		if strings.IndexByte(">-*+.)", c) < 0 && (c < '0' || c > '9') {
			break
		}
		if opened++; opened > maxNesting && (c < '0' || c > '9') {
			m.seen[i] = 'x'
		}
	}
	for i := from; i < to; i++ {
		if m.seen[i] == '|' {
			if bars++; bars > maxBars {
				m.seen[i] = 'x'
			}
		}
	}
}

// endRun closes a paragraph that ends before end. Of one that is too long the
// inline markup is taken for text.
func (m *masked) endRun(end int) {
	if end-m.run <= maxRun {
		return
	}
	for i := m.run; i < end; i++ {
		switch m.seen[i] {
		case '*', '_', '[', ']', '!', '<', '&', '~', '`', '(', '\\':
			m.seen[i] = 'x'
		}
	}
}

// lastAt is the last mark that begins at or before at, -1 if none does.
func lastAt(ms []doctree.Mark, at int) int {
	return sort.Search(len(ms), func(i int) bool { return ms[i].From > at }) - 1
}
