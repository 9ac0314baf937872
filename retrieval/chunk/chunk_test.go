package chunk_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval"
	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
)

// count counts words.
func count(s string) int { return len(strings.Fields(s)) }

// builder writes a tree block by block.
type builder struct {
	text string
	secs []doctree.Section
}

func (b *builder) add(s string) doctree.Block {
	if b.text != "" {
		b.text += "\n\n"
	}
	block := doctree.Block{Span: retrieval.Span{FromByte: len(b.text), ToByte: len(b.text) + len(s)}}
	b.text += s
	return block
}

func (b *builder) section(level int, path ...string) *builder {
	b.secs = append(b.secs, doctree.Section{Level: level, Path: path})
	if level > 0 {
		h := b.add(path[len(path)-1])
		h.Kind = doctree.Heading
		b.block(h)
	}
	return b
}

func (b *builder) block(x doctree.Block) *builder {
	s := &b.secs[len(b.secs)-1]
	s.Blocks = append(s.Blocks, x)
	return b
}

func (b *builder) leaf(k doctree.Kind, s string) *builder {
	x := b.add(s)
	x.Kind = k
	return b.block(x)
}

func (b *builder) table(rows ...string) *builder {
	t := doctree.Block{Kind: doctree.Table}
	for i, r := range rows {
		x := b.add(r)
		if x.Kind = doctree.Row; i == 0 {
			x.Kind, t.Span.FromByte = doctree.HeadRow, x.Span.FromByte
		}
		t.Parts = append(t.Parts, x)
	}
	t.Span.ToByte = len(b.text)
	return b.block(t)
}

func (b *builder) tree() doctree.Tree {
	t := doctree.New(b.text, nil)
	t.Title = "Title"
	for i := range b.secs {
		fill(&t, b.secs[i].Blocks)
		if n := len(b.secs[i].Blocks); n > 0 {
			b.secs[i].Span = t.Span(b.secs[i].Blocks[0].Span.FromByte, b.secs[i].Blocks[n-1].Span.ToByte)
		}
	}
	t.Sections = b.secs
	return t
}

func fill(t *doctree.Tree, blocks []doctree.Block) {
	for i := range blocks {
		blocks[i].Span = t.Span(blocks[i].Span.FromByte, blocks[i].Span.ToByte)
		fill(t, blocks[i].Parts)
	}
}

func split(t testing.TB, tree doctree.Tree, o chunk.Options) []retrieval.Chunk {
	t.Helper()
	cs, err := chunk.Split(tree, o)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func contents(cs []retrieval.Chunk) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Content)
	}
	return out
}

func words(n int, prefix string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return strings.Join(out, " ")
}

func TestStructural(t *testing.T) {
	t.Parallel()
	new := func() *builder { return (&builder{}).section(0) }
	for _, c := range []struct {
		name string
		b    *builder
		want []string
	}{
		{"blocks are packed greedily", new().leaf(doctree.Paragraph, words(8, "a")).leaf(doctree.Paragraph, words(8, "b")).leaf(doctree.Paragraph, words(8, "c")),
			[]string{words(8, "a") + "\n\n" + words(8, "b"), words(8, "c")}},
		{"a section is a wall", new().leaf(doctree.Paragraph, "one").section(1, "S").leaf(doctree.Paragraph, "two"),
			[]string{"one", "S\n\ntwo"}},
		{"a heading alone opens its first subsection", new().section(1, "S").section(2, "S", "T").leaf(doctree.Paragraph, "two").section(2, "S", "U"),
			[]string{"S\n\nT\n\ntwo", "U"}},
		{"a heading does not end a chunk", new().leaf(doctree.Paragraph, words(18, "a")).leaf(doctree.Heading, "H").leaf(doctree.Paragraph, words(6, "b")),
			[]string{words(18, "a"), "H\n\n" + words(6, "b")}},
		{"a long paragraph is cut at sentences", new().leaf(doctree.Paragraph, words(11, "A")+". "+words(11, "B")+". "+words(4, "C")+"."),
			[]string{words(11, "A") + ".", words(11, "B") + ". " + words(4, "C") + "."}},
		{"a long sentence is cut at words", new().leaf(doctree.Paragraph, words(30, "a")),
			[]string{strings.Join(strings.Fields(words(30, "a"))[:16], " "), strings.Join(strings.Fields(words(30, "a"))[16:], " ")}},
		{"long code is cut at lines", new().leaf(doctree.Code, words(12, "a")+"\n"+words(12, "b")),
			[]string{words(12, "a"), words(12, "b")}},
		{"a table that fits is kept whole", new().leaf(doctree.Paragraph, words(16, "p")).table("h i", "a b", "c d"),
			[]string{words(16, "p"), "h i\n\na b\n\nc d"}},
		{"a long table is cut between rows", new().table("h i", words(11, "a"), words(11, "b")),
			[]string{"h i\n\n" + words(11, "a"), words(11, "b")}},
		{"nothing", new(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cs := split(t, c.b.tree(), chunk.Options{Budget: 21, Count: count})
			if diff := cmp.Diff(c.want, contents(cs)); diff != "" {
				t.Error(diff)
			}
			for _, c := range cs {
				if n := count(c.Text); n > 21 {
					t.Errorf("%d tokens: %q", n, c.Text)
				}
			}
		})
	}
}

func TestTextNamesItsPlaceAndRepeatsTheHeadOfATable(t *testing.T) {
	t.Parallel()
	b := (&builder{}).section(0).section(1, "S").section(2, "S", "T").table("h i", words(12, "a"), words(12, "b"))
	cs := split(t, b.tree(), chunk.Options{Budget: 24, Count: count})
	if len(cs) != 2 {
		t.Fatalf("%d chunks", len(cs))
	}
	last := cs[1]
	if want := "[Title > S > T]\nh i\n" + words(12, "b"); last.Text != want || last.Content != words(12, "b") || last.Kind != "table" {
		t.Errorf("%+v", last)
	}
	if diff := cmp.Diff([]string{"S", "T"}, last.Section); diff != "" {
		t.Error(diff)
	}
}

func TestSmallSectionsAreJoinedIfAsked(t *testing.T) {
	t.Parallel()
	tree := (&builder{}).section(0).section(1, "S").leaf(doctree.Paragraph, words(30, "s")).
		section(2, "S", "T").leaf(doctree.Paragraph, words(3, "t")).
		section(2, "S", "U").leaf(doctree.Paragraph, words(3, "u")).
		section(1, "V").leaf(doctree.Paragraph, words(30, "v")).tree()
	var got []string
	for _, c := range split(t, tree, chunk.Options{Budget: 40, Count: count, Join: 10}) {
		got = append(got, strings.Join(c.Section, " > ")+": "+strings.Join(strings.Fields(c.Content), " "))
		if n := count(c.Text); n > 40 {
			t.Errorf("%d tokens", n)
		}
	}
	want := []string{"S: S " + words(30, "s") + " T " + words(3, "t"), "S > U: U " + words(3, "u"), "V: V " + words(30, "v")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLongHeadersAreShortened(t *testing.T) {
	t.Parallel()
	path := []string{words(40, "outer"), words(40, "inner")}
	tree := (&builder{}).section(2, path...).leaf(doctree.Paragraph, words(50, "p")).tree()
	tree.Title = words(60, "title")
	for _, c := range split(t, tree, chunk.Options{Budget: 40, Count: count}) {
		if header, _, _ := strings.Cut(c.Text, "\n"); count(header) > 10 || count(c.Text) > 40 {
			t.Errorf("%q", c.Text)
		}
	}
}

func TestCase_Q12_NothingLiesBeyondTheBudget(t *testing.T) {
	t.Parallel()
	prefix := words(600, "same")
	var tails []string
	for _, tail := range []string{"first ending", "other ending"} {
		cs := split(t, (&builder{}).section(0).leaf(doctree.Paragraph, prefix+" "+tail).tree(), chunk.Options{Count: count})
		for _, c := range cs {
			if n := count(c.Text); n > chunk.DefaultBudget {
				t.Errorf("%d tokens", n)
			}
		}
		tails = append(tails, cs[len(cs)-1].Text)
	}
	if tails[0] == tails[1] || !strings.HasSuffix(tails[1], "other ending") {
		t.Errorf("%q", tails)
	}
}

func TestMeasuredStrategies(t *testing.T) {
	t.Parallel()
	tree := (&builder{}).section(0).leaf(doctree.Paragraph, "One two three. Four five six.").section(1, "S").leaf(doctree.Paragraph, "Seven eight nine ten.").tree()
	for _, c := range []struct {
		strategy chunk.Strategy
		want     []string
	}{
		{chunk.A, []string{"One two three. Four fi", "ve six.\n\nS\n\nSeven eigh", "t nine ten."}},
		{chunk.B, []string{"One two three. Four fi", "ur five six.\n\nS\n\nSeven", "Seven eight nine ten."}},
		{chunk.C, []string{"One two three.", "Four five six.\n\nS", "Seven eight nine ten."}},
		{chunk.D, []string{"One two three.", "ree. Four five six.", "ix.\n\nS\n\nSeven eight", "ight nine ten."}},
	} {
		cs := split(t, tree, chunk.Options{Strategy: c.strategy, Size: 22, Overlap: 5})
		if diff := cmp.Diff(c.want, contents(cs)); diff != "" {
			t.Errorf("%s: %s", c.strategy, diff)
		}
	}
	for _, s := range []chunk.Strategy{chunk.E, chunk.F} {
		cs := split(t, tree, chunk.Options{Strategy: s, Size: 22, Overlap: 5})
		if last := cs[len(cs)-1].Text; !strings.HasPrefix(last, "[Title > S]\n") {
			t.Errorf("%s: %q", s, last)
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, o := range []chunk.Options{{}, {Strategy: "Z"}, {Count: count, Budget: 3}, {Strategy: chunk.B, Size: 10, Overlap: 10}, {Strategy: chunk.A, Size: -1}} {
		if _, err := chunk.Split(doctree.New("x", nil), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// subword counts as a tokenizer does whose joins can cost one token more than
// their parts.
func subword(s string) int { return (utf8.RuneCountInString(s) + 2) / 3 }

func TestAnyTree(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`([A-Za-z가-힣🙂é]{1,30}[ .!?\n]{0,2}){1,30}[a-z]`)
	rapid.Check(t, func(r *rapid.T) {
		b := (&builder{}).section(0)
		for range rapid.IntRange(1, 12).Draw(r, "blocks") {
			s := text.Draw(r, "text")
			switch rapid.IntRange(0, 4).Draw(r, "kind") {
			case 0:
				b.section(rapid.IntRange(1, 3).Draw(r, "level"), s)
			case 1:
				b.leaf(doctree.Code, s)
			case 2:
				b.table(s, text.Draw(r, "row"), text.Draw(r, "row"))
			default:
				b.leaf(doctree.Paragraph, s)
			}
		}
		tree := b.tree()
		budget := rapid.IntRange(16, 200).Draw(r, "budget")
		o := chunk.Options{Count: subword, Budget: budget, Size: rapid.SampledFrom([]int{0, 40, 400}).Draw(r, "size"), Join: rapid.SampledFrom([]int{0, 15, 60}).Draw(r, "join")}
		cs, err := chunk.Split(tree, o)
		if err != nil {
			r.Fatal(err)
		}
		again, _ := chunk.Split(tree, o)
		if diff := cmp.Diff(cs, again); diff != "" {
			r.Fatal(diff)
		}
		last := 0
		for i, c := range cs {
			if c.ID.Ordinal != i || c.Content != tree.Canonical[c.Span.FromByte:c.Span.ToByte] || c.Span.FromByte < last {
				r.Fatalf("%+v after byte %d", c, last)
			}
			if gap := tree.Canonical[last:c.Span.FromByte]; strings.TrimSpace(gap) != "" {
				r.Fatalf("%q is in no chunk", gap)
			}
			if n := subword(c.Text); n > budget {
				r.Fatalf("%d tokens over %d: %q", n, budget, c.Text)
			}
			last = c.Span.ToByte
		}
		if strings.TrimSpace(tree.Canonical[last:]) != "" {
			r.Fatalf("%q is in no chunk", tree.Canonical[last:])
		}
	})
}

// FuzzSplit cuts any text at any size.
func FuzzSplit(f *testing.F) {
	f.Add("One. Two three\n\nfour 한국어 🙂", 20, 10)
	f.Fuzz(func(t *testing.T, s string, budget, size int) {
		s = strings.TrimSpace(strings.ToValidUTF8(s, ""))
		budget, size = 16+budget&0xff, 8+size&0xff
		tree := (&builder{}).section(0).leaf(doctree.Paragraph, s).tree()
		for _, o := range []chunk.Options{{Count: subword, Budget: budget}, {Strategy: chunk.B, Size: size, Overlap: size / 2}, {Strategy: chunk.F, Size: size, Overlap: size / 2}} {
			last := 0
			for _, c := range split(t, tree, o) {
				if c.Content != tree.Canonical[c.Span.FromByte:c.Span.ToByte] || !utf8.ValidString(c.Content) || !utf8.ValidString(c.Text) {
					t.Fatalf("%+v", c)
				}
				if c.Span.FromByte > last && tree.Plain(last, c.Span.FromByte) != "" {
					t.Fatalf("%q is in no chunk", tree.Canonical[last:c.Span.FromByte])
				}
				last = max(last, c.Span.ToByte)
			}
			if last < len(s) && tree.Plain(last, len(s)) != "" {
				t.Fatalf("%q is in no chunk", s[last:])
			}
		}
	})
}
