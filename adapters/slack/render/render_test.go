package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/adapters/slack/slacktest"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/retrieval"
)

func answer(sentences ...cite.Sentence) bot.Reply {
	return bot.Reply{Outcome: bot.Answered, Sentences: sentences, Sources: []cite.Source{
		{N: 1, Title: "Hand & <book>", Section: []string{"Leave", "Days"}, Path: "handbook.md", Modified: time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)},
		{N: 2, Title: "Page", Path: "https://docs.example.org/a?b=1&c=|d>"},
	}}
}

func prose(s string, n ...int) cite.Sentence {
	return cite.Sentence{Text: s, Plain: s, Cites: n, Kind: cite.Text}
}

// valid holds messages to Slack's rules.
func valid(t interface{ Fatalf(string, ...any) }, list []Message) {
	for i, m := range list {
		b, err := json.Marshal(m.Blocks)
		if err != nil {
			t.Fatalf("%v", err)
		}
		problems, err := slacktest.ValidateBlocks(b, slacktest.SurfaceMessage)
		if err != nil || len(problems) > 0 {
			t.Fatalf("part %d: %v %v", i, problems, err)
		}
		if n := size(m.Blocks); n > 12_000 || len(m.Blocks) > 50 {
			t.Fatalf("part %d has %d units in %d blocks", i, n, len(m.Blocks))
		}
		if u := units(m.Text); u == 0 || u > 4000 || !utf8.ValidString(m.Text) {
			t.Fatalf("part %d has a text of %d units", i, u)
		}
		if strings.ContainsAny(m.Text, "<>") || badEntity(m.Text) {
			t.Fatalf("part %d has a text that is not escaped: %q", i, m.Text)
		}
	}
}

// badEntity reports an & that begins none of the three entities.
func badEntity(s string) bool {
	for i := range s {
		if s[i] == '&' && !strings.HasPrefix(s[i:], "&amp;") && !strings.HasPrefix(s[i:], "&lt;") && !strings.HasPrefix(s[i:], "&gt;") {
			return true
		}
	}
	return false
}

func said(list []Message) string {
	b, _ := json.Marshal(list)
	return string(b)
}

func TestS76ReplyShape(t *testing.T) {
	t.Parallel()
	list := Reply(answer(prose("Thirty days.", 1), prose("And a page.", 1, 2)), Options{ID: "ID1", Viewer: func(s cite.Source) string { return fmt.Sprint("https://v.example/", s.N) }})
	valid(t, list)
	if len(list) != 1 {
		t.Fatalf("%d messages", len(list))
	}
	text := said(list)
	for _, want := range []string{"Thirty days.", "[1][2]", "Leave", "2026-02-03", "https://v.example/1", "source_1", "source_2", "helpful", "not_helpful", "human", "ID1", "https://docs.example.org/a?b=1\\u0026c=%7Cd%3E"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s: %s", want, text)
		}
	}
	if !strings.HasPrefix(list[0].Text, "Thirty days. [1]") || !strings.Contains(list[0].Text, "[1] Hand &amp; &lt;book&gt;") {
		t.Errorf("text %q", list[0].Text)
	}
}

// S-71: no text of a document becomes a token.
func TestS71S72S75aB40NoTokens(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"<!channel>", "<!here>", "<@U1>", "<!subteam^S1>", "&lt;!channel&gt;", "[x](https://a.com|b><!channel>)"} {
		list := Reply(answer(prose("Say "+token+" now.", 1)), Options{ID: "X"})
		valid(t, list)
		b, _ := json.Marshal(list[0].Blocks)
		for _, kind := range []string{`"type":"user"`, `"type":"broadcast"`, `"type":"usergroup"`, `"type":"mrkdwn"`} {
			if strings.Contains(string(b), kind) {
				t.Errorf("%s gives %s", token, b)
			}
		}
	}
}

func TestS73B42Address(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://a.example/x": "https://a.example/x", "http://a.example": "http://a.example", "javascript:alert(1)": "", "file:///etc/x": "",
		"handbook.md": "", "": "", "https://": "", "https://u:p@a.example/": "", "https://a.example/a b|c>": "https://a.example/a%20b%7Cc%3E",
		"//a.example/x": "", "https://a.example/" + strings.Repeat("x", 4000): "", "https://exa mple/": "",
	} {
		if got := Address(in); got != want {
			t.Errorf("%.40q: %q, want %q", in, got, want)
		}
	}
}

// A table is laid out in columns, its cells without markup.
func TestCase_F4(t *testing.T) {
	t.Parallel()
	row := func(last string) cite.Sentence {
		return cite.Sentence{Kind: cite.Table, Cites: []int{1}, Text: "| Plan | Price | Where |\n|---|:-:|--:|\n" + last}
	}
	list := Reply(answer(row("| **Basic** | `9` | [page](https://a.example/x) |\n"), row("| Large 한글 | 10 \\| 20 | `a|b` |\n")), Options{ID: "X"})
	valid(t, list)
	want := "Plan        Price    Where\n----------  -------  -----\nBasic       9        page\nLarge 한글  10 | 20  a|b"
	var got string
	for _, e := range list[0].Blocks[0]["elements"].([]Object) {
		if e["type"] == "rich_text_preformatted" {
			got = e["elements"].([]Object)[0]["text"].(string)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// One bad address costs the link, not the source, nor the other sources.
func TestCase_F9(t *testing.T) {
	t.Parallel()
	r := answer(prose("A.", 1, 2, 3))
	r.Sources = append(r.Sources, cite.Source{N: 3, Title: "Bad", Path: "https://exa mple|<!here>/"})
	list := Reply(r, Options{ID: "X", Viewer: func(s cite.Source) string { return "javascript:alert(1)" }})
	valid(t, list)
	text := said(list)
	for _, want := range []string{"[1] Hand", "[2] Page", "[3] Bad", "source_3"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s: %s", want, text)
		}
	}
	if strings.Contains(text, "javascript") || strings.Contains(text, "exa mple") {
		t.Error(text)
	}
}

func TestS75Code(t *testing.T) {
	t.Parallel()
	list := Reply(answer(cite.Sentence{Kind: cite.Code, Lead: "Run this:", Text: "```sh\nmake all && echo <done>\n```\n", Cites: []int{1}}), Options{ID: "X"})
	valid(t, list)
	b := said(list)
	if strings.Contains(b, "```") || !strings.Contains(b, "rich_text_preformatted") || !strings.Contains(b, "Run this:") {
		t.Error(b)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	r := bot.Reply{Outcome: bot.Refused, Text: "I looked for “<!here> & x”.\nThe nearest documents:\n- A > B\n- C\nAsk again."}
	for _, room := range []bool{true, false} {
		list := Reply(r, Options{ID: "X", Room: room})
		valid(t, list)
		b := said(list)
		if strings.Contains(b, `"direct"`) != room || !strings.Contains(b, `"human"`) || !strings.Contains(b, "rich_text_list") {
			t.Errorf("room %t: %s", room, b)
		}
	}
}

func TestS70PlainIsEscapedOnceAndKeepsTheSources(t *testing.T) {
	t.Parallel()
	p := Plain(answer(prose(strings.Repeat("Thirty <days> & nights. ", 2000), 1)))
	if units(p) > maxPlain || !strings.Contains(p, "[1] Hand &amp; &lt;book&gt;") || !strings.Contains(p, "[2] Page") || badEntity(p) || strings.Contains(p, "<") {
		t.Errorf("%d units: %s", units(p), p[max(0, len(p)-300):])
	}
}

func TestSourceView(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("before ", 300) + "THE QUOTE" + strings.Repeat(" after", 300)
	at := strings.Index(text, "THE")
	o := bot.Opened{Document: retrieval.Document{Title: "T", Canonical: text, Revision: "abc"}, From: at, To: at + 9, Quote: "THE QUOTE"}
	for _, n := range []bot.Opened{o, {Document: retrieval.Document{Title: strings.Repeat("long ", 100), Canonical: "x"}, To: 1, Quote: "x", Superseded: true}, {}} {
		b, _ := json.Marshal(SourceView(1, n, "https://v.example/x"))
		problems, err := slacktest.ValidateView(b, slacktest.SurfaceModal)
		if err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
	}
	b, _ := json.Marshal(Home("footnote"))
	if problems, err := slacktest.ValidateView(b, slacktest.SurfaceHome); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	valid(t, []Message{ReasonsFor("X"), Literal("- a\n- b\n\nc"), Literal(strings.Repeat("x", 50_000))})
}

// Whatever an answer says, what is sent keeps Slack's limits, says every
// number, and ends with the sources.
func TestS77S78ReplyProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []cite.Sentence
		for range rapid.IntRange(1, 12).Draw(t, "sentences") {
			s := rapid.StringMatching(`[a-z<>&@!| 한👩\n]{1,60}`).Draw(t, "text")
			s = strings.Repeat(s, rapid.SampledFrom([]int{1, 1, 1, 40, 400}).Draw(t, "times"))
			kind := rapid.SampledFrom([]string{cite.Text, cite.Text, cite.Table, cite.Code}).Draw(t, "kind")
			list = append(list, cite.Sentence{Text: s, Plain: s, Kind: kind, Cites: []int{1}})
		}
		parts := Reply(answer(list...), Options{ID: "X", Room: true})
		valid(t, parts)
		if len(parts) > 3 {
			t.Fatalf("%d parts", len(parts))
		}
		last := parts[len(parts)-1]
		if b, _ := json.Marshal(last); !strings.Contains(string(b), "source_1") || !strings.Contains(last.Text, "Sources") {
			t.Fatalf("no sources at the end")
		}
		for _, p := range parts[:len(parts)-1] {
			if b, _ := json.Marshal(p); strings.Contains(string(b), `"actions"`) {
				t.Fatal("buttons before the end")
			}
		}
	})
}

func FuzzEscaped(f *testing.F) {
	for _, s := range []string{"a & b", "<!here>", strings.Repeat("&", 5000), "👩\u200d💻", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := escaped(s, 100)
		if units(e) > 100 || badEntity(e) || strings.ContainsAny(e, "<>") || !utf8.ValidString(e) {
			t.Fatalf("%q gives %q", s, e)
		}
	})
}
