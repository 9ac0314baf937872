package shelf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"footnote/retrieval/journal"
)

// File is the name of the notices in the data directory.
const File = "notices.json"

// Notice is a message in a chat that says how a document stands.
type Notice struct {
	Platform string          `json:"platform"`
	Document string          `json:"document"` // id
	Name     string          `json:"name"`     // of the file
	Message  json.RawMessage `json:"message"`  // the platform's reference to it
	Shown    string          `json:"shown,omitempty"`
	Since    time.Time       `json:"since"`
}

func (n Notice) is(o Notice) bool {
	return n.Platform == o.Platform && string(n.Message) == string(o.Message)
}

// ErrGone is what a teller returns when there is nobody left to tell.
var ErrGone = errors.New("the message is gone")

const (
	maxNotices = 10_000
	putTime    = 10 * time.Second
	patience   = 24 * time.Hour // after which nobody waits any more
)

// Shared keeps notices for several processes, of which one tells at a time.
type Shared interface {
	// Lead runs work whenever this process is the one, until ctx is done.
	Lead(ctx context.Context, work func(context.Context) error) error
	All(ctx context.Context) ([]Notice, error)
	// Put keeps a notice, durably, in place of one of the same message.
	Put(ctx context.Context, n Notice) error
	// Swap puts now in the place of was, nothing for nil, unless another one is
	// there.
	Swap(ctx context.Context, was Notice, now *Notice) error
}

// Options of notices; zero values mean the defaults.
type Options struct {
	Shared Shared        // nil: the notices are this process's, in the data directory
	Every  time.Duration // between looks while there are notices: 500 ms
	Now    func() time.Time
	Log    *slog.Logger
}

// Notices keeps messages up to date with what became of documents, also after
// a restart. It is safe for concurrent use.
type Notices struct {
	file   string
	keeper Keeper
	o      Options
	wake   chan struct{}

	mu      sync.Mutex
	tellers map[string]func(ctx context.Context, message json.RawMessage, text string) error
	all     []Notice
}

// OpenNotices reads what an earlier process left in the data directory.
func OpenNotices(dir string, k Keeper, o Options) (*Notices, error) {
	if o.Every == 0 {
		o.Every = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	n := &Notices{
		file: filepath.Join(dir, File), keeper: k, o: o, wake: make(chan struct{}, 1),
		tellers: map[string]func(context.Context, json.RawMessage, string) error{},
	}
	if o.Shared != nil {
		return n, nil
	}
	raw, err := os.ReadFile(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &n.all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which messages tell of documents: %w; without %s they are not brought up to date, and nothing else is lost", err, File)
	}
	return n, nil
}

// Handle registers what changes a message of a platform, before Run. It may be
// called again with the same text. ErrGone ends the notice.
func (n *Notices) Handle(platform string, tell func(ctx context.Context, message json.RawMessage, text string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tellers[platform] = tell
}

// Await has the message told how the document stands, until that is settled. It
// is durable when it returns; the same message again is one.
func (n *Notices) Await(w Notice) error {
	w.Since = n.o.Now().UTC().Truncate(time.Second)
	if n.o.Shared != nil {
		ctx, cancel := context.WithTimeout(context.Background(), putTime)
		defer cancel()
		return n.o.Shared.Put(ctx, w)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := append(slices.DeleteFunc(slices.Clone(n.all), w.is), w)
	if extra := len(all) - maxNotices; extra > 0 {
		all = all[extra:]
	}
	if err := n.write(all); err != nil {
		return err
	}
	n.all = all
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return nil
}

// write replaces the file, durably. The caller holds mu.
func (n *Notices) write(all []Notice) error {
	raw, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("noting which messages tell of documents: %w", err)
	}
	if err := journal.WriteFile(n.file, raw); err != nil {
		return fmt.Errorf("noting which messages tell of documents: %w", err)
	}
	return nil
}

// Run brings messages up to date until ctx is done.
func (n *Notices) Run(ctx context.Context) error {
	if n.o.Shared != nil {
		return n.o.Shared.Lead(ctx, n.run)
	}
	return n.run(ctx)
}

func (n *Notices) run(ctx context.Context) error {
	for {
		var tick <-chan time.Time
		var timer *time.Timer
		if n.look(ctx) > 0 || n.o.Shared != nil { // others put some there, too
			timer = time.NewTimer(n.o.Every)
			tick = timer.C
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		case <-tick:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// Waiting is how many documents messages wait for.
func (n *Notices) Waiting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all)
}

// look tells what there is to tell, and returns how many notices are left.
func (n *Notices) look(ctx context.Context) int {
	if n.o.Shared != nil {
		found, err := n.o.Shared.All(ctx)
		if err != nil {
			return n.Waiting() // the next look asks again
		}
		n.mu.Lock()
		n.all = found
		n.mu.Unlock()
	}
	n.mu.Lock()
	all := slices.Clone(n.all)
	n.mu.Unlock()
	for _, w := range all {
		if ctx.Err() != nil {
			break
		}
		n.tell(ctx, w)
	}
	return n.Waiting()
}

func (n *Notices) tell(ctx context.Context, w Notice) {
	n.mu.Lock()
	tell := n.tellers[w.Platform]
	n.mu.Unlock()
	s := n.keeper.State(w.Document)
	late := n.o.Now().Sub(w.Since) > patience
	text := s.Text(w.Name)
	if tell == nil || !s.Settled || text == w.Shown {
		if late {
			n.settle(ctx, w, nil)
		}
		return
	}
	switch err := tell(ctx, w.Message, text); {
	case errors.Is(err, ErrGone):
		n.settle(ctx, w, nil)
	case err != nil:
		if late {
			n.settle(ctx, w, nil)
		}
		n.o.Log.Warn("what became of a document could not be told yet", "platform", w.Platform, "error", err)
	case s.Retryable && !s.Published:
		shown := w
		shown.Shown = text
		n.settle(ctx, w, &shown)
	default:
		n.settle(ctx, w, nil)
	}
}

// settle takes a notice away, or puts another in its place, unless it was
// renewed meanwhile.
func (n *Notices) settle(ctx context.Context, w Notice, next *Notice) {
	if n.o.Shared != nil {
		if err := n.o.Shared.Swap(ctx, w, next); err != nil {
			n.o.Log.Warn("a notice could not be settled, and is told again", "error", err)
		}
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Clone(n.all)
	i := slices.IndexFunc(all, func(o Notice) bool { return o.is(w) && o.Since.Equal(w.Since) })
	if i < 0 {
		return
	}
	if next == nil {
		all = slices.Delete(all, i, i+1)
	} else {
		all[i] = *next
	}
	// A notice that comes back after a crash is told once more: it says the same.
	if err := n.write(all); err != nil {
		n.o.Log.Error("a notice could not be settled", "error", err)
	}
	n.all = all
}
