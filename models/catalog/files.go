package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ChecksumError says that a file of a model is not the one that the card names.
type ChecksumError struct {
	Model, File       string
	Expected, Found   string // SHA-256, lower-case hex
	ExpectedN, FoundN int64  // bytes
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("model %s: %s is damaged or another version: expected sha256 %s (%d bytes), found %s (%d bytes); restore the file, or use a model whose card names it",
		e.Model, e.File, e.Expected, e.ExpectedN, e.Found, e.FoundN)
}

// Read returns one file of the model from its directory, verified.
func (c Card) Read(dir fs.FS, name string) ([]byte, error) {
	want, ok := c.File(name)
	if !ok {
		return nil, fmt.Errorf("model %s: its card names no file %s", c.Name, name)
	}
	data, err := fs.ReadFile(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model %s: %s is missing from its directory: %w", c.Name, name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: reading %s: %w", c.Name, name, err)
	}
	sum := sha256.Sum256(data)
	if err := c.compare(want, hex.EncodeToString(sum[:]), int64(len(data))); err != nil {
		return nil, err
	}
	return data, nil
}

// Verify checks every file of the model in its directory, without holding one
// in memory. All faults are reported together.
func (c Card) Verify(dir fs.FS) error {
	var faults []error
	for _, f := range c.Files {
		faults = append(faults, c.verifyFile(dir, f))
	}
	return errors.Join(faults...)
}

func (c Card) verifyFile(dir fs.FS, want File) error {
	r, err := dir.Open(want.Name)
	if err != nil {
		return fmt.Errorf("model %s: %s: %w", c.Name, want.Name, err)
	}
	defer r.Close()
	sum, n, err := digest(r)
	if err != nil {
		return fmt.Errorf("model %s: reading %s: %w", c.Name, want.Name, err)
	}
	return c.compare(want, sum, n)
}

func (c Card) compare(want File, sum string, n int64) error {
	if sum == want.SHA256 {
		return nil
	}
	return &ChecksumError{Model: c.Name, File: want.Name,
		Expected: want.SHA256, Found: sum, ExpectedN: want.Bytes, FoundN: n}
}

func digest(r io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}
