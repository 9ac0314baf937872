package eval

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Span is a half-open range of source bytes of one document, its path
// relative to the set's docs folder.
type Span struct {
	Doc  string `json:"doc"`
	From int    `json:"from_byte"`
	To   int    `json:"to_byte"`
}

// Question is one line of a set.
type Question struct {
	ID    string
	Text  string
	Style string // formal, ticket, …; "" where a set has none
	Gold  []Span // a result that holds one of them is right
	Half  bool   // the spans are passages: half of one is enough
}

// Set is a question set on disk.
type Set struct {
	Name      string
	Docs      string // the folder to ingest
	Questions []Question
}

// line is one line of queries.jsonl, of any of the kinds that Load reads.
type line struct {
	ID         string `json:"id"`
	Text       string `json:"text"`
	Style      string `json:"style"`
	Answerable bool   `json:"answerable"`
	Turn       int    `json:"turn"`
	Doc        string `json:"doc"`
	From       int    `json:"from_byte"`
	To         int    `json:"to_byte"`
	Evidence   []Span `json:"evidence"`
	Gold       []Span `json:"gold"`
}

// Load reads the answerable questions of a set. Of conversations it takes the
// first turns, which need no history.
func Load(dir string) (Set, error) {
	s := Set{Name: filepath.Base(filepath.Clean(dir)), Docs: filepath.Join(dir, "docs")}
	if info, err := os.Stat(s.Docs); err != nil || !info.IsDir() {
		return Set{}, fmt.Errorf("%s is no question set: it has no docs folder", dir)
	}
	f, err := os.Open(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return Set{}, fmt.Errorf("%s is no question set: %w", dir, err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for n := 1; in.Scan(); n++ {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return Set{}, fmt.Errorf("%s line %d: %w", f.Name(), n, err)
		}
		if l.Answerable && l.Turn <= 1 {
			s.Questions = append(s.Questions, l.question())
		}
	}
	if err := in.Err(); err != nil {
		return Set{}, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	if len(s.Questions) == 0 {
		return Set{}, fmt.Errorf("%s has no answerable question", f.Name())
	}
	return s, nil
}

func (l line) question() Question {
	q := Question{ID: l.ID, Text: l.Text, Style: l.Style}
	switch {
	case len(l.Gold) > 0:
		q.Gold, q.Half = l.Gold, true
	case len(l.Evidence) > 0:
		for _, e := range l.Evidence {
			q.Gold = append(q.Gold, Span{l.Doc, e.From, e.To})
		}
	default:
		q.Gold = []Span{{l.Doc, l.From, l.To}}
	}
	return q
}
