package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"footnote/acl"
	"footnote/adapters/console"
	"footnote/retrieval"
)

// searchJSON is the contract of search --json.
type searchJSON struct {
	ID         string          `json:"id"`
	Hits       []retrieval.Hit `json:"hits"`
	Generation string          `json:"generation"`
	MS         int64           `json:"ms"`
}

func (p *program) search() *cobra.Command {
	c := &cobra.Command{
		Use:   "search QUESTION | - | --batch FILE",
		Short: "List the hits of a question without answering",
	}
	a := p.askingFlags(c)
	top := c.Flags().Int("top", 10, "`NUMBER` of hits, 1 to 200")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *top < 1 || *top > 200 {
			return usage(fmt.Errorf("--top is %d: it must be from 1 to 200", *top))
		}
		return p.runSearch(cmd.Context(), a, args, *top)
	}
	return c
}

func (p *program) runSearch(ctx context.Context, a *asking, args []string, top int) error {
	return p.eachAsked(ctx, a, args, top, func(s *session, q question) error {
		err := p.hits(ctx, s, q, top)
		if a.batch == "" && errors.Is(err, retrieval.ErrQuestion) {
			return usage(err)
		}
		return err
	})
}

// hits searches one question and prints what it finds.
func (p *program) hits(ctx context.Context, s *session, q question, top int) error {
	start := time.Now()
	who, audience, err := s.asker.authority(ctx, q.as, q.room)
	if err != nil {
		return err
	}
	// SECURITY: the grant of a search, as the bot makes it for an answer.
	found, err := s.Searcher.Search(ctx, s.Index, acl.NewGrant(who, audience), strings.ToValidUTF8(q.text, "\ufffd"))
	if err != nil {
		return err
	}
	s.log.Info("search", "language", found.Language, "hits", len(found.Hits), "generation", found.Generation, "ms", time.Since(start).Milliseconds())
	hits := found.Hits[:min(top, len(found.Hits))]
	if p.json {
		return writeJSON(p.Out, searchJSON{q.id, append([]retrieval.Hit{}, hits...), found.Generation, time.Since(start).Milliseconds()})
	}
	if len(hits) == 0 {
		return p.print("Nothing was found that you may read.\n")
	}
	for _, h := range hits {
		if err := p.print("%s", s.hit(h)); err != nil {
			return err
		}
	}
	return nil
}

// hit is one hit as text: place, scores, and the beginning of its content.
func (s *session) hit(h retrieval.Hit) string {
	return fmt.Sprintf("%2d. %s  %s%s\n    %s\n    %s\n", h.Rank, place(h.Passage), s.show.Path(h.Passage.Path),
		console.Line(h.Passage.Chunk.Locator), scores(h), shorten(console.Line(h.Passage.Chunk.Content), 2*s.show.Width))
}

// scores says what each leg and the reranker gave; "-" where one did not.
func scores(h retrieval.Hit) string {
	lexical, dense, late, rerank := "-", "-", "-", "-"
	if h.LexicalRank > 0 {
		lexical = fmt.Sprintf("#%d %.2f", h.LexicalRank, h.BM25)
	}
	if h.Distance != nil {
		dense = fmt.Sprintf("%.4f", *h.Distance)
		if h.DenseRank > 0 {
			dense = fmt.Sprintf("#%d %s", h.DenseRank, dense)
		}
	}
	if h.Late != nil {
		late = fmt.Sprintf("%.4f", *h.Late)
	}
	if h.Rerank != nil {
		rerank = fmt.Sprintf("%.4f", *h.Rerank)
	}
	return fmt.Sprintf("words %s, distance %s, states %s, fused %.5f, rerank %s", lexical, dense, late, h.Fused, rerank)
}

// place is "title > section" of a passage on one line.
func place(p retrieval.Passage) string {
	return console.Line(strings.Join(append([]string{p.Title}, p.Chunk.Section...), " > "))
}
