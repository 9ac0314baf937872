package cite

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval"
	"footnote/retrieval/analysis"
)

// evidence numbers passages from 1, each its own document that starts with
// 10 characters in 12 bytes before the chunk.
func evidence(contents ...string) []Evidence {
	var out []Evidence
	for i, c := range contents {
		out = append(out, Evidence{N: i + 1, Passage: retrieval.Passage{
			Title: "T", Path: "p.md",
			Chunk: retrieval.Chunk{
				ID: retrieval.ChunkID{Document: retrieval.DocumentID(rune('a' + i)), Revision: "r"}, Content: c,
				Span: retrieval.Span{From: 10, To: 10 + utf8.RuneCountInString(c), FromByte: 12, ToByte: 12 + len(c), SourceFrom: 100, SourceTo: 100 + len(c)},
			},
		}})
	}
	return out
}

func shape(a Answer) (lines []string) {
	for _, s := range a.Sentences {
		lines = append(lines, strings.TrimSpace(s.Text)+" "+strings.Trim(strings.ReplaceAll(strings.Trim(cmpInts(s.Cites), " "), " ", ","), ","))
	}
	for _, s := range a.Sources {
		lines = append(lines, cmpInts([]int{s.N})+string(s.Document)+": "+strings.TrimSpace(s.Quote))
	}
	return lines
}

func cmpInts(ns []int) string {
	var b strings.Builder
	for _, n := range ns {
		b.WriteString("[" + string(rune('0'+n)) + "]")
	}
	return b.String()
}

func TestResolveText(t *testing.T) {
	t.Parallel()
	ev := evidence("Badges come from room 212. Bring a passport.", "Guests sign in downstairs.", "Lunch costs 9 euros.")
	tests := map[string]struct {
		draft                string
		want                 []string
		unknown, unsupported int
	}{
		"TestCase_C2 a number never supplied is removed and counted": {
			"Badges come from room 212 [1][7].", []string{"Badges come from room 212. [1]", "[1]a: Badges come from room 212."}, 1, 0},
		"TestCase_C2 a sentence with unknown numbers only is dropped": {
			"Badges are blue [7].", nil, 1, 1},
		"TestCase_C2 a number too long for an int": {
			"Guests sign in downstairs [99999999999999999999].", nil, 1, 1},
		"TestCase_C3 numbers are dense and in order of first use": {
			"Lunch costs 9 euros [3]. Guests sign in downstairs [2]. Lunch costs 9 euros [3].",
			[]string{"Lunch costs 9 euros. [1]", "Guests sign in downstairs. [2]", "Lunch costs 9 euros. [1]", "[1]c: Lunch costs 9 euros.", "[2]b: Guests sign in downstairs."}, 0, 0},
		"TestCase_C3 the second before the first": {
			"Guests sign in downstairs [2]. Bring a passport [1].",
			[]string{"Guests sign in downstairs. [1]", "Bring a passport. [2]", "[1]b: Guests sign in downstairs.", "[2]a: Bring a passport."}, 0, 0},
		"TestCase_C9 an invented sentence gets no citation and goes": {
			"Badges come from room 212 [1]. Dogs fly on Tuesdays [1].",
			[]string{"Badges come from room 212. [1]", "[1]a: Badges come from room 212."}, 0, 1},
		"a wrong figure is not supported": {
			"Lunch costs 8 euros [3].", nil, 0, 1},
		"a sentence without a number is dropped": {
			"Hello there. Lunch costs 9 euros [3].",
			[]string{"Lunch costs 9 euros. [1]", "[1]c: Lunch costs 9 euros."}, 0, 1},
		"two spans of one passage have two numbers": {
			"Badges come from room 212 [1]. Bring a passport [1].",
			[]string{"Badges come from room 212. [1]", "Bring a passport. [2]", "[1]a: Badges come from room 212.", "[2]a: Bring a passport."}, 0, 0},
		"a list of numbers, the wrong one without support": {
			"Lunch costs 9 euros [2, 3].", []string{"Lunch costs 9 euros. [1]", "[1]c: Lunch costs 9 euros."}, 0, 0},
		"nothing said": {"", nil, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Resolve(Parse(tt.draft), ev)
			if d := cmp.Diff(tt.want, shape(a)); d != "" {
				t.Error(d)
			}
			if a.Unknown != tt.unknown || a.Unsupported != tt.unsupported {
				t.Errorf("%d unknown and %d unsupported, want %d and %d", a.Unknown, a.Unsupported, tt.unknown, tt.unsupported)
			}
		})
	}
}

func TestResolveVerbatim(t *testing.T) {
	t.Parallel()
	content := "Übung 🙂 macht\r\nden [3] Meister. Zweitens.\n| a | b |\n| 1 | 2 |\n\nBring:\n\n- a *pen*\n  or a pencil\n2. a photo\n"
	at := func(quote string) (int, int) {
		i := strings.Index(content, quote)
		return i, i + len(quote)
	}
	first, row, list := "Übung 🙂 macht\r\nden [3] Meister.", "| 1 | 2 |", "Bring:\n\n- a *pen*\n  or a pencil\n2. a photo"
	f0, f1 := at(first)
	r0, r1 := at(row)
	l0, l1 := at(list)
	tests := map[string]struct {
		claim Claim
		want  []Sentence
		quote string
	}{
		"prose loses its line breaks and its own bracketed numbers": {
			Claim{"", first, Text, []int{1}, f0, f1}, []Sentence{{"", "Übung 🙂 macht den (3) Meister.", "Übung 🙂 macht den (3) Meister.", []int{1}, Text}}, first},
		"a list keeps its lines": {
			Claim{"", list, Text, []int{1}, l0, l1}, []Sentence{{"", "Bring:\n- a *pen* or a pencil\n2. a photo", "Bring:\n- a pen or a pencil\n2. a photo", []int{1}, Text}}, list},
		"a table row keeps its header row": {
			Claim{"", "| a | b |\n| 1 | 2 |", Table, []int{1}, r0, r1}, []Sentence{{"", "| a | b |\n| 1 | 2 |", "| a | b |\n| 1 | 2 |", []int{1}, Table}}, row},
		"a sentence with what introduces it": {
			Claim{"| a | b |", "Zweitens.", Text, []int{1}, strings.Index(content, "Zw"), strings.Index(content, "Zw") + 9}, []Sentence{{"| a | b |", "Zweitens.", "Zweitens.", []int{1}, Text}}, "Zweitens."},
		"an introduction that is not in the passage": {
			Claim{"Erstens:", "Zweitens.", Text, []int{1}, strings.Index(content, "Zw"), strings.Index(content, "Zw") + 9}, nil, ""},
		"a header row that is not in the passage": {Claim{"", "| x | y |\n| 1 | 2 |", Table, []int{1}, r0, r1}, nil, ""},
		"other words than at the place":           {Claim{"", "Zweitens!", Text, []int{1}, f0, f1}, nil, ""},
		"a place outside the passage":             {Claim{"", first, Text, []int{1}, f0, 1000}, nil, ""},
		"a place that ends before it starts":      {Claim{"", "| 1 | 2 |", Table, []int{1}, r1, r0}, nil, ""},
		"a place inside a character":              {Claim{"", content[1:4], Text, []int{1}, 1, 4}, nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Resolve([]Claim{tt.claim}, evidence(content))
			if d := cmp.Diff(tt.want, a.Sentences); d != "" {
				t.Error(d)
			}
			if tt.want == nil {
				if len(a.Sources) != 0 || a.Unsupported != 1 {
					t.Errorf("sources %v, unsupported %d", a.Sources, a.Unsupported)
				}
				return
			}
			s := a.Sources[0]
			canonical := strings.Repeat("é", 2) + strings.Repeat("x", 8) + content
			if got := string([]rune(canonical)[s.From:s.To]); got != tt.quote || s.Quote != tt.quote {
				t.Errorf("characters %d to %d are %q, quote %q, want %q", s.From, s.To, got, s.Quote, tt.quote)
			}
			if got := content[s.SourceFromByte-100 : s.SourceToByte-100]; got != tt.quote {
				t.Errorf("source bytes hold %q", got)
			}
		})
	}
}

func TestSourceBytes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		content  string
		from, to int
		extra    int // bytes that the source has more than the content
		want     [2]int
	}{
		"a source with markup holds the quote somewhere": {"One. Two.", 5, 9, 7, [2]int{100, 116}},
		"a source with CRLF":                             {"One.\nTwo\nthree.\n", 5, 15, 3, [2]int{106, 117}},
		"no source bytes":                                {"One. Two.", 5, 9, -109, [2]int{100, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := evidence(tt.content)
			ev[0].Passage.Chunk.Span.SourceTo += tt.extra
			a := Resolve([]Claim{{"", tt.content[tt.from:tt.to], Text, []int{1}, tt.from, tt.to}}, ev)
			if s := a.Sources[0]; s.SourceFromByte != tt.want[0] || s.SourceToByte != tt.want[1] {
				t.Errorf("source bytes %d to %d, want %v", s.SourceFromByte, s.SourceToByte, tt.want)
			}
		})
	}
}

func TestLocator(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ chunk, want string }{
		"a plain text":                      {"#char=10,29", "#char=15,19"},
		"a page":                            {"#page=3&char=10,29", "#page=3&char=15,19"},
		"a run of pages":                    {"#page=3-4&char=10,29", "#page=3-4&char=15,19"},
		"cells of a sheet":                  {"#sheet=Prices&range=A2:D9&char=10,29", "#sheet=Prices&range=A2:D9&char=15,19"},
		"a sheet whose name reads as char=": {"#sheet=a%26char%3D1&range=A2:D9&char=10,29", "#sheet=a%26char%3D1&range=A2:D9&char=15,19"},
		"a slide":                           {"#slide=7&char=10,29", "#slide=7&char=15,19"},
		"a time":                            {"#t=3605,3610&char=10,29", "#t=3605,3610&char=15,19"},
		"a place without characters":        {"#page=3", "#page=3&char=15,19"},
		"none":                              {"", "#char=15,19"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := evidence("One. Two. Überall.")
			ev[0].Passage.Chunk.Locator = tt.chunk
			a := Resolve([]Claim{{"", "Two.", Text, []int{1}, 5, 9}}, ev)
			if len(a.Sources) != 1 || a.Sources[0].Locator != tt.want {
				t.Errorf("sources %+v, want one at %s", a.Sources, tt.want)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"emphasis":               {"it can take _up to 8 weeks_ to **staff**\na *project*.", "it can take up to 8 weeks to staff a project."},
		"a link":                 {"see [the form](https://x.example/a_b \"T\"), then", "see the form, then"},
		"a link around code":     {"[`location.pathname`](https://x.example)과 같은", "`location.pathname`과 같은"},
		"an image and a comment": {"![logo](a.png) a <!-- hidden\nwords --> b", "logo a b"},
		"tags":                   {"Required<br/>for <b>18F</b>", "Required for 18F"},
		"code keeps its marks":   {"run `a_b_c **x** <y>` now", "run `a_b_c **x** <y>` now"},
		"names with underscores": {"set node_modules and a_b_c", "set node_modules and a_b_c"},
		"no tag: a comparison":   {"if a < b and c > d", "if a < b and c > d"},
		"Korean after emphasis":  {"*반응형이어야 하는* 코드", "반응형이어야 하는 코드"},
		"stars alone":            {"2 * 3 * 4", "2 * 3 * 4"},
		"nothing":                {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Plain(tt.in); got != tt.want {
				t.Errorf("Plain(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "`a` [b](c) **d**", "\x00`x`\x00", "<a <b>", "[[[](", "*_*_a_*_*", "\xff`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := Plain(s); len(got) > len(s)+3*strings.Count(s, "<") || strings.Contains(got, "\n") {
			t.Errorf("Plain(%q) = %q", s, got)
		}
	})
}

// Whatever is cited, numbers are dense, in order of first use, and each quote
// is where it says.
func TestResolveProperties(t *testing.T) {
	t.Parallel()
	contents := []string{"Alpha one. Beta two. Gamma three.", "Delta vier 🙂. Epsilon fünf.", "Zeta."}
	ev := evidence(contents...)
	rapid.Check(t, func(t *rapid.T) {
		var claims []Claim
		for range rapid.IntRange(0, 8).Draw(t, "claims") {
			n := rapid.IntRange(0, 5).Draw(t, "n")
			c := Claim{Text: "?", Kind: Text, Numbers: []int{n}, To: 1}
			if n >= 1 && n <= len(contents) {
				s := rapid.SampledFrom(analysis.Sentences(contents[n-1])).Draw(t, "s")
				c = Claim{"", contents[n-1][s.From:s.To], Text, []int{n}, s.From, s.To}
			}
			claims = append(claims, c)
		}
		a := Resolve(claims, ev)
		next := 1
		for _, s := range a.Sentences {
			for _, n := range s.Cites {
				if n > next {
					t.Fatalf("number %d before %d", n, next)
				}
				if n == next {
					next++
				}
			}
		}
		if next-1 != len(a.Sources) {
			t.Fatalf("%d numbers for %d sources", next-1, len(a.Sources))
		}
		seen := map[string]bool{}
		for i, s := range a.Sources {
			if s.N != i+1 || seen[string(s.Document)+s.Locator] {
				t.Fatalf("source %d: number %d at %s", i, s.N, s.Locator)
			}
			seen[string(s.Document)+s.Locator] = true
			content := []rune(contents[s.Document[0]-'a'])
			if got := string(content[s.From-10 : s.To-10]); got != s.Quote {
				t.Fatalf("%q stands where %q is quoted", got, s.Quote)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "A [1].", "[1]", "A[1][2], b [3, 4]. C", "[[1]]", "[1", "a\x00[9]\xff", "한국어 [1]。"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, draft string) {
		for _, c := range Parse(draft) {
			if marker.MatchString(c.Text) {
				t.Errorf("%q still holds a marker", c.Text)
			}
			if slices.Contains(c.Numbers, 0) && !strings.Contains(draft, "0") {
				t.Errorf("a number that was not written: %v", c.Numbers)
			}
		}
	})
}
