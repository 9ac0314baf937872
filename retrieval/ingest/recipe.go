package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

const chosenByHand = "a person promoted the present one, which stays and was made otherwise; footnote ingest FOLDER by a person goes over to the new one, and so does footnote index promote"

// keeps reports that the current generation stays, since a person promoted it.
func (r *run) keeps(ctx context.Context) (bool, error) {
	if !r.how.Keep || r.current == nil {
		return false, nil
	}
	m, err := r.store.Marks(ctx)
	if err != nil {
		return false, fmt.Errorf("asking who promoted the index: %w", err)
	}
	return m.ByHand, nil
}

// asServed reports that the target holds the document as it is served, made by
// this pipeline, under the access list in force.
func (r *run) asServed(rec catalog.Record) bool {
	return r.upToDate(rec, rec.Serving) && slices.Equal(rec.Access, texts(r.there[rec.ID].Access))
}

// otherThanTarget reports that a document of a generation is of another revision
// than the target's.
func (r *run) otherThanTarget(info retrieval.DocumentInfo) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, in := r.there[info.ID]
	return in && now.Revision != info.Revision
}

// Differs says in what a generation was made otherwise than with the stamp; "" in
// nothing.
func Differs(m retrieval.Manifest, s catalog.Stamp) string {
	var out []string
	for _, x := range []struct{ what, has, wanted string }{
		{"extractor", m.Extractor, s.Extractor}, {"chunker", m.Chunker, s.Chunker}, {"analysis", m.Analysis, s.Analysis}, {"notes", m.Notes, s.Notes},
	} {
		if x.has != x.wanted {
			out = append(out, fmt.Sprintf("%s %q instead of %q", x.what, x.has, x.wanted))
		}
	}
	if m.Embedder != s.Embedder {
		out = append(out, fmt.Sprintf("embedder %s %s instead of %s %s", m.Embedder.Name, m.Embedder.Precision, s.Embedder.Name, s.Embedder.Precision))
	}
	return strings.Join(out, ", ")
}

// madeOtherwise is Differs for a document, which may lack its notes.
func madeOtherwise(m retrieval.Manifest, s catalog.Stamp) bool {
	if s.Notes == "" {
		m.Notes = ""
	}
	return Differs(m, s) != ""
}

// wider says whom a generation lets read a document that the catalog does not.
//
// SECURITY: that is wrong whatever the revision.
func wider(rec catalog.Record, info retrieval.DocumentInfo) string {
	beyond := slices.DeleteFunc(info.Access.Principals(), func(p acl.Principal) bool { return slices.Contains(rec.Access, string(p)) })
	if len(beyond) == 0 {
		return ""
	}
	return fmt.Sprintf("the catalog has the access list %v, the index lets %s read it, too", rec.Access, acl.NewList(beyond...))
}
