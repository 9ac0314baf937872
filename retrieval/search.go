package retrieval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"footnote/acl"
	"footnote/models"
)

// ErrQuestion says that a question cannot be searched as it stands.
var ErrQuestion = errors.New("the question cannot be searched")

// Options are the settings of a Searcher; zero values mean the defaults.
type Options struct {
	Depth       int     // hits per leg: 100
	Compare     int     // candidates compared by their token states, all returned ones at least: 50
	Top         int     // hits returned, with their passages: 25
	Rerank      int     // of these the first so many are reranked: 25
	Mix         Mix     // of raw scores
	K           float64 // of the reciprocal ranks: 60
	Weights     Weights // of the legs in them: 1 and 1
	MaxQuestion int     // code points: 8,000

	// Function reports terms of a question that the lexical leg does without;
	// nil: none.
	Function func(term string) bool
}

func (o Options) withDefaults() Options {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.Depth, 100)
	set(&o.Top, 25)
	set(&o.Rerank, 25)
	set(&o.Compare, 50)
	o.Compare = max(o.Compare, o.Top)
	o.Mix = o.Mix.withDefaults()
	set(&o.MaxQuestion, 8000)
	if o.K <= 0 {
		o.K = 60
	}
	if o.Weights == (Weights{}) {
		o.Weights = Weights{Lexical: 1, Dense: 1}
	}
	return o
}

// Searcher ranks what an index finds: both legs, fusion, token states,
// reranking. It holds no state of a question and is safe for concurrent use.
type Searcher struct {
	embedder models.Embedder
	reranker models.Reranker
	analyse  func(string) []string
	language func(string) string
	options  Options
}

// NewSearcher makes a Searcher. r may be nil: then the fused order stands.
// analyse must be the analysis that made the index, language returns an ISO
// 639-1 code or "".
func NewSearcher(e models.Embedder, r models.Reranker, analyse func(string) []string, language func(string) string, o Options) *Searcher {
	return &Searcher{embedder: e, reranker: r, analyse: analyse, language: language, options: o.withDefaults()}
}

// Hit is one passage as it was ranked. Ranks count from 1; 0 says that the
// leg did not find it.
type Hit struct {
	Rank        int
	Passage     Passage
	LexicalRank int
	BM25        float64
	DenseRank   int
	Distance    *float64 // cosine distance; nil: not known
	Late        *float64 // MaxSim of token states, at most about 1; nil: not compared
	Fused       float64  // of all but the reranker; Results.Fusion says how
	FusedRank   int
	Rerank      *float64 // probability; nil: not reranked
}

// hitJSON is the contract of `search --json`. What a stage did not give is
// null.
type hitJSON struct {
	Rank           int        `json:"rank"`
	Document       DocumentID `json:"document"`
	Revision       Revision   `json:"revision"`
	Path           string     `json:"path"`
	Title          string     `json:"title"`
	Section        []string   `json:"section"`
	Locator        string     `json:"locator"`
	From           int        `json:"from"` // code points of the canonical text
	To             int        `json:"to"`
	SourceFromByte int        `json:"source_from_byte"`
	SourceToByte   int        `json:"source_to_byte"`
	Content        string     `json:"content"`
	BM25Rank       *int       `json:"bm25_rank"`
	BM25           *float64   `json:"bm25"`
	DenseRank      *int       `json:"dense_rank"`
	Distance       *float64   `json:"distance"`
	Late           *float64   `json:"late"`
	Fused          float64    `json:"fused"`
	Rerank         *float64   `json:"rerank"`
}

// MarshalJSON writes the fields of hitJSON.
func (h Hit) MarshalJSON() ([]byte, error) {
	c := h.Passage.Chunk
	j := hitJSON{
		Rank: h.Rank, Document: c.ID.Document, Revision: c.ID.Revision,
		Path: h.Passage.Path, Title: h.Passage.Title, Section: append([]string{}, c.Section...), Locator: c.Locator,
		From: c.Span.From, To: c.Span.To, SourceFromByte: c.Span.SourceFrom, SourceToByte: c.Span.SourceTo,
		Content: c.Content, Distance: h.Distance, Late: h.Late, Fused: h.Fused, Rerank: h.Rerank,
	}
	if h.LexicalRank > 0 {
		j.BM25Rank, j.BM25 = &h.LexicalRank, &h.BM25
	}
	if h.DenseRank > 0 {
		j.DenseRank = &h.DenseRank
	}
	return json.Marshal(j)
}

// Stage is a step of a question and how long it took.
type Stage struct {
	Name string
	Took time.Duration
}

// Results is what a search found, with all that explains it. Everything in it
// lies inside the grant.
type Results struct {
	Question   string
	Language   string   // of the question, "" unknown
	Terms      []string // analysed question, as the lexical leg takes it
	Missing    []string // terms that no admitted chunk holds
	Generation string
	Tokens     int  // of the question in the embedder
	Truncated  bool // the question's tail is over the embedder's window
	Lexical    []LexicalHit
	Dense      []DenseHit
	Fusion     Fusion
	Hits       []Hit
	Reranked   bool
	Stages     []Stage
}

// Search runs one question inside the grant against one generation. Nothing
// found is no error. ErrModelMismatch if another model made the generation,
// ErrQuestion for a question that is empty or too long.
func (s *Searcher) Search(ctx context.Context, reader Reader, grant acl.Grant, question string) (Results, error) {
	m := reader.Manifest()
	if err := s.check(m, question); err != nil {
		return Results{}, err
	}
	question = readable(question)
	r := Results{Question: question, Language: s.language(question), Generation: m.Name}
	r.Terms = searchable(s.analyse(question), s.options.Function)
	watch := stopwatch{last: time.Now()}

	e, err := s.embedder.EmbedQuery(ctx, question)
	if err != nil {
		return Results{}, fmt.Errorf("embedding the question: %w", err)
	}
	r.Tokens, r.Truncated = e.Tokens, e.Truncated
	watch.lap("embed")

	q := Query{Terms: r.Terms, Vector: e.Vector, Depth: s.options.Depth}
	var asked []word
	if e.States != nil && e.States.Len() > 0 {
		asked = words(question, s.analyse)
		q.Count = terms(asked)
	}
	c, err := reader.Search(ctx, grant, q)
	if err != nil {
		return Results{}, fmt.Errorf("searching generation %s: %w", m.Name, err)
	}
	r.Lexical, r.Dense, r.Missing = c.Lexical, c.Dense, c.Missing
	watch.lap("legs")

	order, err := s.fuse(ctx, reader, grant, &r, e.States, asked, c)
	if err != nil {
		return Results{}, err
	}
	if r.Hits, err = s.load(ctx, reader, grant, order); err != nil {
		return Results{}, err
	}
	watch.lap("fuse")

	if r.Reranked, err = s.rerank(ctx, r, r.Hits); err != nil {
		return Results{}, fmt.Errorf("reranking: %w", err)
	}
	watch.lap("rerank")
	r.Stages = watch.stages
	return r, nil
}

// fuse orders the candidates by the best fusion that there is for them.
func (s *Searcher) fuse(ctx context.Context, reader Reader, grant acl.Grant, r *Results, states *models.States, asked []word, c Candidates) ([]fused, error) {
	switch {
	case states != nil && states.Len() > 0:
		r.Fusion = Late
		order := bySum(c, s.options.Mix.Candidates)
		order = order[:min(len(order), s.options.Compare)]
		weights := weigh(r.Question, states.Places, asked, c, s.options.Mix.Unknown)
		return order, s.byLate(ctx, reader, grant, states, weights, order)
	case s.covers(r.Language):
		r.Fusion = Sum
		return bySum(c, s.options.Mix.Plain), nil
	}
	r.Fusion = Ranks
	return byRanks(c, s.options.Weights, s.options.K), nil
}

func (s *Searcher) covers(language string) bool {
	return s.reranker != nil && s.reranker.Covers(language)
}

func (s *Searcher) check(m Manifest, question string) error {
	if have := s.embedder.Info(); m.Embedder != have {
		return fmt.Errorf("%w: generation %s needs %s, this program runs %s; build a new generation or configure its model",
			ErrModelMismatch, m.Name, describe(m.Embedder), describe(have))
	}
	switch n := utf8.RuneCountInString(question); {
	case n == 0:
		return fmt.Errorf("%w: it is empty", ErrQuestion)
	case n > s.options.MaxQuestion:
		return fmt.Errorf("%w: it has %d characters, the limit is %d", ErrQuestion, n, s.options.MaxQuestion)
	}
	return nil
}

// describe names a model as far as two of one name may differ.
func describe(i models.EmbedderInfo) string {
	states := "no token states"
	if i.States != "" {
		states = "token states " + i.States
	}
	return fmt.Sprintf("%s (%s, weights %.8s, %s)", i.Name, i.Precision, i.SHA256, states)
}

// load fetches the passages of the best fused chunks. What is gone since the
// legs ran is left out, and the ranks close up.
func (s *Searcher) load(ctx context.Context, reader Reader, grant acl.Grant, order []fused) ([]Hit, error) {
	order = order[:min(len(order), s.options.Top)]
	ids := make([]ChunkID, len(order))
	for i, f := range order {
		ids[i] = f.id
	}
	passages, err := reader.Passages(ctx, grant, ids)
	if err != nil {
		return nil, fmt.Errorf("loading passages: %w", err)
	}
	byID := make(map[ChunkID]Passage, len(passages))
	for _, p := range passages {
		byID[p.Chunk.ID] = p
	}
	hits := make([]Hit, 0, len(passages))
	for _, f := range order {
		p, ok := byID[f.id]
		if !ok {
			continue
		}
		n := len(hits) + 1
		h := Hit{Rank: n, FusedRank: n, Passage: p, LexicalRank: f.lexicalRank, BM25: f.bm25, DenseRank: f.denseRank, Late: f.late, Fused: f.score}
		if f.distanceKnown {
			h.Distance = &f.distance
		}
		hits = append(hits, h)
	}
	return hits, nil
}

// rerank reorders hits in place: those of the first options.Rerank whose
// language the reranker covers are sorted among the slots they hold, the
// others keep theirs. A question in another language leaves all as it is: an
// English cross-encoder made Korean worse (MRR .71 to .26).
//
// The reranker is one more voice: its logit is added to the fused score. An
// order by its judgement alone was worse on every set (MRR of the tickets of
// en_docs .34 against .45).
func (s *Searcher) rerank(ctx context.Context, r Results, hits []Hit) (bool, error) {
	if !s.covers(r.Language) {
		return false, nil
	}
	var slots []int
	var texts []string
	for i := range hits[:min(len(hits), s.options.Rerank)] {
		if s.reranker.Covers(s.passageLanguage(hits[i].Passage)) {
			slots = append(slots, i)
			texts = append(texts, hits[i].Passage.Chunk.Text)
		}
	}
	if len(slots) == 0 {
		return false, nil
	}
	scores, err := s.reranker.Rerank(ctx, r.Question, texts)
	if err != nil {
		return false, err
	}
	if len(scores) != len(texts) {
		return false, fmt.Errorf("%s returned %d scores for %d passages", s.reranker.Name(), len(scores), len(texts))
	}
	weight := s.options.Mix.PlainRerank
	if r.Fusion == Late {
		weight = s.options.Mix.LateRerank
	}
	covered := make([]Hit, len(slots))
	for i, slot := range slots {
		covered[i] = hits[slot]
		covered[i].Rerank = &scores[i]
	}
	voted := func(h Hit) float64 { return h.Fused + weight*logit(*h.Rerank) }
	slices.SortFunc(covered, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(voted(b), voted(a)), a.Passage.Chunk.ID.Compare(b.Passage.Chunk.ID))
	})
	for i, slot := range slots {
		hits[slot] = covered[i]
	}
	for i := range hits {
		hits[i].Rank = i + 1
	}
	return true, nil
}

// logit is the inverse of the sigmoid, kept finite.
func logit(p float64) float64 {
	const edge = 1e-9
	p = min(max(p, edge), 1-edge)
	return math.Log(p / (1 - p))
}

// passageLanguage prefers the passage's own text: a document in one language
// may quote another.
func (s *Searcher) passageLanguage(p Passage) string {
	if l := s.language(p.Chunk.Content); l != "" {
		return l
	}
	return p.Language
}

// stopwatch measures stages one after another.
type stopwatch struct {
	last   time.Time
	stages []Stage
}

func (w *stopwatch) lap(name string) {
	now := time.Now()
	w.stages = append(w.stages, Stage{Name: name, Took: now.Sub(w.last)})
	w.last = now
}
