package doctree_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval"
	"footnote/retrieval/doctree"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		marks      []doctree.Mark
		from, to   int
		want       string
	}{
		{"without marks", "a\tb  \n\n\n\nc ", nil, 0, 11, "a\tb\n\nc"},
		{"marks hide and replace", "**a** & <br>b", []doctree.Mark{{From: 3, To: 5}, {From: 0, To: 2}, {From: 8, To: 12, As: "\n"}}, 0, 13, "a &\nb"},
		{"a mark that began before the range reads as nothing", "[a](url) b", []doctree.Mark{{From: 2, To: 8, As: "!"}}, 4, 10, "b"},
		{"a mark that ends after the range counts", "[a](url) b", []doctree.Mark{{From: 2, To: 8, As: "!"}}, 1, 5, "a!"},
		{"overlapping marks: the earlier and longer stays", "abcdef", []doctree.Mark{{From: 2, To: 5}, {From: 1, To: 3}, {From: 1, To: 4}}, 0, 6, "aef"},
		{"control characters and bidi overrides", "a\x1b[0m\ufffd\u202eb\u200b", nil, 0, 15, "a[0mb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr := doctree.New(c.text, nil)
			tr.AddMarks(c.marks)
			if diff := cmp.Diff(c.want, tr.Plain(c.from, min(c.to, len(c.text)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpanCountsInAllUnits(t *testing.T) {
	t.Parallel()
	// Source: a mark, "é" in two bytes, CR LF, an emoji.
	var m doctree.Map
	m.Add(0, 3, 1, 1)
	m.Add(3, 7, 1, 1)
	tr := doctree.New("é\n🙂x", &m)
	want := retrieval.Span{From: 1, To: 3, FromByte: 2, ToByte: 7, SourceFrom: 5, SourceTo: 11}
	if diff := cmp.Diff(want, tr.Span(2, 7)); diff != "" {
		t.Error(diff)
	}
	if got := tr.Span(7, 7); got.SourceFrom != got.SourceTo {
		t.Errorf("empty range has source %d-%d", got.SourceFrom, got.SourceTo)
	}
}

func TestMapsChain(t *testing.T) {
	t.Parallel()
	// Two bytes of source per decoded byte, of which every other one is kept.
	var outer, inner doctree.Map
	for i := range 8 {
		outer.Add(i, 2*i, 1, 2)
	}
	for i := range 4 {
		inner.Add(i, 2*i, 1, 1)
	}
	from, to := inner.Through(&outer).Range(1, 3)
	if from != 4 || to != 10 {
		t.Errorf("got %d-%d, want 4-10", from, to)
	}
}

func TestCodePointsOfAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := strings.ToValidUTF8(strings.Repeat(rapid.String().Draw(r, "text"), rapid.IntRange(1, 40).Draw(r, "times")), "")
		tr := doctree.New(s, nil)
		points := []rune(s)
		from := rapid.IntRange(0, len(points)).Draw(r, "from")
		to := rapid.IntRange(from, len(points)).Draw(r, "to")
		a, b := len(string(points[:from])), len(string(points[:to]))
		span := tr.Span(a, b)
		if span.From != from || span.To != to || span.SourceFrom != a || span.SourceTo != b {
			r.Fatalf("%+v for points %d-%d, bytes %d-%d", span, from, to, a, b)
		}
		if !utf8.ValidString(tr.Plain(a, b)) {
			r.Fatal("plain text is no UTF-8")
		}
	})
}

func TestOutline(t *testing.T) {
	t.Parallel()
	o := doctree.Outline{Title: "Guide"}
	var got []string
	for _, h := range []struct {
		level int
		text  string
	}{{1, "guide"}, {2, "A"}, {4, "B"}, {3, "C"}, {2, ""}, {3, "D"}, {1, "Guide"}} {
		got = append(got, strings.Join(o.Enter(h.level, h.text), " > "))
	}
	if diff := cmp.Diff([]string{"", "A", "A > B", "A > C", "", "D", "Guide"}, got); diff != "" {
		t.Error(diff)
	}
}
