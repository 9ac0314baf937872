package memindex

import (
	"github.com/viterin/vek/vek32"

	"footnote/retrieval"
)

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
		out[h.ID] = distance(vek32.Dot(query, s.vecs.at(s.docs[h.ID.Document].base+h.ID.Ordinal)))
	}
	return out
}
