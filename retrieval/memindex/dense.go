package memindex

import (
	"context"
	"math"

	"footnote/models"
	"footnote/retrieval"
)

// blockLen is the number of vectors in one allocation, so that growing copies
// none.
const blockLen = 1024

// vectors holds one vector for each ordinal.
type vectors struct {
	dims, n int
	blocks  [][]float32
}

func (v *vectors) at(i int) []float32 {
	return v.blocks[i/blockLen][i%blockLen*v.dims:][:v.dims:v.dims]
}

// add appends a vector from its encoded form.
func (v *vectors) add(encoded []byte) {
	if v.n == len(v.blocks)*blockLen {
		v.blocks = append(v.blocks, make([]float32, blockLen*v.dims))
	}
	v.n++
	decodeVector(v.at(v.n-1), encoded)
}

func (v *vectors) move(to, from int) {
	if to != from {
		copy(v.at(to), v.at(from))
	}
}

func (v *vectors) truncate(n int) {
	v.n = n
	v.blocks = v.blocks[: (n+blockLen-1)/blockLen : (n+blockLen-1)/blockLen]
}

// dense ranks the admitted chunks by cosine distance, exactly.
func (s *state) dense(ctx context.Context, v *view, query []float32, depth int) ([]retrieval.DenseHit, error) {
	best := newTop(s, min(depth, v.chunks), math.Inf(-1))
	for _, r := range v.spans {
		for o := r.from; o < r.to; o++ {
			if o%blockLen == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if score := -distance(models.Dot(query, s.vecs.at(o))); score >= best.floor {
				best.offer(uint32(o), score)
			}
		}
	}
	hits := make([]retrieval.DenseHit, 0, len(best.items))
	for _, it := range best.sorted() {
		hits = append(hits, retrieval.DenseHit{ID: s.chunkID(it.ordinal), Distance: -it.score})
	}
	return hits, nil
}

// distance is the cosine distance of two unit vectors with this inner
// product, kept inside [0,2] against rounding.
func distance(product float32) float64 {
	return min(max(1-float64(product), 0), 2)
}

// distances computes the cosine distances of the lexical hits that the dense
// leg did not return; nil if there is none. All hits are admitted already.
func (s *state) distances(query []float32, lexical []retrieval.LexicalHit, dense []retrieval.DenseHit) map[retrieval.ChunkID]float64 {
	near := make(map[retrieval.ChunkID]bool, len(dense))
	for _, h := range dense {
		near[h.ID] = true
	}
	var out map[retrieval.ChunkID]float64
	for _, h := range lexical {
		if near[h.ID] {
			continue
		}
		if out == nil {
			out = make(map[retrieval.ChunkID]float64)
		}
		out[h.ID] = distance(models.Dot(query, s.vecs.at(s.docs[h.ID.Document].base+h.ID.Ordinal)))
	}
	return out
}
