package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/bot"
	"footnote/cmd/internal/assemble"
	"footnote/retrieval"
)

// explainJSON is the contract of explain --json: every stage of one question.
type explainJSON struct {
	Asker     acl.Principal     `json:"asker"`
	Holds     []acl.Principal   `json:"holds"`
	Clauses   [][]acl.Principal `json:"clauses"` // of the grant; a document must meet each
	Forms     []string          `json:"forms"`   // readings of the question that were tried
	Language  string            `json:"language"`
	Terms     []string          `json:"terms"`
	Missing   []string          `json:"missing"` // terms that no admitted chunk holds
	Tokens    int               `json:"tokens"`
	Truncated bool              `json:"truncated"` // the question is over the embedder's window
	Lexical   []legJSON         `json:"lexical"`
	Dense     []legJSON         `json:"dense"`
	Fusion    retrieval.Fusion  `json:"fusion"` // what fused the legs
	Hits      []retrieval.Hit   `json:"hits"`
	Reranked  bool              `json:"reranked"`
	Gate      []gateJSON        `json:"gate"` // one for each hit
	Draft     draftJSON         `json:"draft"`
	Stages    []stageJSON       `json:"stages"`
	Reply     bot.Reply         `json:"reply"`
}

type legJSON struct {
	Rank  int               `json:"rank"`
	Chunk retrieval.ChunkID `json:"chunk"`
	Score float64           `json:"score"` // BM25, or cosine distance
}

type gateJSON struct {
	Rank   int    `json:"rank"`
	Passed bool   `json:"passed"`
	Why    string `json:"why"`
}

type draftJSON struct {
	Why     string       `json:"why"` // there is none
	Judged  []judgedJSON `json:"judged"`
	Unknown int          `json:"unknown"` // numbers that were never supplied
	Dropped int          `json:"dropped"` // claims without a source
}

type judgedJSON struct {
	Evidence int     `json:"evidence"`
	Text     string  `json:"text"`
	Score    float64 `json:"score"`
	Share    float64 `json:"share"`
	Support  float64 `json:"support"`
}

type stageJSON struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

func (p *program) explain() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain QUESTION | - | --batch FILE",
		Short: "Show every stage of a question: grant, legs, fusion, rerank, gate, answer",
	}
	a := p.askingFlags(c)
	top := c.Flags().Int("top", 10, "`NUMBER` of hits shown of each leg")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return p.runExplain(cmd.Context(), a, args, max(1, *top))
	}
	return c
}

func (p *program) runExplain(ctx context.Context, a *asking, args []string, top int) error {
	return p.eachAsked(ctx, a, args, assemble.DefaultTop, func(s *session, q question) error { return p.explanation(ctx, s, q, top) })
}

// explanation works on one question and prints all its stages.
func (p *program) explanation(ctx context.Context, s *session, q question, top int) error {
	m, err := s.message(ctx, q)
	if err != nil {
		return err
	}
	e, err := s.Bot.Explain(ctx, m)
	if err != nil {
		return err
	}
	s.note(e.Reply)
	if p.json {
		return writeJSON(p.Out, explained(e))
	}
	return p.print("%s\n%s", s.stages(e, top), s.show.Reply(e.Reply))
}

// explained gives an explanation its JSON form.
func explained(e bot.Explanation) explainJSON {
	r := e.Results
	j := explainJSON{
		Asker: e.Asker.ID(), Holds: append([]acl.Principal{}, e.Asker.Principals()...), Clauses: append([][]acl.Principal{}, e.Grant.Clauses()...),
		Forms: append([]string{}, e.Forms...), Language: r.Language, Terms: append([]string{}, r.Terms...), Missing: append([]string{}, r.Missing...),
		Tokens: r.Tokens, Truncated: r.Truncated, Lexical: []legJSON{}, Dense: []legJSON{}, Hits: append([]retrieval.Hit{}, r.Hits...),
		Fusion: r.Fusion, Reranked: r.Reranked, Gate: []gateJSON{}, Reply: e.Reply, Stages: []stageJSON{},
		Draft: draftJSON{Why: e.Draft.Why, Judged: []judgedJSON{}, Unknown: e.Unknown, Dropped: e.Dropped},
	}
	for i, h := range r.Lexical {
		j.Lexical = append(j.Lexical, legJSON{i + 1, h.ID, h.Score})
	}
	for i, h := range r.Dense {
		j.Dense = append(j.Dense, legJSON{i + 1, h.ID, h.Distance})
	}
	for i, v := range e.Gate {
		j.Gate = append(j.Gate, gateJSON{i + 1, v.Passed, v.Why})
	}
	for _, d := range e.Draft.Judged {
		j.Draft.Judged = append(j.Draft.Judged, judgedJSON{d.N, d.Text, d.Score, d.Share, d.Support})
	}
	for _, st := range e.Stages {
		j.Stages = append(j.Stages, stageJSON{st.Name, float64(st.Took.Microseconds()) / 1000})
	}
	return j
}

// stages is an explanation as text, the first top hits of each leg.
func (s *session) stages(e bot.Explanation, top int) string {
	var b strings.Builder
	s.writeAuthority(&b, e)
	s.writeLegs(&b, e, top)
	s.writeHits(&b, e, top)
	s.writeDraft(&b, e, top)
	b.WriteString("Time\n ")
	for _, st := range e.Stages {
		fmt.Fprintf(&b, " %s %.1f ms;", st.Name, float64(st.Took.Microseconds())/1000)
	}
	fmt.Fprintf(&b, " whole %d ms\n", e.Reply.MS)
	return b.String()
}

func (s *session) writeAuthority(b *strings.Builder, e bot.Explanation) {
	fmt.Fprintf(b, "Identity\n  %s holds %s\n", orNone(string(e.Asker.ID())), orNone(principals(e.Asker.Principals())))
	b.WriteString("Grant: a document's list must meet each of these\n")
	for i, c := range e.Grant.Clauses() {
		fmt.Fprintf(b, "  %d. %s\n", i+1, orNone(principals(c)))
	}
	if len(e.Grant.Clauses()) == 0 {
		b.WriteString("  nothing is admitted\n")
	}
	b.WriteString("Question\n")
	for _, f := range e.Forms {
		fmt.Fprintf(b, "  read as: %s\n", shorten(console.Line(f), 200))
	}
	r := e.Results
	fmt.Fprintf(b, "  language %s, %d tokens, terms: %s\n", orNone(r.Language), r.Tokens, orNone(shorten(console.Line(strings.Join(r.Terms, " ")), 300)))
	if len(r.Missing) > 0 {
		fmt.Fprintf(b, "  found nowhere: %s\n", console.Line(strings.Join(r.Missing, " ")))
	}
}

func (s *session) writeLegs(b *strings.Builder, e bot.Explanation, top int) {
	names := map[retrieval.ChunkID]string{}
	for _, h := range e.Results.Hits {
		names[h.Passage.Chunk.ID] = place(h.Passage)
	}
	fmt.Fprintf(b, "Words: %d hits (BM25)\n", len(e.Results.Lexical))
	for i, h := range e.Results.Lexical[:min(top, len(e.Results.Lexical))] {
		fmt.Fprintf(b, "  %2d. %8.3f  %s  %s\n", i+1, h.Score, console.Line(h.ID.String()), names[h.ID])
	}
	fmt.Fprintf(b, "Vectors: %d hits (cosine distance)\n", len(e.Results.Dense))
	for i, h := range e.Results.Dense[:min(top, len(e.Results.Dense))] {
		fmt.Fprintf(b, "  %2d. %8.4f  %s  %s\n", i+1, h.Distance, console.Line(h.ID.String()), names[h.ID])
	}
}

func (s *session) writeHits(b *strings.Builder, e bot.Explanation, top int) {
	order := "reranked"
	if !e.Results.Reranked {
		order = "fused order, not reranked"
	}
	fmt.Fprintf(b, "Fusion, rerank and gate: %d hits, fused by %s, %s\n", len(e.Results.Hits), e.Results.Fusion, order)
	for i, h := range e.Results.Hits[:min(top, len(e.Results.Hits))] {
		gate := "stopped: " + e.Gate[i].Why
		if e.Gate[i].Passed {
			gate = "passed: " + e.Gate[i].Why
		}
		fmt.Fprintf(b, "  %2d. (fused %d) %s\n      %s\n      %s\n", h.Rank, h.FusedRank, place(h.Passage), scores(h), gate)
	}
}

func (s *session) writeDraft(b *strings.Builder, e bot.Explanation, top int) {
	fmt.Fprintf(b, "Sentences: %d judged\n", len(e.Draft.Judged))
	for _, j := range e.Draft.Judged[:min(top, len(e.Draft.Judged))] {
		fmt.Fprintf(b, "  evidence %d, score %.4f, share %.2f, support %.3f: %s\n", j.N, j.Score, j.Share, j.Support, shorten(console.Line(j.Text), 100))
	}
	if e.Draft.Why != "" {
		fmt.Fprintf(b, "  no answer: %s\n", console.Line(e.Draft.Why))
	}
	if e.Unknown+e.Dropped > 0 {
		fmt.Fprintf(b, "  dropped: %d unknown numbers, %d claims without a source\n", e.Unknown, e.Dropped)
	}
}

func principals(ps []acl.Principal) string {
	s := make([]string, len(ps))
	for i, p := range ps {
		s[i] = console.Line(string(p))
	}
	return strings.Join(s, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
