package ledger

import (
	"runtime"
	"testing"
	"time"
)

// Changes that are written together with the text they follow keep it: a copy
// of a question that comes in the same moment, an answer noted as posted.
func TestBatchKeepsTexts(t *testing.T) {
	t.Parallel()
	l, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx := t.Context()
	held, hold := make(chan struct{}), make(chan struct{})
	first := &change{done: make(chan struct{}), decide: func(*tx) error { close(held); <-hold; return nil }}
	l.queue.Lock()
	l.queue.waiting, l.queue.busy = append(l.queue.waiting, first), true
	l.queue.Unlock()
	go l.write()
	<-held // with the first change alone; what comes now makes the next batch

	calls := []func() error{
		func() error {
			_, _, err := l.Claim(ctx, Delivery{Key: "q", Platform: "p", Asker: "ada", Payload: []byte("text")}, time.Minute)
			return err
		},
		func() error {
			_, _, err := l.Claim(ctx, Delivery{Key: "q", Also: []string{"copy"}, Platform: "p", Asker: "ada", Payload: []byte("text")}, time.Minute)
			return err
		},
		func() error { return l.PutAnswer(ctx, Answer{ID: "a", Delivery: "q", Asker: "ada", Question: "why?"}) },
		func() error { return l.Posted(ctx, "a", []byte("there")) },
	}
	errs := make(chan error, len(calls))
	for i, call := range calls {
		go func() { errs <- call() }()
		for queued := 0; queued <= i; { // in this order, behind the one that is held
			l.queue.Lock()
			queued = len(l.queue.waiting)
			l.queue.Unlock()
			runtime.Gosched()
		}
	}
	close(hold)
	for range calls {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if d, err := l.Delivery(ctx, "copy"); err != nil || string(d.Payload) != "text" || d.Copies != 1 {
		t.Errorf("the question is %q with %d copies, %v", d.Payload, d.Copies, err)
	}
	if a, err := l.Answer(ctx, "a"); err != nil || a.Question != "why?" || string(a.Message) != "there" {
		t.Errorf("the answer is to %q at %q, %v", a.Question, a.Message, err)
	}
}
