package extract

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// clutter finds the parts of a page that stand around its content although no
// element says so: blocks named like navigation, and blocks of links.
//
// Its one idea: a name alone is no proof, since themes call anything anything.
// A block is clutter by its name if it holds neither the main heading nor much
// of the page's text, and by its links if they are most of its text and it holds
// no sentence.
type clutter struct {
	open  []*part
	all   []part
	total int // characters of the page
	raw   string
	links int // open a elements
}

// part is an element that may be clutter.
type part struct {
	name     string
	at       int
	named    bool // like something around the content
	perhaps  bool // like something that often is
	kept     bool // holds the main heading, or is said to be content
	chars    int
	linked   int // of chars, those in links
	links    int
	sentence int // characters of its longest run of text outside of links
}

// parts are the elements that are looked at.
const parts = " div section ul ol dl table aside form td article main header footer nav "

const (
	namedShare  = 0.35 // of the page's text that a block with such a name holds at most
	linkedShare = 0.65 // of a block's text that is links in a block of links
	leastLinks  = 4
	longRun     = 90 // characters of a sentence
	maxLookBack = 64 // open elements searched for the start of one that ends
)

// aroundWords are parts of the names of what stands around the content;
// perhapsWords are of what often does.
var (
	aroundWords  = regexp.MustCompile(`(?i)cookie|consent|gdpr|(^|[\s_])(left|right|main|primary|secondary|page|site|the)?[-_]?side-?bar|breadcrumb|newsletter|subscri|navbar|navigation|footer|pagination|pager|related|recommend|social|sharing|(^|[^a-z])share|advert|sponsor|popup|toolbar|copyright|imprint|impressum|outbrain|taboola|masthead|offcanvas|signup|searchform|tagcloud|trending|comment-?(form|respond)|(^|[^a-z])(nav|ad|ads|banner|respond|topbar)([^a-z]|$)`)
	perhapsWords = regexp.MustCompile(`(?i)teaser|promo|modal|login|(^|[^a-z])(menu|widget|widgets|search|skip|meta|tags|legal|toplinks|lang|languages|rss|print|more|most|popular|author|bio|date|byline|info)([^a-z]|$)`)
)

func (c *clutter) see(in input, t tag) {
	switch {
	case t.kind == html.TextToken:
		c.text(in.text[t.from:t.to])
	case t.kind == html.StartTagToken && hasTag(" script style noscript template svg ", t.name):
		c.raw = t.name
	case t.kind == html.EndTagToken && t.name == c.raw:
		c.raw = ""
	case t.name == "a" && t.kind == html.StartTagToken:
		c.links = 1
		if n := len(c.open); n > 0 {
			c.open[n-1].links++
		}
	case t.name == "a":
		c.links = 0
	case t.name == "h1" && t.kind == html.StartTagToken:
		for _, p := range c.open {
			p.kept = true
		}
	case hasTag(parts, t.name) && t.kind == html.StartTagToken:
		name := t.attr["class"] + " " + t.attr["id"]
		c.open = append(c.open, &part{name: t.name, at: t.from, named: aroundWords.MatchString(name), perhaps: perhapsWords.MatchString(name), kept: t.name == "main" || t.name == "article" || t.attr["role"] == "main"})
	case hasTag(parts, t.name) && t.kind == html.EndTagToken:
		c.close(t.name)
	}
}

func (c *clutter) text(s string) {
	n := len(c.open)
	if c.raw != "" || n == 0 {
		return
	}
	chars := utf8.RuneCountInString(strings.TrimFunc(s, unicode.IsSpace))
	p := c.open[n-1]
	p.chars += chars
	c.total += chars
	if c.links > 0 {
		p.linked += chars
		return
	}
	p.sentence = max(p.sentence, chars)
}

// close ends the innermost open element of a name, and what was left open in it.
func (c *clutter) close(name string) {
	for i := len(c.open) - 1; i >= max(0, len(c.open)-maxLookBack); i-- {
		if c.open[i].name == name {
			for len(c.open) > i {
				c.pop()
			}
			return
		}
	}
}

func (c *clutter) pop() {
	n := len(c.open) - 1
	p := c.open[n]
	c.open = c.open[:n]
	if n > 0 {
		up := c.open[n-1]
		up.chars += p.chars
		up.linked += p.linked
		up.links += p.links
		up.sentence = max(up.sentence, p.sentence)
		up.kept = up.kept || p.kept
	}
	if p.chars > 0 && !p.kept && (p.named || p.perhaps || p.links >= leastLinks) {
		c.all = append(c.all, *p)
	}
}

// found are the offsets of what is clutter.
func (c *clutter) found() map[int]bool {
	for len(c.open) > 0 {
		c.pop()
	}
	out := map[int]bool{}
	for _, p := range c.all {
		share := float64(p.chars) / float64(max(c.total, 1))
		switch {
		case p.named && share <= namedShare, p.perhaps && share <= namedShare && p.sentence < longRun:
			out[p.at] = true
		case p.links >= leastLinks && float64(p.linked) > linkedShare*float64(p.chars) && p.sentence < longRun:
			out[p.at] = true
		}
	}
	return out
}
