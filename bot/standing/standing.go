// Package standing says in a chat how the documents stand: to somebody alone,
// and no more than they may know.
//
// Its one idea: what is counted is what the asker's own grant admits in the index
// at this moment. The catalog only adds to such a document how it stands.
//
// SECURITY: a document that is not in the index (failed, refused, on its way for
// the first time) has no settled access list, so that it is not counted, named
// or hinted at; only operators, whom the configuration names, get numbers of
// those with the reasons. A source is named to whoever may read a document of
// it. What is absent and what may not be read give the same text.
//
// Format: lines of plain text; it posts nothing.
package standing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// Source is a source that is kept up with, as it stands.
type Source struct {
	Name    string
	Passed  time.Time // start of the last full pass; zero: none yet
	Trouble string    // why it cannot be read, for operators; "" none
	Missing int       // documents that are gone and were not removed, for operators
}

// records are what it needs of a catalog.
type records interface {
	Get(id retrieval.DocumentID) (catalog.Record, bool)
	List() []catalog.Record
}

// Options connect a Board. Current and Catalog are required.
type Options struct {
	Current   func(ctx context.Context) (retrieval.Reader, error) // the generation that answers
	Catalog   records
	Sources   func() []Source // nil: none are kept up with
	Operators acl.List        // zero: nobody
}

// Board tells how the documents stand. It is safe for concurrent use.
type Board struct{ o Options }

// New makes a board.
func New(o Options) *Board {
	if o.Sources == nil {
		o.Sources = func() []Source { return nil }
	}
	return &Board{o}
}

// notAvailable is the text for what is absent and for what may not be read.
const notAvailable = "This document is not available to you."

// Text says how the documents that the asker may read stand, or one of them by
// its id, path, file name or title. It is for the asker alone.
//
// SECURITY: by the asker's own grant.
func (b *Board) Text(ctx context.Context, asker acl.Identity, document string) (string, error) {
	reader, err := b.o.Current(ctx)
	if err != nil {
		return "", fmt.Errorf("opening the index: %w", err)
	}
	infos, err := reader.Documents(ctx, acl.NewGrant(asker, acl.AskerOnly()))
	if err != nil {
		return "", fmt.Errorf("listing documents: %w", err)
	}
	if document = strings.TrimSpace(document); document != "" {
		return b.one(infos, document), nil
	}
	lines := b.all(infos)
	if b.operates(asker) {
		lines = append(lines, b.operator()...)
	}
	return strings.Join(lines, "\n"), nil
}

// operates reports that the configuration names the person.
//
// SECURITY: an empty list names nobody.
func (b *Board) operates(asker acl.Identity) bool {
	return acl.NewGrant(asker, acl.AskerOnly()).Admits(b.o.Operators)
}

// all counts what the asker may read.
func (b *Board) all(infos []retrieval.DocumentInfo) []string {
	counts := map[string]int{}
	sources := map[string]bool{}
	for _, d := range infos {
		rec, _ := b.o.Catalog.Get(d.ID)
		counts[state(rec, d)]++
		sources[rec.Source] = true
	}
	if len(infos) == 0 {
		return []string{"There are no documents that you may read."}
	}
	var parts []string
	for _, s := range []string{upToDate, renewing, behind} {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	lines := []string{fmt.Sprintf("Documents that you may read: %d (%s).", len(infos), strings.Join(parts, ", "))}
	for _, s := range b.o.Sources() {
		if sources[s.Name] {
			lines = append(lines, "- "+s.Name+": "+s.said())
		}
	}
	return lines
}

// The states of a document that can be read.
const (
	upToDate = "up to date"
	renewing = "being taken in anew"
	behind   = "as they were before a change that failed"
)

func state(rec catalog.Record, d retrieval.DocumentInfo) string {
	switch {
	case rec.ID == "" || rec.State == catalog.Published && rec.Revision == d.Revision:
		return upToDate
	case !rec.State.Settled() || rec.State == catalog.Published:
		return renewing
	}
	return behind
}

// said is what anybody may know who may read some of it.
func (s Source) said() string {
	last := "not passed over yet"
	if !s.Passed.IsZero() {
		last = "last passed over at " + stamp(s.Passed)
	}
	switch {
	case s.Trouble != "":
		last += "; it cannot be read now, so that changes wait"
	case s.Missing > 0:
		last += "; removals wait for the operator"
	}
	return last + "."
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

const (
	mostReasons = 5
	mostMatches = 5
	longest     = 160 // characters of a reason
)

// operator tells what has no settled access, in numbers, and the troubles of
// sources.
func (b *Board) operator() []string {
	states := map[catalog.State]int{}
	reasons := map[string]int{}
	for _, rec := range b.o.Catalog.List() {
		if rec.State == catalog.Removed || rec.State == catalog.Published {
			continue
		}
		states[rec.State]++
		if rec.Reason != "" {
			reasons[firstLine(rec.Reason)]++
		}
	}
	lines := []string{"For operators:"}
	var counts []string
	for _, s := range slices.Sorted(maps.Keys(states)) {
		counts = append(counts, fmt.Sprintf("%d %s", states[s], s))
	}
	lines = append(lines, "- not published: "+cmp.Or(strings.Join(counts, ", "), "none"))
	for i, reason := range slices.SortedFunc(maps.Keys(reasons), func(x, y string) int { return cmp.Or(reasons[y]-reasons[x], strings.Compare(x, y)) }) {
		if i == mostReasons {
			lines = append(lines, fmt.Sprintf("- and %d more reasons: footnote docs", len(reasons)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("- %d × %s", reasons[reason], reason))
	}
	for _, s := range b.o.Sources() {
		if s.Trouble != "" {
			lines = append(lines, "- "+s.Name+" cannot be read: "+firstLine(s.Trouble))
		}
		if s.Missing > 0 {
			lines = append(lines, fmt.Sprintf("- %s: %d documents are gone and were not removed; if they are meant to be: footnote sync --remove %s", s.Name, s.Missing, s.Name))
		}
	}
	return lines
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > longest {
		return string(r[:longest-1]) + "…"
	}
	return s
}

// one tells of one document.
//
// SECURITY: among those that the asker may read, and no others, so that another
// document with the same name shows in nothing.
func (b *Board) one(infos []retrieval.DocumentInfo, wanted string) string {
	found := matching(infos, wanted)
	switch {
	case len(found) == 0:
		return notAvailable
	case len(found) > 1:
		lines := []string{"More than one document is called so; ask with its id:"}
		for _, d := range found[:min(mostMatches, len(found))] {
			lines = append(lines, fmt.Sprintf("- %s %s", d.ID, d.Title))
		}
		return strings.Join(lines, "\n")
	}
	return b.document(found[0])
}

// matching finds a document by what is most of its own: its id, else its path,
// else the name of its file or its title.
func matching(infos []retrieval.DocumentInfo, wanted string) []retrieval.DocumentInfo {
	for _, is := range []func(d retrieval.DocumentInfo) bool{
		func(d retrieval.DocumentInfo) bool { return string(d.ID) == wanted },
		func(d retrieval.DocumentInfo) bool { return d.Path == wanted },
		func(d retrieval.DocumentInfo) bool {
			return strings.EqualFold(path.Base(strings.ReplaceAll(d.Path, `\`, "/")), wanted) || strings.EqualFold(d.Title, wanted)
		},
	} {
		var out []retrieval.DocumentInfo
		for _, d := range infos {
			if is(d) {
				out = append(out, d)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// document tells how a document stands that the asker may read.
func (b *Board) document(d retrieval.DocumentInfo) string {
	rec, _ := b.o.Catalog.Get(d.ID)
	how := state(rec, d)
	lines := []string{cmp.Or(d.Title, path.Base(d.Path)) + ": " + strings.Replace(how, "as they were", "as it was", 1)}
	if len(rec.Changes) > 0 {
		lines[0] += ", since " + stamp(rec.Since())
	}
	lines[0] += "."
	lines = append(lines, fmt.Sprintf("- revision %s, %d chunks, %d characters", d.Revision, d.Chunks, d.Runes))
	// What the catalog says beyond is of the revision that it speaks of.
	if rec.Revision == d.Revision {
		for _, fact := range covered(rec) {
			lines = append(lines, "- "+fact)
		}
		for _, w := range rec.Warnings {
			lines = append(lines, "- "+firstLine(w))
		}
	}
	return strings.Join(lines, "\n")
}

// covered says how much of its source a document is.
func covered(rec catalog.Record) []string {
	var out []string
	f := rec.Facts
	if f.Unit != "" && f.Total > 0 {
		out = append(out, fmt.Sprintf("%d of %d %ss read", f.Covered, f.Total, f.Unit))
	}
	if f.Recognised > 0 {
		out = append(out, fmt.Sprintf("%d of them by text recognition, confidence %d of 100", f.Recognised, f.Confidence))
	}
	if rec.Truncated > 0 {
		out = append(out, fmt.Sprintf("%d chunks are longer than the model reads", rec.Truncated))
	}
	return out
}
