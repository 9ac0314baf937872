package journal

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces a small file in one durable step, for what stands beside a
// log: after a crash it is all of the old or all of the new. It writes aside, to
// path.new; no two may write one path at once.
func WriteFile(path string, b []byte) error {
	f, err := os.OpenFile(aside(path), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes a rename or creation in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
