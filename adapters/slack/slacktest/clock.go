package slacktest

import (
	"time"

	"footnote/bot/clocktest"
)

// Clock is where the fake reads the time and waits for it.
type Clock = clocktest.Clock

// ManualClock moves only when Advance is called.
type ManualClock = clocktest.ManualClock

// RealClock is the machine's own clock, the default.
func RealClock() Clock { return clocktest.RealClock() }

// NewManualClock starts at the given time, or at a fixed one if it is zero.
func NewManualClock(start time.Time) *ManualClock { return clocktest.NewManualClock(start) }
