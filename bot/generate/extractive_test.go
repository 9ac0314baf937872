package generate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/bot/cite"
	"footnote/models/modelstest"
)

func quotes(d Draft) (out []string) {
	for _, c := range d.Claims {
		lead := ""
		if c.Lead != "" {
			lead = "(" + c.Lead + ") "
		}
		out = append(out, fmt.Sprint(c.Numbers, " ", lead, c.Text))
	}
	return out
}

func english(contents ...string) []Evidence {
	var out []Evidence
	for i, c := range contents {
		out = append(out, Evidence{N: i + 1, Header: "[T]", Language: "en", Content: c, Relevance: .9})
	}
	return out
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	badges := "Badges are made in room 212.\n\nBring a passport. The canteen opens at noon."
	tests := map[string]struct {
		request Request
		want    []string // none: no draft
		why     string
	}{
		"the sentence that answers": {
			Request{Question: "Where are badges made?", Language: "en", Evidence: english(badges)}, []string{"[1] Badges are made in room 212."}, ""},
		"sentences of two passages, in reading order": {
			Request{Question: "Where are badges made?", Language: "en", Evidence: english("Badges are also made in the lodge.", badges)},
			[]string{"[1] Badges are also made in the lodge.", "[2] Badges are made in room 212."}, ""},
		"the best sentence first": {
			Request{Question: "Where are new badges made?", Language: "en", Evidence: english("New badges are made.\n\nNew passes cost ten.\n\nThis is where new badges are made.")},
			[]string{"[1] This is where new badges are made.", "[1] New badges are made."}, ""},
		"neighbours stay in the order of the document": {
			Request{Question: "Where are new badges made?", Language: "en", Evidence: english("New badges are made there.\n\nThis is where new badges are made.")},
			[]string{"[1] New badges are made there.", "[1] This is where new badges are made."}, ""},
		"what two passages say in the same words is quoted once": {
			Request{Question: "Where are badges made?", Language: "en", Evidence: english(badges, "**Badges** are made\nin room 212.")}, []string{"[1] Badges are made in room 212."}, ""},
		"equal rows of tables with other heads are two things": {
			Request{Question: "What is the limit of reports for badges?", Language: "en", Evidence: english("| badges | limit of reports 2031 |\n|--|--|\n| badges | 5 |\n\n", "| badges | limit of reports 2032 |\n|--|--|\n| badges | 5 |")},
			[]string{"[1] | badges | limit of reports 2031 |\n|--|--|\n| badges | 5 |", "[2] | badges | limit of reports 2032 |\n|--|--|\n| badges | 5 |"}, ""},
		"near but not answering": {
			Request{Question: "Who may park a bicycle behind the warehouse?", Language: "en", Evidence: english(badges)}, nil, "support"},
		"a passage that is not relevant supports nothing": {
			Request{Question: "Where are badges made?", Language: "en", Evidence: []Evidence{{N: 1, Language: "en", Content: badges, Relevance: .01}}}, nil, "support"},
		"a name that the evidence does not hold": {
			Request{Question: "Are badges made in room 212 with BadgeMaker?", Language: "en", Evidence: english(badges)}, nil, "BadgeMaker"},
		"a question in capitals has no names": {
			Request{Question: "WHERE ARE BADGES MADE?", Language: "en", Evidence: english(badges)}, []string{"[1] Badges are made in room 212."}, ""},
		"a follow-up whose own words are nowhere": {
			Request{Question: "Where are badges made? And for astronauts?", Own: "And for astronauts?", Language: "en", Evidence: english(badges)}, nil, "astronauts"},
		"a follow-up whose own words are there": {
			Request{Question: "Where are badges made? And in room 212?", Own: "And in room 212?", Language: "en", Evidence: english(badges)}, []string{"[1] Badges are made in room 212."}, ""},
		"a name of several words that the evidence does not hold": {
			Request{Question: "Where are Blue Badges made?", Language: "en", Evidence: english(badges)}, nil, "Blue Badges"},
		"a name of several words, marked up in the evidence": {
			Request{Question: "Where are the Blue Badges made?", Language: "en", Evidence: english("**Blue\nBadges** are made in room 212.")}, []string{"[1] **Blue\nBadges** are made in room 212."}, ""},
		"an acronym may be spelt out": {
			Request{Question: "Where are ID badges made?", Language: "en", Evidence: english(badges)}, []string{"[1] Badges are made in room 212."}, ""},
		"a sentence that introduces code becomes the code": {
			Request{Question: "Which command makes badges?", Language: "en", Evidence: english("This command makes badges:\n\n```\nmk -b\n```\n\nAnd so on.")}, []string{"[1] (This command makes badges:) mk -b"}, ""},
		"a sentence that introduces a list brings the list": {
			Request{Question: "What must I bring for badges?", Language: "en", Evidence: english("For badges I must bring:\n\n- a pen\n- a photo\n\nAnd so on.")}, []string{"[1] For badges I must bring:\n\n- a pen\n- a photo"}, ""},
		"a question of the document brings its answer": {
			Request{Question: "Are badges made on Sundays?", Language: "en", Evidence: english("Are badges made on Sundays?\n\nThey are not. Come back later. Or never.")}, []string{"[1] Are badges made on Sundays?\n\nThey are not. Come back later."}, ""},
		"a sentence that introduces nothing stays": {
			Request{Question: "What must I bring for badges?", Language: "en", Evidence: english("For badges I must bring:")}, []string{"[1] For badges I must bring:"}, ""},
		"a list too long to quote whole is quoted from its start": {
			Request{Question: "What must I bring for badges?", Language: "en", Evidence: english("For badges I must bring:\n- x" + strings.Repeat("y", 300) + "\n- z" + strings.Repeat("z", 300) + "\n- w" + strings.Repeat("w", 300))},
			[]string{"[1] For badges I must bring:\n- x" + strings.Repeat("y", 300) + "\n- z" + strings.Repeat("z", 300)}, ""},
		"a table row with its head": {
			Request{Question: "What target has a lead with 6 reports?", Language: "en", Evidence: english("| reports | target of a lead |\n|--|--|\n| 5 | 50% |\n| 6 | 40% |")},
			[]string{"[1] | reports | target of a lead |\n|--|--|\n| 6 | 40% |"}, ""},
		"evidence without a sentence": {
			Request{Question: "Where are badges made?", Language: "en", Evidence: english("---")}, nil, "no sentence"},
		"Korean, judged by the embedder": {
			Request{Question: "배지는 어디에서 만드나요?", Language: "ko", Evidence: []Evidence{{N: 1, Language: "ko", Content: "배지는 212호에서 만듭니다.\n\n점심은 정오입니다."}}}, []string{"[1] 배지는 212호에서 만듭니다."}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewExtractive(modelstest.NewEmbedder(), modelstest.NewReranker("en"), Options{Cuts: Cuts{Reranked: .1, Embedded: .05, Unrelated: .2}})
			d, err := g.Generate(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, quotes(d)); diff != "" {
				t.Errorf("%s\njudged %+v", diff, d.Judged)
			}
			if !strings.Contains(d.Why, tt.why) || (d.Why == "") != (tt.want != nil) {
				t.Errorf("why %q, want %q", d.Why, tt.why)
			}
		})
	}
}

// Whatever is asked, claims resolve: the draft and the resolver agree on what
// is verbatim.
func TestClaimsResolve(t *testing.T) {
	t.Parallel()
	contents := []string{
		"How to git fetch:\n- git fetch\n- be quick\n", "Run this:\n\n```sh\ngit fetch origin\n```\n", "| a | git |\n|--|--|\n| 1 | fetch |\n", "Steps:\n- git fetch\n- *git* [merge](x) it\n", "Git fetch\nis fast.",
	}
	g := NewExtractive(modelstest.NewEmbedder(), nil, Options{Sentences: 20, Cuts: Cuts{}})
	for _, c := range contents {
		d, err := g.Generate(t.Context(), Request{Question: "How do I git fetch?", Language: "en", Evidence: []Evidence{{N: 1, Content: c}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Claims) == 0 {
			t.Errorf("%q: no claims", c)
		}
		ev := []cite.Evidence{{N: 1}}
		ev[0].Passage.Chunk.Content = c
		if a := cite.Resolve(d.Claims, ev); a.Unsupported != 0 || len(a.Sentences) != len(d.Claims) {
			t.Errorf("%q: %d claims, %d resolved", c, len(d.Claims), len(a.Sentences))
		}
	}
}

func TestGenerateBoundsTheWorkOfModels(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Badges are made in some room. ", 500)
	r, e := modelstest.NewReranker("en"), modelstest.NewEmbedder()
	g := NewExtractive(e, r, Options{})
	request := Request{Question: "Where are badges made?", Language: "en", Evidence: english(long, long, long, long)}
	if _, err := g.Generate(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if r.Pairs() > 24 || e.Passages() > 0 {
		t.Errorf("%d pairs and %d passages for one question", r.Pairs(), e.Passages())
	}
	request.Language = "ko"
	if _, err := g.Generate(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if r.Pairs() > 24 || e.Passages() > 24 {
		t.Errorf("%d pairs and %d passages: a language that the reranker does not cover", r.Pairs(), e.Passages())
	}
}

func TestGenerateHonoursCancellation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := NewExtractive(modelstest.NewEmbedder(), nil, Options{})
	_, err := g.Generate(ctx, Request{Question: "Where?", Language: "en", Evidence: english("Here it is.")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"partners": "partner", "partner": "partner", "staffing": "staff", "policies": "policy", "classes": "class", "class": "class",
		"used": "used", "updated": "updat", "update": "updat", "bus": "bus", "ring": "ring", "비밀": "비밀", "err-4012": "err-4012", "": "",
	} {
		if got := stem(word); got != want {
			t.Errorf("stem(%q) = %q, want %q", word, got, want)
		}
	}
}
