package console

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/bot"
	"footnote/bot/cite"
)

var renderer = Renderer{Width: 60, Base: "/srv/docs"}

func TestReplyAnswered(t *testing.T) {
	t.Parallel()
	reply := bot.Reply{
		Outcome: bot.Answered,
		Sentences: []cite.Sentence{
			{Text: "You may work from home *three* days.", Plain: "You may work from home three days.", Cites: []int{1}, Kind: cite.Text},
			{Text: "Tuesday is an office day for every team of the company.", Plain: "Tuesday is an office day for every team of the company.", Cites: []int{2, 1}, Kind: cite.Text},
			{Text: "| Plan | Price |\n| Skiff | 49 EUR |\n", Cites: []int{3}, Kind: cite.Table},
			{Text: "| Plan | Price |\n| Clipper | 690 EUR |", Cites: []int{2}, Kind: cite.Table},
			{Text: "a \\\n  b", Cites: []int{1}, Kind: cite.Code},
		},
		Sources: []cite.Source{
			{N: 1, Title: "Remote work", Section: []string{"At home"}, Path: "/srv/docs/remote.md", Locator: "#char=1,9", Quote: "You may work\nfrom home *three* days."},
			{N: 2, Title: "Hours", Path: "https://docs.example/hours", Locator: "#char=0,4", Quote: "Tuesday is an office day"},
			{N: 3, Title: "Prices", Path: "/elsewhere/prices.md", Locator: "#char=2,3", Quote: "| Skiff | 49 EUR |"},
		},
	}
	want := `You may work from home three days. [1] Tuesday is an office
day for every team of the company. [2][1]
  | Plan | Price |
  | Skiff | 49 EUR | [3]
  | Clipper | 690 EUR | [2]
  a \
    b
  [1]

Sources
[1] Remote work > At home
    remote.md#char=1,9
    “You may work from home *three* days.”
[2] Hours
    https://docs.example/hours#char=0,4
    “Tuesday is an office day”
[3] Prices
    /elsewhere/prices.md#char=2,3
    “| Skiff | 49 EUR |”
`
	if diff := cmp.Diff(want, renderer.Reply(reply)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplyRefused(t *testing.T) {
	t.Parallel()
	reply := bot.Reply{Outcome: bot.Refused, Text: "I looked.\nNearest:\n- A > B"}
	if diff := cmp.Diff("I looked.\nNearest:\n- A > B\n", renderer.Reply(reply)); diff != "" {
		t.Error(diff)
	}
}

// Whatever field an attack stands in, the terminal must not obey it.
func TestReplyObeysNoDocument(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\x07\x1b[2J\u009b1m\u202e\rx"
	reply := bot.Reply{
		Outcome: bot.Answered,
		Sentences: []cite.Sentence{
			{Text: evil, Plain: evil, Cites: []int{1}, Kind: cite.Text},
			{Text: evil, Plain: evil, Cites: []int{1}, Kind: cite.Code},
		},
		Sources: []cite.Source{{N: 1, Title: evil, Section: []string{evil}, Path: evil, Locator: evil, Quote: evil}},
	}
	refused := bot.Reply{Outcome: bot.Refused, Text: evil}
	for _, out := range []string{renderer.Reply(reply), renderer.Reply(refused)} {
		if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && forbidden(r) }) {
			t.Errorf("%q holds what a terminal obeys", out)
		}
	}
}
