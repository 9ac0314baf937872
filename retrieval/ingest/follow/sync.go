package follow

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"footnote/retrieval/ingest"
)

// Request is an operator's wish for full passes now.
type Request struct {
	Sources []string // by name; none: all
	Only    []string // paths that the passes are limited to; nil: all
	Remove  bool     // what is missing, however much it is
	Told    func(ingest.Event)
}

// Outcome is what became of one source.
type Outcome struct {
	Name   string
	Source ingest.Source
	Report ingest.Report
	Plan   ingest.Plan // of Plan
	Err    error       // the source as a whole could not be taken in
}

// Sync passes over the sources now, with or without Run, and tries failed
// documents again. It interrupts a pass of Run. The error is that of the
// request or of ctx; troubles of a source are in its outcome.
func (l *Loop) Sync(ctx context.Context, r Request) ([]Outcome, error) {
	return l.eachNow(ctx, r, func(f *feed) (o Outcome) {
		o.Report, o.Err = l.now(ctx, f, r)
		return o
	})
}

// Plan says what Sync would do.
func (l *Loop) Plan(ctx context.Context, r Request) ([]Outcome, error) {
	return l.eachNow(ctx, r, func(f *feed) (o Outcome) {
		how := ingest.How{Prune: true, Name: f.Name, MaxRemoved: l.o.MaxRemoved}
		if r.Remove {
			how.MaxRemoved = 0
		}
		o.Plan, o.Err = l.p.Plan(ctx, f.Source, how)
		return o
	})
}

// eachNow does something for each source of the request, before Run goes on.
func (l *Loop) eachNow(ctx context.Context, r Request, do func(*feed) Outcome) ([]Outcome, error) {
	feeds, err := l.named(r.Sources)
	if err != nil {
		return nil, err
	}
	var out []Outcome
	err = l.Urgently(func() error {
		for _, f := range feeds {
			o := do(f)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			o.Name, o.Source = f.Name, f.Source
			out = append(out, o)
		}
		return nil
	})
	return out, err
}

// Owner names the source that a path belongs to: of those whose root it lies
// under the one with the longest.
func (l *Loop) Owner(path string) (name string, ok bool) {
	best := -1
	for _, f := range l.feeds {
		root := f.Source.Root()
		rel, err := filepath.Rel(root, path)
		if err == nil && filepath.IsLocal(rel) && len(root) > best {
			name, best = f.Name, len(root)
		}
	}
	return name, best >= 0
}

func (l *Loop) named(names []string) ([]*feed, error) {
	if len(names) == 0 {
		return l.feeds, nil
	}
	var known []string
	var out []*feed
	for _, f := range l.feeds {
		known = append(known, f.Name)
		if slices.Contains(names, f.Name) {
			out = append(out, f)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("there is no source %q; there is: %s", n, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// now makes an operator's pass, again from the start when something urgent
// came between. The caller holds turn.
func (l *Loop) now(ctx context.Context, f *feed, r Request) (ingest.Report, error) {
	for {
		l.mu.Lock()
		w := f.fullWork(time.Now(), l.o.Settle)
		l.mu.Unlock()
		w.all, w.remove, w.told = true, r.Remove, r.Told
		if r.Only != nil {
			w.full, w.again = false, map[string]bool{}
			for _, path := range r.Only {
				w.again[path] = true
			}
		}
		report, err := l.pass(ctx, w)
		if !errors.Is(err, errInterrupted) {
			return report, err
		}
		for w := l.dirty(f); w != nil; w = l.dirty(f) {
			if _, err := l.pass(ctx, w); err != nil {
				break
			}
		}
	}
}

func (l *Loop) dirty(f *feed) *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f.dirtyWork(time.Now(), l.o.Settle)
}
