package office_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/office"
	"footnote/retrieval/extract/ziptest"
)

const (
	relation = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`
	spaces   = ` xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="` + relation + `" xmlns:mc="mc" xmlns:wps="wps" xmlns:p="p" xmlns:a="a"`
)

// rels makes a part of relations: id, kind and target in turn.
func rels(of ...string) string {
	var b strings.Builder
	b.WriteString("<Relationships>")
	for i := 0; i+2 < len(of); i += 3 {
		mode := ""
		if of[i+1] == "hyperlink" {
			mode = ` TargetMode="External"`
		}
		fmt.Fprintf(&b, `<Relationship Id="%s" Type="%s/%s" Target="%s"%s/>`, of[i], relation, of[i+1], of[i+2], mode)
	}
	return b.String() + "</Relationships>"
}

// wordFile makes a document of a body and more parts.
func wordFile(t testing.TB, body string, more map[string]string) []byte {
	t.Helper()
	parts := map[string]string{
		"_rels/.rels":       rels("a", "officeDocument", "word/document.xml"),
		"word/document.xml": "<w:document" + spaces + "><w:body>" + body + "</w:body></w:document>",
	}
	for name, data := range more {
		parts[name] = data
	}
	return ziptest.Parts(t, parts)
}

func p(text string) string { return "<w:p><w:r><w:t>" + text + "</w:t></w:r></w:p>" }

// outline writes sections and leaves as lines.
func outline(t doctree.Tree) string {
	var b strings.Builder
	var write func([]doctree.Block)
	write = func(all []doctree.Block) {
		for _, x := range all {
			if write(x.Parts); len(x.Parts) == 0 {
				text := strings.NewReplacer("\t", "|", "\n", "/").Replace(t.Canonical[x.Span.FromByte:x.Span.ToByte])
				fmt.Fprintf(&b, "%s\n", strings.TrimSpace(fmt.Sprintf("%s %s: %s", x.Place, x.Kind, text)))
			}
		}
	}
	for _, s := range t.Sections {
		if len(s.Path) > 0 {
			b.WriteString("# " + strings.Join(s.Path, " > ") + "\n")
		}
		write(s.Blocks)
	}
	return b.String()
}

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func TestAddressesThatWordsHideAreListedAtTheEnd(t *testing.T) {
	t.Parallel()
	link := func(id, words string) string {
		return `<w:hyperlink r:id="` + id + `"><w:r><w:t>` + words + `</w:t></w:r></w:hyperlink>`
	}
	data := wordFile(t, `<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r>`+link("a", "the help page")+`<w:r><w:t xml:space="preserve"> or </w:t></w:r>`+link("b", "www.example.org/x")+link("c", " there")+`</w:p>`+p("After."),
		map[string]string{"word/_rels/document.xml.rels": rels("a", "hyperlink", "https://example.org/help", "b", "hyperlink", "http://www.example.org/x/", "c", "hyperlink", "javascript:alert(1)")})
	tree, err := office.ReadWord(context.Background(), data, "", bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	want := lines("paragraph: See the help page or www.example.org/x there", "paragraph: After.", "# Links", "item: the help page: https://example.org/help")
	if diff := cmp.Diff(want, outline(tree)); diff != "" {
		t.Error(diff)
	}
}

func TestChartsReadAsTables(t *testing.T) {
	t.Parallel()
	points := func(v ...string) string {
		s := ""
		for i, x := range v {
			s += fmt.Sprintf(`<c:pt idx="%d"><c:v>%s</c:v></c:pt>`, i, x)
		}
		return s
	}
	chart := `<c:chartSpace xmlns:c="c" xmlns:a="a"><c:chart><c:title><a:t>Revenue by region</a:t></c:title><c:ser><c:tx>` + points("Revenue") + `</c:tx><c:cat>` + points("North", "South") +
		`</c:cat><c:val>` + points("12.5", "0.30000000000000004") + `</c:val></c:ser></c:chart></c:chartSpace>`
	data := wordFile(t, `<w:p><w:r><w:t>See:</w:t></w:r><w:r><w:drawing><c:chart xmlns:c="c" r:id="c1"/></w:drawing></w:r></w:p>`+p("After."),
		map[string]string{"word/_rels/document.xml.rels": rels("c1", "chart", "charts/chart1.xml"), "word/charts/chart1.xml": chart})
	tree, err := office.ReadWord(context.Background(), data, "", bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	want := lines("paragraph: See:", "paragraph: Revenue by region", "headrow: ||North|South", "row: Revenue|12.5|0.3", "paragraph: After.")
	if diff := cmp.Diff(want, outline(tree)); diff != "" {
		t.Error(diff)
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	const styles = "<w:styles" + spaces + `>
		<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
		<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/></w:style>
		<w:style w:styleId="Out"><w:name w:val="Outlined"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
		<w:style w:styleId="L"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
		<w:style w:styleId="T1"><w:name w:val="toc 1"/></w:style>
		<w:style w:styleId="Tt"><w:name w:val="Title"/></w:style></w:styles>`
	styled := func(style, text string) string {
		return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + "</w:t></w:r></w:p>"
	}
	more := map[string]string{
		"word/_rels/document.xml.rels": rels("s", "styles", "styles.xml", "f", "footnotes", "footnotes.xml", "h", "header", "header1.xml", "h2", "header", "header2.xml", "g", "footer", "footer1.xml"),
		"word/styles.xml":              styles,
		"word/footnotes.xml":           "<w:footnotes" + spaces + `><w:footnote w:type="separator" w:id="0">` + p("line") + `</w:footnote><w:footnote w:id="2">` + p("The note.") + "</w:footnote></w:footnotes>",
		"word/header1.xml":             "<w:hdr" + spaces + ">" + p("Letterhead") + "</w:hdr>",
		"word/header2.xml":             "<w:hdr" + spaces + ">" + p("Letterhead") + "</w:hdr>",
		"word/footer1.xml":             "<w:ftr" + spaces + ">" + p("Page 3 of 7") + "</w:ftr>",
	}
	const around = "# Page header and footer\nparagraph: Letterhead"
	for _, c := range []struct{ name, body, want string }{
		{"headings by style, by what it is based on, and by level", styled("berschrift1", "One") + p("a") + styled("Out", "Two") + p("b") + styled("Own", "Three") + p("c"),
			lines("# One", "heading: One", "paragraph: a", "# One > Two", "heading: Two", "paragraph: b", "# Three", "heading: Three", "paragraph: c", around)},
		{"the title is none of the path", styled("Tt", "Guide") + styled("berschrift1", "One") + p("a"), lines("heading: Guide", "# One", "heading: One", "paragraph: a", around)},
		{"lists by style and by number; the contents are left out", styled("T1", "One 5") + styled("L", "x") + `<w:p><w:pPr><w:numPr><w:numId w:val="4"/></w:numPr></w:pPr><w:r><w:t>y</w:t></w:r></w:p>`,
			lines("item: x", "item: y", around)},
		{"a note stands below its paragraph", `<w:p><w:r><w:t>See</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t xml:space="preserve"> this.</w:t></w:r></w:p>` + p("Next"),
			lines("paragraph: See this.", "paragraph: The note.", "paragraph: Next", around)},
		{"tracked changes: rows and ends of paragraphs that are deleted", `<w:p><w:pPr><w:rPr><w:del w:id="1"/></w:rPr></w:pPr><w:r><w:t xml:space="preserve">First half </w:t></w:r></w:p>` + p("second half.") +
			`<w:tbl><w:tr><w:tc>` + p("kept") + `</w:tc></w:tr><w:tr><w:trPr><w:del w:id="2"/></w:trPr><w:tc>` + p("deleted") + `</w:tc></w:tr></w:tbl><w:p><w:pPr><w:rPr><w:del w:id="3"/></w:rPr></w:pPr><w:r><w:t>Last.</w:t></w:r></w:p>`,
			lines("paragraph: First half second half.", "row: kept", "paragraph: Last.", around)},
		{"tracked changes: the final text", `<w:p><w:r><w:t>It is </w:t></w:r><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom></w:p>`,
			lines("paragraph: It is new", around)},
		{"hidden text, field codes, breaks and tabs", `<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:rPr><w:vanish/></w:rPr><w:t>hid</w:t></w:r><w:r><w:instrText>PAGEREF x</w:instrText></w:r><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>`,
			lines("paragraph: a/b|c-d", around)},
		{"a link, a control and a comment", `<w:sdt><w:sdtContent><w:p><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink><w:commentRangeStart/><w:r><w:commentReference w:id="1"/></w:r></w:p></w:sdtContent></w:sdt>`,
			lines("paragraph: link", around)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree, err := office.ReadWord(context.Background(), wordFile(t, c.body, more), "", bounds.Limits{}.Filled())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, outline(tree)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func row(cells ...string) string {
	return "<w:tr><w:tc>" + strings.Join(cells, "</w:tc><w:tc>") + "</w:tc></w:tr>"
}

func TestCase_X4_TablesKeepRowsAndCells(t *testing.T) {
	t.Parallel()
	merge := func(value, text string) string {
		return `<w:tcPr><w:vMerge w:val="` + value + `"/></w:tcPr>` + p(text)
	}
	for _, c := range []struct{ name, table, want string }{
		{"two by two", row(p("A1"), p("B1")) + row(p("A2"), p("B2")), lines("paragraph: before", "headrow: A1|B1", "row: A2|B2", "paragraph: after")},
		{"a cell of two paragraphs", row(p("a")+p("b"), p("1")), lines("paragraph: before", "row: a b|1", "paragraph: after")},
		{"merged to the right", row(`<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>`+p("AB"), p("C")) + row(p("1"), p("2"), p("3")), lines("paragraph: before", "headrow: AB||C", "row: 1|2|3", "paragraph: after")},
		{"merged downwards", row(p("N"), p("V")) + row(merge("restart", "x"), p("1")) + row(merge("continue", ""), p("2")) + row(p("y"), p("3")), lines("paragraph: before", "headrow: N|V", "row: x|1", "row: x|2", "row: y|3", "paragraph: after")},
		{"a row that starts late", row(p("N"), p("V")) + `<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr><w:tc>` + p("1") + "</w:tc></w:tr>", lines("paragraph: before", "headrow: N|V", "row: ||1", "paragraph: after")},
		{"a table in a cell", row("<w:tbl>"+row(p("a"), p("b"))+"</w:tbl>"+p("c"), p("1")), lines("paragraph: before", "row: a b c|1", "paragraph: after")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree, err := office.ReadWord(context.Background(), wordFile(t, p("before")+"<w:tbl>"+c.table+"</w:tbl>"+p("after"), nil), "", bounds.Limits{}.Filled())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, outline(tree)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCase_X5_TextBoxesAreReadOnce(t *testing.T) {
	t.Parallel()
	box := "<w:txbxContent>" + p("In the box") + "</w:txbxContent>"
	body := "<w:p><w:r><w:t>Around</w:t></w:r><w:r><mc:AlternateContent><mc:Choice><wps:txbx>" + box + "</wps:txbx></mc:Choice><mc:Fallback><w:pict>" + box + "</w:pict></mc:Fallback></mc:AlternateContent></w:r><w:r><w:t> it</w:t></w:r></w:p>"
	tree, err := office.ReadWord(context.Background(), wordFile(t, body, nil), "", bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines("paragraph: Around it", "paragraph: In the box"), outline(tree)); diff != "" {
		t.Error(diff)
	}
}

// slidesFile makes a presentation of slides and more parts.
func slidesFile(t testing.TB, slides []string, more map[string]string) []byte {
	t.Helper()
	var ids strings.Builder
	var of []string
	parts := map[string]string{"_rels/.rels": rels("a", "officeDocument", "/ppt/presentation.xml")}
	for i, s := range slides {
		// The order is that of the presentation, not of the names.
		name := fmt.Sprintf("slides/slide%d.xml", len(slides)-i)
		of = append(of, fmt.Sprintf("s%d", i), "slide", name)
		fmt.Fprintf(&ids, `<p:sldId id="%d" r:id="s%d"/>`, 256+i, i)
		parts["ppt/"+name] = s
	}
	parts["ppt/presentation.xml"] = "<p:presentation" + spaces + "><p:sldIdLst>" + ids.String() + "</p:sldIdLst></p:presentation>"
	parts["ppt/_rels/presentation.xml.rels"] = rels(of...)
	for name, data := range more {
		parts[name] = data
	}
	return ziptest.Parts(t, parts)
}

func shape(kind string, paragraphs ...string) string {
	if kind != "" {
		kind = `<p:nvPr><p:ph type="` + kind + `"/></p:nvPr>`
	}
	return "<p:sp>" + kind + "<p:txBody><a:p><a:r><a:t>" + strings.Join(paragraphs, "</a:t></a:r></a:p><a:p><a:r><a:t>") + "</a:t></a:r></a:p></p:txBody></p:sp>"
}

func slide(attrs string, shapes ...string) string {
	return "<p:sld" + spaces + attrs + "><p:cSld><p:spTree>" + strings.Join(shapes, "") + "</p:spTree></p:cSld></p:sld>"
}

func TestSlides(t *testing.T) {
	t.Parallel()
	cell := func(attrs, text string) string {
		return "<a:tc" + attrs + "><a:txBody><a:p><a:r><a:t>" + text + "</a:t></a:r></a:p></a:txBody></a:tc>"
	}
	table := "<p:graphicFrame><a:tbl><a:tr>" + cell(` rowSpan="2"`, "N") + cell(` gridSpan="2"`, "wide") + cell(` hMerge="1"`, "") + "</a:tr><a:tr>" + cell(` vMerge="1"`, "") + cell("", "1") + cell("", "2") + "</a:tr></a:tbl></p:graphicFrame>"
	data := slidesFile(t, []string{
		slide("", shape("", "below the title"), shape("ctrTitle", "Welcome"), shape("ftr", "confidential"), shape("sldNum", "1")),
		slide(` show="0"`, shape("title", "Secret plans")),
		slide("", shape("body", "first", "second"), table, "<mc:Fallback>"+shape("", "twice")+"</mc:Fallback>"),
	}, map[string]string{
		"ppt/slides/_rels/slide1.xml.rels": rels("n", "notesSlide", "../notesSlides/n.xml", "d", "diagramData", "../diagrams/d.xml"),
		"ppt/notesSlides/n.xml":            "<p:notes" + spaces + ">" + shape("body", "Say it slowly.") + shape("sldNum", "3") + "</p:notes>",
		"ppt/diagrams/d.xml":               "<dgm" + spaces + "><a:p><a:r><a:t>Step one</a:t></a:r></a:p></dgm>",
	})
	tree, err := office.ReadSlides(context.Background(), data, "", bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	want := lines("slide=1 heading: Welcome", "slide=1 paragraph: below the title",
		"# Slide 3", "slide=3 item: first", "slide=3 item: second", "slide=3 headrow: N|wide", "slide=3 row: N|1|2", "slide=3 paragraph: Say it slowly.", "slide=3 item: Step one")
	if diff := cmp.Diff(want, outline(tree)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"left out 1 hidden slides"}, tree.Warnings); diff != "" {
		t.Error(diff)
	}
	_, err = office.ReadSlides(context.Background(), data, "", bounds.Limits{Pages: 2}.Filled())
	if err == nil || !strings.Contains(err.Error(), "has 3 slides, the limit is 2 (ingest.extract.pages)") {
		t.Error(err)
	}
}

func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	whole := wordFile(t, p("text"), nil)
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"cut off", "damaged or cut off", whole[:len(whole)/2]},
		{"broken XML", "is damaged", wordFile(t, "<w:p>", nil)},
		{"an entity bomb", "is damaged", ziptest.Parts(t, map[string]string{"word/document.xml": `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>`})},
		{"no main part", "its main part is missing", ziptest.Parts(t, map[string]string{"x": "y"})},
		{"a presentation called a document", "the wrong name", slidesFile(t, []string{slide("")}, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := office.ReadWord(context.Background(), c.data, "", bounds.Limits{}.Filled())
			var known *bounds.Error
			if !errors.As(err, &known) || !strings.Contains(known.Reason, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The XML of the parts is what is fuzzed: the zip around it is the library's.
func FuzzWord(f *testing.F) {
	f.Add("<w:tbl>" + row(p("a"), p("b")) + "</w:tbl>" + p("c"))
	f.Add("<w:p><w:r><w:t>a</w:t></w:r><w:txbxContent><w:p><w:tbl><w:tr><w:tc>")
	f.Add("</w:p></w:tc></w:tr></w:tbl><w:tc/><w:tr/>")
	f.Fuzz(func(t *testing.T, body string) {
		_, err := office.ReadWord(context.Background(), wordFile(t, body, nil), "", bounds.Limits{}.Filled())
		var known *bounds.Error
		if err != nil && !errors.As(err, &known) {
			t.Fatal(err)
		}
	})
}

func FuzzSlides(f *testing.F) {
	f.Add(shape("title", "a") + shape("", "b", "c"))
	f.Add("<a:tbl><a:tr><a:tc><a:p><a:t>x</a:t></a:p></a:tc></a:tr></a:tbl><a:tc/>")
	f.Fuzz(func(t *testing.T, shapes string) {
		_, err := office.ReadSlides(context.Background(), slidesFile(t, []string{slide("", shapes)}, nil), "", bounds.Limits{}.Filled())
		var known *bounds.Error
		if err != nil && !errors.As(err, &known) {
			t.Fatal(err)
		}
	})
}
