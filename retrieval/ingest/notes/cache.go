package notes

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"footnote/retrieval/journal"
)

// CacheFile is the cache's name in the data directory.
const CacheFile = "notes.log"

// cacheBytes bounds the file: about 700,000 notes.
const cacheBytes = 256 << 20

type key [sha256.Size]byte

func keyOf(recipe, prompt string) key { return sha256.Sum256([]byte(recipe + "\x00" + prompt)) }

// cache keeps notes on disk. It can only save requests: a damaged file is
// replaced by an empty one. Beyond its bound the older half goes.
type cache struct {
	limit int64

	mu      sync.Mutex
	log     *journal.Log
	entries map[key]journal.Part
}

func openCache(dir string, limit int64) (*cache, error) {
	c := &cache{limit: limit}
	path := filepath.Join(dir, CacheFile)
	err := c.open(path)
	if errors.Is(err, journal.ErrCorrupt) || errors.Is(err, journal.ErrFormat) {
		if err = os.Remove(path); err == nil {
			err = c.open(path)
		}
	}
	return c, err
}

func (c *cache) open(path string) (err error) {
	c.entries = map[key]journal.Part{}
	c.log, err = journal.Open(path, c.replay)
	return err
}

func (c *cache) replay(r journal.Record, head []byte) error {
	if len(head) != len(key{}) || len(r.Parts) != 1 {
		return journal.ErrCorrupt
	}
	c.entries[key(head)] = r.Parts[0]
	return nil
}

// get returns a note, if it is there and whole.
func (c *cache) get(k key) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	part, ok := c.entries[k]
	if !ok {
		return "", false
	}
	note, err := c.log.Read(part)
	return string(note), err == nil
}

func (c *cache) put(k key, note string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.log.Append(k[:], []byte(note))
	if err != nil {
		return err
	}
	c.entries[k] = r.Parts[0]
	if c.log.Size() > c.limit {
		return c.trim()
	}
	return nil
}

// trim rewrites the file with the notes of its newer half.
func (c *cache) trim() error {
	w, err := c.log.Rewrite()
	if err != nil {
		return err
	}
	kept := map[key]journal.Part{}
	for k, part := range c.entries {
		note, err := c.log.Read(part)
		if part.Offset < c.log.Size()/2 || err != nil {
			continue
		}
		r, err := w.Append(k[:], note)
		if err != nil {
			w.Discard()
			return err
		}
		kept[k] = r.Parts[0]
	}
	if err := w.Commit(); err != nil {
		return err
	}
	c.entries = kept
	return nil
}
