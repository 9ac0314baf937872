package files

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// restFor is how long a file must have been at rest for its times to tell its
// states apart: file systems keep times in steps, some of two seconds.
const restFor = 3 * time.Second

// mark names the state of a file by what the system changes with every write:
// size, times and inode. "" if it changed too recently to tell.
func mark(info fs.FileInfo, now time.Time) string {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	changed := statusTime(sys)
	if age := min(now.Sub(info.ModTime()), now.Sub(changed)); age < restFor {
		return ""
	}
	return fmt.Sprintf("%d %d %d %d %d", sys.Dev, sys.Ino, info.Size(), info.ModTime().UnixNano(), changed.UnixNano())
}
