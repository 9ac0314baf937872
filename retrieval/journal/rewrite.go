package journal

import (
	"fmt"
	"os"
	"path/filepath"
)

// Rewrite is a new form of a log, written beside it. Nothing changes until
// Commit; every Rewrite ends in Commit or Discard. Records appended to the log
// in between would be lost: the caller keeps writers out.
type Rewrite struct {
	l    *Log
	f    *os.File
	size int64
}

// Rewrite starts an empty new form of the log.
func (l *Log) Rewrite() (*Rewrite, error) {
	f, err := os.OpenFile(aside(l.path), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(header(), 0); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return &Rewrite{l: l, f: f, size: headerLen}, nil
}

// Append adds a record to the new form. The record's parts can be read from
// the log after Commit.
func (w *Rewrite) Append(head []byte, parts ...[]byte) (Record, error) {
	r, err := write(w.f, w.size, head, parts)
	if err != nil {
		return Record{}, fmt.Errorf("rewriting %s: %w", w.l.path, err)
	}
	w.size += r.Size
	return r, nil
}

// Sync makes what was appended durable, so that Commit is quick.
func (w *Rewrite) Sync() error { return w.f.Sync() }

// Commit puts the new form in the place of the old one, durably. Parts of the
// old form can no longer be read. On an error the log is as before, unless it
// is ErrBroken: then the new form stands, but takes no more records.
func (w *Rewrite) Commit() error {
	if err := w.f.Sync(); err != nil {
		w.Discard()
		return fmt.Errorf("rewriting %s: %w", w.l.path, err)
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if err := os.Rename(w.f.Name(), w.l.path); err != nil {
		w.Discard()
		return fmt.Errorf("rewriting %s: %w", w.l.path, err)
	}
	w.l.f.Close()
	w.l.f, w.l.size, w.l.broken = w.f, w.size, nil
	// Should the rename be lost in a crash, the old form, which holds the
	// same, comes back; but then appends that follow would be lost with it.
	if err := SyncDir(filepath.Dir(w.l.path)); err != nil {
		w.l.broken = fmt.Errorf("%w: %w", ErrBroken, err)
		return w.l.broken
	}
	return nil
}

// Discard drops the new form.
func (w *Rewrite) Discard() {
	w.f.Close()
	os.Remove(w.f.Name())
}
