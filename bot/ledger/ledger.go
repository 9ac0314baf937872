// Package ledger keeps what must survive a restart: which questions were
// delivered and how far each one got, the answers that buttons refer to,
// feedback, requests for a human, gaps, and an audit trail.
//
// Its one idea: one delivery, one answer. A delivery is claimed by its key,
// durably and at most once; whoever holds the claim works, and every further
// copy, in whatever order and from whatever transport, learns that it is one.
//
//	received -> accepted -> answering -> posting -> answered | refused | failed
//	received -> ignored
//
// What is not a question is recorded as ignored and blocks nothing: the copy
// that is a question can still be claimed. A claim is a lease. Whoever takes
// over a lease that ran out raises the attempt, and the former holder's moves
// fail with ErrLost. Here, in one process, all leases run out at a restart.
// A delivery found in posting is ambiguous: its message may be there already.
//
// Formats: ledger.log in the data directory, a retrieval/journal whose heads
// are JSON arrays of changes; the last of a key counts. Texts (payloads,
// questions) are parts, so that they stay on disk until they are needed. The
// log is rewritten every hour in which it changed, which takes ended payloads
// and everything past its age off the disk. ledger.lock keeps a second process
// out.
//
// Sources are kept as ids and places, never as titles or quotes: those are
// restricted, and access is decided anew when somebody opens one. Reasons are
// codes. It writes no logs. It does not queue or run anything: see bot/desk.
package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"footnote/retrieval"
	"footnote/retrieval/journal"
)

// File is the ledger's name in the data directory.
const File = "ledger.log"

// Sentinel errors.
var (
	// ErrLost says that somebody else took the delivery over, or that it has
	// ended: the caller must not post anything for it.
	ErrLost = errors.New("the delivery is no longer held by this run")
	// ErrNotFound says that there is no such record, or no longer.
	ErrNotFound = errors.New("no such record in the ledger")
	// ErrFull says that as many deliveries are unfinished as the ledger keeps.
	ErrFull = errors.New("the ledger is full of unfinished deliveries")
)

// Options of a ledger; zero values mean the defaults.
type Options struct {
	Keep          time.Duration // age at which records go: 7 days
	KeepAnswers   time.Duration // age at which answers go, without their question after Keep: 30 days
	MaxDeliveries int           // the oldest ended ones beyond it go: 100,000
	MaxAnswers    int           // likewise: 50,000
	GapText       bool          // keep the text of gaps
	Now           func() time.Time
}

// Fill puts the defaults in the place of what is zero.
func (o *Options) Fill() {
	o.Keep = cmp.Or(o.Keep, 7*24*time.Hour)
	o.KeepAnswers = max(o.Keep, cmp.Or(o.KeepAnswers, 30*24*time.Hour))
	o.MaxDeliveries = cmp.Or(o.MaxDeliveries, 100_000)
	o.MaxAnswers = cmp.Or(o.MaxAnswers, 50_000)
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Ledger is an open ledger of one process. It is safe for concurrent use.
// Changes are durable when a call returns, and those that arrive together
// share one write. Once begun, a change does not heed its context: it happens
// or fails.
type Ledger struct {
	o    Options
	log  *journal.Log
	lock *os.File

	queue struct {
		sync.Mutex
		waiting []*change
		busy    bool
		idle    *sync.Cond
		closed  bool
	}

	mu      sync.RWMutex // of what follows; held while a change is written
	s       state
	swept   time.Time
	touched bool // written to since the last rewrite
}

// Open opens the ledger in the data directory and makes it if it is absent.
// The error is retrieval.ErrInUse while another process holds it.
func Open(dir string, o Options) (*Ledger, error) {
	o.Fill()
	lock, err := takeLock(filepath.Join(dir, "ledger.lock"))
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	l := &Ledger{o: o, lock: lock, s: newState()}
	l.queue.idle = sync.NewCond(&l.queue)
	l.log, err = journal.Open(filepath.Join(dir, File), l.s.replay)
	if err != nil {
		return nil, errors.Join(storage(err), giveLock(lock))
	}
	l.s.undo = nil
	l.touched = l.log.Size() > tidySize
	l.swept = l.now()
	if err := l.sweep(l.swept); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// tidySize is the size up to which a log is not rewritten at opening.
const tidySize = 1 << 16

// Close waits for changes under way, then closes the ledger. Later changes
// fail.
func (l *Ledger) Close() error {
	l.queue.Lock()
	l.queue.closed = true
	for l.queue.busy {
		l.queue.idle.Wait()
	}
	l.queue.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.log.Close(), giveLock(l.lock))
}

func (l *Ledger) now() time.Time { return Stamp(l.o.Now()) }

// Stamp is a time as it is kept: in UTC, whole milliseconds.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// storage says what to do about a log that cannot be read.
func storage(err error) error {
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return fmt.Errorf("%w: the ledger: %w; restore the data directory, or move %s away: questions under way and the buttons of earlier answers are lost with it", retrieval.ErrCorrupt, err, File)
	case errors.Is(err, journal.ErrFormat):
		return fmt.Errorf("%w: the ledger: %w", retrieval.ErrFormat, err)
	}
	return fmt.Errorf("opening the ledger: %w", err)
}
