package extract

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
)

var (
	// cueTimes is the line between the times of a cue; hours are optional and
	// SRT writes a comma before the milliseconds.
	cueTimes = regexp.MustCompile(`^\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?\s*-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?(?:\s.*)?$`)
	voice    = regexp.MustCompile(`^<v(?:\.[^\s>]*)?[ \t]+([^>]*)>`)
	cueTag   = regexp.MustCompile(`</?(?i:v|c|i|b|u|s|em|strong|ruby|rt|lang|font|span)(?:[.\s][^<>]*)?/?>|<[\d:.]+>|\{\\[^{}]*\}|</?(?i:font|c|v|i|b|u)\b[^<>]*$`)
)

// parseCaptions reads WebVTT and SubRip: every cue is a paragraph placed by
// its times in seconds, "t=3605,3610.5", the media fragment that opens the
// recording there. Speakers stand before what they say. Notes, styles and
// regions are not spoken and left out. A file that is cut off or lacks empty
// lines reads as far as its times go.
func parseCaptions(ctx context.Context, in input) (doctree.Tree, error) {
	d := draft.New(in.limits, true)
	c := captions{d: d, in: in}
	for at, n := 0, 0; at < len(in.text); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return doctree.Tree{}, ctx.Err()
		}
		end := lineEnd(in.text, at)
		c.line(at, end)
		at = end + 1
	}
	c.close()
	return d.Tree(c.title, in.source)
}

type captions struct {
	d       *draft.Document
	in      input
	title   string
	lines   [][2]int // of the open cue
	inCue   bool
	speaker string
}

func (c *captions) line(from, to int) {
	s := c.in.text[from:to]
	m := cueTimes.FindStringSubmatch(s)
	switch {
	case m != nil:
		c.dropNumber()
		c.close()
		c.inCue = true
		c.d.Place = "t=" + seconds(m[1:5]) + "," + seconds(m[5:9])
	case strings.TrimSpace(s) == "":
		c.close()
	case c.inCue:
		c.lines = append(c.lines, [2]int{from, to})
	case from == 0 && strings.HasPrefix(s, "WEBVTT"):
		c.title = strings.TrimLeft(strings.TrimSpace(s[len("WEBVTT"):]), "- ")
	}
}

// dropNumber takes the number of the next cue off the one that is open, where
// no empty line parts them.
func (c *captions) dropNumber() {
	if n := len(c.lines); n > 1 {
		if _, err := strconv.Atoi(strings.TrimSpace(c.in.text[c.lines[n-1][0]:c.lines[n-1][1]])); err == nil {
			c.lines = c.lines[:n-1]
		}
	}
}

// close writes the open cue.
func (c *captions) close() {
	if len(c.lines) > 0 {
		c.d.Begin(doctree.Paragraph)
		for i, l := range c.lines {
			if i > 0 {
				c.d.Text("\n")
			}
			c.spoken(l[0], l[1])
		}
		c.d.End()
	}
	c.lines, c.inCue = nil, false
}

// spoken writes a line without its tags. A voice tag becomes its speaker,
// named again only when the speaker changes.
func (c *captions) spoken(from, to int) {
	s := c.in.text[from:to]
	at := 0
	for _, m := range cueTag.FindAllStringIndex(s, -1) {
		c.words(s[at:m[0]], from+at)
		if v := voice.FindStringSubmatchIndex(s[m[0]:m[1]]); v != nil {
			c.says(strings.TrimSpace(s[m[0]+v[2]:m[0]+v[3]]), from+m[0]+v[2])
		}
		at = m[1]
	}
	c.words(s[at:], from+at)
}

// says names a speaker whose voice begins.
func (c *captions) says(name string, src int) {
	if name != c.speaker && name != "" {
		c.speaker = name
		c.words(name, src)
		c.d.Text(": ")
	}
}

// words writes text with its character references read.
func (c *captions) words(s string, src int) {
	for i := 0; i < len(s); {
		next := strings.IndexByte(s[i:], '&')
		if next < 0 {
			c.d.Copy(s[i:], src+i)
			return
		}
		c.d.Copy(s[i:i+next], src+i)
		i += next
		if n, as := reference(s[i:]); n > 0 {
			c.d.Stand(as, src+i, n)
			i += n
			continue
		}
		c.d.Copy("&", src+i)
		i++
	}
}

// seconds adds up hours, minutes, seconds and milliseconds.
func seconds(parts []string) string {
	n := func(s string) int { v, _ := strconv.Atoi(s); return v }
	total := n(parts[0])*3600 + n(parts[1])*60 + n(parts[2])
	if ms := strings.TrimRight((parts[3] + "000")[:3], "0"); ms != "" {
		return strconv.Itoa(total) + "." + ms
	}
	return strconv.Itoa(total)
}
