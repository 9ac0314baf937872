package cite

import (
	"testing"
	"unicode/utf8"
)

// F4: a table shows as one, without markup in its cells.
func TestCase_F4(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string][2]string{
		"link, bold and code": {
			"| Plan | Price | See |\n|:--|--:|---|\n| **Skiff** | `49 EUR` | [terms](https://x.test/a) |\n| Clipper | 690 | - |",
			"Plan     Price   See\n-------  ------  -----\nSkiff    49 EUR  terms\nClipper  690     -",
		},
		"wide letters":       {"|이름|a|\n|-|-|\n|뱃사공|b|", "이름    a\n------  -\n뱃사공  b"},
		"a bar in a cell":    {"| a \\| b | c |\n|-|-|\n| d | e |", "a | b  c\n-----  -\nd      e"},
		"rows of two sizes":  {"|a|b|\n|-|-|\n|c|", "a  b\n-  -\nc"},
		"cells between tabs": {"a|b\tc\n1\t22", "a|b  c\n---  --\n1    22"},
		"no table":           {"just words", "just words"},
	} {
		if got := Grid(tt[0]); got != tt[1] {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt[1])
		}
	}
}

func FuzzGrid(f *testing.F) {
	for _, s := range []string{"|a|b|\n|-|-|\n|1|2|", "a|b", "||", "no table", "| a \\| b |", "|`a|b`|"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if g := Grid(s); utf8.ValidString(s) && !utf8.ValidString(g) {
			t.Fatalf("%q gives %q", s, g)
		}
	})
}
