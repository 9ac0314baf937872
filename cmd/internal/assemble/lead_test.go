package assemble

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// What follows the lead works while that lasts, and again the next time.
func TestLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLead()
		ctx, stop := context.WithCancel(t.Context())
		turns, working, held := 0, false, make(chan error, 1)
		go func() {
			held <- l.hold(ctx, func(ctx context.Context) error {
				turns, working = turns+1, true
				<-ctx.Done()
				working = false
				return ctx.Err()
			})
		}()
		synctest.Wait()
		for turn := 1; turn <= 2; turn++ {
			term, end := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- l.during(term, func(ctx context.Context) error {
					<-ctx.Done()
					synctest.Wait()
					return nil
				})
			}()
			synctest.Wait()
			if turns != turn || !working {
				t.Errorf("turn %d: it had %d turns, works: %t", turn, turns, working)
			}
			end()
			if err := <-done; err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if turns != turn || working {
				t.Errorf("after turn %d: it had %d turns, works: %t", turn, turns, working)
			}
		}
		stop()
		if err := <-held; err != nil {
			t.Errorf("in the end it gives %v", err)
		}
	})
}

// What ends by itself with an error is over.
func TestLead_WorkFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, broken := newLead(), errors.New("broken")
		term, end := context.WithCancel(t.Context())
		defer end()
		go func() { _ = l.during(term, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
		if err := l.hold(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("it gives %v", err)
		}
	})
}
