package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Download brings the model's files from a hub into a directory: file NAME
// from BASE/NAME, where BASE names one revision (https://hub/owner/model/resolve/REVISION).
// Files that are there and right are kept. A broken transfer leaves NAME.part,
// which the next call continues; a file gets its name only when its SHA-256 is
// the card's. Two processes that download into one directory at once may fail,
// but leave no wrong file. progress, which may be nil, receives the bytes so far.
func (c Card) Download(ctx context.Context, client *http.Client, base, dir string, progress func(f File, done int64)) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("model %q: its card is not valid: %w", c.Name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if progress == nil {
		progress = func(File, int64) {}
	}
	for _, f := range c.Files {
		err := c.verifyFile(os.DirFS(dir), f)
		if err == nil {
			continue
		}
		if _, damaged := errors.AsType[*ChecksumError](err); !damaged && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := c.downloadFile(ctx, client, base, dir, f, progress); err != nil {
			return fmt.Errorf("model %s: downloading %s: %w", c.Name, f.Name, err)
		}
	}
	return nil
}

func (c Card) downloadFile(ctx context.Context, client *http.Client, base, dir string, f File, progress func(File, int64)) error {
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part := path + ".part"
	if err := transfer(ctx, client, base, part, f, progress); err != nil {
		return err
	}
	if err := c.check(part, f); err != nil {
		// Its bytes are of no use to the next call.
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, path)
}

func (c Card) check(path string, f File) error {
	r, err := os.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	sum, n, err := digest(r)
	if err != nil {
		return err
	}
	return c.compare(f, sum, n)
}

// transfer completes the part file, from where it ends if the hub can.
func transfer(ctx context.Context, client *http.Client, base, part string, f File, progress func(File, int64)) error {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	have, err := out.Seek(0, io.SeekEnd)
	if err != nil || have == f.Bytes {
		return err
	}
	if have > f.Bytes { // of another version
		have = 0
	}
	body, from, err := request(ctx, client, base, f, have)
	if errors.Is(err, errNoMore) {
		return errors.Join(err, out.Truncate(0))
	}
	if err != nil {
		return err
	}
	defer body.Close()
	if err := errors.Join(out.Truncate(from), seek(out, from)); err != nil {
		return err
	}
	w := &counter{w: out, n: from, report: func(n int64) { progress(f, n) }}
	// One byte more than wanted shows that the hub has another file.
	if _, err := io.Copy(w, io.LimitReader(body, f.Bytes-from+1)); err != nil {
		return fmt.Errorf("after %d of %d bytes (the next try continues there): %w", w.n, f.Bytes, err)
	}
	return out.Sync()
}

func seek(f *os.File, to int64) error {
	_, err := f.Seek(to, io.SeekStart)
	return err
}

// errNoMore: the hub's file ends where more was asked for.
var errNoMore = errors.New("the hub has a shorter file; the next try starts at its beginning")

// request asks for the file from byte have on, and returns the body with the
// offset at which it really starts: have or 0.
func request(ctx context.Context, client *http.Client, base string, f File, have int64) (io.ReadCloser, int64, error) {
	address, err := url.JoinPath(base, strings.Split(f.Name, "/")...)
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return resp.Body, 0, nil
	case resp.StatusCode == http.StatusPartialContent && have > 0 &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
		return resp.Body, have, nil
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return nil, 0, errNoMore
	}
	return nil, 0, fmt.Errorf("%s answered %s", address, resp.Status)
}

// counter reports how far a file has come.
type counter struct {
	w      io.Writer
	n      int64
	report func(int64)
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.report(c.n)
	return n, err
}
