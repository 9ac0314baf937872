package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"footnote/retrieval/journal"
)

// text is a part of the log; nil and the zero text are "". Where it lies is
// known only when the batch that it came with is written, so later forms of
// its record in the same batch share it.
type text struct{ part journal.Part }

// op is one change as the log holds it: exactly one field but Parts is set,
// and the last op of a key counts. Parts (0 or 1) is how many parts of the
// record belong to it: the payload of a delivery, the question of an answer.
// An op without one leaves the earlier text as it is.
type op struct {
	Delivery *entry       `json:"delivery,omitempty"`
	Answer   *answer      `json:"answer,omitempty"`
	Feedback *Feedback    `json:"feedback,omitempty"`
	Help     *HelpRequest `json:"help,omitempty"`
	Gap      *Gap         `json:"gap,omitempty"`
	Audit    *Audit       `json:"audit,omitempty"`
	Parts    int          `json:"parts,omitempty"`
}

type answer struct {
	Answer
	question *text
}

// mark is a person's mark on an answer.
type mark struct{ answer, user string }

// state is all that the ledger knows. undo takes back what was applied since
// it was last emptied.
type state struct {
	deliveries map[string]*entry
	also       map[string]string // further key -> key
	answers    map[string]*answer
	answerTo   map[string]string // key of a delivery -> id of its latest answer
	feedback   map[mark]Feedback
	help       map[mark]HelpRequest
	gaps       map[string]Gap
	audits     []Audit
	undo       []func()
}

func newState() state {
	return state{
		deliveries: map[string]*entry{}, also: map[string]string{},
		answers: map[string]*answer{}, answerTo: map[string]string{},
		feedback: map[mark]Feedback{}, help: map[mark]HelpRequest{}, gaps: map[string]Gap{},
	}
}

// set puts a value into a map of the state so that it can be taken back.
func set[K comparable, V any](s *state, m map[K]V, k K, v V) {
	old, had := m[k]
	m[k] = v
	s.undo = append(s.undo, func() {
		if had {
			m[k] = old
		} else {
			delete(m, k)
		}
	})
}

// apply takes an op into the state. Texts follow with place.
func (s *state) apply(o op) {
	switch {
	case o.Delivery != nil:
		s.applyDelivery(o.Delivery, o.Parts)
	case o.Answer != nil:
		if old := s.answers[o.Answer.ID]; o.Parts == 1 {
			o.Answer.question = new(text)
		} else if old != nil {
			o.Answer.question = old.question
		}
		set(s, s.answers, o.Answer.ID, o.Answer)
		set(s, s.answerTo, o.Answer.Delivery, o.Answer.ID)
	case o.Feedback != nil:
		set(s, s.feedback, mark{o.Feedback.Answer, o.Feedback.User}, *o.Feedback)
	case o.Help != nil:
		set(s, s.help, mark{o.Help.Answer, o.Help.User}, *o.Help)
	case o.Gap != nil:
		set(s, s.gaps, o.Gap.ID, *o.Gap)
	case o.Audit != nil:
		before := s.audits
		s.audits = append(s.audits, *o.Audit)
		s.undo = append(s.undo, func() { s.audits = before })
	}
}

func (s *state) applyDelivery(e *entry, parts int) {
	if old := s.deliveries[e.Key]; parts == 1 {
		e.payload = new(text)
	} else if old != nil {
		e.payload = old.payload
	}
	if e.State.Ended() {
		e.payload = nil
	}
	set(s, s.deliveries, e.Key, e)
	for _, k := range e.Also {
		set(s, s.also, k, e.Key)
	}
}

// place tells an op where its text lies.
func (o op) place(p journal.Part) {
	switch {
	case o.Delivery != nil && !o.Delivery.State.Ended():
		*o.Delivery.payload = text{p}
	case o.Answer != nil:
		*o.Answer.question = text{p}
	}
}

// replay takes a record of the log into the state.
func (s *state) replay(r journal.Record, head []byte) error {
	var ops []op
	if err := json.Unmarshal(head, &ops); err != nil {
		return fmt.Errorf("%w: %w", journal.ErrCorrupt, err)
	}
	parts := r.Parts
	for _, o := range ops {
		if o.Parts < 0 || o.Parts > min(1, len(parts)) || !o.known() {
			return fmt.Errorf("%w: a change that names no record, or a text that is not there", journal.ErrCorrupt)
		}
		s.apply(o)
		if o.Parts == 1 {
			o.place(parts[0])
			parts = parts[1:]
		}
	}
	s.undo = s.undo[:0]
	return nil
}

// known reports that the op names what it changes. A change of a later
// program that this one does not know is not dropped in silence.
func (o op) known() bool {
	return o.Delivery != nil && o.Delivery.Key != "" || o.Answer != nil && o.Answer.ID != "" ||
		o.Feedback != nil || o.Help != nil || o.Gap != nil || o.Audit != nil
}

// unfinished lists what has not ended, oldest first.
func (s *state) unfinished() []*entry {
	var out []*entry
	for _, e := range s.deliveries {
		if !e.State.Ended() {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

// change is one caller's wish, which waits to be decided and written.
type change struct {
	decide func(*tx) error
	err    error
	done   chan struct{}
}

// tx decides changes against the state and gathers what is to be written.
type tx struct {
	l     *Ledger
	s     *state
	now   time.Time
	ops   []op
	texts [][]byte
}

// put takes a change into effect; it is durable once the tx is written.
func (t *tx) put(o op, texts ...[]byte) {
	t.s.apply(o)
	t.ops = append(t.ops, o)
	t.texts = append(t.texts, texts...)
}

// update has a change decided and written, together with others that wait.
// Changes are decided one after another. If the write fails, none of those
// written together happened, and each caller learns it.
func (l *Ledger) update(decide func(*tx) error) error {
	c := &change{decide: decide, done: make(chan struct{})}
	l.queue.Lock()
	if l.queue.closed {
		l.queue.Unlock()
		return fmt.Errorf("the ledger: %w", os.ErrClosed)
	}
	l.queue.waiting = append(l.queue.waiting, c)
	if !l.queue.busy {
		l.queue.busy = true
		go l.write()
	}
	l.queue.Unlock()
	<-c.done
	return c.err
}

// write decides and writes changes until none waits.
func (l *Ledger) write() {
	for {
		l.queue.Lock()
		batch := l.queue.waiting
		l.queue.waiting = nil
		if len(batch) == 0 {
			l.queue.busy = false
			l.queue.idle.Broadcast()
			l.queue.Unlock()
			return
		}
		l.queue.Unlock()
		l.commit(batch)
		for _, c := range batch {
			close(c.done)
		}
	}
}

func (l *Ledger) commit(batch []*change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &tx{l: l, s: &l.s, now: l.now()}
	for _, c := range batch {
		c.err = c.decide(t)
	}
	if err := l.append(t); err != nil {
		for _, c := range batch {
			c.err = err // whatever was decided stood on what is taken back
		}
	}
	if t.now.Sub(l.swept) >= time.Hour {
		// What was asked for is written; a sweep that fails is tried again.
		_ = l.sweep(t.now)
	}
}

// append writes what was decided, or takes it back.
func (l *Ledger) append(t *tx) error {
	defer func() { l.s.undo = nil }()
	if len(t.ops) == 0 {
		return nil
	}
	head, err := json.Marshal(t.ops)
	var r journal.Record
	if err == nil {
		r, err = l.log.Append(head, t.texts...)
	}
	if err != nil {
		for _, undo := range slices.Backward(l.s.undo) {
			undo()
		}
		return fmt.Errorf("writing the ledger: %w", err)
	}
	l.touched = true
	placeAll(t.ops, r.Parts)
	return nil
}

func placeAll(ops []op, parts []journal.Part) {
	for _, o := range ops {
		if o.Parts == 1 {
			o.place(parts[0])
			parts = parts[1:]
		}
	}
}

// read reads a text. The caller holds mu.
func (l *Ledger) read(t *text) ([]byte, error) {
	if t == nil || t.part.Len == 0 {
		return nil, nil
	}
	b, err := l.log.Read(t.part)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return b, nil
}

// evict makes room among the deliveries: a sixteenth of the ended ones goes,
// those that were no question first, then the oldest. It reports whether
// anything went.
func (t *tx) evict() bool {
	var ended []*entry
	for _, e := range t.s.deliveries {
		if e.State.Ended() {
			ended = append(ended, e)
		}
	}
	slices.SortFunc(ended, func(a, b *entry) int {
		asked := strings.Compare(strconv.FormatBool(a.State != Ignored), strconv.FormatBool(b.State != Ignored))
		return cmp.Or(asked, byAge(a, b))
	})
	ended = ended[:min(len(ended), 1+len(ended)/16)]
	for _, e := range ended {
		t.s.drop(e)
	}
	return len(ended) > 0
}

func (t *tx) evictAnswers() {
	all := slices.SortedFunc(maps.Values(t.s.answers), func(a, b *answer) int { return a.At.Compare(b.At) })
	for _, a := range all[:1+len(all)/16] {
		t.s.dropAnswer(a)
	}
}

// drop forgets a delivery. It is not written: what is too old or too much is
// found to be so again after a restart.
func (s *state) drop(e *entry) {
	delete(s.deliveries, e.Key)
	for _, k := range e.Also {
		if s.also[k] == e.Key {
			delete(s.also, k)
		}
	}
}

func (s *state) dropAnswer(a *answer) {
	delete(s.answers, a.ID)
	if s.answerTo[a.Delivery] == a.ID {
		delete(s.answerTo, a.Delivery)
	}
}

// sweep forgets what is past its age, and takes it and all ended payloads off
// the disk. The caller holds mu, or nobody else knows the ledger yet.
func (l *Ledger) sweep(now time.Time) error {
	l.forget(now)
	if l.touched {
		if err := l.rewrite(); err != nil {
			return err
		}
	}
	l.swept, l.touched = now, false
	return nil
}

func (l *Ledger) forget(now time.Time) {
	before := l.s.size()
	for _, e := range l.s.deliveries {
		if e.Expired(l.o.Keep, now) {
			l.s.drop(e)
		}
	}
	for _, a := range l.s.answers {
		if now.Sub(a.At) > l.o.KeepAnswers {
			l.s.dropAnswer(a)
		} else if now.Sub(a.At) > l.o.Keep && a.question != nil {
			a.question, l.touched = nil, true
		}
	}
	old := func(at time.Time) bool { return now.Sub(at) > l.o.Keep }
	maps.DeleteFunc(l.s.feedback, func(_ mark, f Feedback) bool { return old(f.At) })
	maps.DeleteFunc(l.s.help, func(_ mark, h HelpRequest) bool { return old(h.At) })
	maps.DeleteFunc(l.s.gaps, func(_ string, g Gap) bool { return old(g.At) })
	l.s.audits = slices.DeleteFunc(l.s.audits, func(a Audit) bool { return old(a.At) })
	if extra := len(l.s.audits) - l.o.MaxDeliveries; extra > 0 {
		l.s.audits = slices.Delete(l.s.audits, 0, extra)
	}
	if l.s.size() != before {
		l.touched = true
	}
}

func (s *state) size() int {
	return len(s.deliveries) + len(s.answers) + len(s.feedback) + len(s.help) + len(s.gaps) + len(s.audits)
}

// rewriteBatch is how many changes a rewrite puts into one record.
const rewriteBatch = 500

// rewrite writes the log anew, with what the state holds and nothing else.
func (l *Ledger) rewrite() error {
	w, err := l.log.Rewrite()
	if err != nil {
		return fmt.Errorf("rewriting the ledger: %w", err)
	}
	var placed []func()
	for batch := range slices.Chunk(l.s.whole(), rewriteBatch) {
		place, err := l.rewriteBatch(w, batch)
		if err != nil {
			w.Discard()
			return fmt.Errorf("rewriting the ledger: %w", err)
		}
		placed = append(placed, place)
	}
	if err := w.Commit(); err != nil && !errors.Is(err, journal.ErrBroken) {
		return fmt.Errorf("rewriting the ledger: %w", err)
	} else if err != nil {
		defer func() { l.touched = true }()
	}
	for _, place := range placed {
		place()
	}
	return nil
}

func (l *Ledger) rewriteBatch(w *journal.Rewrite, batch []op) (place func(), err error) {
	var texts [][]byte
	for i, o := range batch {
		b, err := l.read(o.text())
		if err != nil {
			return nil, err
		}
		if b != nil {
			batch[i].Parts = 1
			texts = append(texts, b)
		}
	}
	head, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	r, err := w.Append(head, texts...)
	return func() { placeAll(batch, r.Parts) }, err
}

// text is where the op's text lies now.
func (o op) text() *text {
	switch {
	case o.Delivery != nil:
		return o.Delivery.payload
	case o.Answer != nil:
		return o.Answer.question
	}
	return nil
}

// whole is the state as ops, in an order that gives it again: of the answers
// to one delivery the latest comes last.
func (s *state) whole() []op {
	var ops []op
	for _, e := range slices.SortedFunc(maps.Values(s.deliveries), byAge) {
		ops = append(ops, op{Delivery: e})
	}
	for _, a := range slices.SortedFunc(maps.Values(s.answers), func(a, b *answer) int { return a.At.Compare(b.At) }) {
		ops = append(ops, op{Answer: a})
	}
	for _, f := range s.feedback {
		ops = append(ops, op{Feedback: &f})
	}
	for _, h := range s.help {
		ops = append(ops, op{Help: &h})
	}
	for _, g := range s.gaps {
		ops = append(ops, op{Gap: &g})
	}
	for _, a := range s.audits {
		ops = append(ops, op{Audit: &a})
	}
	return ops
}
