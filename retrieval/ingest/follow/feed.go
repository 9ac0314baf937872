package follow

import (
	"context"
	"path/filepath"
	"time"

	"footnote/retrieval/ingest"
)

// Change is a notice that something is new at a path, or below it.
type Change struct {
	Path string
	// Urgent marks what takes something away from readers: a removal, or a
	// change of access.
	Urgent bool
}

// Feed is a source that is followed.
type Feed struct {
	Name   string // of the source, unique
	Source ingest.Source
	// Watch calls changed for what it notices until ctx is done; it may be
	// called from any goroutine and does not block for long. When Watch
	// returns before, it is called again after 5 seconds. nil: the source is
	// only scanned.
	Watch func(ctx context.Context, changed func(Change)) error
}

// notice is what is known of a dirty path.
type notice struct {
	first, last time.Time
	urgent      bool
}

// feed is a Feed with what is to do for it. Loop.mu guards all but Feed.
type feed struct {
	Feed
	dirty   map[string]notice
	retries map[string]retry // by path
	scanned time.Time        // start of the last full pass that ended; zero: none
	next    time.Time        // of the next full pass
	idle    time.Time        // until then there is no pass at all
	peace   time.Duration    // that a pass has before it is interrupted
	status  Status
}

// retry is a document that failed and may succeed.
type retry struct {
	tries int
	next  time.Time
}

const (
	firstRetry = 30 * time.Second
	lastRetry  = time.Hour
)

// failed plans the next try.
func (f *feed) failed(path string, now time.Time) {
	r := f.retries[path]
	wait := lastRetry
	if r.tries < 7 {
		wait = firstRetry << r.tries
	}
	f.retries[path] = retry{r.tries + 1, now.Add(wait)}
}

// note makes a path dirty.
func (f *feed) note(c Change, now time.Time) {
	n, known := f.dirty[c.Path]
	if !known {
		n.first = now
	}
	n.last, n.urgent = now, n.urgent || c.Urgent
	f.dirty[c.Path] = n
}

// putBack makes paths dirty again that an interrupted pass had taken.
func (f *feed) putBack(taken map[string]notice) {
	for path, n := range taken {
		if later, again := f.dirty[path]; again {
			n.last, n.urgent = later.last, n.urgent || later.urgent
		}
		f.dirty[path] = n
	}
}

// restless is how many times Settle a file may go on changing.
const restless = 10

// due is when the path may be read.
func (n notice) due(settle time.Duration) time.Time {
	rest, limit := n.last.Add(settle), n.first.Add(restless*settle)
	if limit.Before(rest) {
		return limit
	}
	return rest
}

// take takes the paths that are due. Urgent ones go together once all of them
// are, so that the removal of a folder is seen as one; then the others wait,
// but for those that may be the other half of a move.
func (f *feed) take(now time.Time, settle time.Duration) map[string]notice {
	urgent, isUrgent := f.urgent()
	if isUrgent && urgent.due(settle).After(now) {
		isUrgent = false
	}
	out := map[string]notice{}
	for path, n := range f.dirty {
		together := !n.first.Before(urgent.first.Add(-settle)) && !n.first.After(urgent.last.Add(settle))
		switch {
		case isUrgent && (n.urgent || together && !n.due(settle).After(now)):
			out[path] = n
		case !isUrgent && !n.urgent && !n.due(settle).After(now):
			out[path] = n
		}
	}
	for path := range out {
		delete(f.dirty, path)
	}
	return out
}

// urgent is all urgent notices as one.
func (f *feed) urgent() (all notice, any bool) {
	for _, n := range f.dirty {
		if !n.urgent {
			continue
		}
		if !any || n.first.Before(all.first) {
			all.first = n.first
		}
		if !any || n.last.After(all.last) {
			all.last = n.last
		}
		all.urgent, any = true, true
	}
	return all, any
}

// wake is when there is something to do next.
func (f *feed) wake(settle time.Duration) time.Time {
	at := f.next
	if u, any := f.urgent(); any && u.due(settle).Before(at) {
		at = u.due(settle)
	}
	for _, n := range f.dirty {
		if d := n.due(settle); !n.urgent && d.Before(at) {
			at = d
		}
	}
	for _, r := range f.retries {
		if r.next.Before(at) {
			at = r.next
		}
	}
	if at.Before(f.idle) {
		return f.idle
	}
	return at
}

// since is when the path changed by the notices given, by that of the nearest
// folder above it where it has none.
func since(notices map[string]notice, path string) (time.Time, bool) {
	for ; ; path = filepath.Dir(path) {
		if n, ok := notices[path]; ok {
			return n.first, true
		}
		if path == filepath.Dir(path) {
			return time.Time{}, false
		}
	}
}
