//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"footnote/retrieval"
)

// takeLock holds the file until it is closed or the process ends.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another process holds %s", retrieval.ErrInUse, path)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

// giveLock lets go of the file. It unlocks by name: a process that is being
// started may hold a copy of the descriptor for a moment.
func giveLock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
