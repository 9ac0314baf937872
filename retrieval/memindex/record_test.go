package memindex

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/journal"
)

func TestPassageRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<40)
		c := retrieval.Chunk{
			ID: retrieval.ChunkID{Document: "d", Revision: "r", Ordinal: 3}, Section: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "section"),
			Kind: rapid.String().Draw(t, "kind"), Locator: rapid.String().Draw(t, "locator"), Content: rapid.String().Draw(t, "content"),
			Span: retrieval.Span{From: n.Draw(t, "a"), To: n.Draw(t, "b"), FromByte: n.Draw(t, "c"), ToByte: n.Draw(t, "d"), SourceFrom: n.Draw(t, "e"), SourceTo: n.Draw(t, "f")},
		}
		c.Text = rapid.String().Draw(t, "text")
		if rapid.Bool().Draw(t, "ends with content") {
			c.Text += c.Content
		}
		got, err := decodePassage(encodePassage(c), c.ID)
		if diff := cmp.Diff(c, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestPublishedRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const dims = 2
		p := published{
			meta: meta{
				id: retrieval.DocumentID(rapid.String().Draw(t, "id")), revision: "r", path: rapid.StringMatching(`[^\x00]*`).Draw(t, "path"), link: rapid.SampledFrom([]string{"", "https://x.example/a"}).Draw(t, "link"), title: "t", language: "ko",
				modified: time.Unix(rapid.Int64Range(-1<<33, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(), runes: 7,
			},
			access: acl.NewList(acl.Group(rapid.String().Draw(t, "group")), acl.Everyone),
			terms:  rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "terms"),
		}
		for range rapid.IntRange(1, 3).Draw(t, "chunks") {
			p.chunks = append(p.chunks, countTerms(rapid.SliceOfN(rapid.Uint32Range(0, 9), 0, 20).Draw(t, "ids")))
			p.vectors = encodeVectors(p.vectors, []float32{rapid.Float32().Draw(t, "x"), 0.5})
		}
		got, err := decodePublished(p.encode()[1:], dims)
		opts := cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(published{}, meta{}, chunkTerms{}, termCount{})}
		if diff := cmp.Diff(p, got, opts); diff != "" || err != nil {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestCountTerms(t *testing.T) {
	t.Parallel()
	got := countTerms([]uint32{7, 1, 7, 3, 7, 1})
	want := chunkTerms{length: 6, terms: []termCount{{1, 2}, {3, 1}, {7, 3}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(chunkTerms{}, termCount{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzApply: no record, however made, makes the state panic or grow without
// bounds; those that cannot be decoded are refused.
func FuzzApply(f *testing.F) {
	p := published{meta: meta{id: "d", revision: "r"}, access: acl.NewList(acl.Everyone), terms: []string{"a", "b"},
		chunks: []chunkTerms{countTerms([]uint32{0, 1, 1}), countTerms([]uint32{1})}, vectors: make([]byte, 2*2*4)}
	remove, access, archive := encoder{kindRemove}, encoder{kindSetAccess}, encoder{kindArchive}
	remove.string("d")
	access.string("d")
	access.list(acl.NewList(acl.Everyone))
	archive.meta(p.meta)
	for _, head := range [][]byte{p.encode(), remove, access, archive, {}, {0}, {9, 9}} {
		f.Add(head, 2*len(p.chunks)+1)
		f.Add(head, 1)
	}
	f.Fuzz(func(t *testing.T, head []byte, parts int) {
		s := newState(2)
		must(t, s.apply(journal.Record{Parts: make([]journal.Part, 1+2*len(p.chunks))}, p.encode()))
		if err := s.apply(journal.Record{Parts: make([]journal.Part, max(0, min(parts, 100)))}, head); err != nil {
			return
		}
		s.squeeze()
		for _, doc := range s.docs {
			if i := slices.Index(s.live, doc); i < 0 || s.owners[doc.base] != doc && doc.chunks > 0 {
				t.Fatalf("document %q is not at its place", doc.id)
			}
		}
		if s.vecs.n != len(s.owners) {
			t.Fatalf("%d vectors of %d chunks", s.vecs.n, len(s.owners))
		}
	})
}

func FuzzDecodePassage(f *testing.F) {
	f.Add(encodePassage(retrieval.Chunk{Section: []string{"a"}, Kind: "text", Content: "c", Text: "[h] c"}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodePassage(b, retrieval.ChunkID{})
		if err != nil {
			return
		}
		again, err := decodePassage(encodePassage(c), retrieval.ChunkID{})
		if diff := cmp.Diff(c, again); diff != "" || err != nil {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
	})
}
