package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"footnote/bot"
	"footnote/bot/cite"
)

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

// D-32: every mark shows as it stands.
func TestD32Escape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a*b_c~d`e|f":            "a\\*b\\_c\\~d\\`e\\|f",
		"@everyone <@1> <@&2>":   `\@everyone \<\@1\> \<\@&2\>`,
		"</ask:1> <t:1> <:x:2>":  `\</ask\:1\> \<t\:1\> \<\:x\:2\>`,
		"[a](https://evil.test)": `\[a\]\(https\://evil.test\)`,
		"# head\n- item\n1. one": "\\# head\n\\- item\n1\\. one",
		`back\slash)`:            `back\\slash\)`,
		"hid\u202eden\u200b":     "hidden",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("@everyone `x` [a](b) \\")
	f.Fuzz(func(t *testing.T, in string) {
		var plain strings.Builder
		escaped := false
		for _, r := range Escape(in) {
			switch {
			case escaped:
				escaped = false
			case r == '\\':
				escaped = true
				continue
			case strings.ContainsRune(marks, r):
				t.Fatalf("%q leaves %q", in, r)
			}
			plain.WriteRune(r)
		}
		if escaped || plain.String() != visible(in) {
			t.Fatalf("%q reads as %q", in, plain.String())
		}
	})
}

func answer(n int, text string) bot.Reply {
	r := bot.Reply{Outcome: bot.Answered}
	for i := range n {
		r.Sentences = append(r.Sentences, cite.Sentence{Text: text, Plain: text, Cites: []int{1 + i%2}, Kind: cite.Text})
	}
	for i := range 2 {
		r.Sources = append(r.Sources, cite.Source{N: i + 1, Title: fmt.Sprintf("Title %d", i+1), Section: []string{"A", "B"}, Modified: time.Unix(1_700_000_000, 0)})
	}
	return r
}

func check(t *testing.T, parts []Message) {
	t.Helper()
	if len(parts) < 1 || len(parts) > MaxParts {
		t.Errorf("%d parts", len(parts))
	}
	for _, p := range parts {
		b, _ := json.Marshal(p)
		if n := utf16Len(p.Content); n > MaxContent || p.Content == "" {
			t.Errorf("a part of %d units", n)
		}
		if !strings.Contains(string(b), `"allowed_mentions":{"parse":[]`) || p.Flags != SuppressEmbeds {
			t.Errorf("body %.200s", b)
		}
		if len(p.Components) > 5 {
			t.Errorf("%d rows", len(p.Components))
		}
		if strings.Count(p.Content, "```")%2 != 0 {
			t.Errorf("a fence is left open: %.100s", p.Content)
		}
	}
}

// F1: an answer of any length comes out in parts, or shortened and said so.
func TestCase_F1(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, 1899, 1901, 3001, 12001, 40001} {
		for name, r := range map[string]bot.Reply{
			"one sentence": answer(1, strings.TrimSpace(strings.Repeat("word ", length/5+1))),
			"one word":     answer(1, strings.Repeat("x", length)),
			"emoji":        answer(1, strings.Repeat("🙂", length/2+1)),
			"marks":        answer(1, strings.Repeat("*", length/2+1)),
			"sentences":    answer(length/80+1, strings.Repeat("Some words. ", 6)),
		} {
			parts := Reply(r, Options{Answer: "id"})
			check(t, parts)
			last := parts[len(parts)-1].Content
			if !strings.Contains(last, "**Sources**") || !strings.Contains(last, "Title 2") {
				t.Errorf("%s of %d: the sources are not in the last part", name, length)
			}
			if length >= 12001 && !strings.Contains(last, shortened) {
				t.Errorf("%s of %d: it does not say that it is shortened", name, length)
			}
			one := Reply(r, Options{Answer: "id", Parts: 1})
			if check(t, one); len(one) != 1 {
				t.Errorf("%s of %d: %d parts instead of one", name, length, len(one))
			}
		}
	}
	code := answer(1, "")
	code.Sentences[0] = cite.Sentence{Text: strings.Repeat("line of ``` code\n", 300), Kind: cite.Code, Cites: []int{1}}
	check(t, Reply(code, Options{Answer: "id"}))
}

// F4: a table shows as one, in a font of equal widths.
func TestCase_F4(t *testing.T) {
	t.Parallel()
	r := answer(1, "")
	r.Sentences[0] = cite.Sentence{Text: "| Plan | Price |\n|---|---|\n| **Skiff** | [49 EUR](https://x.test) |", Lead: "The plans:", Kind: cite.Table, Cites: []int{1}}
	if m := Reply(r, Options{})[0]; !strings.Contains(m.Content, "The plans\\:\n```\nPlan   Price\n-----  ------\nSkiff  49 EUR\n``` [1]") {
		t.Errorf("%s", m.Content)
	}
}

// C2, C12: numbers are those of the sources; links are the server's own.
func TestCase_C12(t *testing.T) {
	t.Parallel()
	r := answer(2, "See [7] and [x](https://evil.test).")
	m := Reply(r, Options{Answer: "id", Link: func(s cite.Source) string { return fmt.Sprintf("https://wiki.example/%d", s.N) }})[0]
	for _, want := range []string{"[1]", "[2]", "](<https://wiki.example/1>)", `\[7\]`} {
		if !strings.Contains(m.Content, want) {
			t.Errorf("%q is not in %s", want, m.Content)
		}
	}
	if strings.Contains(m.Content, "](https://evil") {
		t.Errorf("a link of a document: %s", m.Content)
	}
	for _, bad := range []string{"javascript:x", "https://a b", "https://a/)x", "https://a/>x", "//a", "https://u:p@a/", "https://"} {
		if m := Reply(r, Options{Link: func(cite.Source) string { return bad }})[0]; strings.Contains(m.Content, "](<") {
			t.Errorf("%q became a link", bad)
		}
	}
}

// D-34: buttons within the limits, whatever the sources.
func TestD34Buttons(t *testing.T) {
	t.Parallel()
	r := answer(1, "x")
	r.Sources = nil
	for i := range 40 {
		r.Sources = append(r.Sources, cite.Source{N: i + 1, Title: strings.Repeat("🙂 long title ", 40)})
	}
	parts := Reply(r, Options{Answer: strings.Repeat("A", 26)})
	check(t, parts)
	ids := map[string]bool{}
	for _, row := range parts[len(parts)-1].Components {
		if len(row.Components) > 5 {
			t.Errorf("%d buttons in a row", len(row.Components))
		}
		for _, b := range row.Components {
			if ids[b.ID] || len(b.ID) > 100 || utf16Len(b.Label) > 80 || b.Label == "" {
				t.Errorf("button %+v", b)
			}
			ids[b.ID] = true
			if _, _, ok := Pressed(b.ID); !ok {
				t.Errorf("%q cannot be read", b.ID)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := bot.Reply{Outcome: bot.Refused, Text: "I looked for “<@1>”.\n- Holidays > Sick\nAsk me in a direct message."}
	m := Reply(r, Options{Answer: "id"})[0]
	if !strings.Contains(m.Content, `\<\@1\>`) || !strings.Contains(m.Content, "• Holidays") || !strings.Contains(m.Content, "direct message") {
		t.Errorf("refusal %s", m.Content)
	}
	if n := len(m.Components[0].Components); n != 2 {
		t.Errorf("%d buttons", n)
	}
	if m := Reply(bot.Reply{Outcome: bot.Refused}, Options{})[0]; m.Content == "" {
		t.Error("D-36: an empty answer")
	}
}

func TestPassageFits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 10, 5000, 50000} {
		text := strings.Repeat("*a🙂 ", n)
		o := bot.Opened{Quote: text, From: 10, To: 10 + len([]rune(text)), Superseded: true}
		o.Document.Canonical = strings.Repeat("_", 10) + text + strings.Repeat("|", 900)
		o.Document.Title = strings.Repeat("T*", 400)
		m := Passage(o, strings.Clone)
		e := m.Embeds[0]
		if utf16Len(e.Title) > 256 || utf16Len(e.Description) > 4096 || utf16Len(e.Title)+utf16Len(e.Description)+utf16Len(e.Footer.Text) > 6000 || !strings.Contains(e.Description, "> ") {
			t.Errorf("%d: title %d, description %d", n, utf16Len(e.Title), utf16Len(e.Description))
		}
	}
	wild := bot.Opened{From: -5, To: 1 << 30}
	wild.Document.Canonical = "short"
	Passage(wild, strings.Clone)
}

func TestD40ThreadNames(t *testing.T) {
	t.Parallel()
	for _, q := range []string{"", "  \n", strings.Repeat("@everyone ", 50), strings.Repeat("🙂", 200), "<@1> why?"} {
		n := ThreadName(q)
		if n == "" || utf16Len(n) > 100 || strings.Contains(n, "@everyone") || strings.Contains(n, "<@") {
			t.Errorf("%q: %q", q, n)
		}
	}
}
