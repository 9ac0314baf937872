package retrieval

import (
	"errors"
	"fmt"
	"math"
)

// Check refuses what no index may publish, before anything is written: dims
// are those of the generation's vectors.
func (p Publication) Check(dims int) error {
	d := p.Document
	switch {
	case d.ID == "" || d.Revision == "":
		return errors.New("a document needs an id and a revision")
	case p.Access.IsZero():
		return errors.New("the access list is empty: name who may read the document")
	case len(p.Chunks) == 0:
		return errors.New("the document has no chunks: no text was found in it")
	}
	for i, c := range p.Chunks {
		if err := c.check(d, i, dims); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

func (c IndexedChunk) check(d Document, i, dims int) error {
	if want := (ChunkID{Document: d.ID, Revision: d.Revision, Ordinal: i}); c.Chunk.ID != want {
		return fmt.Errorf("its id is %s instead of %s", c.Chunk.ID, want)
	}
	s := c.Chunk.Span
	if min(s.From, s.To, s.FromByte, s.ToByte, s.SourceFrom, s.SourceTo) < 0 {
		return fmt.Errorf("its span %+v is negative", s)
	}
	if s.FromByte > s.ToByte || s.ToByte > len(d.Canonical) || d.Canonical[s.FromByte:s.ToByte] != c.Chunk.Content {
		return fmt.Errorf("its content is not bytes %d to %d of the canonical text", s.FromByte, s.ToByte)
	}
	return CheckVector(c.Vector, dims)
}

// CheckVector says what is wrong with a vector of an index of dims dimensions,
// or nil: ErrModelMismatch for another length, another error for a norm that
// is not 1.
func CheckVector(v []float32, dims int) error {
	if len(v) != dims {
		return fmt.Errorf("%w: the vector has %d dimensions, the index %d", ErrModelMismatch, len(v), dims)
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if norm := math.Sqrt(sum); !(math.Abs(norm-1) <= 1e-3) { // also false for NaN
		return fmt.Errorf("the vector has norm %v instead of 1", norm)
	}
	return nil
}
