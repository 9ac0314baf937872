package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"footnote/retrieval/ingest"
)

// StatusFile is the name in the data directory.
const StatusFile = "sync.json"

// Status is how a source stands.
type Status struct {
	Source   string       `json:"source"`
	Root     string       `json:"root"`
	Scanned  time.Time    `json:"scanned"`            // start of the last full pass that ended
	Error    string       `json:"error,omitempty"`    // why the last pass failed as a whole
	Waits    bool         `json:"waits,omitempty"`    // Error is of the index, which was away, and not of the source
	Held     *ingest.Held `json:"held,omitempty"`     // documents that are missing and were not removed
	Watching bool         `json:"watching,omitempty"` // changes are noticed between the full passes
	Failed   int          `json:"failed"`             // documents at the last full pass
	Refused  int          `json:"refused"`
}

// ReadStatus reads what the last pass of this or another process left in the
// data directory; nothing if there was none.
func ReadStatus(dir string) ([]Status, error) {
	raw, err := os.ReadFile(filepath.Join(dir, StatusFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Status
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading how the sources stand: %w", err)
	}
	return all, nil
}

// WriteStatus replaces what ReadStatus reads.
func WriteStatus(dir string, all []Status) error {
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, StatusFile)
	err = os.WriteFile(path+".new", append(raw, '\n'), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing how the sources stand: %w", err)
	}
	return nil
}
