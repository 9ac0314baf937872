package generate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// line shows a unit as "kind[lead|head]: quote".
func line(content string, u unit) string {
	s := u.kind
	if u.lead != "" || u.head != "" {
		s += "[" + u.lead + strings.TrimSpace(u.head) + "]"
	}
	return s + ": " + content[u.from:u.to]
}

func TestCut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		content string
		want    []string
	}{
		"nothing":                  {"", nil},
		"only marks":               {"---\n\n***\n<br/>\n", nil},
		"sentences over two lines": {"One is\nhere. Two is there.", []string{"text: One is\nhere.", "text: Two is there."}},
		"a heading is no unit":     {"## Leave\n\nThirty days.", []string{"text: Thirty days."}},
		"list items without their marks": {
			"Bring:\n\n- a passport\n2. two photos\n* [x] a pen\n", []string{"text: Bring:", "text[Bring:]: a passport", "text[Bring:]: two photos", "text[Bring:]: a pen"}},
		"a list after a full sentence has no lead": {
			"It is easy.\n- Go left.\n- Go right.", []string{"text: It is easy.", "text: Go left.", "text: Go right."}},
		"an item over two lines": {"- As\n  employees, we may not.\n- Other", []string{"text: As\n  employees, we may not.", "text: Other"}},
		"a long item becomes sentences": {
			"- " + strings.Repeat("Word after word. ", 20) + "End.", append(slicesRepeat("text: Word after word.", 20), "text: End.")},
		"table rows with their head": {
			"| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n\nAfter.",
			[]string{"table[| a | b |\n|---|:-:|]: | 1 | 2 |", "table[| a | b |\n|---|:-:|]: | 3 | 4 |", "text: After."}},
		"a table without outer bars": {"a | b\n--|--\n1 | 2", []string{"table[a | b\n--|--]: 1 | 2"}},
		"rows between tabs": {
			"Prices\n\npart\tprice\nbolt\t3\nnut\t4\n\nAfter.",
			[]string{"text: Prices", "table[part\tprice]: bolt\t3", "table[part\tprice]: nut\t4", "text: After."}},
		"rows between bars in spaces": {
			"Part | Price\na b | 3\nc | 4\nAfter.", []string{"table[Part | Price]: a b | 3", "table[Part | Price]: c | 4", "text: After."}},
		"a head that looks like a heading": {"#\tname\n1\tbolt", []string{"table[#\tname]: 1\tbolt"}},
		"an empty first cell":              {"\tMon\tTue\nAda\t8\t9", []string{"table[Mon\tTue]: Ada\t8\t9"}},
		"a bar in a sentence":              {"Choose a | b.\nThen go on.", []string{"text: Choose a | b.\nThen go on."}},
		"indented code is no table":        {"Run:\n\tgo build\n\tgo test", []string{"text: Run:\n\tgo build\n\tgo test"}},
		"a table cut off its head":         {"| 1 | 2 |\n| 3 | 4 |", []string{"table: | 1 | 2 |", "table: | 3 | 4 |"}},
		"code without its fences and with its indentation": {
			"Run this:\n\n```sh\n  git fetch\n  git merge\n```\nDone.", []string{"text: Run this:", "code[Run this:]:   git fetch\n  git merge", "text: Done."}},
		"code in a list item": {
			"1. Sign with SSH. Enter:\n\n   ```\n   git config x\n   ```", []string{"text: Sign with SSH. Enter:", "code[Enter:]:    git config x"}},
		"long code is cut at empty lines": {
			"```\n" + strings.Repeat("a\n", 10) + "\n" + strings.Repeat("b\n", 10) + "```",
			[]string{"code: " + strings.Repeat("a\n", 9) + "a", "code: " + strings.Repeat("b\n", 9) + "b"}},
		"a fence that is never closed": {"```\nx = 1\n", []string{"code: x = 1"}},
		"a quotation":                  {"> Be kind. Be brief.", []string{"text: Be kind.", "text: Be brief."}},
		"Korean":                       {"각 가지는 `import` 문을 나타냅니다. 다음 문장입니다.", []string{"text: 각 가지는 `import` 문을 나타냅니다.", "text: 다음 문장입니다."}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, u := range cut(tt.content, "") {
				got = append(got, line(tt.content, u))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func slicesRepeat(s string, n int) (out []string) {
	for range n {
		out = append(out, s)
	}
	return out
}

func TestCutReadsRowsAfterWhatLeadsToTheTable(t *testing.T) {
	t.Parallel()
	us := cut("Targets:\n\n| Reports | Target |\n|--|--|\n| 6 | **40%** |\n", "")
	if got := us[len(us)-1]; got.plain != "Reports: 6, Target: 40%" || got.context != "Targets:" {
		t.Errorf("judged as %q after %q", got.plain, got.context)
	}
}

// A row is read by one rule however its table is written: under the head that
// stands over it, else under that of an earlier passage, else as its values.
func TestCutReadsRows(t *testing.T) {
	t.Parallel()
	const own, earlier, none = "its own head", "an earlier head", "no head"
	named, bare := []string{"part: bolt, price: 3", "part: nut"}, []string{"bolt, 3", "nut"}
	tests := map[string]struct {
		content, head string
		want          []string
	}{
		"Markdown, " + own:                        {"| part | price |\n|--|--|\n| bolt | **3** |\n| nut | |", "", named},
		"Markdown, " + own + " before an earlier": {"| part | price |\n|--|--|\n| bolt | 3 |\n| nut | |", "| x | y |", named},
		"Markdown, " + earlier:                    {"| bolt | 3 |\n| nut | |", "| part | price |", named},
		"Markdown, " + none:                       {"| bolt | **3** |\n| nut | |", "", bare},
		"no outer bars, " + own:                   {"part | price\n--|--\nbolt | 3\nnut |", "", named},
		"tabs, " + own:                            {"part\tprice\nbolt\t3\nnut\t", "", named},
		"tabs, " + earlier:                        {"bolt\t3\nnut\t", "part\tprice", named},
		"tabs, one row, " + earlier:               {"bolt\t3", "part\tprice", named[:1]},
		"tabs, one row, " + none:                  {"bolt\t3", "", bare[:1]},
		"bars in spaces, " + own:                  {"part | price\nbolt | 3\nnut | ", "", named},
		"bars in spaces, " + earlier:              {"bolt | 3\nnut | ", "part | price", named},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, u := range cut(tt.content, tt.head) {
				got = append(got, u.plain)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCutShowsAHeadOnlyWhereItStands(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"| a | b |\n|--|--|\n| 1 | 2 |": "| a | b |\n|--|--|\n",
		"| 1 | 2 |":                     "",
		"1\t2":                          "",
	} {
		us := cut(content, "| a | b |")
		if len(us) != 1 || us[0].head != want {
			t.Errorf("%q: %+v, want one row with head %q", content, us, want)
		}
	}
}

// check holds units to what the resolver needs: inside the content, in order,
// not overlapping, and with a lead and head that stand in it.
func check(content string, us []unit) string {
	at := 0
	for _, u := range us {
		switch {
		case u.from < at || u.to <= u.from || u.to > len(content):
			return "a unit is out of order or empty"
		case !strings.Contains(content, strings.TrimRight(u.head, "\n")) || !strings.Contains(content, u.lead):
			return "what introduces a unit is not in the content"
		}
		at = u.to
	}
	return ""
}

func TestCutProperties(t *testing.T) {
	t.Parallel()
	parts := []string{"One. Two.", "- item", "1. step:", "| a | b |", "|--|--|", "```", "    x := 1", "# H", "", "> q", "<br>", "한국어 문장입니다.", "end:"}
	rapid.Check(t, func(t *rapid.T) {
		content := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "lines"), "\n")
		if fault := check(content, cut(content, "")); fault != "" {
			t.Fatal(fault)
		}
	})
}

func FuzzCut(f *testing.F) {
	for _, s := range []string{"", "a\r\n| b |", "```\n\n```", "|\n|", "- \n-", "\xff|\xfe\n--|--", "~~~ a\n```\n~~~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if fault := check(content, cut(content, "")); fault != "" {
			t.Errorf("%q: %s", content, fault)
		}
	})
}

// What another passage says beside the point is left out sooner than what the
// best sentence's own passage adds.
func TestPick(t *testing.T) {
	t.Parallel()
	g := NewExtractive(nil, nil, Options{Sentences: 3})
	said := func(evidence, order int, support float64) scored {
		s := scored{support: support}
		s.evidence, s.order, s.plain = evidence, order, fmt.Sprint("sentence ", order)
		return s
	}
	for name, c := range map[string]struct {
		second   scored
		reranked bool
		want     int
	}{
		"the same passage adds to it":       {said(1, 1, .65), true, 2},
		"the same passage strays":           {said(1, 1, .55), true, 1},
		"another passage is beside it":      {said(2, 9, .75), true, 1},
		"another passage is as good":        {said(2, 9, .90), true, 2},
		"no reranker: scores lie closer":    {said(2, 9, .30), false, 2},
		"no reranker: far below the best":   {said(2, 9, .20), false, 1},
		"the same words in another passage": {said(2, 0, .95), true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := g.pick([]scored{said(1, 0, 1), c.second}, c.reranked); len(got) != c.want {
				t.Errorf("picked %d, want %d", len(got), c.want)
			}
		})
	}
}
