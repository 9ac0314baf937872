package memindex

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"footnote/retrieval"
	"footnote/retrieval/journal"
)

const (
	manifestFile = "manifest.json"
	logFile      = "index.log"
	unfinished   = "unfinished" // an empty file; absent: the build has ended
	rebuild      = "build the index anew with: footnote ingest --rebuild FOLDER"
)

// validName keeps names from leaving the directory.
var validName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`).MatchString

// sealed is a manifest with the checksum of its compact form.
type sealed struct {
	SHA256   string          `json:"sha256"`
	Manifest json.RawMessage `json:"manifest"`
}

func writeManifest(path string, m retrieval.Manifest) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(sealed{sum(raw), raw}, "", "  ")
	if err != nil {
		return err
	}
	return journal.WriteFile(path, append(b, '\n'))
}

func readManifest(path string) (m retrieval.Manifest, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	damaged := fmt.Errorf("%w: %s; restore it from a backup, or %s", retrieval.ErrCorrupt, path, rebuild)
	var s sealed
	var raw bytes.Buffer
	if json.Unmarshal(b, &s) != nil || json.Compact(&raw, s.Manifest) != nil || sum(raw.Bytes()) != s.SHA256 {
		return m, damaged
	}
	var form struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(raw.Bytes(), &form) != nil {
		return m, damaged
	}
	if form.Format != Format {
		return m, fmt.Errorf("%w: %s has %q, this program reads %q; %s", retrieval.ErrFormat, path, form.Format, Format, rebuild)
	}
	if json.Unmarshal(raw.Bytes(), &m) != nil || m.Embedder.Dimensions < 1 {
		return m, damaged
	}
	return m, nil
}

// The alias file holds the name and the start of its checksum.
func writeAlias(path, name string) error {
	return journal.WriteFile(path, fmt.Appendf(nil, "%s %s\n", name, sum([]byte(name))[:16]))
}

// readAlias returns "" if there is no alias yet.
func readAlias(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name, check, _ := strings.Cut(string(b), " ")
	if check != sum([]byte(name))[:16]+"\n" || !validName(name) {
		return "", fmt.Errorf("%w: %s; promote a generation again", retrieval.ErrCorrupt, path)
	}
	return name, nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// makeLog makes an empty log.
func makeLog(path string) error {
	l, err := journal.Open(path, func(journal.Record, []byte) error { return nil })
	if err != nil {
		return err
	}
	return l.Close()
}

// storage translates errors of the log into those of the seam.
func storage(err error) error {
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return fmt.Errorf("%w: %w; restore the data directory from a backup, or %s", retrieval.ErrCorrupt, err, rebuild)
	case errors.Is(err, journal.ErrFormat):
		return fmt.Errorf("%w: %w; %s", retrieval.ErrFormat, err, rebuild)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// drop removes a file for good. One that is absent is no error.
func drop(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return journal.SyncDir(filepath.Dir(path))
}
