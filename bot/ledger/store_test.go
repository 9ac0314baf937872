package ledger

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/journal"
)

// view is the state as far as callers can tell.
func (s *state) view() map[string]any {
	deliveries, answers := map[string]Delivery{}, map[string]Answer{}
	for k, e := range s.deliveries {
		deliveries[k] = e.Clone()
	}
	for k, a := range s.answers {
		answers[k] = a.Answer
	}
	feedback, help := map[string]Feedback{}, map[string]HelpRequest{}
	for k, f := range s.feedback {
		feedback[k.answer+"/"+k.user] = f
	}
	for k, h := range s.help {
		help[k.answer+"/"+k.user] = h
	}
	also, answerTo := map[string]string{}, map[string]string{}
	for k, v := range s.also {
		also[k] = v
	}
	for k, v := range s.answerTo {
		answerTo[k] = v
	}
	return map[string]any{
		"deliveries": deliveries, "answers": answers, "feedback": feedback, "help": help, "also": also,
		"answerTo": answerTo, "gaps": len(s.gaps), "audits": append([]Audit(nil), s.audits...),
	}
}

// When a write fails (a full disk), nothing of it happened.
func TestFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	d := Delivery{Key: "q", Also: []string{"e"}, Platform: "p", Asker: "ada", Payload: []byte("text")}
	fill := func(d Delivery) []error {
		_, _, claim := l.Claim(ctx, d, time.Minute)
		_, help := l.AskHuman(ctx, "a", "u"+d.Key)
		return []error{
			claim,
			l.Move(ctx, Ref{"q", 1}, Step{State: Answering, Reason: "again"}),
			l.PutAnswer(ctx, Answer{ID: "a", Delivery: d.Key, Asker: "ada", Question: d.Key}),
			l.Posted(ctx, "a", []byte(d.Key)),
			l.Rate(ctx, Feedback{Answer: "a", User: "u", Helpful: d.Key == "q"}),
			l.NoteGap(ctx, d.Key, ""),
			l.NoteAudit(ctx, Audit{Actor: "a", Action: "act", Subject: d.Key}),
			help,
		}
	}
	fill(d)
	for _, err := range fill(d) {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := l.s.view()
	l.log.Close() // every write fails from here on
	for i, err := range fill(Delivery{Key: "q2", Also: []string{"e", "e2"}, Platform: "p", Asker: "ada"}) {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("change %d gives %v", i, err)
		}
	}
	if _, won, err := l.Claim(ctx, Delivery{Key: "fresh", Platform: "p", Asker: "ada"}, time.Minute); won || err == nil {
		t.Errorf("claimed %t, %v", won, err)
	}
	if diff := cmp.Diff(before, l.s.view()); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	l.Close()
	if l, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if diff := cmp.Diff(before, l.s.view()); diff != "" {
		t.Errorf("after opening it anew (-before +after):\n%s", diff)
	}
}

// A rewrite holds the same as the log before it.
func TestRewriteKeepsAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for i := range 1200 { // more than two batches
		key := string(rune('a'+i%26)) + time.Duration(i).String()
		if _, _, err := l.Claim(ctx, Delivery{Key: key, Platform: "p", Asker: "ada", Payload: []byte(key)}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := l.PutAnswer(ctx, Answer{ID: key, Delivery: key, Asker: "ada", Question: "?" + key}); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := l.s.view()
	l.mu.Lock()
	err = l.rewrite()
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if diff := cmp.Diff(before, l.s.view()); diff != "" {
			t.Fatalf("-before +after:\n%s", diff)
		}
		for key := range before["deliveries"].(map[string]Delivery) {
			if d, err := l.Delivery(ctx, key); err != nil || string(d.Payload) != key {
				t.Fatalf("%s has the payload %q, %v", key, d.Payload, err)
			}
		}
		for id := range before["answers"].(map[string]Answer) {
			if a, err := l.Answer(ctx, id); err != nil || a.Question != "?"+id {
				t.Fatalf("%s has the question %q, %v", id, a.Question, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
}

// Whatever a record says, replaying it gives a state or ErrCorrupt.
func FuzzReplay(f *testing.F) {
	valid, _ := json.Marshal([]op{
		{Delivery: &entry{Delivery: Delivery{Key: "k", Also: []string{"e"}, State: Accepted}}, Parts: 1},
		{Answer: &answer{Answer: Answer{ID: "a"}}, Parts: 1},
		{Feedback: &Feedback{Answer: "a"}}, {Help: &HelpRequest{}}, {Gap: &Gap{}}, {Audit: &Audit{}},
	})
	f.Add(valid, 2)
	f.Add(valid, 1)
	for _, s := range []string{``, `[]`, `[{}]`, `[{"delivery":{}}]`, `[{"delivery":{"key":"k"},"parts":-1}]`, `[{"feedback":{},"parts":1}]`, `{}`} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, head []byte, parts int) {
		s := newState()
		err := s.replay(journal.Record{Parts: make([]journal.Part, max(0, parts%4))}, head)
		if err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again := newState()
		for _, o := range s.whole() {
			again.apply(o)
		}
		if diff := cmp.Diff(s.view(), again.view()); diff != "" {
			t.Fatalf("the whole of the state gives another (-want +got):\n%s", diff)
		}
	})
}
