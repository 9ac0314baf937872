package office

import (
	"context"
	"strconv"
	"strings"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
	"footnote/retrieval/extract/ooxml"
)

// chart is what a chart shows: its title, and for each series the name and the
// saved values over the categories.
type chart struct {
	title  []string
	names  []string
	cats   map[int]string
	series []map[int]string

	in     string // title, or name, cat or val of a series
	at     int    // number of the point
	inText bool
	text   strings.Builder
}

// maxPoints bounds the points of one series.
const maxPoints = 1000

// writeChart writes a chart as a table: a column for each category, a row for
// each series.
func writeChart(ctx context.Context, p *ooxml.Package, d *draft.Document, part string) error {
	c := chart{cats: map[int]string{}}
	if err := p.Walk(ctx, part, c.element); err != nil {
		return err
	}
	d.Break()
	d.Add(doctree.Paragraph, strings.Join(c.title, " "))
	columns := 0
	for _, points := range append(c.series, c.cats) {
		for at := range points {
			columns = max(columns, at+1)
		}
	}
	d.Row(true, series("", c.cats, columns))
	for i, s := range c.series {
		d.Row(false, series(c.names[i], s, columns))
	}
	d.Break()
	return d.Err()
}

func series(name string, points map[int]string, columns int) []string {
	out := make([]string, columns+1)
	out[0] = name
	for at, v := range points {
		out[at+1] = v
	}
	return out
}

func (c *chart) element(e ooxml.Element) {
	switch {
	case e.Start:
		c.start(e)
	case e.End:
		c.end(e)
	case c.inText:
		c.text.WriteString(e.Text)
	}
}

func (c *chart) start(e ooxml.Element) {
	switch e.Name {
	case "title", "cat", "val":
		c.in = e.Name
	case "xVal":
		c.in = "cat"
	case "yVal":
		c.in = "val"
	case "bubbleSize":
		c.in = ""
	case "ser":
		c.in = "name"
		c.names, c.series = append(c.names, ""), append(c.series, map[int]string{})
	case "pt":
		c.at, _ = strconv.Atoi(e.Attr("idx"))
	case "v", "t":
		c.inText = true
		c.text.Reset()
	}
}

func (c *chart) end(e ooxml.Element) {
	switch e.Name {
	case "title", "cat", "val", "xVal", "yVal", "ser":
		c.in = ""
	case "tx":
		if c.in == "name" {
			c.in = ""
		}
	case "v", "t":
		c.inText = false
		c.point(strings.TrimSpace(c.text.String()))
	}
}

// point keeps a value where it belongs.
func (c *chart) point(v string) {
	n := len(c.series) - 1
	switch {
	case v == "" || c.at < 0 || c.at >= maxPoints:
	case c.in == "title":
		c.title = append(c.title, v)
	case n < 0:
	case c.in == "name":
		c.names[n] = v
	case c.in == "cat":
		c.cats[c.at] = v
	case c.in == "val":
		c.series[n][c.at] = shown(v)
	}
}

// shown takes the tail off a number that binary fractions leave.
func shown(v string) string {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || len(v) < 15 {
		return v
	}
	return strconv.FormatFloat(f, 'g', 12, 64)
}
