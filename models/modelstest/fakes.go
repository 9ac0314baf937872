// Package modelstest has deterministic models for tests, which need neither
// weights nor native libraries, and the suites that every models.Embedder and
// models.Reranker must pass.
//
// Its one idea: a fake is a small real implementation. Texts that share words
// are near, a text over the window loses its tail and says so, prefixes change
// vectors, and calls are counted.
//
// A fake's token is a run of letters and digits, or one other character that
// is not space; two special tokens are added to each text.
package modelstest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"footnote/models"
)

const specials = 2

// Embedder is a bag of hashed words. The zero value is not usable; see
// NewEmbedder.
type Embedder struct {
	info     models.EmbedderInfo
	queries  atomic.Int64
	passages atomic.Int64
}

var _ models.Embedder = (*Embedder)(nil)

// EmbedderOption changes a fake embedder.
type EmbedderOption func(*models.EmbedderInfo)

// WithWindow sets the window in tokens, at least 3.
func WithWindow(tokens int) EmbedderOption {
	return func(i *models.EmbedderInfo) { i.Window = tokens }
}

// WithDimensions sets the length of vectors, at least 1.
func WithDimensions(n int) EmbedderOption {
	return func(i *models.EmbedderInfo) { i.Dimensions = n }
}

// WithoutStates makes an embedder that gives vectors alone.
func WithoutStates() EmbedderOption {
	return func(i *models.EmbedderInfo) { i.States = "" }
}

// WithName names another model: its vectors are not comparable with those of
// the default name.
func WithName(name string) EmbedderOption {
	return func(i *models.EmbedderInfo) { i.Name = name }
}

// NewEmbedder makes a fake of 64 dimensions and a window of 512 tokens.
func NewEmbedder(options ...EmbedderOption) *Embedder {
	e := &Embedder{info: models.EmbedderInfo{
		Name: "fake", Precision: "fp32", Dimensions: 64, Window: 512, States: models.StatesEncoding,
	}}
	for _, o := range options {
		o(&e.info)
	}
	if e.info.Window <= specials || e.info.Dimensions < 1 {
		panic(fmt.Sprintf("modelstest: no embedder with window %d and %d dimensions", e.info.Window, e.info.Dimensions))
	}
	e.info.SHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(e.info.Name)))
	return e
}

// Info implements models.Embedder.
func (e *Embedder) Info() models.EmbedderInfo { return e.info }

// Queries is the number of questions embedded so far.
func (e *Embedder) Queries() int { return int(e.queries.Load()) }

// Passages is the number of passages embedded so far.
func (e *Embedder) Passages() int { return int(e.passages.Load()) }

// EmbedQuery implements models.Embedder.
func (e *Embedder) EmbedQuery(ctx context.Context, text string) (models.Embedding, error) {
	if err := ctx.Err(); err != nil {
		return models.Embedding{}, err
	}
	e.queries.Add(1)
	v, states := e.embed("query", text)
	if e.info.States != "" {
		v.States = states
	}
	return v, nil
}

// EmbedPassages implements models.Embedder.
func (e *Embedder) EmbedPassages(ctx context.Context, texts []string) ([]models.Embedding, error) {
	out := make([]models.Embedding, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.passages.Add(1)
		v, states := e.embed("passage", t)
		if e.info.States != "" {
			v.Coded = models.EncodeStates(states.Vectors, states.Dimensions)
		}
		out[i] = v
	}
	return out, nil
}

// CountTokens implements models.Embedder.
func (e *Embedder) CountTokens(text string) int { return len(words(text)) }

// embed sums one direction per word, a smaller one for the prefix, and a
// small constant one, which stands for what all texts of a language share. The
// state of a word is the word's direction and the constant one.
func (e *Embedder) embed(prefix, text string) (models.Embedding, *models.States) {
	ps := pieces(text)
	v := models.Embedding{Tokens: len(ps) + 2 + specials}
	v.Truncated = v.Tokens > e.info.Window
	ps = ps[:min(len(ps), max(0, e.info.Window-specials-2))]
	sum := make([]float64, e.info.Dimensions)
	e.add(sum, "", .5)
	e.add(sum, prefix, .1)
	e.add(sum, ":", .1)
	for _, p := range ps {
		e.add(sum, p.word, 1)
	}
	v.Vector = unit(sum)
	return v, e.states(ps)
}

func (e *Embedder) states(ps []piece) *models.States {
	saying := slices.DeleteFunc(slices.Clone(ps), func(p piece) bool { return !strings.ContainsFunc(p.word, says) })
	if len(saying) == 0 {
		saying = ps
	}
	s := &models.States{Dimensions: e.info.Dimensions}
	for _, p := range saying {
		sum := make([]float64, e.info.Dimensions)
		e.add(sum, "", .5)
		e.add(sum, p.word, 1)
		s.Vectors, s.Places = append(s.Vectors, unit(sum)...), append(s.Places, p.Place)
	}
	return s
}

// add adds the word's own direction, of about unit length.
func (e *Embedder) add(sum []float64, word string, weight float64) {
	h := fnv.New64a()
	h.Write([]byte(e.info.Name + "\x00" + word))
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	for i := range sum {
		sum[i] += weight * r.NormFloat64() / math.Sqrt(float64(len(sum)))
	}
}

func unit(sum []float64) []float32 {
	var square float64
	for _, x := range sum {
		square += x * x
	}
	v := make([]float32, len(sum))
	for i, x := range sum {
		v[i] = float32(x / math.Sqrt(square))
	}
	return v
}

// piece is one token of a fake and where it lies in the text.
type piece struct {
	word string // in lower case
	models.Place
}

func pieces(text string) []piece {
	var ps []piece
	from := -1 // of the run of letters and digits
	add := func(from, to int) {
		ps = append(ps, piece{strings.ToLower(text[from:to]), models.Place{From: from, To: to}})
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case says(r) && from < 0:
			from = i
		case !says(r) && from >= 0:
			add(from, i)
			from = -1
		}
		if !says(r) && !unicode.IsSpace(r) {
			add(i, i+size)
		}
		i += size
	}
	if from >= 0 {
		add(from, len(text))
	}
	return ps
}

func says(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func words(text string) []string {
	var ws []string
	for _, p := range pieces(text) {
		ws = append(ws, p.word)
	}
	return ws
}

// Reranker scores the share of the question's words that a passage has.
type Reranker struct {
	languages []string
	window    int
	pairs     atomic.Int64
}

var _ models.Reranker = (*Reranker)(nil)

// NewReranker makes a fake that may be used for these languages, with windows
// of 128 words that overlap by half.
func NewReranker(languages ...string) *Reranker {
	return &Reranker{languages: languages, window: 128}
}

// Name implements models.Reranker.
func (r *Reranker) Name() string { return "fake-reranker" }

// Pairs is the number of windows scored so far.
func (r *Reranker) Pairs() int { return int(r.pairs.Load()) }

// Covers implements models.Reranker.
func (r *Reranker) Covers(language string) bool { return slices.Contains(r.languages, language) }

// Rerank implements models.Reranker.
func (r *Reranker) Rerank(ctx context.Context, query string, passages []string) ([]float64, error) {
	scores := make([]float64, len(passages))
	for i, p := range passages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scores[i] = r.score(words(query), words(p))
	}
	return scores, nil
}

// score is the best window's; shares of 0, 1/2, 1 give about .02, .5, .98.
func (r *Reranker) score(query, passage []string) float64 {
	var most float64
	for from := 0; ; from += r.window / 2 {
		window := passage[from:min(len(passage), from+r.window)]
		r.pairs.Add(1)
		most = max(most, overlap(query, window))
		if from+r.window >= len(passage) {
			return 1 / (1 + math.Exp(-8*(most-.5)))
		}
	}
}

func overlap(query, passage []string) float64 {
	if len(query) == 0 {
		return 0
	}
	var n int
	for _, w := range query {
		if slices.Contains(passage, w) {
			n++
		}
	}
	return float64(n) / float64(len(query))
}
