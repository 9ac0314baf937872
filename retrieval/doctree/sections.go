package doctree

import "strings"

// Outline builds sections from headings in reading order. Its zero value is
// ready; Title is the heading that names the whole document and so is no part
// of any path.
type Outline struct {
	Title string
	open  []heading
	named bool
}

type heading struct {
	level int
	text  string
}

// Enter opens the section of a heading and returns its path.
func (o *Outline) Enter(level int, text string) []string {
	for len(o.open) > 0 && o.open[len(o.open)-1].level >= level {
		o.open = o.open[:len(o.open)-1]
	}
	if !o.named && level == 1 && same(text, o.Title) {
		o.named, text = true, ""
	}
	o.open = append(o.open, heading{level, text})
	var path []string
	for _, h := range o.open {
		if h.text != "" {
			path = append(path, h.text)
		}
	}
	return path
}

func same(a, b string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
}
