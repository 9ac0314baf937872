package slack

import (
	"context"
	"sync"
	"time"

	"footnote/bot/outbox"
)

// statusText is shown while a question is worked on.
const statusText = "is looking in the documents…"

// lookingEmoji is the reaction where no status can be set.
const lookingEmoji = "eyes"

// refresh is how often a status is set again: Slack takes it away after two
// minutes.
const refresh = 80 * time.Second

// Times of signs.
const (
	statusTime = 5 * time.Second        // of one call
	prompt     = 700 * time.Millisecond // in which a sign must get its turn
)

// marks are the signs that questions are worked on, by the question's key.
type marks struct {
	a    *Adapter
	mu   sync.Mutex
	m    map[string]*mark
	over map[string]bool // have been ended
}

// mark is the sign of one question: a status, or else a reaction. Both are
// found again without being remembered, so none is left by a crash.
type mark struct {
	q    question
	stop context.CancelFunc
	done chan struct{} // closed when nothing is being set any more
	set  chan struct{} // closed after the first attempt

	status, reaction bool // written before set is closed
	running          bool // held by mu of marks
}

// start shows that a question is worked on. It returns at once. Unless it is
// answered again, nothing is shown for one that was ended before: whoever took
// it may come here after its answer, and the sign would stay for ever.
func (s *marks) start(key string, q question, again bool) {
	if q.TS == "" || q.Kind != kindRoom && q.Kind != kindDM {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]*mark{}
	}
	if s.m[key] != nil || s.over[key] && !again {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &mark{q: q, stop: cancel, done: make(chan struct{}), set: make(chan struct{})}
	s.m[key] = m
	go func() {
		defer close(m.done)
		s.show(ctx, m)
	}()
}

// adopt takes charge of the sign of a question that an earlier process showed.
func (s *marks) adopt(key string, q question) {
	if q.TS == "" || q.Kind != kindRoom && q.Kind != kindDM {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]*mark{}
	}
	if s.m[key] == nil {
		m := &mark{q: q, stop: func() {}, done: make(chan struct{}), set: make(chan struct{}), reaction: s.a.can("reactions:write")}
		close(m.done)
		close(m.set)
		s.m[key] = m
	}
}

// place is where the status is shown.
func (m *mark) place() (channel, thread string) {
	if m.q.Thread == "" {
		return m.q.Channel, m.q.TS
	}
	return m.q.Channel, m.q.Thread
}

// show sets the sign and keeps it until ctx is done.
func (s *marks) show(ctx context.Context, m *mark) {
	s.try(m)
	close(m.set)
	if !m.status {
		return
	}
	for {
		select {
		case <-s.a.d.After(refresh):
			_ = s.setStatus(m, statusText, outbox.Status)
		case <-ctx.Done():
			return
		}
	}
}

func (s *marks) try(m *mark) {
	if s.setStatus(m, statusText, outbox.Status) == nil {
		m.status = true
		return
	}
	if s.a.can("reactions:write") {
		err := s.setReaction(m, true, outbox.Status)
		m.reaction = err == nil || codeOf(err) == "already_reacted"
	}
}

// setStatus and setReaction are not cut short when the question ends: what may
// have reached Slack must be there before it can be taken away. Where the rate
// limit would make a sign late it is left out, and another kind tried.
func (s *marks) setStatus(m *mark, text string, p outbox.Priority) error {
	channel, thread := m.place()
	return s.set("status "+channel, p, func(ctx context.Context) error { return s.a.api.status(ctx, channel, thread, text) })
}

func (s *marks) setReaction(m *mark, on bool, p outbox.Priority) error {
	return s.set("reaction "+m.q.Channel, p, func(ctx context.Context) error {
		return s.a.api.react(ctx, m.q.Channel, m.q.TS, lookingEmoji, on)
	})
}

func (s *marks) set(lane string, p outbox.Priority, call func(context.Context) error) error {
	patience := prompt
	if p == outbox.Final {
		patience = statusTime
	}
	wait, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.a.out.Do(wait, outbox.Call{Lane: lane, Priority: p, Make: func(context.Context) error {
		ctx, cancel := context.WithTimeout(context.Background(), statusTime)
		defer cancel()
		return call(ctx)
	}})
}

// clear takes a sign away, and tries again where that fails for a moment.
func (s *marks) clear(call func() error) {
	for attempt := range 4 {
		err := call()
		if err == nil || !ambiguous(err) && codeOf(err) != codeNet {
			return
		}
		time.Sleep(time.Duration(attempt+1) * 20 * time.Millisecond)
	}
}

// run notes that the question is being answered, and waits for the first
// attempt to show that. It reports whether there is a sign, or needs none.
func (s *marks) run(ctx context.Context, key string, q question) bool {
	s.start(key, q, true)
	s.mu.Lock()
	m := s.m[key]
	if m != nil {
		m.running = true
	}
	s.mu.Unlock()
	if m == nil {
		return true
	}
	select {
	case <-m.set:
		return m.status || m.reaction
	case <-ctx.Done():
		return true
	}
}

// settle waits until nothing more is being set: what came after the answer
// would stay.
func (s *marks) settle(ctx context.Context, key string) {
	s.mu.Lock()
	m := s.m[key]
	s.mu.Unlock()
	if m == nil {
		return
	}
	m.stop()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
}

// end takes the sign away. A message in the thread takes a status with it.
func (s *marks) end(key string, spoke bool) {
	s.mu.Lock()
	m := s.m[key]
	delete(s.m, key)
	if s.over == nil {
		s.over = map[string]bool{}
	}
	room(s.over)[key] = true
	s.mu.Unlock()
	if m == nil {
		return
	}
	m.stop()
	<-m.done
	if m.reaction {
		s.clear(func() error { return s.setReaction(m, false, outbox.Final) })
	}
	if !spoke { // also where setting it failed: it may have been set
		s.clear(func() error { return s.setStatus(m, "", outbox.Final) })
	}
}

// close takes the signs of questions away that only wait.
func (s *marks) close() {
	s.mu.Lock()
	var waiting []string
	for key, m := range s.m {
		if !m.running {
			waiting = append(waiting, key)
		}
	}
	s.mu.Unlock()
	for _, key := range waiting {
		s.end(key, false)
	}
}
