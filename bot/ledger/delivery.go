package ledger

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// State is how far a delivery got.
type State string

// States of a delivery. The last four are ends.
const (
	Received  State = "received"
	Accepted  State = "accepted"  // it is a question, and waits
	Answering State = "answering" // a run works on it
	Posting   State = "posting"   // its message may have left
	Answered  State = "answered"
	Refused   State = "refused" // the documents do not answer, and the person knows
	Failed    State = "failed"  // see the reason
	Ignored   State = "ignored" // no question; blocks no copy that is one
)

// Ended reports that nothing more will happen to the delivery.
func (s State) Ended() bool {
	return s == Answered || s == Refused || s == Failed || s == Ignored
}

// next lists the states that may follow one. A run that is put back at a
// shutdown goes from answering to accepted.
var next = map[State][]State{
	Accepted:  {Answering, Refused, Failed, Ignored},
	Answering: {Answering, Accepted, Posting, Answered, Refused, Failed, Ignored},
	Posting:   {Posting, Answered, Refused, Failed},
}

// Change is one step of a delivery.
type Change struct {
	State  State     `json:"state"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"` // a code, never text
}

// Delivery is one question as a platform delivered it.
type Delivery struct {
	// Key names the question, whatever the transport repeats:
	// "slack|T1|C1|1712.0001|answer", "discord|APPLICATION|INTERACTION".
	Key      string    `json:"key"`
	Also     []string  `json:"also,omitempty"` // event and envelope ids of its copies
	Platform string    `json:"platform"`       // whose handler answers it
	Asker    string    `json:"asker"`          // "slack|T1|U1"
	Room     string    `json:"room"`           // "slack|T1|C1"
	Received time.Time `json:"received"`       // zero in a claim: now
	Sent     time.Time `json:"sent"`           // by the person; zero in a claim: Received

	// Payload is the adapter's own form of the question, from which it can be
	// answered after a restart. It goes when the delivery ends.
	Payload []byte `json:"-"`

	State   State    `json:"state"`
	Reason  string   `json:"reason,omitempty"`
	Changes []Change `json:"changes"`          // oldest first
	Attempt int      `json:"attempt"`          // runs so far; who holds another number lost it
	Copies  int      `json:"copies,omitempty"` // further deliveries of the same question
	Claim   string   `json:"claim,omitempty"`  // names the claim that recorded it, for who made it; may be ""
	Posted  []byte   `json:"posted,omitempty"` // the adapter's reference to its message or placeholder
}

// Ref is the delivery as this run holds it.
func (d Delivery) Ref() Ref { return Ref{d.Key, d.Attempt} }

// Ref names a delivery as held by one run.
type Ref struct {
	Key     string
	Attempt int
}

// Step is a change asked for.
type Step struct {
	State  State
	Reason string
	Posted []byte // nil: as before
}

// Claims is what a queue needs of a ledger; it can be shared by replicas.
type Claims interface {
	// Claim records d, unless a delivery with its key, or one that lists one
	// of its keys in Also, is there and not ignored: then it reports false and
	// returns that one, with the copy counted. d.State is Accepted (or ""),
	// or an end with its Reason: Ignored records without blocking, the others
	// record as seen and ended. Attempt is 1. Of any number of claims at once,
	// one wins.
	Claim(ctx context.Context, d Delivery, lease time.Duration) (Delivery, bool, error)
	// Move takes the step, durably. ErrLost if the delivery is held by another
	// attempt or has ended.
	Move(ctx context.Context, r Ref, s Step) error
	// Renew extends leases that are still held by these attempts, even where
	// they ran out meanwhile, and returns those that are lost. A lease of 0
	// gives the deliveries back at once.
	Renew(ctx context.Context, lease time.Duration, held ...Ref) (lost []Ref, err error)
	// Resume takes over every unfinished delivery whose lease ran out: oldest
	// first, with payload, Attempt raised by one, State as it was left.
	Resume(ctx context.Context, lease time.Duration) ([]Delivery, error)
}

var _ Claims = (*Ledger)(nil)

const (
	maxKey     = 512
	maxAlso    = 16
	maxPayload = 64 << 10
	maxChanges = 24
	maxPosted  = 4 << 10
)

var isCode = regexp.MustCompile(`^[a-z0-9_]{0,48}$`).MatchString

// Check refuses what a ledger should not hold.
func (d Delivery) Check() error {
	keys := append([]string{d.Key, d.Platform, d.Asker}, d.Also...)
	for _, k := range append(keys, d.Room, d.Claim) {
		if len(k) > maxKey || !utf8.ValidString(k) || strings.ContainsFunc(k, unicode.IsControl) {
			return fmt.Errorf("a delivery has a key of %d bytes that is too long or holds what does not print", len(k))
		}
	}
	switch {
	case slices.Contains(keys, ""):
		return fmt.Errorf("a delivery needs a key, a platform and an asker, and no empty further key")
	case len(d.Payload) > maxPayload:
		return fmt.Errorf("a delivery's payload of %d bytes is longer than %d", len(d.Payload), maxPayload)
	case len(d.Also) > maxAlso:
		return fmt.Errorf("a delivery has %d further keys, more than %d", len(d.Also), maxAlso)
	case d.State != Accepted && !d.State.Ended():
		return fmt.Errorf("a delivery cannot begin as %q", d.State)
	}
	return Step{Reason: d.Reason, Posted: d.Posted}.Check()
}

// Check refuses what a ledger should not hold.
func (s Step) Check() error {
	if !isCode(s.Reason) {
		return fmt.Errorf("a reason must be a code of lower-case letters, digits and _, at most 48")
	}
	if len(s.Posted) > maxPosted {
		return fmt.Errorf("a reference to a message of %d bytes is longer than %d", len(s.Posted), maxPosted)
	}
	return nil
}

// Keys are all names under which copies of the question arrive.
func (d Delivery) Keys() []string { return append([]string{d.Key}, d.Also...) }

// Blocks reports that the delivery d, which is in the ledger, stands in the
// way of the new one.
func (d Delivery) Blocks(fresh Delivery) bool {
	return d.State != Ignored || fresh.State == Ignored
}

// Begun is the delivery as a claim records it.
func (d Delivery) Begun(now time.Time) Delivery {
	d = d.Clone()
	if d.Received.IsZero() {
		d.Received = now
	}
	if d.Sent.IsZero() {
		d.Sent = d.Received
	}
	d.Received, d.Sent = Stamp(d.Received), Stamp(d.Sent)
	d.Attempt, d.Copies = 1, 0
	d.Changes = []Change{{State: Received, At: d.Received}}
	return d.entered(d.State, d.Reason, now)
}

// Counted is the delivery with one more copy of it noted. What is no question
// counts as none.
func (d Delivery) Counted(again Delivery) Delivery {
	if again.State == Ignored {
		return d
	}
	d = d.Clone()
	for _, k := range again.Keys() {
		if k != d.Key && !slices.Contains(d.Also, k) && len(d.Also) < maxAlso {
			d.Also = append(d.Also, k)
		}
	}
	d.Copies++
	return d
}

// Taken is the delivery after the step of a run. ErrLost if the run does not
// hold it, or it has ended.
func (d Delivery) Taken(r Ref, s Step, now time.Time) (Delivery, error) {
	if d.Attempt != r.Attempt || d.State.Ended() {
		return d, ErrLost
	}
	if !slices.Contains(next[d.State], s.State) {
		return d, fmt.Errorf("a delivery cannot go from %s to %s", d.State, s.State)
	}
	if s.Posted != nil {
		d.Posted = slices.Clone(s.Posted)
	}
	if d.State != s.State || s.Reason != "" {
		d = d.entered(s.State, s.Reason, now)
	}
	return d, nil
}

// entered is the delivery in a state.
func (d Delivery) entered(s State, reason string, at time.Time) Delivery {
	d.State, d.Reason = s, reason
	d.Changes = append(slices.Clone(d.Changes), Change{s, at, reason})
	if extra := len(d.Changes) - maxChanges; extra > 0 {
		d.Changes = slices.Delete(d.Changes, 1, 1+extra) // received stays
	}
	return d
}

// Expired reports that a delivery is past its age. An unfinished one never
// is: it ends first.
func (d Delivery) Expired(keep time.Duration, now time.Time) bool {
	return d.State.Ended() && now.Sub(d.Received) > keep
}

// Clone is the delivery without ties to where it came from.
func (d Delivery) Clone() Delivery {
	d.Also, d.Changes, d.Posted, d.Payload = slices.Clone(d.Also), slices.Clone(d.Changes), slices.Clone(d.Posted), slices.Clone(d.Payload)
	return d
}

// entry is a delivery in memory. Entries are values: a change makes a new one.
type entry struct {
	Delivery // without payload
	payload  *text
	lease    time.Time
}

// Claim implements Claims.
func (l *Ledger) Claim(_ context.Context, d Delivery, lease time.Duration) (Delivery, bool, error) {
	d.State = cmp.Or(d.State, Accepted)
	if err := d.Check(); err != nil {
		return Delivery{}, false, err
	}
	var out Delivery
	var won bool
	err := l.update(func(t *tx) error {
		if old := t.holder(d); old != nil {
			out = t.count(old, d)
			return nil
		}
		if len(t.s.deliveries) >= l.o.MaxDeliveries && !t.evict() {
			return ErrFull
		}
		won = true
		out = t.begin(d, lease)
		return nil
	})
	return out, won && err == nil, err
}

// holder returns the delivery that stands in the way of d, nil if none does.
func (t *tx) holder(d Delivery) *entry {
	for _, k := range d.Keys() {
		e := t.s.deliveries[k]
		if e == nil {
			e = t.s.deliveries[t.s.also[k]]
		}
		if e != nil && !e.Expired(t.l.o.Keep, t.now) && e.Blocks(d) {
			return e
		}
	}
	return nil
}

// count notes a further copy of a delivery.
func (t *tx) count(old *entry, again Delivery) Delivery {
	e := *old
	e.Delivery = old.Counted(again)
	if e.Copies != old.Copies {
		t.put(op{Delivery: &e})
	}
	return e.Clone()
}

func (t *tx) begin(d Delivery, lease time.Duration) Delivery {
	payload := d.Payload
	d.Payload = nil
	e := entry{Delivery: d.Begun(t.now), lease: t.now.Add(lease)}
	if e.State.Ended() {
		t.put(op{Delivery: &e})
		return e.Clone()
	}
	t.put(op{Delivery: &e, Parts: 1}, payload)
	out := e.Clone()
	out.Payload = slices.Clone(payload)
	return out
}

// Move implements Claims.
func (l *Ledger) Move(_ context.Context, r Ref, s Step) error {
	if err := s.Check(); err != nil {
		return err
	}
	return l.update(func(t *tx) error {
		old := t.s.deliveries[r.Key]
		if old == nil {
			return ErrLost
		}
		e := *old
		var err error
		if e.Delivery, err = old.Taken(r, s, t.now); err != nil {
			return err
		}
		t.put(op{Delivery: &e})
		return nil
	})
}

// Renew implements Claims. Leases are in memory only: a restart ends them all.
func (l *Ledger) Renew(_ context.Context, lease time.Duration, held ...Ref) ([]Ref, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lost []Ref
	until := l.now().Add(lease)
	for _, r := range held {
		e := l.s.deliveries[r.Key]
		if e == nil || e.Attempt != r.Attempt || e.State.Ended() {
			lost = append(lost, r)
			continue
		}
		renewed := *e
		renewed.lease = until
		l.s.deliveries[r.Key] = &renewed
	}
	return lost, nil
}

// Resume implements Claims.
func (l *Ledger) Resume(_ context.Context, lease time.Duration) ([]Delivery, error) {
	var keys []string
	err := l.update(func(t *tx) error {
		for _, e := range t.s.unfinished() {
			if e.lease.After(t.now) {
				continue
			}
			taken := *e
			taken.Attempt++
			taken.lease = t.now.Add(lease)
			t.put(op{Delivery: &taken})
			keys = append(keys, e.Key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Delivery
	for _, k := range keys {
		d, err := l.Delivery(context.Background(), k)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Delivery returns a delivery by its key or one of its further keys, with its
// payload while it is unfinished. ErrNotFound if there is none.
func (l *Ledger) Delivery(_ context.Context, key string) (Delivery, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e := l.s.deliveries[key]
	if e == nil {
		e = l.s.deliveries[l.s.also[key]]
	}
	if e == nil || e.Expired(l.o.Keep, l.now()) {
		return Delivery{}, ErrNotFound
	}
	d := e.Clone()
	var err error
	d.Payload, err = l.read(e.payload)
	return d, err
}

// Of lists an asker's own deliveries, newest first, without payloads.
func (l *Ledger) Of(_ context.Context, asker string, limit int) ([]Delivery, error) {
	return l.list(func(e *entry) bool { return e.Asker == asker }, -1, limit), nil
}

// Latest lists deliveries of everybody, newest first, without payloads.
func (l *Ledger) Latest(_ context.Context, limit int) ([]Delivery, error) {
	return l.list(func(*entry) bool { return true }, -1, limit), nil
}

// Pending lists unfinished deliveries, oldest first, without payloads.
func (l *Ledger) Pending(_ context.Context, limit int) ([]Delivery, error) {
	return l.list(func(e *entry) bool { return !e.State.Ended() }, 1, limit), nil
}

func (l *Ledger) list(want func(*entry) bool, order, limit int) []Delivery {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var found []*entry
	now := l.now()
	for _, e := range l.s.deliveries {
		if want(e) && !e.Expired(l.o.Keep, now) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return order * byAge(a, b) })
	out := make([]Delivery, 0, min(limit, len(found)))
	for _, e := range found[:min(limit, len(found))] {
		out = append(out, e.Clone())
	}
	return out
}

func byAge(a, b *entry) int {
	return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Key, b.Key))
}

// Counts says how many deliveries are in each state.
func (l *Ledger) Counts(_ context.Context) (map[State]int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n, now := map[State]int{}, l.now()
	for _, e := range l.s.deliveries {
		if !e.Expired(l.o.Keep, now) {
			n[e.State]++
		}
	}
	return n, nil
}
