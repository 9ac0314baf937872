// Package cite turns the numbers that a generator wrote into sources that a
// reader can open.
//
// Its one idea: a generator says [n], nothing else, and n counts only if the
// evidence of this very turn has that number. Everything that a source says,
// document, place and quote, comes from the passage, never from the generator.
//
// A claim is either verbatim, and then its place in the passage is checked, or
// in other words, and then it needs a sentence of the passage that supports
// it. What has no support is dropped and counted. Numbers are given anew,
// dense and in order of first use, in one pass; one span has one number.
//
// It does not judge whether an answer answers: that is the generator's and the
// gate's part.
package cite

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"footnote/retrieval"
)

// Kinds of a claim, as of a chunk.
const (
	Text  = "text"
	Table = "table"
	Code  = "code"
)

// Claim is one statement of a draft.
type Claim struct {
	Lead    string // what the evidence says just before and is needed to read Text, "" nothing
	Text    string
	Kind    string // Text, Table or Code
	Numbers []int  // of the evidence, as supplied
	// From and To are the place of a verbatim claim in the content of the
	// evidence Numbers[0], in bytes. To 0: the claim is in other words.
	From, To int
}

// Evidence is a passage with the number under which the generator was given
// it.
type Evidence struct {
	N       int
	Passage retrieval.Passage
}

// Sentence is one statement of a reply with the numbers of its sources. Text
// is verbatim but for soft line breaks (items of a list keep their lines); Plain is the same without Markdown, for
// places that do not render it. Lead is the sentence that introduces a piece of
// code or a list item, without Markdown.
type Sentence struct {
	Lead  string `json:"lead,omitempty"`
	Text  string `json:"text"`
	Plain string `json:"plain"`
	Cites []int  `json:"cites"`
	Kind  string `json:"kind"`
}

// Source is one numbered footnote. From and To are code points of the
// revision's canonical text, and Quote is exactly what lies there. The source
// bytes are those of the file, where it is a text format; they hold the quote
// and may hold markup around it.
type Source struct {
	N              int                  `json:"n"`
	Document       retrieval.DocumentID `json:"document"`
	Title          string               `json:"title"`
	Revision       retrieval.Revision   `json:"revision"`
	Section        []string             `json:"section"`
	Locator        string               `json:"locator"`
	Quote          string               `json:"quote"`
	From           int                  `json:"from"`
	To             int                  `json:"to"`
	SourceFromByte int                  `json:"source_from_byte"`
	SourceToByte   int                  `json:"source_to_byte"`
	Path           string               `json:"path"`
	Link           string               `json:"link,omitempty"` // opens the original, "" there is none
	Modified       time.Time            `json:"modified"`

	Chunk retrieval.ChunkID `json:"-"`
}

// Answer is what is left of a draft.
type Answer struct {
	Sentences   []Sentence
	Sources     []Source
	Unknown     int // numbers that no evidence of this turn has
	Unsupported int // claims dropped for want of a source
}

// Resolve gives each claim its sources. A claim without one is dropped.
func Resolve(claims []Claim, evidence []Evidence) Answer {
	var a Answer
	supplied := make(map[int]retrieval.Passage, len(evidence))
	for _, e := range evidence {
		supplied[e.N] = e.Passage
	}
	given := map[span]int{}
	for _, c := range claims {
		var cites []int
		for i, n := range c.Numbers {
			p, ok := supplied[n]
			if !ok {
				a.Unknown++
				continue
			}
			from, to, ok := locate(c, i, p.Chunk.Content)
			if !ok {
				continue
			}
			cites = appendNew(cites, a.number(given, p, from, to))
		}
		if len(cites) == 0 {
			a.Unsupported++
			continue
		}
		a.Sentences = append(a.Sentences, shown(c, cites))
	}
	return a
}

// locate finds what the claim's i-th number stands on, as bytes of content.
func locate(c Claim, i int, content string) (from, to int, ok bool) {
	if i > 0 || c.To == 0 {
		return support(c.Text, content)
	}
	if c.From < 0 || c.To > len(content) || c.From >= c.To || !verbatim(c, content) {
		return 0, 0, false
	}
	return c.From, c.To, true
}

// verbatim reports that the claim shows what lies at its place. A table row
// brings its head rows, which must stand in the content as well, and so must
// the lead.
func verbatim(c Claim, content string) bool {
	quote := content[c.From:c.To]
	if !utf8.ValidString(quote) {
		return false
	}
	head, ok := strings.CutSuffix(c.Text, quote)
	return ok && strings.Contains(content, strings.TrimRight(head, "\n")) && strings.Contains(content, c.Lead)
}

// span names a quoted place.
type span struct {
	chunk    retrieval.ChunkID
	from, to int
}

// number returns the number of the place, a new source on its first use.
func (a *Answer) number(given map[span]int, p retrieval.Passage, from, to int) int {
	s := source(p, from, to)
	key := span{retrieval.ChunkID{Document: s.Document, Revision: s.Revision}, s.From, s.To}
	if n, ok := given[key]; ok {
		return n
	}
	s.N = len(a.Sources) + 1
	given[key] = s.N
	a.Sources = append(a.Sources, s)
	return s.N
}

// source describes the bytes from, to of the passage's content.
func source(p retrieval.Passage, from, to int) Source {
	c := p.Chunk
	start := c.Span.From + utf8.RuneCountInString(c.Content[:from])
	end := start + utf8.RuneCountInString(c.Content[from:to])
	s := Source{
		Document: c.ID.Document, Title: p.Title, Revision: c.ID.Revision,
		Section: append([]string{}, c.Section...), Locator: locator(c.Locator, start, end),
		Quote: c.Content[from:to], From: start, To: end,
		SourceFromByte: c.Span.SourceFrom, SourceToByte: c.Span.SourceTo,
		Path: p.Path, Link: p.Link, Modified: p.Modified, Chunk: c.ID,
	}
	if width := c.Span.SourceTo - c.Span.SourceFrom; c.Span.SourceTo > 0 {
		breaks := func(to int) int { return strings.Count(c.Content[:to], "\n") }
		switch width {
		case len(c.Content):
			s.SourceFromByte, s.SourceToByte = c.Span.SourceFrom+from, c.Span.SourceFrom+to
		case len(c.Content) + breaks(len(c.Content)): // CRLF in the source
			s.SourceFromByte, s.SourceToByte = c.Span.SourceFrom+from+breaks(from), c.Span.SourceFrom+to+breaks(to)
		}
	}
	return s
}

// locator opens the source at the quote: the page, sheet, slide or time of the
// chunk, where it has one, and the quote's own characters.
func locator(chunk string, from, to int) string {
	parts := slices.DeleteFunc(strings.Split(strings.TrimPrefix(chunk, "#"), "&"), func(p string) bool {
		return p == "" || strings.HasPrefix(p, "char=")
	})
	return "#" + strings.Join(append(parts, fmt.Sprintf("char=%d,%d", from, to)), "&")
}

// literal is a number in brackets that stands in a quoted document.
var literal = regexp.MustCompile(`\[(\d+)\]`)

func unbracket(s string) string { return literal.ReplaceAllString(s, "($1)") }

// shown is the claim as a reply carries it. Prose loses its soft line breaks,
// and the brackets of a number that would pass for a footnote of ours.
func shown(c Claim, cites []int) Sentence {
	s := Sentence{Lead: unbracket(Plain(c.Lead)), Text: c.Text, Plain: c.Text, Cites: cites, Kind: c.Kind}
	if c.Kind == Text {
		lines := fold(c.Text)
		s.Text = unbracket(strings.Join(lines, "\n"))
		for i, l := range lines {
			lines[i] = Plain(unbracket(l))
		}
		s.Plain = strings.Join(lines, "\n")
	}
	return s
}

// listed begins an item of a list, which keeps its line.
var listed = regexp.MustCompile(`^(?:[-*+•]|\d{1,4}[.)])\s`)

// fold joins the lines of a text that are broken softly.
func fold(text string) []string {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		l = strings.Join(strings.Fields(l), " ")
		switch n := len(lines); {
		case l == "":
		case n == 0 || listed.MatchString(l):
			lines = append(lines, l)
		default:
			lines[n-1] += " " + l
		}
	}
	return lines
}

func appendNew(ns []int, n int) []int {
	for _, have := range ns {
		if have == n {
			return ns
		}
	}
	return append(ns, n)
}
