package modelstest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"footnote/models"
)

// samples are texts that an embedder meets; none is over a window of 32 tokens
// of any vocabulary but for the last.
var samples = []string{
	"How do I rotate the API key?",
	"The API key is rotated in the account settings.",
	"비밀번호를 재설정하려면 어떻게 해야 하나요?",
	"| plan | price |\n|---|---|\n| Pro | $20 |",
	"ERR-4012",
	"a",
	"",
	" \t\n",
	"🙂🙂",
	"</s> <s> [SEP] [CLS]",
	"nul \x00 inside, bell \x07, escape \x1b[31m",
	"bad utf-8: \xff\xfe",
	strings.Repeat("The lease ends on the last day of the month. ", 40),
}

// TestEmbedder checks the contract of models.Embedder. It embeds about 300
// short texts and a few as long as the window.
func TestEmbedder(t *testing.T, e models.Embedder) {
	t.Run("info is complete", func(t *testing.T) { testInfo(t, e.Info()) })
	t.Run("norm is 1", func(t *testing.T) { testNorm(t, e) })
	t.Run("prefixes differ", func(t *testing.T) { testPrefix(t, e) })
	t.Run("neighbours do not matter", func(t *testing.T) { testBatch(t, e) })
	t.Run("the caller owns the vector", func(t *testing.T) { testOwnership(t, e) })
	t.Run("cosine distance is half the squared distance", func(t *testing.T) { testIdentity(t, e) })
	t.Run("cuts are counted", func(t *testing.T) { testTruncation(t, e) })
	t.Run("tails inside the window count", func(t *testing.T) { testTails(t, e) })
	t.Run("token states", func(t *testing.T) { testStates(t, e) })
	t.Run("a cancelled context ends it", func(t *testing.T) { testCancelledEmbedder(t, e) })
	t.Run("concurrent callers", func(t *testing.T) { testConcurrent(t, e) })
}

func testInfo(t *testing.T, i models.EmbedderInfo) {
	if i.Name == "" || i.Precision == "" || len(i.SHA256) != 64 || i.Dimensions < 1 || i.Window < 3 {
		t.Errorf("incomplete: %+v", i)
	}
}

func testNorm(t *testing.T, e models.Embedder) {
	for i, v := range passages(t, e, samples) {
		if len(v.Vector) != e.Info().Dimensions {
			t.Errorf("%q: %d dimensions, want %d", samples[i], len(v.Vector), e.Info().Dimensions)
		}
		if n := math.Sqrt(Dot(v.Vector, v.Vector)); !(math.Abs(n-1) < 1e-3) {
			t.Errorf("%q: norm %v", samples[i], n)
		}
		q := query(t, e, samples[i])
		if n := math.Sqrt(Dot(q.Vector, q.Vector)); !(math.Abs(n-1) < 1e-3) {
			t.Errorf("%q as a question: norm %v", samples[i], n)
		}
	}
	if none := passages(t, e, nil); len(none) != 0 {
		t.Errorf("%d embeddings of no texts", len(none))
	}
}

func testPrefix(t *testing.T, e models.Embedder) {
	text := samples[0]
	q, p := query(t, e, text), passages(t, e, []string{text})[0]
	if c := Dot(q.Vector, p.Vector); c > .99999 {
		t.Errorf("question and passage have the same vector, cosine %v: a prefix is lost", c)
	}
}

func testBatch(t *testing.T, e models.Embedder) {
	together := passages(t, e, samples)
	var backwards []string
	for i := range samples {
		backwards = append(backwards, samples[len(samples)-1-i])
	}
	reversed := passages(t, e, backwards)
	for i, text := range samples {
		alone := passages(t, e, []string{text})[0]
		for _, v := range []models.Embedding{together[i], reversed[len(samples)-1-i]} {
			if c := Dot(alone.Vector, v.Vector); c < .99999 {
				t.Errorf("%q: cosine of alone and in a batch %v", text, c)
			}
			if alone.Tokens != v.Tokens || alone.Truncated != v.Truncated {
				t.Errorf("%q: alone %d tokens, in a batch %d", text, alone.Tokens, v.Tokens)
			}
		}
	}
}

func testOwnership(t *testing.T, e models.Embedder) {
	first := query(t, e, samples[0])
	want := append([]float32(nil), first.Vector...)
	clear(first.Vector)
	if diff := cmp.Diff(want, query(t, e, samples[0]).Vector); diff != "" {
		t.Errorf("the second vector of a text differs:\n%s", diff)
	}
}

// testIdentity checks 1 - cos(a,b) = |a-b|²/2, which holds for unit vectors.
func testIdentity(t *testing.T, e models.Embedder) {
	subjects := []string{"The invoice", "A ticket", "Vacation", "The server", "비밀번호", "Kubernetes", "The office", "An incident", "Payroll", "The API"}
	rest := []string{"is late", "needs approval", "was moved", "restarts at night", "을 바꾼다", "costs 20 dollars", "is described in the handbook", "has no owner", "", "?",
		"was closed", "is open", "depends on the region", "ends on Friday", "is encrypted", "can be exported", "is shared", "has two parts", "is required", "failed"}
	var texts []string
	for _, s := range subjects {
		for _, r := range rest {
			texts = append(texts, s+" "+r)
		}
	}
	vs := passages(t, e, texts)
	var worst float64
	for _, a := range vs {
		for _, b := range vs {
			cos := Dot(a.Vector, b.Vector) / math.Sqrt(Dot(a.Vector, a.Vector)*Dot(b.Vector, b.Vector))
			worst = max(worst, math.Abs((1-cos)-squared(a.Vector, b.Vector)/2))
		}
	}
	if worst > 1e-6 {
		t.Errorf("over %d x %d pairs the worst difference is %g, want at most 1e-6", len(vs), len(vs), worst)
	}
}

func testTruncation(t *testing.T, e models.Embedder) {
	window := e.Info().Window
	var before int
	for n := max(1, window-6); n < window+2; n++ {
		text := strings.TrimSpace(strings.Repeat("word ", n))
		v := passages(t, e, []string{text})[0]
		if v.Truncated != (v.Tokens > window) {
			t.Errorf("%d tokens in a window of %d: Truncated is %t", v.Tokens, window, v.Truncated)
		}
		if plain := e.CountTokens(text); v.Tokens <= plain {
			t.Errorf("%d tokens, not more than the %d without prefix and special tokens", v.Tokens, plain)
		}
		if v.Tokens <= before {
			t.Errorf("a longer text has %d tokens, a shorter one %d", v.Tokens, before)
		}
		before = v.Tokens
	}
	if before <= window {
		t.Errorf("no text of this test reached the window: %d of %d tokens", before, window)
	}
}

// testTails: over the window two texts may have one vector, but then both say
// that they were cut; inside the window they never have.
func testTails(t *testing.T, e models.Embedder) {
	head := strings.Repeat("word ", e.Info().Window/2)
	vs := passages(t, e, []string{head + "canteen", head + "password", head + head + head + "canteen", head + head + head + "password, soon to be reset"})
	if c := Dot(vs[0].Vector, vs[1].Vector); vs[0].Truncated || c == 1 {
		t.Errorf("tails inside the window do not count: truncated %t, cosine %v", vs[0].Truncated, c)
	}
	for _, v := range vs[2:] {
		if !v.Truncated {
			t.Errorf("%d tokens in a window of %d and no word of a cut", v.Tokens, e.Info().Window)
		}
	}
	if vs[2].Tokens >= vs[3].Tokens {
		t.Errorf("tokens over the window are not counted: %d and %d", vs[2].Tokens, vs[3].Tokens)
	}
}

// testStates: an embedder that names an encoding gives states of unit length
// at places that lie in the question in order and say something, and a passage
// that holds the question's words is nearer than another. One that names none
// gives none.
func testStates(t *testing.T, e models.Embedder) {
	info := e.Info()
	if info.States == "" {
		if q, p := query(t, e, samples[0]), passages(t, e, samples[:1])[0]; q.States != nil || p.Coded != nil {
			t.Error("states without an encoding")
		}
		return
	}
	if info.States != models.StatesEncoding {
		t.Fatalf("states in an encoding that nobody knows: %q", info.States)
	}
	for _, text := range samples {
		testStatesOf(t, e, text)
	}
	q := query(t, e, samples[0]).States
	weights := slices.Repeat([]float64{1}, q.Len())
	ps := passages(t, e, []string{samples[1], samples[2], samples[0]})
	var got []float64
	for _, p := range ps {
		if q := query(t, e, samples[0]); q.Coded != nil || p.States != nil {
			t.Error("a question encoded, or a passage's states not")
		}
		score, err := q.MaxSim(p.Coded, weights)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, score)
	}
	if !(got[2] > got[0] && got[0] > got[1] && got[2] < 1.02) {
		t.Errorf("MaxSim with an answer %.3f, with another text %.3f, with itself %.3f", got[0], got[1], got[2])
	}
}

func testStatesOf(t *testing.T, e models.Embedder, text string) {
	q := query(t, e, text)
	s, dims := q.States, e.Info().Dimensions
	if s == nil || s.Dimensions != dims || len(s.Vectors) != s.Len()*dims {
		t.Fatalf("%.40q: incomplete states", text)
	}
	if says := strings.ContainsFunc(text, says); says && s.Len() == 0 || s.Len() > q.Tokens {
		t.Errorf("%.40q: %d states", text, s.Len())
	}
	before := 0
	for i, p := range s.Places {
		if v := s.Vectors[i*dims : (i+1)*dims]; math.Abs(Dot(v, v)-1) > 1e-3 {
			t.Errorf("%.40q: state %d has a squared norm of %v", text, i, Dot(v, v))
		}
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			continue // places are those of the text as it was read
		}
		if p.From < before || p.To < p.From || p.To > len(text) {
			t.Fatalf("%.40q: places %v of %d bytes", text, s.Places, len(text))
		}
		if before = p.From; strings.ContainsFunc(text, says) && !strings.ContainsFunc(text[p.From:p.To], says) {
			t.Errorf("%.40q: a state of %q", text, text[p.From:p.To])
		}
	}
	rows, err := models.DecodeStates(passages(t, e, []string{text})[0].Coded, dims)
	if err != nil || len(rows) < min(1, s.Len())*dims {
		t.Errorf("%.40q: a passage's states: %d numbers, %v", text, len(rows), err)
	}
}

func testCancelledEmbedder(t *testing.T, e models.Embedder) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.EmbedQuery(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("EmbedQuery: %v, want context.Canceled", err)
	}
	vs, err := e.EmbedPassages(ctx, samples)
	if !errors.Is(err, context.Canceled) || vs != nil {
		t.Errorf("EmbedPassages: %d results and %v, want none and context.Canceled", len(vs), err)
	}
}

func testConcurrent(t *testing.T, e models.Embedder) {
	want := passages(t, e, samples)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := e.EmbedPassages(context.Background(), samples)
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("beside other callers the result differs:\n%.300s", diff)
			}
		})
	}
	wg.Wait()
}

func passages(t *testing.T, e models.Embedder, texts []string) []models.Embedding {
	t.Helper()
	vs, err := e.EmbedPassages(context.Background(), texts)
	if err == nil && len(vs) != len(texts) {
		err = fmt.Errorf("%d embeddings of %d texts", len(vs), len(texts))
	}
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func query(t *testing.T, e models.Embedder, text string) models.Embedding {
	t.Helper()
	v, err := e.EmbedQuery(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Dot is the inner product in float64; of two embeddings, their cosine.
func Dot(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func squared(a, b []float32) float64 {
	var s float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s += d * d
	}
	return s
}
