package clocktest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/bot/clocktest"
)

func TestManualClock(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	c := clocktest.NewManualClock(start)
	var got []time.Duration
	note := func() { got = append(got, c.Now().Sub(start)) }
	for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
		c.AfterFunc(d, note)
	}
	c.AfterFunc(4*time.Second, func() { c.AfterFunc(time.Second, note) }) // a timer that sets a timer
	c.AfterFunc(time.Second, func() { t.Error("a stopped timer fired") })()
	ch := c.After(90 * time.Second)
	c.BlockUntil(5)
	c.Advance(time.Minute)
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}, got); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	select {
	case at := <-ch:
		t.Errorf("After delivered %v early", at)
	default:
	}
	c.Advance(30 * time.Second)
	if at := <-ch; !at.Equal(time.Unix(90, 0)) {
		t.Errorf("After delivered %v", at)
	}
}
