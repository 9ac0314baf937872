package slack

import (
	"context"
	"sync"
	"time"
)

// settle is how much longer an answer is held back: acknowledgement and answer
// take different ways to Slack, so the order in which they left is not yet that
// in which they arrive.
const settle = 300 * time.Millisecond

// asides holds back what is posted to a response_url until the word that the
// bot is looking, which an acknowledgement carries, has left: an answer that
// came first would not take its place, and it would stay for ever.
type asides struct {
	mu sync.Mutex
	m  map[string]chan struct{} // by response_url
}

// begin announces an acknowledgement. It is called before the question can
// run, and left must follow.
func (s *asides) begin(address string) (left func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]chan struct{}{}
	}
	gone := make(chan struct{})
	s.m[address] = gone
	return sync.OnceFunc(func() {
		time.AfterFunc(settle, func() {
			close(gone)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.m[address] == gone {
				delete(s.m, address)
			}
		})
	})
}

// wait returns when no acknowledgement for the address is on its way any more.
func (s *asides) wait(ctx context.Context, address string) {
	s.mu.Lock()
	gone := s.m[address]
	s.mu.Unlock()
	if gone == nil {
		return
	}
	patience := time.NewTimer(ackTime)
	defer patience.Stop()
	select {
	case <-gone:
	case <-patience.C:
	case <-ctx.Done():
	}
}
