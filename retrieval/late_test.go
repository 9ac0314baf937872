package retrieval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"footnote/acl"
	"footnote/models"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"":                         "",
		"?!":                       "",
		"how do I rotate?":         "how do I rotate",
		"what's 'it'":              "what's 'it'",
		"ERR-4012, my_var (x)":     "ERR 4012 my_var x",
		"비밀번호를 API키로":              "비밀번호를 API키로",
		"cafe\u0301 ok":            "cafe\u0301 ok",
		"  two   words  ":          "two words",
		"a,b":                      "a b",
		"broken \xff utf-8 \uFFFD": "broken utf 8",
	} {
		var got []string
		for _, w := range words(question, strings.Fields) {
			got = append(got, question[w.from:w.to])
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q:\n%s", question, d)
		}
	}
}

func TestTermsOfWords(t *testing.T) {
	t.Parallel()
	got := terms([]word{{terms: []string{"b", "a"}}, {}, {terms: []string{"a", "c"}}})
	if d := cmp.Diff([]string{"a", "b", "c"}, got); d != "" {
		t.Error(d)
	}
}

// place finds the n-th occurrence-free part of a question.
func place(question, part string) models.Place {
	from := strings.Index(question, part)
	return models.Place{From: from, To: from + len(part)}
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	const n = 10
	c := Candidates{Chunks: n, Holding: map[string]int{"how": 10, "rotate": 2, "key": 1, "err": 1, "4012": 4}}
	most := idf(n, 0)
	pair := func(s string) []string {
		if s == "err4012" {
			return []string{"err", "4012"}
		}
		return strings.Fields(s)
	}
	tests := map[string]struct {
		question string
		parts    []string
		want     []float64
	}{
		"rare words weigh more":              {"how rotate key", []string{"how", "rotate", "key"}, []float64{idf(n, 10), idf(n, 2), idf(n, 1)}},
		"pieces of a word weigh as the word": {"how rotate", []string{"ro", "tate"}, []float64{idf(n, 2), idf(n, 2)}},
		"a word that nothing holds":          {"how zebra", []string{"how", "zebra"}, []float64{idf(n, 10), .6 * most}},
		"the rarest term of a word counts":   {"how err4012", []string{"how", "err4012"}, []float64{idf(n, 10), idf(n, 1)}},
		"punctuation weighs nothing":         {"key, how", []string{"key", ","}, []float64{idf(n, 1), 0}},
		"a space or bracket before the word": {"how (key)", []string{" (key", ")"}, []float64{idf(n, 1), 0}},
		"nothing but punctuation":            {"?!", []string{"?", "!"}, []float64{1, 1}},
		"a place outside the question":       {"key", []string{"key", ""}, []float64{idf(n, 1), 0}},
		"no places":                          {"key", nil, []float64{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var places []models.Place
			for _, p := range tt.parts {
				at := place(tt.question, p)
				if p == "" {
					at = models.Place{From: -3, To: 99}
					at.From = 98
				}
				places = append(places, at)
			}
			got := weigh(tt.question, places, words(tt.question, pair), c, .6)
			if d := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Whatever places and counts, weights are finite, none is negative and not all
// are 0.
func TestWeighProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		question := rapid.String().Draw(t, "question")
		var places []models.Place
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			places = append(places, models.Place{From: rapid.IntRange(-2, 30).Draw(t, "from"), To: rapid.IntRange(-2, 30).Draw(t, "to")})
		}
		asked := words(question, strings.Fields)
		c := Candidates{Chunks: rapid.IntRange(0, 9).Draw(t, "chunks"), Holding: map[string]int{}}
		for _, w := range asked {
			c.Holding[question[w.from:w.to]] = rapid.IntRange(0, c.Chunks).Draw(t, "holding")
		}
		sum := 0.0
		for _, w := range weigh(question, places, asked, c, .6) {
			if !(w >= 0) || math.IsInf(w, 0) {
				t.Fatalf("a weight of %v", w)
			}
			sum += w
		}
		if sum == 0 {
			t.Fatal("all weights are 0")
		}
	})
}

func TestSearchable(t *testing.T) {
	t.Parallel()
	function := func(term string) bool { return term == "how" || term == "do" }
	for name, tt := range map[string]struct{ terms, want string }{
		"function words go":      {"how do rotate how key", "rotate key"},
		"nothing but such words": {"how do how", "how do how"},
		"none of them":           {"rotate", "rotate"},
		"no terms":               {"", ""},
	} {
		terms := strings.Fields(tt.terms)
		if got := strings.Join(searchable(terms, function), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if strings.Join(terms, " ") != tt.terms {
			t.Errorf("%s: the caller's terms became %q", name, terms)
		}
	}
	if got := searchable([]string{"how"}, nil); !slices.Equal(got, []string{"how"}) {
		t.Errorf("without a list: %q", got)
	}
}

// stateEmbedder gives a question one state for each word: x for "x…", else y.
type stateEmbedder struct {
	fakeEmbedder
	seen string
}

func axis(word string) []float32 {
	if strings.HasPrefix(word, "x") {
		return []float32{1, 0, 0, 0}
	}
	return []float32{0, 1, 0, 0}
}

func (e *stateEmbedder) EmbedQuery(_ context.Context, text string) (models.Embedding, error) {
	e.seen = text
	s := &models.States{Dimensions: 4}
	for _, w := range words(text, strings.Fields) {
		s.Vectors, s.Places = append(s.Vectors, axis(text[w.from:w.to])...), append(s.Places, models.Place{From: w.from, To: w.to})
	}
	return models.Embedding{Vector: []float32{1}, States: s}, nil
}

// stateReader holds the states of chunks by document and remembers what was
// asked.
type stateReader struct {
	fakeReader
	states map[string][]byte
	err    error
	asked  []ChunkID
	query  Query
}

func (r *stateReader) Search(ctx context.Context, g acl.Grant, q Query) (Candidates, error) {
	r.query = q
	return r.fakeReader.Search(ctx, g, q)
}

func (r *stateReader) States(_ context.Context, _ acl.Grant, ids []ChunkID) ([][]byte, error) {
	r.asked = ids
	out := make([][]byte, len(ids))
	for i, c := range ids {
		out[i] = r.states[string(c.Document)]
	}
	return out, r.err
}

func coded(words ...string) []byte {
	var rows []float32
	for _, w := range words {
		rows = append(rows, axis(w)...)
	}
	return models.EncodeStates(rows, 4)
}

func TestSearchByTokenStates(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"}
	all := []string{"a", "b", "c", "d"}
	tests := map[string]struct {
		question string
		found    Candidates
		states   map[string][]byte
		rerank   map[string]string // texts; nil: no reranker
		want     string
	}{
		"the words of the question decide": {
			"x y", legs(nil, all), map[string][]byte{"a": coded("y"), "b": coded("x", "y"), "c": coded(), "d": coded("x")}, nil, "b d a c"},
		"the rarer word counts more": {
			"x y", legs(nil, all), map[string][]byte{"a": coded("y"), "d": coded("x"), "b": coded("y"), "c": coded("y")}, nil, "d a b c"},
		"BM25 breaks what states leave even": {
			"x", legs([]string{"d", "c"}, all), map[string][]byte{"a": coded("x"), "b": coded("x"), "c": coded("x"), "d": coded("x")}, nil, "d c a b"},
		"a tie orders by id": {
			"x", legs(nil, []string{"d", "c", "b", "a"}), map[string][]byte{"a": coded("x"), "b": coded("x"), "c": coded("x"), "d": coded("x")}, nil, "a b c d"},
		"a chunk without states comes last": {
			"x", legs([]string{"a"}, all), map[string][]byte{"b": coded("y"), "c": coded("x"), "d": coded("y")}, nil, "c b d a"},
		"the reranker is one voice": {
			"x", legs(nil, all), map[string][]byte{"a": coded("x"), "b": coded("x"), "c": coded("y"), "d": coded("x")},
			map[string]string{"a": "1", "b": "2", "c": "9", "d": "3"}, "d b a c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.found.Chunks, tt.found.Holding = 10, map[string]int{"x": 1, "y": 5}
			reader := &stateReader{fakeReader: fakeReader{found: tt.found, texts: texts}, states: tt.states}
			var r models.Reranker
			if tt.rerank != nil {
				r, reader.texts = &fakeReranker{}, tt.rerank
			}
			s := NewSearcher(&stateEmbedder{}, r, strings.Fields, scriptOf, Options{})
			got, err := s.Search(t.Context(), reader, acl.Grant{}, tt.question)
			if err != nil {
				t.Fatal(err)
			}
			if order(got.Hits) != tt.want || got.Fusion != Late {
				t.Errorf("order %q by %s, want %q", order(got.Hits), got.Fusion, tt.want)
			}
			for _, h := range got.Hits {
				has := tt.states[string(h.Passage.Chunk.ID.Document)] != nil
				if (h.Late != nil) != has {
					t.Errorf("%s: compared %v, has states %v", h.Passage.Chunk.ID, h.Late != nil, has)
				}
			}
		})
	}
}

// The lexical leg takes what has a meaning, counting takes every word.
func TestSearchAsksForCountsOfAllWords(t *testing.T) {
	t.Parallel()
	e, reader := &stateEmbedder{}, &stateReader{}
	s := NewSearcher(e, nil, strings.Fields, scriptOf, Options{Function: func(term string) bool { return term == "how" }})
	got, err := s.Search(t.Context(), reader, acl.Grant{}, "how x, x \xff")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"how", "x"}, reader.query.Count); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(got.Terms, reader.query.Terms); d != "" || slices.Contains(got.Terms, "how") {
		t.Errorf("searched for %q\n%s", got.Terms, d)
	}
	if e.seen != "how x, x \uFFFD" {
		t.Errorf("embedded %q: places would not fit", e.seen)
	}
}

// Only the best candidates are compared, and all that are returned.
func TestSearchComparesTheBestCandidates(t *testing.T) {
	t.Parallel()
	var found Candidates
	texts := map[string]string{}
	for i := range 90 {
		doc := fmt.Sprintf("d%02d", i)
		found.Dense = append(found.Dense, DenseHit{id(doc, 0), .1 + float64(i)/1000})
		texts[doc] = "text"
	}
	for _, tt := range []struct{ compare, top, want int }{{0, 0, 50}, {10, 5, 10}, {10, 30, 30}, {200, 5, 90}} {
		reader := &stateReader{fakeReader: fakeReader{found: found, texts: texts}}
		s := NewSearcher(&stateEmbedder{}, nil, strings.Fields, scriptOf, Options{Compare: tt.compare, Top: tt.top})
		if _, err := s.Search(t.Context(), reader, acl.Grant{}, "x"); err != nil {
			t.Fatal(err)
		}
		if len(reader.asked) != tt.want || reader.asked[0] != id("d00", 0) {
			t.Errorf("compare %d, top %d: %d compared, want %d", tt.compare, tt.top, len(reader.asked), tt.want)
		}
	}
}

func TestSearchWithDamagedStates(t *testing.T) {
	t.Parallel()
	s := NewSearcher(&stateEmbedder{}, nil, strings.Fields, scriptOf, Options{})
	reader := &stateReader{fakeReader: fakeReader{found: legs(nil, []string{"a"})}, states: map[string][]byte{"a": {1, 2, 3}}}
	if _, err := s.Search(t.Context(), reader, acl.Grant{}, "x"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "a@r#00000") {
		t.Errorf("states of a wrong length: %v", err)
	}
	reader.err = context.Canceled
	if _, err := s.Search(t.Context(), reader, acl.Grant{}, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("an index that fails: %v", err)
	}
}

// Where there are no token states: raw scores for a language that the reranker
// covers, ranks for the rest.
func TestFusionWithoutTokenStates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		question string
		reranker models.Reranker
		want     Fusion
	}{
		"English": {"how", &fakeReranker{}, Sum}, "Korean": {"어떻게", &fakeReranker{}, Ranks}, "no reranker": {"how", nil, Ranks},
	} {
		s := NewSearcher(&fakeEmbedder{}, tt.reranker, strings.Fields, scriptOf, Options{})
		got, err := s.Search(t.Context(), &fakeReader{found: legs([]string{"a"}, []string{"b"}), texts: map[string]string{"a": "1", "b": "1"}}, acl.Grant{}, tt.question)
		if err != nil || got.Fusion != tt.want || len(got.Hits) != 2 {
			t.Errorf("%s: by %q, %d hits, %v", name, got.Fusion, len(got.Hits), err)
		}
	}
}

func TestLogit(t *testing.T) {
	t.Parallel()
	for _, l := range []float64{-11.5, -3, 0, .25, 7} {
		if got := logit(1 / (1 + math.Exp(-l))); math.Abs(got-l) > 1e-6 {
			t.Errorf("logit of the sigmoid of %v: %v", l, got)
		}
	}
	for _, p := range []float64{0, 1, -1, 2} {
		if got := logit(p); math.IsInf(got, 0) || math.IsNaN(got) {
			t.Errorf("logit of %v: %v", p, got)
		}
	}
}
