package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"

	"footnote/models"
	"footnote/retrieval/journal"
)

// CacheFile is the cache's name in the data directory.
const CacheFile = "vectors.log"

// cacheBytes bounds the cache file: 30,000 chunks with token states, 600,000
// vectors of 384 dimensions without.
const cacheBytes = 1 << 30

// Cache keeps embeddings by model and text on disk. It can only save work: what
// is damaged is thrown away, and an embedding is found only under the exact name
// of the model and the exact text. Beyond its bound the older half goes. It is
// safe for concurrent use.
//
// Format: a retrieval/journal; a record's head holds for each of its parts
// key [32]byte, tokens u32, truncated u8; a part is a vector, float32, all
// little-endian, and the encoded token states.
type Cache struct {
	model []byte
	dims  int
	limit int64

	mu      sync.Mutex
	log     *journal.Log
	entries map[cacheKey]cached
}

type cacheKey [sha256.Size]byte

type cached struct {
	part      journal.Part
	tokens    uint32
	truncated bool
}

const cacheRow = sha256.Size + 5

// OpenCache opens the cache in the data directory for one model. A damaged or
// foreign file is replaced by an empty one.
func OpenCache(dir string, info models.EmbedderInfo) (*Cache, error) {
	return openCache(filepath.Join(dir, CacheFile), info, cacheBytes)
}

func openCache(path string, info models.EmbedderInfo, limit int64) (*Cache, error) {
	model, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("opening the cache of vectors: %w", err)
	}
	c := &Cache{model: model, dims: info.Dimensions, limit: limit}
	err = c.open(path)
	if errors.Is(err, journal.ErrCorrupt) || errors.Is(err, journal.ErrFormat) {
		if err = os.Remove(path); err == nil {
			err = c.open(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the cache of vectors: %w", err)
	}
	return c, nil
}

func (c *Cache) open(path string) (err error) {
	c.entries = map[cacheKey]cached{}
	c.log, err = journal.Open(path, c.replay)
	return err
}

func (c *Cache) replay(r journal.Record, head []byte) error {
	if len(head) != len(r.Parts)*cacheRow {
		return journal.ErrCorrupt
	}
	for i, p := range r.Parts {
		row := head[i*cacheRow:]
		c.entries[cacheKey(row[:sha256.Size])] = cached{p, binary.LittleEndian.Uint32(row[sha256.Size:]), row[cacheRow-1] != 0}
	}
	return nil
}

// Close closes the file.
func (c *Cache) Close() error { return c.log.Close() }

func (c *Cache) key(text string) cacheKey {
	h := sha256.New()
	h.Write(c.model)
	h.Write([]byte{0})
	h.Write([]byte(text))
	return cacheKey(h.Sum(nil))
}

// get returns the embedding of a text, if it is there and whole.
func (c *Cache) get(text string) (models.Embedding, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[c.key(text)]
	if !ok || int(e.part.Len) < c.dims*4 {
		return models.Embedding{}, false
	}
	raw, err := c.log.Read(e.part)
	if err != nil {
		return models.Embedding{}, false
	}
	v := make([]float32, c.dims)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	out := models.Embedding{Vector: v, Tokens: int(e.tokens), Truncated: e.truncated}
	if states := raw[4*c.dims:]; len(states) > 0 {
		out.Coded = states
	}
	return out, true
}

// put adds the embeddings of texts.
func (c *Cache) put(texts []string, es []models.Embedding) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var head []byte
	var parts [][]byte
	for i, e := range es {
		k := c.key(texts[i])
		head = append(head, k[:]...)
		head = binary.LittleEndian.AppendUint32(head, uint32(e.Tokens))
		head = append(head, flag(e.Truncated))
		part := make([]byte, 0, len(e.Vector)*4+len(e.Coded))
		for _, x := range e.Vector {
			part = binary.LittleEndian.AppendUint32(part, math.Float32bits(x))
		}
		parts = append(parts, append(part, e.Coded...))
	}
	r, err := c.log.Append(head, parts...)
	if err != nil {
		return err
	}
	if err := c.replay(r, head); err != nil {
		return err
	}
	if c.log.Size() > c.limit {
		return c.trim()
	}
	return nil
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// trim rewrites the file with the entries of its newer half.
func (c *Cache) trim() error {
	w, err := c.log.Rewrite()
	if err != nil {
		return err
	}
	kept := map[cacheKey]cached{}
	from := c.log.Size() / 2
	for k, e := range c.entries {
		if e.part.Offset < from {
			continue
		}
		raw, err := c.log.Read(e.part)
		if err != nil {
			continue
		}
		head := append(k[:], 0, 0, 0, 0, flag(e.truncated))
		binary.LittleEndian.PutUint32(head[sha256.Size:], e.tokens)
		r, err := w.Append(head, raw)
		if err != nil {
			w.Discard()
			return err
		}
		kept[k] = cached{r.Parts[0], e.tokens, e.truncated}
	}
	if err := w.Commit(); err != nil {
		return err
	}
	c.entries = kept
	return nil
}
