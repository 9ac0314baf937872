package console

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain text stays", "Grüße, 안녕 👩‍💻\nzwei", "Grüße, 안녕 👩‍💻\nzwei"},
		{"colour", "a\x1b[31mred\x1b[0m", "a␛[31mred␛[0m"},
		{"window title", "\x1b]0;pwned\x07", "␛]0;pwned␇"},
		{"clipboard write", "\x1b]52;c;cm0=\x1b\\", "␛]52;c;cm0=␛\\"},
		{"eight-bit control", "a\u009b31m", "a\ufffd31m"},
		{"raw byte 0x9b", "a\x9b31m", "a\ufffd31m"},
		{"carriage return hides the line", "safe\rEVIL", "safe␍EVIL"},
		{"windows line break", "a\r\nb", "a\nb"},
		{"backspace and delete", "a\bb\x7f", "a␈b␡"},
		{"right-to-left override", "a\u202etxt.exe", "a\ufffdtxt.exe"},
		{"line separator", "a\u2028b", "a\ufffdb"},
		{"tags", "a\U000e0041b", "a\ufffdb"},
		{"NUL", "a\x00b", "a␀b"},
		{"tab", "a\tb", "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Safe(tt.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2Jb", "\x9b", "\u202e", "가\t나", "\r\n\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Safe(s)
		for _, r := range got {
			if r != '\n' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e {
				t.Fatalf("%q lets %U through", got, r)
			}
		}
		if Safe(got) != got {
			t.Fatalf("%q changes when made safe again", got)
		}
		if strings.ContainsRune(Line(s), '\n') {
			t.Fatalf("%q is more than one line", Line(s))
		}
	})
}

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		limit    int
		indent   string
		want     []string
	}{
		{"short", "one two", 20, "", []string{"one two"}},
		{"between words", "aaa bbb ccc ddd", 8, "", []string{"aaa bbb", "ccc ddd"}},
		{"indent of later lines", "aaa bbb ccc", 10, "  ", []string{"aaa bbb", "  ccc"}},
		{"long word is broken", "abcdefghijkl", 8, "", []string{"abcdefgh", "ijkl"}},
		{"Hangul takes two columns", "가나다라 마바사아", 8, "", []string{"가나다라", "마바사아"}},
		{"wide character never straddles", "가나다라마", 9, "", []string{"가나다라", "마"}},
		{"line breaks stay", "a\nb", 20, "  ", []string{"a", "  b"}},
		{"nothing", "", 20, "", []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, wrap(tt.in, tt.limit, tt.indent)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two three", 9, 2)
	f.Add("가나다라마바사", 10, 0)
	f.Fuzz(func(t *testing.T, s string, limit, indent int) {
		limit, indent = 10+abs(limit)%100, abs(indent)%4
		safe := Safe(s)
		lines := wrap(safe, limit, strings.Repeat(" ", indent))
		for _, l := range lines {
			if columns(l) > max(limit, indent+8)+1 {
				t.Fatalf("%q takes %d columns of %d", l, columns(l), limit)
			}
		}
		keep := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if keep(strings.Join(lines, "")) != keep(safe) {
			t.Fatalf("wrapping %q lost characters: %q", safe, lines)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }
