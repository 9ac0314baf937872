package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/extract"
	"footnote/retrieval/memindex"
)

func openIndex(ctx context.Context, dir string) (*memindex.Store, retrieval.Generation, error) {
	store, err := memindex.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	g, err := store.Open(ctx, "")
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, g, nil
}

// extraction compares the time of extraction on files that both sides read.
func extraction(ctx context.Context, s settings) error {
	for _, p := range []struct {
		ext, name string
		read      func(context.Context, settings, string) (time.Duration, error)
	}{{".pdf", "pdftotext", byPdftotext}, {".docx", "python-docx", byPython}} {
		names, err := filepath.Glob(filepath.Join(s.formats, "*"+p.ext))
		if err != nil {
			return err
		}
		var ratios []float64
		var ours, theirs time.Duration
		for _, n := range names {
			b, bErr := best(s.rounds, func() (time.Duration, error) { return p.read(ctx, s, n) })
			if errors.Is(bErr, exec.ErrNotFound) {
				fmt.Printf("%s is not installed: nothing to compare %s files with\n", p.name, p.ext)
				break
			}
			if bErr != nil {
				continue // empty, locked or broken
			}
			a, err := best(s.rounds, func() (time.Duration, error) { return byUs(ctx, n) })
			if err != nil {
				continue
			}
			fmt.Printf("  %-44s %9s  %-11s %9s  ratio %.2f\n", filepath.Base(n), a.Round(10*time.Microsecond), p.name, b.Round(10*time.Microsecond), float64(a)/float64(b))
			ratios, ours, theirs = append(ratios, float64(a)/float64(b)), ours+a, theirs+b
		}
		if len(ratios) > 0 {
			slices.Sort(ratios)
			fmt.Printf("%s, %d files: ours %s, %s %s, ratio of sums %.2f, median %.2f\n", p.ext, len(ratios), ours.Round(time.Millisecond), p.name, theirs.Round(time.Millisecond),
				float64(ours)/float64(theirs), ratios[len(ratios)/2])
		}
	}
	return nil
}

// best is the least time of some rounds: what others on the machine add is
// not the reader's.
func best(rounds int, read func() (time.Duration, error)) (least time.Duration, err error) {
	for i := range rounds {
		d, err := read()
		if err != nil {
			return 0, err
		}
		if i == 0 || d < least {
			least = d
		}
	}
	return least, nil
}

func byUs(ctx context.Context, name string) (time.Duration, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	_, err = extract.Extract(ctx, extract.Source{Path: name, Data: data, Limits: config.Default().Ingest.Extract.Limits()})
	return time.Since(start), err
}

// byPdftotext includes the start of its process, which is how it is used.
func byPdftotext(ctx context.Context, _ settings, name string) (time.Duration, error) {
	start := time.Now()
	text, err := exec.CommandContext(ctx, "pdftotext", "-enc", "UTF-8", name, "-").Output()
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = errors.New("it has no text: where we use OCR, pdftotext reads nothing")
	}
	return time.Since(start), err
}

// readDocx prints the seconds of reading all text of a file, without those of
// starting Python.
const readDocx = `
import sys, time
import docx
start = time.perf_counter()
d = docx.Document(sys.argv[1])
text = [p.text for p in d.paragraphs]
for t in d.tables:
    for row in t.rows:
        text += [c.text for c in row.cells]
print(time.perf_counter() - start)
`

func byPython(ctx context.Context, s settings, name string) (time.Duration, error) {
	out, err := exec.CommandContext(ctx, s.python, "-c", readDocx, name).Output()
	if err != nil {
		return 0, err
	}
	line, _ := bufio.NewReader(strings.NewReader(string(out))).ReadString('\n')
	seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return time.Duration(seconds * float64(time.Second)), err
}
