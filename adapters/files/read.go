package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"footnote/retrieval/ingest"
)

// Read loads the file at path. A file that changes or vanishes meanwhile is
// tried once more; then it is a fault that may pass.
func (f *Folder) Read(ctx context.Context, path string) (ingest.Content, error) {
	c, err := f.readOnce(ctx, path)
	if errors.Is(err, errUnsteady) || errors.Is(err, fs.ErrNotExist) {
		c, err = f.readOnce(ctx, path)
	}
	var fault *ingest.Fault
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return ingest.Content{}, ctx.Err()
	case errors.As(err, &fault):
		return ingest.Content{}, fault
	case errors.Is(err, errUnsteady):
		return ingest.Content{}, &ingest.Fault{Reason: "the file changed while it was being read, twice; ingest again when it is at rest", Retryable: true}
	case errors.Is(err, fs.ErrNotExist):
		return ingest.Content{}, &ingest.Fault{Reason: "the file vanished before it could be read", Retryable: true}
	}
	return ingest.Content{}, unreadable("the file could not be read", err)
}

// errUnsteady says that size or time differ before and after reading.
var errUnsteady = errors.New("the file changed while it was being read")

func (f *Folder) readOnce(ctx context.Context, path string) (ingest.Content, error) {
	file, err := f.open(path)
	if err != nil {
		return ingest.Content{}, err
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return ingest.Content{}, err
	}
	if fault := f.gate(before); fault != nil {
		return ingest.Content{}, fault
	}
	data, err := readAll(ctx, file, before.Size(), f.options.MaxBytes)
	if err != nil {
		return ingest.Content{}, err
	}
	after, err := file.Stat()
	if err != nil {
		return ingest.Content{}, err
	}
	if after.Size() != int64(len(data)) || !after.ModTime().Equal(before.ModTime()) {
		return ingest.Content{}, errUnsteady
	}
	return ingest.Content{Data: data, Modified: before.ModTime()}, nil
}

// open opens for reading without waiting, so that a pipe put in the file's
// place cannot hold the run up.
//
// SECURITY: a file replaced by a link between listing and reading is not
// followed out of the root: os.Root resolves below it. A single file named
// outright, and links that were allowed, are opened as they are.
func (f *Folder) open(path string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if path == f.root || f.options.FollowOutside {
		return os.OpenFile(path, flags, 0)
	}
	dir := f.root
	if !within(dir, path) {
		dir = filepath.Dir(path)
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(rel, flags, 0)
}

// readAll reads to the end, never more than one byte over the limit: files
// may grow after their size was taken.
func readAll(ctx context.Context, r io.Reader, size, limit int64) ([]byte, error) {
	data := make([]byte, 0, min(size, limit)+1)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):min(cap(data), len(data)+1<<20)])
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, tooLarge(int64(len(data)), limit)
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
