package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/doctree"
)

// Hands are others who extract, embed and publish for a run. The run alone
// decides: what there is, who may read it, what goes. It alone writes the
// catalog, so that records have one author.
type Hands interface {
	// Do has a task done and returns how it ended. The same task as one that is
	// under way, or that ended and was not forgotten, is not done twice. told is
	// called with the states that the document comes into. When ctx is done the
	// work goes on without the caller. A *Fault settles the document; another
	// error ends the run.
	Do(ctx context.Context, t Task, data []byte, told func(catalog.State) error) (Done, error)
	// Forget drops the task of a document: when it returned, nobody works for
	// it any more with any effect. It is called once the catalog says how the
	// document stands.
	Forget(ctx context.Context, id retrieval.DocumentID) error
	// Open lists the documents that have a task.
	Open(ctx context.Context) ([]retrieval.DocumentID, error)
}

// Task is a document to publish, apart from its bytes.
type Task struct {
	ID       retrieval.DocumentID `json:"id"`
	Path     string               `json:"path"`
	Revision retrieval.Revision   `json:"revision"`
	Rules    []string             `json:"rules,omitempty"`  // the access list that its source's rules give
	Bounds   bool                 `json:"bounds,omitempty"` // its front matter names nobody else
	Name     string               `json:"name,omitempty"`   // these as in Content
	Title    string               `json:"title,omitempty"`
	Link     string               `json:"link,omitempty"`
	Modified time.Time            `json:"modified"`

	Generation string `json:"generation"`        // that is published to
	Current    string `json:"current,omitempty"` // that is asked meanwhile; "" the same, or none

	// Served is the access list in force by generation, where the document is
	// published already.
	Served map[string][]string `json:"served,omitempty"`
}

// Same is equal for tasks that ask for the same work.
func (t Task) Same() string {
	t.Served = nil
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and a time
	}
	return string(b)
}

// Done is how a task ended: published, or not for Reason.
type Done struct {
	Reason    string `json:"reason,omitempty"`
	Refused   bool   `json:"refused,omitempty"` // these two as in Fault
	Retryable bool   `json:"retryable,omitempty"`

	Declared   []string      `json:"declared,omitempty"` // what follows as in catalog.Record
	Access     []string      `json:"access,omitempty"`
	Warnings   []string      `json:"warnings,omitempty"`
	Facts      doctree.Facts `json:"facts,omitzero"`
	Characters int           `json:"characters,omitempty"`
	Chunks     int           `json:"chunks,omitempty"`
	Truncated  int           `json:"truncated,omitempty"`
	Unnoted    bool          `json:"unnoted,omitempty"` // published without notes
}

// handedOut is how many tasks of a run are under way at once.
const handedOut = 32

// handOut gives jobs of in to other hands, and waits for them. What is this
// pipeline's own goes on to own.
func (r *run) handOut(ctx context.Context, in <-chan *job, own chan<- *job) error {
	g, ctx := errgroup.WithContext(ctx)
	for range handedOut {
		g.Go(func() error {
			for j := range in {
				if r.options.Own(j.rec.Path) {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case own <- j:
					}
				} else if err := r.handOver(ctx, j); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

// handOver has one document worked on and settles it.
func (r *run) handOver(ctx context.Context, j *job) error {
	defer j.release()
	task := r.task(j)
	data := j.content.Data
	j.content.Data = nil
	done, err := r.options.Hands.Do(ctx, task, data, func(s catalog.State) error { return r.enter(&j.rec, s) })
	if err == nil {
		err = r.returned(ctx, j, done)
	}
	var fault *Fault
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &fault):
		err = r.fail(ctx, j.item, &j.rec, fault)
	}
	if err != nil {
		return err
	}
	return r.forget(ctx, j.rec.ID)
}

func (r *run) task(j *job) Task {
	t := Task{
		ID: j.rec.ID, Path: j.rec.Path, Revision: j.rec.Revision, Rules: texts(j.item.Access), Bounds: r.bounds(j.rec.Path),
		Name: j.content.Name, Title: j.content.Title, Link: j.content.Link, Modified: j.content.Modified.UTC(),
		Generation: r.targetName, Served: map[string][]string{},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for g, docs := range r.generations() {
		name := g.Manifest().Name
		if name != r.targetName {
			t.Current = name
		}
		if info, in := docs[t.ID]; in {
			t.Served[name] = texts(info.Access)
		}
	}
	return t
}

// returned takes what others did into the record.
func (r *run) returned(ctx context.Context, j *job, d Done) error {
	list := listOf(d.Access)
	j.rec.Declared, j.rec.Access, j.rec.Warnings, j.rec.Facts = d.Declared, d.Access, d.Warnings, d.Facts
	j.rec.Characters, j.rec.Chunks, j.rec.Truncated = d.Characters, d.Chunks, d.Truncated
	if d.Reason != "" {
		if j.rec.Serving != "" && !list.IsZero() { // they have done so in the index
			if err := r.narrow(ctx, j.rec.ID, list); err != nil {
				return err
			}
		}
		return &Fault{Refused: d.Refused, Reason: d.Reason, Retryable: d.Retryable}
	}
	j.rec.Stamp, j.pub.Access = r.stamp, list
	if d.Unnoted {
		j.rec.Stamp = r.unnoted()
		r.mu.Lock()
		r.report.Unnoted++
		r.mu.Unlock()
	}
	j.pub.Document = retrieval.Document{ID: j.rec.ID, Revision: j.rec.Revision, Path: j.rec.Path}
	if err := r.published(ctx, j); err != nil {
		return err
	}
	r.settle(j.rec, Renewal)
	return nil
}

// review drops the tasks of an earlier run, or of another process, that nobody
// waits for any more, and remembers the others.
func (r *run) review(ctx context.Context) error {
	if r.options.Hands == nil {
		return nil
	}
	open, err := r.options.Hands.Open(ctx)
	if err != nil {
		return fmt.Errorf("asking what is worked on: %w", err)
	}
	r.handed = map[retrieval.DocumentID]bool{}
	for _, id := range open {
		if rec, known := r.catalog.Get(id); known && !rec.State.Settled() {
			r.handed[id] = true
		} else if err := r.forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// settledHere drops the task of an item that needs none after all.
func (r *run) settledHere(ctx context.Context, it Item) error {
	rec, _ := r.catalog.At(it.Path)
	if !r.handed[rec.ID] {
		return nil
	}
	return r.forget(ctx, rec.ID)
}

func (r *run) forget(ctx context.Context, id retrieval.DocumentID) error {
	if err := r.options.Hands.Forget(ctx, id); err != nil {
		return fmt.Errorf("ending the work on %s: %w", id, err)
	}
	return nil
}

// Work does a task for a run of another process: it extracts, embeds and
// publishes. open gives a generation for changes to this document alone. The
// error is not the document's: retrieval.ErrFenced if the work is not wanted any
// more, retrieval.ErrUnavailable if it must be done again, that of ctx.
//
// SECURITY: every change is made through open, so that none comes after the
// run's own decision about the document.
func (p *Pipeline) Work(ctx context.Context, t Task, data []byte, open func(generation string) (retrieval.Generation, error), told func(catalog.State)) (Done, error) {
	r := &run{Pipeline: p, src: elsewhere{t.Path, t.Bounds}, told: told, promoted: true}
	if err := r.stand(t, open); err != nil {
		return Done{}, err
	}
	j := &job{
		item:    Item{Path: t.Path, Access: listOf(t.Rules)},
		rec:     catalog.Record{ID: t.ID, Path: t.Path, Revision: t.Revision},
		content: Content{Data: data, Modified: t.Modified, Name: t.Name, Title: t.Title, Link: t.Link},
		release: func() {},
	}
	if len(t.Served) > 0 {
		j.rec.Serving = t.Revision // of whatever revision: it is to be narrowed
	}
	e := embedding{run: r}
	stages := []func(context.Context, *job) error{r.parse, e.embed, r.deliver}
	if p.options.Notes != nil {
		r.notes = p.options.Notes.Begin()
		stages = slices.Insert(stages, 1, r.annotate)
	}
	for _, stage := range stages {
		if err := stage(ctx, j); err != nil {
			return j.undone(ctx, err)
		}
	}
	return j.done(), nil
}

// stand opens the generations with what they hold of the document.
func (r *run) stand(t Task, open func(string) (retrieval.Generation, error)) (err error) {
	holds := func(name string) map[retrieval.DocumentID]retrieval.DocumentInfo {
		out := map[retrieval.DocumentID]retrieval.DocumentInfo{}
		if access, in := t.Served[name]; in {
			out[t.ID] = retrieval.DocumentInfo{ID: t.ID, Access: listOf(access)}
		}
		return out
	}
	if r.target, err = open(t.Generation); err != nil {
		return err
	}
	r.targetName, r.there = t.Generation, holds(t.Generation)
	if t.Current != "" {
		r.current, err = open(t.Current)
		r.before = holds(t.Current)
	}
	return err
}

// deliver publishes under the task's fence.
func (r *run) deliver(ctx context.Context, j *job) error {
	err := r.target.Publish(ctx, j.pub)
	var fault *Fault
	if err == nil || errors.As(err, &fault) || errors.Is(err, retrieval.ErrFenced) || errors.Is(err, retrieval.ErrUnavailable) {
		return err
	}
	return storeFault(err)
}

func (j *job) done() Done {
	return Done{
		Declared: j.rec.Declared, Access: j.rec.Access, Warnings: j.rec.Warnings, Facts: j.rec.Facts,
		Characters: utf8.RuneCountInString(j.pub.Document.Canonical), Chunks: len(j.pub.Chunks), Truncated: j.rec.Truncated,
		Unnoted: j.unnoted,
	}
}

func (j *job) undone(ctx context.Context, err error) (Done, error) {
	var fault *Fault
	if ctx.Err() != nil || !errors.As(err, &fault) {
		return Done{}, err
	}
	d := j.done()
	d.Reason, d.Refused, d.Retryable = fault.Error(), fault.Refused, fault.Retryable
	return d, nil
}

// elsewhere is the source of a task, which is another process's.
type elsewhere struct {
	path   string
	bounds bool
}

// BoundsAccess is as at the source.
func (e elsewhere) BoundsAccess(string) bool { return e.bounds }

// Root is the document's path.
func (e elsewhere) Root() string { return e.path }

// Items lists nothing.
func (e elsewhere) Items(context.Context) ([]Item, error) { return nil, nil }

// Read has nothing: the bytes come with the task.
func (e elsewhere) Read(context.Context, string) (Content, error) {
	return Content{}, &Fault{Reason: "the document is read elsewhere", Retryable: true}
}

// Gone is in doubt.
func (e elsewhere) Gone(string) bool { return false }
