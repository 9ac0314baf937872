package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/doctree"
)

func TestFrontMatter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, data, title string
		access                  []string
		text                    string
	}{
		{"none", "leave_policy.md", "text", "leave policy", nil, "text"},
		{"first heading", "a.md", "intro\n\n# The *Title* {#x}\n\ntext", "The Title", nil, "intro"},
		{"title and list", "a.md", "---\ntitle: T\naccess: [everyone, group:hr]\n---\n\ntext", "T", []string{"everyone", "group:hr"}, "text"},
		{"one principal", "a.md", "---\naccess: everyone\n---\ntext", "a", []string{"everyone"}, "text"},
		{"a phrase is no list of words", "a.md", "---\naccess: not everyone\n---\ntext", "a", []string{"not everyone"}, "text"},
		{"empty list", "a.md", "---\naccess: []\n---\ntext", "a", []string{}, "text"},
		{"list without value", "a.md", "---\naccess:\n---\ntext", "a", []string{}, "text"},
		{"key in capitals, CRLF, mark", "a.md", "\xef\xbb\xbf---\r\nAccess: [hr]\r\n---\r\ntext", "a", []string{"hr"}, "text"},
		{"in plain text", "a.txt", "---\ntitle: T\naccess: [hr]\n---\ntext", "T", []string{"hr"}, "text"},
		{"in a page", "a.html", "---\naccess: [hr]\n---\n<p>text", "a", []string{"hr"}, "text"},
		{"broken YAML without a list", "a.md", "---\ntitle: a: b\nx: [\n---\ntext", "a: b", nil, "text"},
		{"a rule is no front matter", "a.md", "---\n\nJust text.\n\n---\n\nmore", "a", nil, "---"},
		{"index takes its folder", "travel-rules/index.md", "text", "travel rules", nil, "text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr := tree(t, c.file, c.data)
			if diff := cmp.Diff(c.access, tr.Access); diff != "" || tr.Title != c.title {
				t.Errorf("title %q, access %s", tr.Title, diff)
			}
			s := tr.Sections[0].Blocks
			if len(s) == 0 || !strings.HasPrefix(c.text, "---") && tr.Plain(s[0].Span.FromByte, s[0].Span.ToByte) != c.text {
				t.Errorf("blocks %+v", s)
			}
		})
	}
}

// outline writes a tree as indented lines of kind and plain text.
func outline(tr doctree.Tree) string {
	var b strings.Builder
	var walk func(blocks []doctree.Block, depth int)
	walk = func(blocks []doctree.Block, depth int) {
		for _, x := range blocks {
			fmt.Fprintf(&b, "%s%s", strings.Repeat("  ", depth), x.Kind)
			if len(x.Parts) == 0 {
				fmt.Fprintf(&b, " %q", tr.Plain(x.Span.FromByte, x.Span.ToByte))
			}
			b.WriteString("\n")
			walk(x.Parts, depth+1)
		}
	}
	for _, s := range tr.Sections {
		fmt.Fprintf(&b, "%d %q\n", s.Level, s.Path)
		walk(s.Blocks, 1)
	}
	return b.String()
}

func TestMarkdownTree(t *testing.T) {
	t.Parallel()
	got := outline(tree(t, "a.md", `# Title

<Intro>

Some **bold _both_** and `+"`code *x*`"+` with [link](http://x.y/z "t"), ![alt](i.png), A\*b &amp; <b>x</b>y<br>z.[^1]
Second line.

</Intro>

## Sub {/*sub-id*/}

:::note Mind this
Some *note*.
:::

!!! warning "Careful"
    Body of it.

> [!TIP]
> A tip.

- one
- two

  more
  - nested

`+"```js\nconst a = \"{/* c */}\";\n\nb\n```"+`

| a | b \| c |
|---|---|
| 1 `+"`x`"+` | [l](u) |

[ref]: http://example.com

<div>Raw &lt;b&gt; <p>para</p></div>

{% alert "Be warned", "_img/x.png" %}

#### Deep ##
***
`))
	want := `1 []
  heading "Title"
  paragraph "Some bold both and code *x* with link, alt, A*b & xy z.\nSecond line."
2 ["Sub"]
  heading "Sub"
  paragraph "note Mind this\nSome note."
  paragraph "warning \"Careful\""
  paragraph "Body of it."
  paragraph "TIP\nA tip."
  list
    item "- one"
    item
      paragraph "- two"
      paragraph "more"
      list
        item "- nested"
  code "const a = \"{/* c */}\";\n\nb"
  table
    headrow "a | b | c"
    row "1 x | l"
  paragraph ""
  paragraph "Raw <b>"
  paragraph "para"
  paragraph "Be warned"
4 ["Sub" "Deep"]
  heading "Deep"
  paragraph ""
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHTMLTree(t *testing.T) {
	t.Parallel()
	got := outline(tree(t, "a.html", `<!doctype html><title>Prices | Acme</title><script>"<p>no"</script>
<body><nav>Home</nav><header>Top</header><div role=search>find</div>
<article><header><h1>Prices<a class=headerlink>¶</a></h1></header><p hidden>no<p>A&amp;B  costs <b>5</b>&nbsp;€ &copy 2020, H<sub>2</sub>O.
<p style="display: none">no</p><ul><li>one <li>two <ul><li>nested</ul></ul><aside>no</aside>
<h2>Table</h2><table><caption>Cap</caption><tr><th></th><th>Jan</th></tr><tr><th>Sales</th><td>1<br>2<table><tr><td>in</td><td>ner</td></tr></table></td></tr></table>
<pre>
code  x
  y
</pre><div>tail<div>deep</div> text</div><form>no<input></form><footer>no</footer></article>`))
	want := `1 []
  heading "Prices"
  paragraph "A&B costs 5 € © 2020, H2O."
  list
    item "one"
    item "two"
    item "nested"
2 ["Table"]
  heading "Table"
  table
    row "Cap"
    headrow "| Jan"
    row "Sales | 1 2 in ner"
  code "code  x\n  y"
  paragraph "tail"
  paragraph "deep"
  paragraph "text"
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPagesWithoutMainContentAreReadWhole(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"all in a form":          "<body><form><h1>H</h1><p>content</p></form>",
		"all in a footer":        "<body><footer>content</footer>",
		"navigation never ended": "<body><nav>x<p>content</p>",
		"an empty main":          "<main></main><p>content</p>",
		"no tags":                "content",
		"layout table":           "<table><tr><td><h1>H</h1></td><td><p>content</p></td></tr></table>",
	} {
		if got := tree(t, "a.html", page); !strings.Contains(got.Canonical, "content") {
			t.Errorf("%s: %q", name, got.Canonical)
		}
	}
}
