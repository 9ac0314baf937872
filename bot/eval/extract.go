package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"footnote/retrieval"
	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
)

// Extraction is what is expected of one file, as expect.jsonl has it.
type Extraction struct {
	File     string   `json:"file"`
	Kind     string   `json:"kind"`
	Expect   string   `json:"expect"`           // one of outcomes
	Contain  []string `json:"must_contain"`     // phrases of the text
	Not      []string `json:"must_not_contain"` // phrases that are not in it
	Password string   `json:"password"`
}

// Extracted is what one file gave. It holds if Failed is empty.
type Extracted struct {
	File       string   `json:"file"`
	Kind       string   `json:"kind"`
	Expect     string   `json:"expect"`
	Outcome    string   `json:"outcome"` // text, or why there is none
	Characters int      `json:"characters"`
	Chunks     int      `json:"chunks"`
	Held       []string `json:"held"`
	Failed     []string `json:"failed"`
	Warnings   []string `json:"warnings"`
	Millis     int64    `json:"milliseconds"`
}

// outcomes are the values of expect, each with what the error must say if
// there is one; "" any error, "-" none is allowed.
var outcomes = map[string]string{
	"text": "-", "dates": "-", "text-any-charset": "-",
	"encrypted": "encrypted", "error": "", "no-text-layer": "no text found", "empty": "",
	"text-or-error": "", "no-crash": "",
}

// LoadExtraction reads DIR/expect.jsonl.
func LoadExtraction(dir string) ([]Extraction, error) {
	data, err := os.ReadFile(filepath.Join(dir, "expect.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("%s is no folder of format files: %w", dir, err)
	}
	var all []Extraction
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var e Extraction
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("expect.jsonl line %d: %w", n, err)
		}
		if _, ok := outcomes[e.Expect]; !ok || e.File == "" || filepath.Base(e.File) != e.File {
			return nil, fmt.Errorf("expect.jsonl line %d: file %q with expectation %q is not understood", n, e.File, e.Expect)
		}
		all = append(all, e)
	}
	return all, lines.Err()
}

// Extract reads DIR/files as ingestion does and holds what came out to what is
// expected. A parser that does not end in a minute has failed.
func Extract(ctx context.Context, dir string, all []Extraction, done func(Extracted)) error {
	for _, e := range all {
		data, err := os.ReadFile(filepath.Join(dir, "files", e.File))
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		began := time.Now()
		src := extract.Source{Path: e.File, Data: data, Password: e.Password}
		tree, err := extract.Extract(limited, src)
		var inside []doctree.Tree
		var left []string
		if err == nil {
			inside, left = members(limited, src, memberDepth)
		}
		took := time.Since(began)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		got, err := judge(e, tree, inside, err)
		if err != nil {
			return err
		}
		got.Warnings = append(got.Warnings, left...)
		got.Millis = took.Milliseconds()
		done(got)
	}
	return nil
}

// memberDepth is how deep members of members are read.
const memberDepth = 4

// members reads the documents that lie in another, as ingestion does. What
// cannot be read is told.
func members(ctx context.Context, src extract.Source, depth int) (trees []doctree.Tree, left []string) {
	if depth == 0 {
		return nil, nil
	}
	all, err := extract.Members(ctx, src)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, m := range all {
		data, err := m.Read(ctx)
		inner := extract.Source{Path: src.Path + "/" + m.Name, Data: data, Password: src.Password}
		var tree doctree.Tree
		if err == nil {
			tree, err = extract.Extract(ctx, inner)
		}
		if err != nil {
			left = append(left, m.Name+": "+err.Error())
			continue
		}
		more, lost := members(ctx, inner, depth-1)
		trees, left = append(append(trees, tree), more...), append(left, lost...)
	}
	return trees, left
}

// judge compares one result with its expectation. inside are the documents that
// lie in it.
func judge(e Extraction, tree doctree.Tree, inside []doctree.Tree, fault error) (Extracted, error) {
	got := Extracted{File: e.File, Kind: e.Kind, Expect: e.Expect, Outcome: "text", Warnings: tree.Warnings}
	hold := func(ok bool, what string) {
		if ok {
			got.Held = append(got.Held, what)
		} else {
			got.Failed = append(got.Failed, what)
		}
	}
	must := outcomes[e.Expect]
	if fault != nil {
		got.Outcome = fault.Error()
		var known *extract.Error
		hold(errors.As(fault, &known), "a reason for an operator")
		hold(must != "-" && strings.Contains(fault.Error(), must) && !strings.Contains(fault.Error(), "parser failed"), e.Expect)
		return got, nil
	}
	var chunks []retrieval.Chunk
	for _, t := range append([]doctree.Tree{tree}, inside...) {
		some, err := chunk.Split(t, chunk.Options{Count: func(s string) int { return utf8.RuneCountInString(s)/4 + 1 }})
		if err != nil {
			return got, err
		}
		chunks = append(chunks, some...)
		got.Characters += utf8.RuneCountInString(t.Canonical)
	}
	got.Chunks = len(chunks)
	hold(readable(e.Expect), e.Expect)
	hold(len(chunks) > 0, "chunks")
	text, joined := compared(e.Kind, chunks)
	for _, p := range e.Contain {
		hold(contains(text, p) || contains(joined, p), "«"+p+"»")
	}
	for _, p := range e.Not {
		hold(!contains(text, p), "no «"+p+"»")
	}
	return got, nil
}

// readable reports expectations that text meets. Of a file without a text
// layer the text comes from recognition.
func readable(expect string) bool {
	return outcomes[expect] == "-" || expect == "text-or-error" || expect == "no-crash" || expect == "no-text-layer"
}

// compared is what the chunks quote, in order, with white space collapsed, and
// for PDF once more with the hyphens at line ends joined.
func compared(kind string, chunks []retrieval.Chunk) (text, joined string) {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(c.Content + "\n")
	}
	text = collapse(b.String())
	if strings.HasPrefix(kind, "pdf") {
		joined = collapse(strings.ReplaceAll(strings.ReplaceAll(b.String(), "-\n", ""), "\u00ad\n", ""))
	}
	return text, joined
}

func contains(text, phrase string) bool { return strings.Contains(text, collapse(phrase)) }

func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }
