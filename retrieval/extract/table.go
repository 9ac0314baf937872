package extract

import (
	"context"
	"fmt"
	"strings"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
)

// parseTable reads CSV and its kin: the delimiter is the one that makes the
// most even rows, a field may be quoted with doubled quotes in it, and a quote
// that never ends is text. Rows are placed by their number from 1, the header
// included, as RFC 7111 counts.
func parseTable(ctx context.Context, in input) (doctree.Tree, error) {
	d := draft.New(in.limits, true)
	c := cells{text: in.text, at: separatorLine(in.text), by: delimiter(in)}
	records, header := 0, 0
	for c.at < len(in.text) {
		if records++; records%1024 == 0 && ctx.Err() != nil {
			return doctree.Tree{}, ctx.Err()
		}
		row := c.record()
		filled := 0
		for _, f := range row {
			if f.from < f.to {
				filled++
			}
		}
		if header == 0 && (filled > 1 || filled == 1 && len(row) == 1) {
			header = records
		}
		d.Place = fmt.Sprintf("row=%d", records)
		writeRecord(d, in.text, row, records == header && columnNames(row, in.text))
		if d.Err() != nil {
			break
		}
	}
	return d.Tree(in.title, in.source)
}

// separatorLine is the length of the line "sep=;" that spreadsheets write.
func separatorLine(text string) int {
	if len(text) > 5 && strings.EqualFold(text[:4], "sep=") && text[5] == '\n' && strings.IndexByte(delimiters, text[4]) >= 0 {
		return 6
	}
	return 0
}

// delimiters are tried in this order; of equally good ones the earlier wins.
const delimiters = ",;\t|"

// delimiter finds what parts the fields.
func delimiter(in input) byte {
	if n := separatorLine(in.text); n > 0 {
		return in.text[4]
	}
	best, bestScore := byte(','), 0.0
	if ext := ending(in.name); ext == ".tsv" || ext == ".tab" {
		best = '\t'
	}
	for i := range len(delimiters) {
		if s := evenness(in.text[:min(len(in.text), sampleSize)], delimiters[i]); s > bestScore {
			best, bestScore = delimiters[i], s
		}
	}
	return best
}

// evenness is the share of the first rows that have the number of fields that
// most have, weighed by that number; 0 if there is one field only.
func evenness(sample string, by byte) float64 {
	c := cells{text: sample, by: by}
	widths, rows := map[int]int{}, 0
	for c.at < len(sample) && rows < 200 {
		if n := len(c.record()); n > 0 {
			widths[n]++
			rows++
		}
	}
	best := 0.0
	for n, count := range widths {
		if n > 1 {
			best = max(best, float64(count)/float64(rows)+0.01*float64(min(n, 20)))
		}
	}
	return best
}

// field is a range of the text without its quotes.
type field struct {
	from, to int
	doubled  bool // quotes in it are doubled
}

// cells reads records.
type cells struct {
	text   string
	at     int
	by     byte
	broken bool // a quote never ends: quotes are text from here on
}

// record reads to the end of a line that is in no quotes. An empty line has no
// fields.
func (c *cells) record() []field {
	var out []field
	for {
		f, last := c.field()
		if last && len(out) == 0 && f.from == f.to {
			return nil
		}
		if out = append(out, f); last {
			return out
		}
	}
}

// field reads one field and says whether the record ends with it.
func (c *cells) field() (f field, last bool) {
	start := c.at
	for start < len(c.text) && c.text[start] == ' ' && c.by != ' ' {
		start++
	}
	if start < len(c.text) && c.text[start] == '"' && !c.broken {
		if f, ok := c.quoted(start + 1); ok {
			return f, c.next()
		}
		c.broken = true
	}
	f = field{from: start}
	for c.at = start; c.at < len(c.text) && c.text[c.at] != c.by && c.text[c.at] != '\n'; c.at++ {
	}
	f.to = c.at
	return f, c.next()
}

// quoted reads to the closing quote and over what follows it in the field.
func (c *cells) quoted(from int) (field, bool) {
	f := field{from: from}
	for i := from; i < len(c.text); i++ {
		if c.text[i] != '"' {
			continue
		}
		if i+1 < len(c.text) && c.text[i+1] == '"' {
			f.doubled = true
			i++
			continue
		}
		f.to = i
		for c.at = i + 1; c.at < len(c.text) && c.text[c.at] != c.by && c.text[c.at] != '\n'; c.at++ {
			if c.text[c.at] != ' ' { // not a closing quote after all
				f.to = c.at + 1
			}
		}
		return f, true
	}
	return f, false
}

// next steps over what ended a field.
func (c *cells) next() (last bool) {
	last = c.at >= len(c.text) || c.text[c.at] == '\n'
	c.at = min(c.at+1, len(c.text))
	return last
}

// columnNames reports that a record reads like the names of columns: no number
// among them.
func columnNames(row []field, text string) bool {
	for _, f := range row {
		if draft.Number(text[f.from:f.to]) {
			return false
		}
	}
	return true
}

// writeRecord writes a row, each field traced to the source and on one line.
func writeRecord(d *draft.Document, text string, row []field, head bool) {
	for len(row) > 0 && strings.TrimSpace(text[row[len(row)-1].from:row[len(row)-1].to]) == "" {
		row = row[:len(row)-1]
	}
	if len(row) == 0 {
		return
	}
	d.BeginRow(head, len(row))
	for i, f := range row {
		d.Tab(i, f.from == f.to)
		from := f.from
		for at := f.from; at <= f.to; at++ {
			end := at == f.to
			if !end && text[at] != '\n' && text[at] != '\t' && !(f.doubled && at+1 < f.to && text[at:at+2] == `""`) {
				continue
			}
			if !end && text[at] == '"' { // keep one of two
				d.Copy(text[from:at+1], from)
				at++
			} else if d.Copy(text[from:at], from); !end {
				d.Text(" ")
			}
			from = at + 1
		}
	}
	d.End()
}
