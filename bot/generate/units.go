package generate

import (
	"regexp"
	"strings"

	"footnote/bot/cite"
	"footnote/retrieval/analysis"
)

// unit is the least that can be quoted: a place in one passage's content.
type unit struct {
	evidence int    // index into the request's evidence
	from, to int    // bytes of its content
	head     string // of a table: the head rows, shown before the row
	lead     string // sentence that introduces it, "" none
	kind     string
	context  string // read before it when it is judged
	plain    string // read when it is judged
	order    int    // place among all units
}

// limits of a unit. A block of code of more lines is cut at its empty lines; a
// list item of more bytes is cut into sentences.
const (
	maxCodeLines = 16
	maxItem      = 320
)

var (
	fenceMark   = regexp.MustCompile("^\\s*(```+|~~~+)")
	headingMark = regexp.MustCompile(`^\s{0,3}#{1,6}(\s|$)`)
	itemMark    = regexp.MustCompile(`^(?:\s*>)*\s*(?:[-*+•]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?`)
	quoteMark   = regexp.MustCompile(`^(?:\s*>\s?)+`)
	ruleRow     = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)
)

// cutter walks one passage line by line.
type cutter struct {
	content string
	head    string   // head row of a table that begins in an earlier passage, "" none
	lines   [][2]int // without their line ends
	units   []unit
	leadIn  string // last prose or heading before a list, as it stands
	last    string // last sentence of any kind, as it stands
}

// cut divides a passage's content into units, in order. head is the head row of
// a table that the content is in the middle of, "" none.
func cut(content, head string) []unit {
	c := &cutter{content: content, head: head}
	for at := 0; at < len(content); {
		end := strings.IndexByte(content[at:], '\n')
		if end < 0 {
			end = len(content) - at
		}
		c.lines = append(c.lines, [2]int{at, at + end})
		at += end + 1
	}
	for i := 0; i < len(c.lines); {
		i = c.block(i)
	}
	return c.units
}

func (c *cutter) line(i int) string {
	if i >= len(c.lines) {
		return ""
	}
	return c.content[c.lines[i][0]:c.lines[i][1]]
}

// block cuts the block that begins at line i and returns the line after it.
func (c *cutter) block(i int) int {
	l := c.line(i)
	switch {
	case strings.TrimSpace(l) == "":
		return i + 1
	case c.isGrid(i):
		return c.table(i, grid)
	case fenceMark.MatchString(l):
		return c.code(i)
	case headingMark.MatchString(l):
		c.leadIn = strings.TrimSpace(strings.TrimLeft(l, " #"))
		c.last = c.leadIn
		return i + 1
	case c.isTable(i):
		return c.table(i, markdown)
	}
	end := i + 1
	for end < len(c.lines) && !c.starts(end) {
		end++
	}
	from, to := c.lines[i][0], c.lines[end-1][1]
	if m := itemMark.FindStringIndex(l); m != nil {
		c.item(from+m[1], to)
	} else {
		m := quoteMark.FindStringIndex(l)
		if m != nil {
			from += m[1]
		}
		c.leadIn = ""
		c.prose(from, to)
	}
	return end
}

// starts reports that a new block begins at line i.
func (c *cutter) starts(i int) bool {
	l := c.line(i)
	return strings.TrimSpace(l) == "" || fenceMark.MatchString(l) || headingMark.MatchString(l) || itemMark.MatchString(l) || c.isTable(i) || c.isGrid(i)
}

// form is a way to write a table.
type form struct {
	cells func(line string) []string     // of one row, nil for a line that is none
	head  func(c *cutter, i int) (n int) // lines of the head that begins at line i, 0: none
}

var (
	markdown = form{cells: barCells, head: ruledHead}
	grid     = form{cells: gridCells, head: firstRow}
)

// table makes a unit of each row of the table that begins at line i. A head that
// stands there is shown with every row and names its cells; else the head row of
// an earlier passage names them; where there is none a row is read as its values.
func (c *cutter) table(i int, f form) int {
	head, names := "", f.cells(c.head)
	if n := f.head(c, i); n > 0 {
		head, names = c.content[c.lines[i][0]:c.lines[i+n-1][1]]+"\n", f.cells(c.line(i))
		i += n
	}
	for ; f.cells(c.line(i)) != nil; i++ {
		if ruleRow.MatchString(c.line(i)) {
			continue
		}
		read := row(names, f.cells(c.line(i)))
		c.add(unit{from: c.lines[i][0], to: c.lines[i][1], head: head, kind: cite.Table, context: cite.Plain(c.leadIn), plain: cite.Plain(read)})
	}
	return i
}

func (c *cutter) isTable(i int) bool {
	l := strings.TrimSpace(c.line(i))
	return strings.HasPrefix(l, "|") && strings.Count(l, "|") > 1 ||
		strings.Contains(l, "|") && strings.Contains(c.line(i+1), "|") && ruleRow.MatchString(c.line(i+1))
}

// ruledHead is the row above a rule, with the rule.
func ruledHead(c *cutter, i int) int {
	if ruleRow.MatchString(c.line(i + 1)) {
		return 2
	}
	return 0
}

// barCells are the cells between bars.
func barCells(line string) []string {
	if !strings.Contains(line, "|") {
		return nil
	}
	return split(strings.Trim(strings.TrimSpace(line), "|"), "|")
}

// isGrid reports that rows begin at line i as tables of other formats than
// Markdown are written: cells between tabs, or between bars in spaces and as
// many in the next row.
func (c *cutter) isGrid(i int) bool {
	row := gridCells(c.line(i))
	full := 0
	for _, x := range row {
		if x != "" {
			full++
		}
	}
	if full < 2 {
		return false
	}
	return strings.Contains(c.line(i), "\t") || len(gridCells(c.line(i+1))) == len(row) && !ruleRow.MatchString(c.line(i+1))
}

// firstRow names the columns, unless the table begins in an earlier passage; a
// row that stands alone names nothing.
func firstRow(c *cutter, i int) int {
	if gridCells(c.head) == nil && gridCells(c.line(i+1)) != nil {
		return 1
	}
	return 0
}

// gridCells are the cells between tabs, or where there is none between bars in spaces.
func gridCells(line string) []string {
	between := "\t"
	if !strings.Contains(line, between) {
		between = " | "
	}
	if !strings.Contains(line, between) || strings.HasPrefix(strings.TrimSpace(line), "|") {
		return nil
	}
	return split(line, between)
}

func split(row, between string) []string {
	cells := strings.Split(row, between)
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// row reads a row as "name: value, name: value".
func row(names, values []string) string {
	var parts []string
	for i, v := range values {
		if i < len(names) && names[i] != "" && v != "" {
			v = names[i] + ": " + v
		}
		if v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, ", ")
}

// code makes one unit of a fenced block, or several at its empty lines if it
// is long. The fences are not part of it.
func (c *cutter) code(i int) int {
	mark := strings.TrimSpace(fenceMark.FindString(c.line(i)))
	end := i + 1
	for end < len(c.lines) && !strings.HasPrefix(strings.TrimSpace(c.line(end)), mark) {
		end++
	}
	long := end-i-1 > maxCodeLines
	start := i + 1
	for j := i + 1; j <= end; j++ {
		blank := j < end && long && strings.TrimSpace(c.line(j)) == ""
		if j < end && !blank {
			continue
		}
		if j > start {
			from, to := c.lines[start][0], c.lines[j-1][1]
			c.add(unit{from: from, to: to, kind: cite.Code, lead: introduces(c.last), context: cite.Plain(c.last), plain: c.content[from:to]})
		}
		start = j + 1
	}
	return end + 1
}

// item makes one unit of a list item, or its sentences if it is long.
func (c *cutter) item(from, to int) {
	text := c.content[from:to]
	if to-from > maxItem {
		leadIn := c.leadIn
		c.prose(from, to)
		c.leadIn = leadIn
		return
	}
	c.add(unit{from: from, to: to, kind: cite.Text, lead: introduces(c.leadIn), context: cite.Plain(c.leadIn), plain: cite.Plain(text)})
	if all := analysis.Sentences(text); len(all) > 0 {
		c.last = text[all[len(all)-1].From:all[len(all)-1].To]
	}
}

// prose makes a unit of each sentence. The sentence before is its context.
func (c *cutter) prose(from, to int) {
	context := cite.Plain(c.leadIn)
	for _, s := range analysis.Sentences(c.content[from:to]) {
		raw := c.content[from+s.From : from+s.To]
		text := cite.Plain(raw)
		c.add(unit{from: from + s.From, to: from + s.To, kind: cite.Text, context: context, plain: text})
		if text != "" {
			context, c.leadIn, c.last = text, raw, raw
		}
	}
}

// introduces returns a sentence that needs what follows it, "" for others.
func introduces(sentence string) string {
	if strings.HasSuffix(strings.TrimRight(sentence, "*_ "), ":") {
		return sentence
	}
	return ""
}

// add trims a unit and keeps it if it says anything.
func (c *cutter) add(u unit) {
	s := c.content[u.from:u.to]
	u.from += len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	u.to -= len(s) - len(strings.TrimRight(s, " \t\r\n"))
	if u.kind == cite.Code {
		u.from = strings.LastIndexByte(c.content[:u.from], '\n') + 1 // keep the indentation
	}
	if u.to <= u.from || !says(u.plain) {
		return
	}
	c.units = append(c.units, u)
}

// says reports that text has a letter or digit to read.
func says(text string) bool { return strings.ContainsFunc(text, readable) }
