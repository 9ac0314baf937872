package pdf_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/pdf"
)

// file makes a PDF of the content streams of its pages.
type file struct {
	pages    []string
	rotate   int
	annots   string // annotations of each page
	xobject  string // pictures of each page
	font     string // of F1, "" Helvetica
	info     string // entries of the information dictionary
	catalog  string // more entries of the catalog
	objects  []string
	user     string // password; encrypts if locked
	isLocked bool
}

const pad = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

func crypt(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// bytes writes the file. Objects: 1 catalog, 2 pages, 3 and 4 fonts, then two
// for each page, then others. Encryption is that of PDF 1.3, algorithms 2 to 4.
func (f file) bytes() []byte {
	font := f.font
	if font == "" {
		font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
	}
	objects := []string{"", "", font, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>"}
	var kids []string
	var key []byte
	encrypt := ""
	if f.isLocked {
		owner := crypt(md5sum(pad)[:5], []byte((f.user + pad)[:32]))
		sum := md5sum((f.user + pad)[:32] + string(owner) + "\xff\xff\xff\xff" + "id")
		key = sum[:5]
		encrypt = fmt.Sprintf("/Encrypt << /Filter /Standard /V 1 /R 2 /P -1 /O <%x> /U <%x> >> /ID [<6964> <6964>]", owner, crypt(key, []byte(pad)))
	}
	for _, content := range f.pages {
		n := len(objects) + 1
		kids = append(kids, fmt.Sprintf("%d 0 R", n))
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Rotate %d /Annots [%s] /Contents %d 0 R /Resources << /Font << /F1 3 0 R /F2 4 0 R >> /XObject << %s >> >> >>", f.rotate, f.annots, n+1, f.xobject))
		stream := []byte(content)
		if f.isLocked {
			stream = crypt(md5sum(string(key) + string(binary.LittleEndian.AppendUint32(nil, uint32(n+1))[:3]) + "\x00\x00")[:10], stream)
		}
		objects = append(objects, fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream))
	}
	objects = append(append(objects, f.objects...), "<< "+f.info+" >>")
	objects[0] = "<< /Type /Catalog /Pages 2 0 R " + f.catalog + " >>"
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(kids))
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, a := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", a)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R /Info %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, len(objects), encrypt, xref)
	return b.Bytes()
}

func md5sum(s string) []byte { sum := md5.Sum([]byte(s)); return sum[:] }

// at shows text at a place, from the bottom left corner, in a size of a font.
func at(x, y, size float64, font, text string) string {
	return fmt.Sprintf("BT /%s %g Tf %g %g Td (%s) Tj ET\n", font, size, x, y, strings.NewReplacer("(", "\\(", ")", "\\)").Replace(text))
}

// column shows lines below one another.
func column(x, y float64, lines ...string) string {
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(at(x, y-12*float64(i), 10, "F1", l))
	}
	return b.String()
}

func read(t testing.TB, data []byte) doctree.Tree {
	t.Helper()
	tree, err := pdf.Read(context.Background(), data, "", bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// outline writes sections and leaves as lines.
func outline(t doctree.Tree) string {
	var b strings.Builder
	var write func([]doctree.Block)
	write = func(all []doctree.Block) {
		for _, x := range all {
			if write(x.Parts); len(x.Parts) == 0 {
				fmt.Fprintf(&b, "%s %s: %s\n", x.Place, x.Kind, strings.NewReplacer("\t", "|", "\n", "/").Replace(t.Canonical[x.Span.FromByte:x.Span.ToByte]))
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

// Text of one column of a page; each line is about as long as the others.
var (
	left  = []string{"The warranty of all our devices lasts", "for two years from the day of sale and", "covers every fault of the material. It", "does not cover wear, nor damage by wa-", "ter, nor repairs by others. Send us the", "device with the receipt in its own box."}
	right = []string{"Returns are accepted within thirty days", "if the parcel has not been opened. The", "sum is paid back to the same account in", "one week. Postage is paid by the buyer", "unless the device was broken already on", "arrival, which must be shown by photos."}
)

// grid shows a table of three rows and four columns.
func grid(x, y float64) string {
	var b strings.Builder
	for i := range 3 {
		for j := range 4 {
			b.WriteString(at(x+120*float64(j), y-14*float64(i), 10, "F1", string(rune('a'+i))+string(rune('a'+j))))
		}
	}
	return b.String()
}

func TestLayout(t *testing.T) {
	t.Parallel()
	var interleaved strings.Builder
	for i := range left {
		interleaved.WriteString(at(50, 600-12*float64(i), 10, "F1", left[i]) + at(320, 600-12*float64(i), 10, "F1", right[i]))
	}
	const one = "page=1 paragraph: The warranty of all our devices lasts for two years from the day of sale and covers every fault of the material. It does not cover wear, nor damage by water, nor repairs by others. Send us the device with the receipt in its own box."
	const two = "page=1 paragraph: Returns are accepted within thirty days if the parcel has not been opened. The sum is paid back to the same account in one week. Postage is paid by the buyer unless the device was broken already on arrival, which must be shown by photos."
	for _, c := range []struct {
		name string
		file file
		want string
	}{
		{"two columns on the same lines", file{pages: []string{interleaved.String()}}, lines(one, two)},
		{"two columns, one after the other", file{pages: []string{column(320, 600, right...) + column(50, 600, left...)}}, lines(one, two)},
		{"two columns above a table", file{pages: []string{interleaved.String() + grid(50, 450)}}, lines(one, two, "page=1 headrow: aa|ab|ac|ad", "page=1 row: ba|bb|bc|bd", "page=1 row: ca|cb|cc|cd")},
		{"three columns", file{pages: []string{strings.NewReplacer("/F1 10", "/F1 8").Replace(column(40, 600, left...) + column(210, 600, right...) + column(385, 600, left...))}}, lines(one, two, one)},
		{"two columns below a title", file{pages: []string{at(150, 700, 20, "F1", "Terms of sale for devices") + interleaved.String()}}, lines("page=1 heading: Terms of sale for devices", one, two)},
		{"a table", file{pages: []string{at(50, 700, 10, "F1", "Item") + at(200, 700, 10, "F1", "Price") + at(300, 700, 10, "F1", "Stock") +
			at(50, 685, 10, "F1", "Steel nut") + at(200, 685, 10, "F1", "1,234.50") + at(300, 685, 10, "F1", "7") +
			at(50, 670, 10, "F1", "Bolt") + at(200, 670, 10, "F1", "2.00") + at(300, 670, 10, "F1", "15")}},
			lines("page=1 headrow: Item|Price|Stock", "page=1 row: Steel nut|1,234.50|7", "page=1 row: Bolt|2.00|15")},
		{"a wide gap alone is no table", file{pages: []string{at(50, 700, 10, "F1", "1") + at(90, 700, 10, "F1", "First item of all") + column(50, 680, "Some text below it.", "It has two lines.")}},
			lines("page=1 paragraph: 1 First item of all", "page=1 paragraph: Some text below it. It has two lines.")},
		{"headings by size and weight", file{pages: []string{at(50, 740, 20, "F1", "Guide") + at(50, 700, 14, "F1", "Prices") + column(50, 680, "All prices are in euro and include tax.") +
			at(50, 640, 14, "F1", "Places") + at(50, 620, 10, "F2", "North") + column(50, 600, "The north has three shops that open at six.")}},
			lines("page=1 heading: Guide", "# Prices", "page=1 heading: Prices", "page=1 paragraph: All prices are in euro and include tax.", "# Places", "page=1 heading: Places", "# Places > North", "page=1 heading: North", "page=1 paragraph: The north has three shops that open at six.")},
		{"headings of the outline", file{pages: []string{column(50, 700, "2.1 Refunds") + column(50, 670, "Money is paid back in a week.")}, catalog: "/Outlines 7 0 R",
			objects: []string{"<< /First 8 0 R /Last 8 0 R /Count 1 >>", "<< /Title (2.1 Refunds) /Parent 7 0 R /Dest [5 0 R /Fit] >>"}},
			lines("page=1 heading: 2.1 Refunds", "page=1 paragraph: Money is paid back in a week.")},
		{"a list", file{pages: []string{column(50, 700, "1. Open the box and take", "the device out.", "2. Press the button.")}}, lines("page=1 item: 1. Open the box and take the device out.", "page=1 item: 2. Press the button.")},
		{"a font scaled by its matrix", file{pages: []string{"BT /F1 1 Tf 10 0 0 10 50 700 Tm (Scaled text of ten points) Tj ET"}}, lines("page=1 paragraph: Scaled text of ten points")},
		{"a turned page", file{rotate: 90, pages: []string{"BT /F1 10 Tf 0 1 -1 0 100 50 Tm (Upright when) Tj ET BT /F1 10 Tf 0 1 -1 0 112 50 Tm (it is shown.) Tj ET"}}, lines("page=1 paragraph: Upright when it is shown.")},
		{"a stamp across the page", file{pages: []string{column(50, 700, "The text below it.") + "BT /F1 60 Tf 0.7 0.7 -0.7 0.7 100 300 Tm (DRAFT) Tj ET"}}, lines("page=1 paragraph: The text below it.")},
		{"a note on the margin comes last", file{pages: []string{"BT /F1 20 Tf 0 1 -1 0 30 300 Tm (margin) Tj ET\n" + column(50, 700, "The text of the page.")}}, lines("page=1 paragraph: The text of the page.", "page=1 paragraph: margin")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, outline(read(t, c.file.bytes()))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRepeatedHeadersFootersAndNumbersAreLeftOut(t *testing.T) {
	t.Parallel()
	var f file
	for i := range 4 {
		f.pages = append(f.pages, at(50, 770, 9, "F1", "ACME Ltd. Handbook")+at(450, 770, 9, "F1", "Confidential")+column(50, 700, fmt.Sprintf("The text of chapter %c is here.", 'A'+i))+at(280, 30, 9, "F1", fmt.Sprintf("Page %d of 4", i+1)))
	}
	tree := read(t, f.bytes())
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprintf("page=%d paragraph: The text of chapter %c is here.", i+1, 'A'+i))
	}
	if diff := cmp.Diff(lines(want...), outline(tree)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"left out of every page: ACME Ltd. Handbook Confidential"}, tree.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestATableThatGoesOnKeepsItsColumnNamesOnce(t *testing.T) {
	t.Parallel()
	var f file
	for i := range 3 {
		page := at(50, 750, 10, "F1", "Name") + at(200, 750, 10, "F1", "Place") + at(400, 750, 10, "F1", "Grade")
		for j := range 3 {
			y := 730 - 15*float64(j)
			page += at(50, y, 10, "F1", fmt.Sprintf("Person %c%c", 'A'+i, 'a'+j)) + at(200, y, 10, "F1", fmt.Sprintf("Town %c%c", 'K'+i, 'k'+j)) + at(400, y, 10, "F1", fmt.Sprint(7*i+j))
		}
		f.pages = append(f.pages, page)
	}
	got := outline(read(t, f.bytes()))
	if strings.Count(got, "Name|Place|Grade") != 1 || strings.Count(got, " row: Person") != 9 {
		t.Error(got)
	}
}

func TestChunksOpenAtTheirPage(t *testing.T) {
	t.Parallel()
	tree := read(t, file{pages: []string{at(50, 700, 20, "F1", "One") + column(50, 660, left...), at(50, 700, 20, "F1", "Two") + column(50, 660, right...)}}.bytes())
	cs, err := chunk.Split(tree, chunk.Options{Count: func(s string) int { return utf8.RuneCountInString(s)/4 + 1 }})
	if err != nil || len(cs) != 2 {
		t.Fatal(len(cs), err)
	}
	for i, c := range cs {
		if want := fmt.Sprintf("#page=%d&char=%d,%d", i+1, c.Span.From, c.Span.To); c.Locator != want {
			t.Errorf("%s, want %s", c.Locator, want)
		}
	}
}

// picture is a page that shows something and holds no text.
const picture = "0.5 g 100 100 300 300 re f\n"

func TestCase_X1_X2_PagesWithoutTextAreReported(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no text recognition
	tree := read(t, file{pages: []string{column(50, 700, "One."), picture, column(50, 700, "Two."), picture, column(50, 700, "Three.")}}.bytes())
	if diff := cmp.Diff([]string{"2 of 5 pages have no text; install tesseract with the languages eng and kor, or add a text layer to the file (pages 2, 4)"}, tree.Warnings); diff != "" {
		t.Error(diff)
	}
	_, err := pdf.Read(context.Background(), file{pages: []string{picture}}.bytes(), "", bounds.Limits{}.Filled())
	var known *bounds.Error
	if !errors.As(err, &known) || !known.Retryable || !strings.Contains(known.Reason, "no text found: 1 of 1 pages hold only pictures; install tesseract") {
		t.Error(err)
	}
}

func TestPagesWithoutTextAreRecognised(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nif [ \"$1\" = --list-langs ]; then printf 'List:\\neng\\nkor\\nosd\\n'; exit; fi\n" +
		"[ \"$4\" = eng+kor ] || exit 3\n[ \"$(/usr/bin/head -c 4 | /usr/bin/tr -dc A-Z)\" = PNG ] || exit 4\n" +
		"printf 'level\\tpage\\n5\\t1\\t1\\t1\\t1\\t1\\t100\\t100\\t200\\t40\\t90.0\\tScanned\\n5\\t1\\t1\\t1\\t1\\t2\\t330\\t100\\t100\\t40\\t80\\ttext\\n5\\t1\\t1\\t1\\t1\\t3\\t430\\t100\\t100\\t40\\t10\\tnoise\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "tesseract"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	tree := read(t, file{pages: []string{column(50, 700, "Text."), picture}}.bytes())
	if diff := cmp.Diff(lines("page=1 paragraph: Text.", "page=2 paragraph: Scanned text"), outline(tree)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1 of 2 pages were read by text recognition, with confidence 85 of 100, the least 85 on page 2 (pages 2)"}, tree.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestCase_X3_FontsThatDoNotSayWhatTheyShow(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	broken := file{
		font:    "<< /Type /Font /Subtype /Type0 /BaseFont /Odd /Encoding /Identity-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Odd /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /Odd /Flags 4 >> >>] >>",
		pages:   []string{"BT /F1 12 Tf 50 700 Td <002400250026002700280029> Tj ET", "BT /F2 12 Tf 50 700 Td (Readable text.) Tj ET"},
		objects: nil,
	}
	tree := read(t, broken.bytes())
	if diff := cmp.Diff(lines("page=2 paragraph: Readable text."), strings.ReplaceAll(outline(tree), "heading", "paragraph")); diff != "" {
		t.Error(diff)
	}
	if got := strings.Join(tree.Warnings, "\n"); !strings.Contains(got, "1 of 2 pages have text in fonts that do not say which characters they show") {
		t.Error(got)
	}
	cid := file{pages: []string{column(50, 700, "(cid:12)(cid:7) (cid:33) (cid:4)")}}
	if _, err := pdf.Read(context.Background(), cid.bytes(), "", bounds.Limits{}.Filled()); err == nil || !strings.Contains(err.Error(), "no text found: the fonts do not say") {
		t.Error(err)
	}
}

func TestEncryptedFiles(t *testing.T) {
	t.Parallel()
	open := file{isLocked: true, pages: []string{column(50, 700, "Nothing to type.")}}.bytes()
	if got := read(t, open).Canonical; got != "Nothing to type." {
		t.Errorf("the empty password: %q", got)
	}
	locked := file{isLocked: true, user: "key", pages: []string{column(50, 700, "Inside.")}}.bytes()
	for password, want := range map[string]string{"": "the PDF is encrypted: save it without a password, or give the password", "bad": "the password given does not open it", "key": ""} {
		tree, err := pdf.Read(context.Background(), locked, password, bounds.Limits{}.Filled())
		var known *bounds.Error
		switch {
		case want == "" && (err != nil || tree.Canonical != "Inside."):
			t.Errorf("%q: %q %v", password, tree.Canonical, err)
		case want != "" && (!errors.As(err, &known) || !known.Retryable || !strings.Contains(known.Reason, want)):
			t.Errorf("%q: %v", password, err)
		}
	}
}

func TestDamagedFilesEndInTextOrAReason(t *testing.T) {
	t.Parallel()
	whole := file{pages: []string{column(50, 700, left...), column(50, 700, right...)}}.bytes()
	for n := 0; n < len(whole); n += 97 {
		_, err := pdf.Read(context.Background(), whole[:n], "", bounds.Limits{}.Filled())
		var known *bounds.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("cut off at %d: %v", n, err)
		}
	}
	for _, c := range []struct{ name, data, want string }{
		{"text", "hello", "not a PDF"},
		{"a start only", "%PDF-1.7\n", "damaged"},
		{"no pages", string(file{}.bytes()), "no pages"},
	} {
		if _, err := pdf.Read(context.Background(), []byte(c.data), "", bounds.Limits{}.Filled()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCase_X9_ManyPagesAreReadOneAtATime(t *testing.T) {
	t.Parallel()
	var f file
	for i := range 500 {
		f.pages = append(f.pages, column(50, 700-float64(i%7)*20, append([]string{fmt.Sprintf("This is page number %d of them all.", i)}, left...)...))
	}
	data := f.bytes()
	if tree := read(t, data); strings.Count(tree.Canonical, "This is page number") != 500 {
		t.Error("pages are missing")
	}
	if _, err := pdf.Read(context.Background(), data, "", bounds.Limits{Pages: 100}.Filled()); err == nil || !strings.Contains(err.Error(), "has 500 pages, the limit is 100 (ingest.extract.pages)") {
		t.Error(err)
	}
	if _, err := pdf.Read(context.Background(), data, "", bounds.Limits{Text: 1000}.Filled()); err == nil || !strings.Contains(err.Error(), "of text, which is the limit") {
		t.Error(err)
	}
}

func TestHeadingsThatCountAreNoHeaders(t *testing.T) {
	t.Parallel()
	var f file
	for i := range 4 {
		f.pages = append(f.pages, at(50, 750, 20, "F1", fmt.Sprintf("Step %d", i+1))+column(50, 700, left[i:]...))
	}
	if got := outline(read(t, f.bytes())); strings.Count(got, "heading: Step") != 4 {
		t.Error(got)
	}
}

func TestAddressesThatThePageDoesNotShowAreListedAtTheEnd(t *testing.T) {
	t.Parallel()
	link := func(y int, uri string) string {
		return fmt.Sprintf("<< /Type /Annot /Subtype /Link /Rect [48 %d 400 %d] /A << /S /URI /URI (%s) >> >> ", y-4, y+10, uri)
	}
	f := file{pages: []string{column(50, 700, "See our terms.") + column(50, 650, "Or read www.example.org/a now.") + column(50, 600, "And this one.")},
		annots: link(700, "https://example.org/terms") + link(650, "http://www.example.org/a") + link(600, "javascript:alert(1)")}
	want := lines("page=1 paragraph: See our terms.", "page=1 paragraph: Or read www.example.org/a now.", "page=1 paragraph: And this one.", "# Links", "page=1 item: See our terms.: https://example.org/terms")
	if diff := cmp.Diff(want, outline(read(t, f.bytes()))); diff != "" {
		t.Error(diff)
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	page := []string{at(50, 700, 20, "F1", "The large words") + column(50, 660, left...)}
	for info, want := range map[string]string{"/Title (Staff rules)": "Staff rules", "/Title (Microsoft Word - rules_v7.doc)": "The large words", "": "The large words"} {
		if got := read(t, file{pages: page, info: info}.bytes()).Title; got != want {
			t.Errorf("%s: %q, want %q", info, got, want)
		}
	}
}

func TestBookmarksInARingEnd(t *testing.T) {
	t.Parallel()
	f := file{pages: []string{column(50, 700, "Loop") + column(50, 650, "The text goes on.")}, catalog: "/Outlines 7 0 R",
		objects: []string{"<< /First 8 0 R /Last 8 0 R /Count 1 >>", "<< /Title (Loop) /Parent 7 0 R /First 8 0 R /Next 9 0 R /Dest [5 0 R /Fit] >>", "<< /Title (Other) /Parent 7 0 R /First 8 0 R /Next 8 0 R >>"}}
	if diff := cmp.Diff(lines("page=1 heading: Loop", "page=1 paragraph: The text goes on."), outline(read(t, f.bytes()))); diff != "" {
		t.Error(diff)
	}
}

func TestRowsThatDifferInNumbersAreNoHeaders(t *testing.T) {
	t.Parallel()
	var f file
	for i := range 4 {
		page := at(50, 780, 9, "F1", fmt.Sprintf("ACME part list, page %d", i+1))
		for j := range 8 {
			n, y := 8*i+j, 740-15*float64(j)
			page += at(50, y, 10, "F1", fmt.Sprintf("Part %d", n)) + at(200, y, 10, "F1", fmt.Sprint(3*n)) + at(400, y, 10, "F1", fmt.Sprintf("%d.50", n))
		}
		f.pages = append(f.pages, page)
	}
	got := outline(read(t, f.bytes()))
	if strings.Count(got, " row: Part") != 32 || strings.Contains(got, "ACME") {
		t.Error(got)
	}
}

func TestALargeTitleOfEveryPageIsKeptOnce(t *testing.T) {
	t.Parallel()
	var f file
	for i := range 3 {
		f.pages = append(f.pages, at(50, 770, 24, "F1", "Quarterly News")+column(50, 700, left[i:]...))
	}
	if got := outline(read(t, f.bytes())); strings.Count(got, "heading: Quarterly News") != 1 {
		t.Error(got)
	}
}

func TestCellsOfSeveralLines(t *testing.T) {
	t.Parallel()
	page := at(50, 700, 10, "F1", "Code") + at(100, 700, 10, "F1", "Meaning") + at(350, 700, 10, "F1", "Action")
	for i := range 3 {
		y := 680 - 50*float64(i)
		page += at(50, y, 10, "F1", fmt.Sprintf("E%d", i)) + at(100, y, 10, "F1", fmt.Sprintf("The sensor %d reports a value", i)) + at(350, y, 10, "F1", fmt.Sprintf("Restart unit %d and", i)) +
			at(100, y-12, 10, "F1", "outside of the per-") + at(350, y-12, 10, "F1", "call us.") + at(100, y-24, 10, "F1", "mitted range.")
	}
	want := lines("page=1 headrow: Code|Meaning|Action",
		"page=1 row: E0|The sensor 0 reports a value outside of the permitted range.|Restart unit 0 and call us.",
		"page=1 row: E1|The sensor 1 reports a value outside of the permitted range.|Restart unit 1 and call us.",
		"page=1 row: E2|The sensor 2 reports a value outside of the permitted range.|Restart unit 2 and call us.")
	if diff := cmp.Diff(want, outline(read(t, file{pages: []string{page}}.bytes()))); diff != "" {
		t.Error(diff)
	}
}

func TestFilledFieldsAreRead(t *testing.T) {
	t.Parallel()
	f := file{pages: []string{column(50, 700, "Name:") + column(50, 650, "See our terms.")},
		annots: "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Maria Gonzales) /Rect [100 696 300 712] /F 4 /AP << /N 7 0 R >> >> " +
			"<< /Type /Annot /Subtype /Text /Contents (a private remark) /Rect [100 596 120 612] >> " +
			"<< /Type /Annot /Subtype /Link /Rect [48 646 400 660] /A << /S /URI /URI (https://example.org/terms) >> >>",
		objects: []string{"<< /Type /XObject /Subtype /Form /BBox [0 0 200 16] /Resources << /Font << /F1 3 0 R >> >> /Length 48 >>\nstream\nBT /F1 10 Tf 2 4 Td (Maria Gonzales) Tj ET      \nendstream"}}
	want := lines("page=1 paragraph: Name: Maria Gonzales", "page=1 paragraph: See our terms.", "# Links", "page=1 item: See our terms.: https://example.org/terms")
	if diff := cmp.Diff(want, outline(read(t, f.bytes()))); diff != "" {
		t.Error(diff)
	}
}

func TestALongScanIsReadAsFarAsItsTimeGoes(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nif [ \"$1\" = --list-langs ]; then printf 'List:\\neng\\n'; exit; fi\n/usr/bin/cat >/dev/null\n" +
		"if [ -e " + dir + "/once ]; then exec /usr/bin/sleep 60; fi; : > " + dir + "/once\nprintf '5\\t1\\t1\\t1\\t1\\t1\\t100\\t100\\t200\\t40\\t90\\tScanned\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "tesseract"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	read(t, file{pages: []string{column(50, 700, "Starts the engine.")}}.bytes())
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	tree, err := pdf.Read(ctx, file{pages: []string{picture, picture, picture}}.bytes(), "", bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	want := doctree.Facts{Unit: "page", Total: 3, Covered: 1, Recognised: 1, Confidence: 90}
	if diff := cmp.Diff(want, tree.Facts); diff != "" {
		t.Error(diff)
	}
	if got := strings.Join(tree.Warnings, "\n"); !strings.Contains(got, "2 of 3 pages have no text; there was no time to recognise them") {
		t.Error(got)
	}
}

// TestTesseract reads a page with the program itself, where it is installed.
func TestTesseract(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tesseract"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("tesseract is not installed")
		}
		t.Skip("tesseract is not installed")
	}
	stream, err := os.ReadFile("testdata/scan.jpg")
	if err != nil {
		t.Fatal(err)
	}
	f := file{pages: []string{"q 400 0 0 100 50 600 cm /I Do Q"}, xobject: "/I 7 0 R",
		objects: []string{fmt.Sprintf("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode /Length %d >>\nstream\n%s\nendstream", 800, 200, len(stream), stream)}}
	tree := read(t, f.bytes())
	if !strings.Contains(tree.Canonical, "The warranty lasts two years") || tree.Facts.Recognised != 1 || tree.Facts.Confidence < 60 {
		t.Errorf("%q %+v", tree.Canonical, tree.Facts)
	}
}

func FuzzPDF(f *testing.F) {
	read(f, file{pages: []string{column(50, 700, "Starts the engine.")}}.bytes())
	f.Add([]byte(column(50, 700, "a", "b")))
	f.Add([]byte("BT /F1 0 Tf 1e9 0 0 -1e9 0 0 Tm (x) Tj (y) ' ET Q Q q"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, data := range [][]byte{file{pages: []string{string(content)}}.bytes(), append([]byte("%PDF-1.4\n"), content...)} {
			tree, err := pdf.Read(context.Background(), data, "", bounds.Limits{}.Filled())
			var known *bounds.Error
			if err != nil && !errors.As(err, &known) || !utf8.ValidString(tree.Canonical) {
				t.Fatal(err)
			}
		}
	})
}
