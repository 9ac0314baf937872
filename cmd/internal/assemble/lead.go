package assemble

import (
	"context"
	"sync"
)

// lead is whether this process keeps up with the sources, for parts of it that
// do so, too.
type lead struct {
	mu    sync.Mutex
	term  *term         // nil: it does not
	begun chan struct{} // closed when it begins
}

// term is a time for which it does.
type term struct {
	ctx   context.Context //nolint:containedctx // it ends the term
	ended chan struct{}   // closed once it has ended
}

func newLead() *lead { return &lead{begun: make(chan struct{})} }

// during is the time for which this process keeps up with the sources.
func (l *lead) during(ctx context.Context, work func(context.Context) error) error {
	t := &term{ctx, make(chan struct{})}
	l.mu.Lock()
	l.term = t
	close(l.begun)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.term, l.begun = nil, make(chan struct{})
		close(t.ended)
	}()
	return work(ctx)
}

// is reports that this process keeps up with the sources now.
func (l *lead) is() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != nil
}

// hold runs work whenever this process keeps up with the sources, until ctx is
// done. The context of work carries the conditions of the lease.
func (l *lead) hold(ctx context.Context, work func(context.Context) error) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		t, begun := l.term, l.begun
		l.mu.Unlock()
		if t == nil {
			select {
			case <-ctx.Done():
			case <-begun:
			}
			continue
		}
		inside, cancel := context.WithCancel(t.ctx)
		stop := context.AfterFunc(ctx, cancel)
		err := work(inside)
		stop()
		cancel()
		if err != nil && t.ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-t.ended:
		}
	}
	return nil
}
