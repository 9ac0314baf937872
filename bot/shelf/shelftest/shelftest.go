// Package shelftest is a shelf.Keeper in memory, for tests of those who put
// documents there.
package shelftest

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"footnote/bot"
	"footnote/bot/shelf"
)

// Kept is a document with its content.
type Kept struct {
	shelf.Document
	Content string
}

// Keeper keeps documents until the test ends. It is safe for concurrent use.
type Keeper struct {
	Refuse string // why nothing is taken, "" if it is

	mu     sync.Mutex
	docs   map[string]Kept
	states map[string]shelf.State
	puts   int
}

var _ shelf.Keeper = (*Keeper)(nil)

// New makes an empty one.
func New() *Keeper { return &Keeper{docs: map[string]Kept{}, states: map[string]shelf.State{}} }

// Put implements shelf.Keeper.
func (k *Keeper) Put(_ context.Context, d shelf.Document, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Refuse != "" || len(d.Access) == 0 {
		return &bot.UserError{Text: k.Refuse}
	}
	k.docs[d.ID] = Kept{d, string(data)}
	k.puts++
	return nil
}

// Remove implements shelf.Keeper.
func (k *Keeper) Remove(_ context.Context, _ bool, ids ...string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		delete(k.docs, id)
	}
	return nil
}

// List implements shelf.Keeper.
func (k *Keeper) List(_ context.Context, prefix string) ([]shelf.Document, error) {
	return k.Kept(prefix), nil
}

// Kept lists the documents whose ids begin with prefix.
func (k *Keeper) Kept(prefix string) []shelf.Document {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []shelf.Document
	for id, d := range k.docs {
		if strings.HasPrefix(id, prefix) {
			out = append(out, d.Document)
		}
	}
	slices.SortFunc(out, func(a, b shelf.Document) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// State implements shelf.Keeper.
func (k *Keeper) State(id string) shelf.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, held := k.docs[id]; !held {
		return shelf.State{Settled: true, Gone: true}
	}
	return k.states[id]
}

// Settle sets how a document stands.
func (k *Keeper) Settle(id string, s shelf.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Settled = true
	k.states[id] = s
}

// Get returns a document.
func (k *Keeper) Get(id string) (Kept, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := k.docs[id]
	return d, ok
}

// Puts counts the documents that were taken, the same again counts as well.
func (k *Keeper) Puts() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.puts
}
