package files

import (
	"syscall"
	"time"
)

// statusTime is when the content or the status of the file last changed.
func statusTime(s *syscall.Stat_t) time.Time { return time.Unix(s.Ctimespec.Unix()) }
