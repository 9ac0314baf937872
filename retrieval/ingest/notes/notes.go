// Package notes has a chat model say of each chunk what it is about.
//
//	document, chunk -> prompt -> model -> one or two plain sentences
//
// Its one idea: a note is a way to find a chunk and nothing else. It is put
// before the text that is embedded and reranked; it is never quoted, shown or
// counted among a document's words.
//
// Notes cost money and time, so each is kept by what made it (Recipe and the
// whole prompt) as soon as it is there: a run that was killed, or that used up
// its budget, goes on where it was. A document gets all its notes or none.
//
// SECURITY: a prompt holds nothing but its own document, so that a note can say
// nothing that the document's readers may not know. What the model says is a
// stranger's text: bounded, without markup, links and control characters. A
// document that talks the model into something can only be found more often,
// which its own words could do as well.
//
// Format of the cache: a retrieval/journal; the head of a record is the
// SHA-256 of recipe and prompt, its one part the note, "" where the model had
// nothing to say that can be used.
//
// It cuts no chunks and embeds nothing.
package notes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"footnote/models/remote"
	"footnote/retrieval"
)

// version changes whenever the prompt or the cleaning does.
const version = "1"

// ErrBudget says that a run may ask no more.
var ErrBudget = errors.New("the run's budget of notes is used up")

// Model writes notes. It is safe for concurrent use.
type Model interface {
	// Model is its name.
	Model() string
	// Complete answers as remote.Chat does: an error that is neither
	// ErrTooLong nor ErrNoAnswer speaks of the model, not of the request.
	Complete(ctx context.Context, r remote.Request) (remote.Answer, error)
}

// Options tune a Writer. The zero value of a field beside Model and Dir is its
// default.
type Options struct {
	Model       Model
	Dir         string // the data directory, where the cache lies
	PerRun      int    // requests of one run; 0: no bound
	Concurrency int    // requests at once: 4
}

// Writer writes notes. It is safe for concurrent use.
type Writer struct {
	model  Model
	perRun int
	slots  chan struct{} // requests under way
	cache  *cache
}

// Open makes a writer with its cache.
func Open(o Options) (*Writer, error) {
	if o.Concurrency < 1 {
		o.Concurrency = 4
	}
	c, err := openCache(o.Dir, cacheBytes)
	if err != nil {
		return nil, fmt.Errorf("opening the notes: %w", err)
	}
	return &Writer{model: o.Model, perRun: o.PerRun, slots: make(chan struct{}, o.Concurrency), cache: c}, nil
}

// Close closes the cache.
func (w *Writer) Close() error { return w.cache.log.Close() }

// Recipe names what makes the notes of a model.
func Recipe(model string) string { return version + " " + model }

// Recipe names what makes the notes.
func (w *Writer) Recipe() string { return Recipe(w.model.Model()) }

// Concurrency is the number of requests at once.
func (w *Writer) Concurrency() int { return cap(w.slots) }

// Run is the notes of one ingest run. It is safe for concurrent use.
type Run struct {
	*Writer
	mu    sync.Mutex
	asked int
	down  error // the model cannot be used: nobody is asked any more
	tally Tally
}

// Tally counts what a run did.
type Tally struct {
	Asked int // requests that were made
	Kept  int // notes that were there from before
	None  int // chunks of which the model said nothing that can be used
}

// Begin starts a run.
func (w *Writer) Begin() *Run { return &Run{Writer: w} }

// Tally is what was done until now.
func (r *Run) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tally
	t.Asked = r.asked
	return t
}

// Ended says why nobody is asked any more in this run, nil if somebody is.
func (r *Run) Ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down == nil && r.perRun > 0 && r.asked >= r.perRun {
		return ErrBudget
	}
	return r.down
}

// Document returns a note for each chunk in order, "" for one of which there
// is nothing to say. Errors are ErrBudget, that of ctx, or the model's;
// notes that were written before it are kept for the next run.
func (r *Run) Document(ctx context.Context, d retrieval.Document, chunks []retrieval.Chunk) ([]string, error) {
	notes := make([]string, len(chunks))
	missing := r.kept(d, chunks, notes)
	if err := r.affords(len(missing)); err != nil {
		return nil, err
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(cap(r.slots))
	for _, i := range missing {
		g.Go(func() (err error) {
			notes[i], err = r.write(inner, d, chunks[i])
			return err
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r.count(notes, len(chunks)-len(missing))
	return notes, nil
}

// kept fills in the notes that are in the cache and lists the others.
func (r *Run) kept(d retrieval.Document, chunks []retrieval.Chunk, notes []string) (missing []int) {
	for i, c := range chunks {
		note, ok := r.cache.get(r.key(prompt(d, c, around)))
		if !ok {
			missing = append(missing, i)
		}
		notes[i] = note
	}
	return missing
}

func (r *Run) key(prompt string) key { return keyOf(r.Recipe(), prompt) }

// affords reports whether a document's requests may begin: they fit the rest of
// the budget, or would not fit a whole one either and are spread over runs.
func (r *Run) affords(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case n == 0:
		return nil
	case r.down != nil:
		return r.down
	case r.perRun > 0 && r.asked+n > r.perRun && n <= r.perRun:
		return ErrBudget
	}
	return nil
}

// write asks for one note and keeps it. What the model cannot read whole it is
// asked of with less around it.
func (r *Run) write(ctx context.Context, d retrieval.Document, c retrieval.Chunk) (note string, err error) {
	for room := around; ; room /= 4 {
		var answer remote.Answer
		answer, err = r.ask(ctx, prompt(d, c, room))
		if errors.Is(err, remote.ErrTooLong) && room >= 100 {
			continue
		}
		note = clean(answer)
		break
	}
	if err != nil && !errors.Is(err, remote.ErrTooLong) && !errors.Is(err, remote.ErrNoAnswer) {
		return "", err
	}
	return note, r.cache.put(r.key(prompt(d, c, around)), note)
}

// ask makes one request if the run may, when there is a slot.
func (r *Run) ask(ctx context.Context, user string) (remote.Answer, error) {
	select {
	case <-ctx.Done():
		return remote.Answer{}, ctx.Err()
	case r.slots <- struct{}{}:
	}
	defer func() { <-r.slots }()
	if err := r.spend(); err != nil {
		return remote.Answer{}, err
	}
	answer, err := r.model.Complete(ctx, remote.Request{System: instructions, User: user, MaxTokens: maxAnswer})
	if err != nil && ctx.Err() == nil && !errors.Is(err, remote.ErrTooLong) && !errors.Is(err, remote.ErrNoAnswer) {
		r.mu.Lock()
		r.down = err
		r.mu.Unlock()
	}
	return answer, err
}

func (r *Run) spend() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down != nil:
		return r.down
	case r.perRun > 0 && r.asked >= r.perRun:
		return ErrBudget
	}
	r.asked++
	return nil
}

func (r *Run) count(notes []string, kept int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Kept += kept
	for _, n := range notes {
		if n == "" {
			r.tally.None++
		}
	}
}
