package generate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"footnote/bot/cite"
	"footnote/models"
	"footnote/retrieval/analysis"
)

// Options are the settings of Extractive. The cuts belong to the models and
// come from models/catalog; they are never lowered.
type Options struct {
	Sentences   int     // at most so many claims: 3
	Pairs       int     // units judged by a model: 24
	Probability float64 // of the reranker: the best unit must reach it
	Similarity  float64 // cosine, where no reranker covers: the best unit must reach it
	Share       float64 // of the question's weighted terms that the evidence must hold
}

// Extractive answers in the documents' own words.
type Extractive struct {
	embedder models.Embedder
	reranker models.Reranker
	options  Options
}

// NewExtractive makes a generator. r may be nil.
func NewExtractive(e models.Embedder, r models.Reranker, o Options) *Extractive {
	if o.Sentences <= 0 {
		o.Sentences = 3
	}
	if o.Pairs <= 0 {
		o.Pairs = 24
	}
	return &Extractive{embedder: e, reranker: r, options: o}
}

// scored is a unit with what judges it.
type scored struct {
	unit
	n     int // number of its evidence
	share float64
	score float64
}

// Generate picks the units that answer. A draft without claims says why.
func (g *Extractive) Generate(ctx context.Context, r Request) (Draft, error) {
	units := g.units(r)
	if len(units) == 0 {
		return Draft{Why: "the evidence has no sentence"}, nil
	}
	covers := g.covers(r)
	short := g.shortlist(units, r, covers)
	if err := g.judge(ctx, r, short, covers); err != nil {
		return Draft{}, fmt.Errorf("judging sentences: %w", err)
	}
	slices.SortStableFunc(short, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	d := Draft{}
	for _, s := range short {
		d.Judged = append(d.Judged, Judged{N: s.n, Text: s.plain, Score: s.score, Share: s.share})
	}
	if d.Why = g.wanting(r, units, short, covers); d.Why != "" {
		return d, nil
	}
	d.Claims = claims(g.pick(short, covers), r.Evidence)
	return d, nil
}

// units cuts all evidence and shares out the question's terms.
func (g *Extractive) units(r Request) []scored {
	var units []scored
	var words []map[string]bool
	for i, e := range r.Evidence {
		for _, u := range cut(e.Content) {
			u.evidence, u.order = i, len(units)
			units = append(units, scored{unit: u, n: e.N})
			words = append(words, set(analysis.Terms(e.Header+"\n"+u.context+"\n"+u.plain)))
		}
	}
	t := weigh(analysis.Terms(r.Question), words)
	for i := range units {
		units[i].share = t.share(words[i])
	}
	return units
}

// covers says which evidence the reranker may judge; none: the embedder does.
func (g *Extractive) covers(r Request) []bool {
	if g.reranker == nil || !g.reranker.Covers(r.Language) || !g.reranker.Covers(r.Evidence[0].Language) {
		return nil
	}
	out := make([]bool, len(r.Evidence))
	for i, e := range r.Evidence {
		out[i] = g.reranker.Covers(e.Language)
	}
	return out
}

// shortlist bounds the work of the models: the units that hold most of the
// question, of the better evidence where they tie.
func (g *Extractive) shortlist(units []scored, r Request, covers []bool) []scored {
	var short []scored
	for _, u := range units {
		if covers == nil || covers[u.evidence] {
			short = append(short, u)
		}
	}
	slices.SortStableFunc(short, func(a, b scored) int { return cmp.Compare(b.share, a.share) })
	return short[:min(len(short), g.options.Pairs)]
}

// judge scores the units: probability of the reranker, or cosine similarity.
func (g *Extractive) judge(ctx context.Context, r Request, short []scored, covers []bool) error {
	texts := make([]string, len(short))
	for i, s := range short {
		texts[i] = r.Evidence[s.evidence].Header + "\n" + joined(s.context, s.plain)
	}
	var scores []float64
	var err error
	if covers != nil {
		scores, err = g.reranker.Rerank(ctx, r.Question, texts)
	} else {
		scores, err = g.similarities(ctx, r.Question, texts)
	}
	if err != nil {
		return err
	}
	if len(scores) != len(short) {
		return fmt.Errorf("%d scores for %d sentences", len(scores), len(short))
	}
	for i := range short {
		short[i].score = scores[i]
	}
	return nil
}

func joined(context, text string) string {
	if context == "" {
		return text
	}
	return context + " " + text
}

func (g *Extractive) similarities(ctx context.Context, question string, texts []string) ([]float64, error) {
	q, err := g.embedder.EmbedQuery(ctx, question)
	if err != nil {
		return nil, err
	}
	ps, err := g.embedder.EmbedPassages(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(ps))
	for i, p := range ps {
		for j, x := range p.Vector {
			out[i] += float64(x) * float64(q.Vector[j])
		}
	}
	return out, nil
}

// wanting says why the units do not answer, "" if they do.
func (g *Extractive) wanting(r Request, units, short []scored, covers []bool) string {
	least := g.options.Similarity
	if covers != nil {
		least = g.options.Probability
	}
	if best := short[0].score; best < least {
		return fmt.Sprintf("the best sentence scores %.3f, less than %.3f", best, least)
	}
	return ""
}

// pick takes the best units and those nearly as good, in reading order.
func (g *Extractive) pick(short []scored, covers []bool) []scored {
	picked := slices.Clone(short[:min(len(short), g.options.Sentences)])
	slices.SortFunc(picked, func(a, b scored) int { return cmp.Compare(a.order, b.order) })
	return picked
}

func claims(picked []scored, evidence []Evidence) []cite.Claim {
	var out []cite.Claim
	for _, p := range picked {
		out = append(out, cite.Claim{
			Text: p.lead + evidence[p.evidence].Content[p.from:p.to], Kind: p.kind,
			Numbers: []int{p.n}, From: p.from, To: p.to,
		})
	}
	return out
}
