package retrieval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/models"
)

type fakeEmbedder struct {
	info  models.EmbedderInfo
	calls int
}

func (e *fakeEmbedder) Info() models.EmbedderInfo { return e.info }
func (e *fakeEmbedder) EmbedQuery(context.Context, string) (models.Embedding, error) {
	e.calls++
	return models.Embedding{Vector: []float32{1}, Tokens: 3}, nil
}
func (e *fakeEmbedder) EmbedPassages(context.Context, []string) ([]models.Embedding, error) {
	return nil, errors.New("a search embeds no passages")
}
func (e *fakeEmbedder) CountTokens(text string) int { return len(strings.Fields(text)) }

// fakeReranker covers English and scores a passage by the digit it ends with.
type fakeReranker struct{ scored []string }

func (*fakeReranker) Name() string                { return "fake" }
func (*fakeReranker) Covers(language string) bool { return language == "en" }
func (r *fakeReranker) Rerank(_ context.Context, _ string, passages []string) ([]float64, error) {
	out := make([]float64, len(passages))
	for i, p := range passages {
		out[i] = float64(p[len(p)-1]-'0') / 10
	}
	r.scored = append(r.scored, passages...)
	return out, nil
}

// fakeReader returns the candidates it is given and holds one chunk a
// document, whose content is the text given.
type fakeReader struct {
	Reader
	manifest Manifest
	found    Candidates
	texts    map[string]string
}

func (r *fakeReader) Manifest() Manifest { return r.manifest }
func (r *fakeReader) Search(_ context.Context, _ acl.Grant, q Query) (Candidates, error) {
	if q.Depth != 100 {
		return Candidates{}, errors.New("wrong depth")
	}
	return r.found, nil
}
func (r *fakeReader) Passages(_ context.Context, _ acl.Grant, ids []ChunkID) ([]Passage, error) {
	var out []Passage
	for _, c := range ids {
		if text, ok := r.texts[string(c.Document)]; ok {
			out = append(out, Passage{Chunk: Chunk{ID: c, Content: text, Text: "[t]\n" + text}, Title: "T " + string(c.Document)})
		}
	}
	return out, nil
}

func scriptOf(text string) string {
	for _, r := range text {
		if unicode.Is(unicode.Hangul, r) {
			return "ko"
		}
	}
	return "en"
}

func order(hits []Hit) string {
	var s []string
	for _, h := range hits {
		s = append(s, string(h.Passage.Chunk.ID.Document))
	}
	return strings.Join(s, " ")
}

func TestSearchRanking(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c", "d"}
	tests := map[string]struct {
		question string
		texts    map[string]string
		reranker bool
		want     string
		reranked bool
	}{
		"no reranker leaves the fused order":                 {"how", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}, false, "a b c d", false},
		"the reranker is one voice":                          {"how", map[string]string{"a": "1", "b": "1", "c": "6", "d": "1"}, true, "c a b d", true},
		"its votes are added, not obeyed":                    {"how", map[string]string{"a": "5", "b": "5", "c": "6", "d": "7"}, true, "a b c d", true},
		"equal probabilities keep the fused order":           {"how", map[string]string{"a": "5", "b": "5", "c": "5", "d": "5"}, true, "a b c d", true},
		"a Korean question keeps the fused order":            {"어떻게", map[string]string{"a": "1", "b": "2", "c": "9", "d": "4"}, true, "a b c d", false},
		"Korean passages keep their slots":                   {"how", map[string]string{"a": "1", "b": "한국어 9", "c": "7", "d": "1"}, true, "c b a d", true},
		"only Korean passages: the fused order stands":       {"how", map[string]string{"a": "가1", "b": "나2", "c": "다3", "d": "라4"}, true, "a b c d", false},
		"a passage gone since the legs ran closes the ranks": {"how", map[string]string{"a": "1", "c": "8", "d": "1"}, true, "c a d", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r models.Reranker
			if tt.reranker {
				r = &fakeReranker{}
			}
			s := NewSearcher(&fakeEmbedder{}, r, strings.Fields, scriptOf, Options{})
			got, err := s.Search(t.Context(), &fakeReader{found: legs(all, all), texts: tt.texts}, acl.Grant{}, tt.question)
			if err != nil {
				t.Fatal(err)
			}
			if order(got.Hits) != tt.want || got.Reranked != tt.reranked {
				t.Errorf("order %q, reranked %v; want %q, %v", order(got.Hits), got.Reranked, tt.want, tt.reranked)
			}
			for i, h := range got.Hits {
				if h.Rank != i+1 {
					t.Errorf("hit %d has rank %d", i+1, h.Rank)
				}
				covered := tt.reranked && scriptOf(h.Passage.Chunk.Content) == "en"
				if (h.Rerank != nil) != covered {
					t.Errorf("%s: reranked %v, want %v", h.Passage.Chunk.ID, h.Rerank != nil, covered)
				}
			}
		})
	}
}

func TestSearchReranksTheTextThatWasEmbedded(t *testing.T) {
	t.Parallel()
	r := &fakeReranker{}
	s := NewSearcher(&fakeEmbedder{}, r, strings.Fields, scriptOf, Options{Rerank: 2})
	found := legs([]string{"a", "b", "c"}, nil)
	got, err := s.Search(t.Context(), &fakeReader{found: found, texts: map[string]string{"a": "1", "b": "8", "c": "9"}}, acl.Grant{}, "how")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"[t]\n1", "[t]\n8"}, r.scored); d != "" {
		t.Error(d)
	}
	if order(got.Hits) != "b a c" {
		t.Errorf("order %q: the third is outside the reranked part", order(got.Hits))
	}
}

func TestSearchRefusals(t *testing.T) {
	t.Parallel()
	other := models.EmbedderInfo{Name: "other"}
	tests := map[string]struct {
		question string
		manifest Manifest
		want     error
	}{
		"a generation of another model":         {"how", Manifest{Name: "g1", Embedder: other}, ErrModelMismatch},
		"no characters":                         {"", Manifest{}, ErrQuestion},
		"100,000 characters":                    {strings.Repeat("가", 100_000), Manifest{}, ErrQuestion},
		"one character is a question":           {"?", Manifest{}, nil},
		"8,000 characters are still a question": {strings.Repeat("가", 8000), Manifest{}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &fakeEmbedder{}
			s := NewSearcher(e, nil, strings.Fields, scriptOf, Options{})
			_, err := s.Search(t.Context(), &fakeReader{manifest: tt.manifest}, acl.Grant{}, tt.question)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if tt.want != nil && e.calls != 0 {
				t.Error("the model ran all the same")
			}
		})
	}
}

// Models of one name are told apart by what else differs.
func TestMismatchSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	have := models.EmbedderInfo{Name: "m", Precision: "q4", SHA256: "0123456789ab"}
	needs := have
	needs.States = "4bit/1"
	s := NewSearcher(&fakeEmbedder{info: have}, nil, strings.Fields, scriptOf, Options{})
	_, err := s.Search(t.Context(), &fakeReader{manifest: Manifest{Name: "g1", Embedder: needs}}, acl.Grant{}, "how")
	want := "generation g1 needs m (q4, weights 01234567, token states 4bit/1), this program runs m (q4, weights 01234567, no token states)"
	if !errors.Is(err, ErrModelMismatch) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestHitContract(t *testing.T) {
	t.Parallel()
	distance, late, probability := .125, .8125, .75
	full := Hit{Rank: 1, LexicalRank: 2, BM25: 3.5, DenseRank: 4, Distance: &distance, Late: &late, Fused: .25, Rerank: &probability, Passage: Passage{
		Title: "T", Path: "p.md",
		Chunk: Chunk{ID: id("d", 1), Section: []string{"S"}, Locator: "#char=1,2", Content: "x", Span: Span{From: 1, To: 2, SourceFrom: 5, SourceTo: 6}},
	}}
	tests := map[string]struct {
		hit  Hit
		want string
	}{
		"all stages": {full, `{"rank":1,"document":"d","revision":"r","path":"p.md","title":"T","section":["S"],"locator":"#char=1,2","from":1,"to":2,"source_from_byte":5,"source_to_byte":6,"content":"x","bm25_rank":2,"bm25":3.5,"dense_rank":4,"distance":0.125,"late":0.8125,"fused":0.25,"rerank":0.75}`},
		"no stage":   {Hit{}, `{"rank":0,"document":"","revision":"","path":"","title":"","section":[],"locator":"","from":0,"to":0,"source_from_byte":0,"source_to_byte":0,"content":"","bm25_rank":null,"bm25":null,"dense_rank":null,"distance":null,"late":null,"fused":0,"rerank":null}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tt.hit)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}
