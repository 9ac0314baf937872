package bot

import (
	"fmt"

	"footnote/retrieval"
)

// Cuts are the limits of evidence. They belong to the models that made the
// figures, come from their cards, and are never lowered because nothing
// passes.
type Cuts struct {
	Late        float64 // least MaxSim of token states, where a hit has one; 0: the distance decides
	Distance    float64 // greatest cosine distance, of the other hits
	Probability float64 // least rerank probability, where there is one
}

// Verdict is the gate's decision on one hit.
type Verdict struct {
	Passed bool
	Why    string // for the operator
}

// judge decides on every hit, in their order; at most sources of them pass. A
// hit of which neither MaxSim nor distance is known is no evidence.
func (c Cuts) judge(hits []retrieval.Hit, sources int) []Verdict {
	out := make([]Verdict, len(hits))
	for i, h := range hits {
		why := c.objection(h)
		switch {
		case why != "":
			out[i].Why = why
		case sources == 0:
			out[i].Why = "enough evidence before it"
		default:
			out[i] = Verdict{true, "near enough"}
			sources--
		}
	}
	return out
}

func (c Cuts) objection(h retrieval.Hit) string {
	switch far := c.far(h); {
	case far != "":
		return far
	case h.Rerank != nil && *h.Rerank < c.Probability:
		return fmt.Sprintf("probability %.3f is under %.3f", *h.Rerank, c.Probability)
	}
	return ""
}

// far says why a hit is not near enough, "" if it is. MaxSim tells questions
// off the corpus better than the distance (AUROC 1.00 against .95 on formal
// questions of en_docs).
func (c Cuts) far(h retrieval.Hit) string {
	switch {
	case h.Late != nil && c.Late > 0:
		if !(*h.Late >= c.Late) {
			return fmt.Sprintf("token states meet the question at %.3f, under %.3f", *h.Late, c.Late)
		}
	case h.Distance == nil:
		return "its distance is not known"
	case !(*h.Distance <= c.Distance):
		return fmt.Sprintf("distance %.3f is over %.3f", *h.Distance, c.Distance)
	}
	return ""
}

// nearest names up to three documents, in the order of their best hits.
func nearest(hits []retrieval.Hit) []Nearest {
	var out []Nearest
	seen := map[retrieval.DocumentID]bool{}
	for _, h := range hits {
		c := h.Passage.Chunk
		if seen[c.ID.Document] {
			continue
		}
		seen[c.ID.Document] = true
		out = append(out, Nearest{Document: c.ID.Document, Title: h.Passage.Title, Section: append([]string{}, c.Section...), Path: h.Passage.Path, chunk: c.ID})
		if len(out) == 3 {
			break
		}
	}
	return out
}
