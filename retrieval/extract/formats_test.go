package extract_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/korean"

	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/tika"
	"footnote/retrieval/extract/ziptest"
)

// blocks writes the leaves of a tree as lines: place, kind and text.
func blocks(t doctree.Tree) string {
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
		write(s.Blocks)
	}
	return b.String()
}

func TestTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, data, want string }{
		{"commas with a header", "a.csv", "name,price\nnut,5\n", "row=1 headrow: name|price\nrow=2 row: nut|5\n"},
		{"semicolons, and commas in numbers", "a.csv", "name;price\nnut;5,50\nbolt;1,20\n", "row=1 headrow: name|price\nrow=2 row: nut|5,50\nrow=3 row: bolt|1,20\n"},
		{"tabs", "a.tsv", "a, b\tc\n1\t2\n", "row=1 headrow: a, b|c\nrow=2 row: 1|2\n"},
		{"bars", "a.csv", "a|b\nc|d\n", "row=1 headrow: a|b\nrow=2 row: c|d\n"},
		{"the line that spreadsheets write", "a.csv", "sep=;\na;b\n1,5;2\n", "row=1 headrow: a|b\nrow=2 row: 1,5|2\n"},
		{"quotes, doubled quotes, delimiters and lines in them", "a.csv", "a,b\n\"x \"\"y\"\", z\",\"1\n2\"\n", "row=1 headrow: a|b\nrow=2 row: x \"y\", z|1 2\n"},
		{"a quote that never ends", "a.csv", "a,b\n5\" disk,\"x\n1,2\n", "row=1 headrow: a|b\nrow=2 row: 5\" disk|\"x\nrow=3 row: 1|2\n"},
		{"a title above the header", "a.csv", "Prices,,\nname,price,note\nnut,5,x\n", "row=1 row: Prices\nrow=2 headrow: name|price|note\nrow=3 row: nut|5|x\n"},
		{"no header", "a.csv", "1,2\n3,4\n", "row=1 row: 1|2\nrow=2 row: 3|4\n"},
		{"empty cells and lines", "a.csv", ",b,\n\n,,\nx,,z\n", "row=1 row: ||b\nrow=4 headrow: x||z\n"},
		{"one column", "a.csv", "name\nnut\n", "row=1 headrow: name\nrow=2 row: nut\n"},
		{"CP949", "a.csv", must(korean.EUCKR.NewEncoder().String("이름,가격\n뷁쨰 나사,5\n너트 상자 묶음,7\n")), "row=1 headrow: 이름|가격\nrow=2 row: 뷁쨰 나사|5\nrow=3 row: 너트 상자 묶음|7\n"},
		{"UTF-16 with a mark", "a.csv", wide("a;b\n1;값\n", binary.LittleEndian, true), "row=1 headrow: a|b\nrow=2 row: 1|값\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, blocks(tree(t, c.file, c.data))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryChunkOfATableNamesItsColumns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("article,price in euro\n")
	for i := range 60 {
		fmt.Fprintf(&b, "article number %d,%d.50\n", i, i)
	}
	data := b.String()
	cs, err := chunk.Split(tree(t, "prices.csv", data), chunk.Options{Count: words, Budget: 60})
	if err != nil || len(cs) < 5 {
		t.Fatal(len(cs), err)
	}
	for _, c := range cs {
		if !strings.Contains(c.Text, "article\tprice in euro\n") || !strings.HasPrefix(c.Locator, "#row=") {
			t.Errorf("%s: %q", c.Locator, c.Text)
		}
		if c.ID.Ordinal > 0 && strings.Contains(c.Content, "price in euro") {
			t.Errorf("the header is quoted with %s", c.Locator)
		}
		if row := data[c.Span.SourceFrom:c.Span.SourceTo]; !strings.Contains(row, ".50") || strings.Count(row, "\n") != strings.Count(c.Content, "\n") {
			t.Errorf("%q leads to %q", c.Content, row)
		}
	}
}

func TestCase_C15_CuesKeepTheirHours(t *testing.T) {
	t.Parallel()
	const vtt = "WEBVTT - Town hall\n\nNOTE\nnot said\n\nSTYLE\n::cue { color: red }\n\nintro\n01:00:05.000 --> 01:00:08.250 align:start\n<v Ann Lee>We close at <b>six</b>.</v>\n\n01:00:08.250 --> 01:00:10.000\n<v Ann Lee>Every day &amp; night.\n<v Bob>Why?\n"
	tr := tree(t, "a.vtt", vtt)
	if diff := cmp.Diff("t=3605,3608.25 paragraph: Ann Lee: We close at six.\nt=3608.25,3610 paragraph: Every day & night./Bob: Why?\n", blocks(tr)); diff != "" {
		t.Error(diff)
	}
	cs, err := chunk.Split(tr, chunk.Options{Count: words})
	if err != nil || len(cs) != 1 || !strings.HasPrefix(cs[0].Locator, "#t=3605,3610&char=0,") {
		t.Fatal(cs, err)
	}
	if tr.Title != "Town hall" {
		t.Error(tr.Title)
	}
}

func TestCaptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, data, want string }{
		{"minutes only", "a.vtt", "WEBVTT\n\n00:01.5 --> 02:03.25\nhi\n", "t=1.5,123.25 paragraph: hi\n"},
		{"SRT", "a.srt", "1\n00:00:01,000 --> 00:00:02,000\n<font color=\"red\">one</font>\ntwo\n\n2\n10:00:00,000 --> 10:00:01,000\n{\\an8}<i>three\n", "t=1,2 paragraph: one/two\nt=36000,36001 paragraph: three\n"},
		{"no empty lines between cues", "a.srt", "1\n00:00:01,000 --> 00:00:02,000\none\n2\n00:00:02,000 --> 00:00:03,000\ntwo\n", "t=1,2 paragraph: one\nt=2,3 paragraph: two\n"},
		{"less than, and a number said", "a.srt", "1\n00:00:01,000 --> 00:00:02,000\n1 < 2\n42\n", "t=1,2 paragraph: 1 < 2/42\n"},
		{"CR LF and a mark", "a.vtt", "\ufeffWEBVTT\r\n\r\n00:01.000 --> 00:02.000\r\none\r\n", "t=1,2 paragraph: one\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, blocks(tree(t, c.file, c.data))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, data, want string }{
		{"nested JSON", "a.json", `{"a":{"b":[1,{"c":"x"}]},"d e":true,"n":null,"s":""}`, " item: a.b[0]: 1\n item: a.b[1].c: x\n item: [d e]: true\n"},
		{"JSON lines", "a.jsonl", "{\"a\":1}\n{\"a\":2}\n", " item: a: 1\n item: a: 2\n"},
		{"numbers as they stand", "a.json", `[12345678901234567890, 1e3]`, " item: [0]: 12345678901234567890\n item: [1]: 1e3\n"},
		{"YAML documents", "a.yaml", "a:\n  - b: 1\n---\nc: yes\n", " item: a[0].b: 1\n item: c: yes\n"},
		{"a template is text", "a.yaml", "{{ if x }}\na: {{ b }}\n", " paragraph: {{ if x }}/a: {{ b }}\n"},
		{"broken JSON is text", "a.json", `{"a": 1,`, " paragraph: {\"a\": 1,\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, blocks(tree(t, c.file, c.data))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReferencesInYAMLDoNotMultiply(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a0: &a0 [lol, lol]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1)
	}
	if tr := tree(t, "a.yaml", b.String()+"cycle: &c {x: *c}\n"); len(tr.Canonical) > 5000 || !strings.Contains(tr.Canonical, "cycle.x: *c") {
		t.Errorf("%d bytes", len(tr.Canonical))
	}
}

const crlf = "\r\n"

func mime(lines ...string) string { return strings.Join(lines, crlf) + crlf }

func TestMail(t *testing.T) {
	t.Parallel()
	const alternatives = "Content-Type: multipart/alternative; boundary=b"
	html := base64.StdEncoding.EncodeToString([]byte("<p>Say it <b>with</b> HTML</p>"))
	for _, c := range []struct{ name, data, want string }{
		{"plain, with an encoded subject", mime("From: Ann <a@x.org>", "To: b@x.org", "Subject: =?EUC-KR?B?"+base64.StdEncoding.EncodeToString([]byte(must(korean.EUCKR.NewEncoder().String("휴가 안내"))))+"?=", "", "One", "two.", "", "Three."),
			" heading: 휴가 안내\n paragraph: From: Ann <a@x.org>/To: b@x.org\n paragraph: One/two.\n paragraph: Three.\n"},
		{"plain is preferred", mime("Subject: s", alternatives, "", "--b", "Content-Type: text/plain", "", "Say it plain", "--b", "Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: base64", "", html, "--b--"),
			" heading: s\n paragraph: Say it plain\n"},
		{"a blank alternative is not", mime("Subject: s", alternatives, "", "--b", "Content-Type: text/plain", "", " ", "--b", "Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: base64", "", html, "--b--"),
			" heading: s\n paragraph: Say it with HTML\n"},
		{"a charset without a name", mime("Subject: s", "Content-Type: text/plain", "", "caf\xe9 \x93x\x94"), " heading: s\n paragraph: café “x”\n"},
		{"Korean in seven bits", mime("Subject: =?iso-2022-kr?B?"+base64.StdEncoding.EncodeToString([]byte("\x1b$)C\x0e>H3;\x0f"))+"?=", "Content-Type: text/plain; charset=iso-2022-kr", "", "\x1b$)C\x0e>H3;\x0f ok"), " heading: 안내\n paragraph: 안내 ok\n"},
		{"quoted-printable", mime("Subject: s", "Content-Type: text/plain; charset=iso-8859-1", "Content-Transfer-Encoding: quoted-printable", "", "caf=E9 is=", " open"), " heading: s\n paragraph: café is open\n"},
		{"an attachment that can be read", mime("Subject: s", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "See file.", "--b", "Content-Type: text/csv; name=p.csv", "Content-Disposition: attachment; filename=p.csv", "", "name,price", "nut,5", "--b--"),
			" heading: s\n paragraph: See file.\n item: p.csv\n"},
		{"a message in the message", mime("Subject: Fwd", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "See below.", "--b", "Content-Type: message/rfc822", "", "Subject: Inner", "From: c@x.org", "", "The inner text.", "--b--"),
			" heading: Fwd\n paragraph: See below.\n item: Inner.eml\n"},
		{"a mailbox line and a bad header", mime("From a@x.org Mon", "Subject: s", "garbage line", "", "Text."), " heading: s\n paragraph: Text.\n"},
		{"saved as UTF-16", wide(mime("Subject: s", "", "Text with 값."), binary.LittleEndian, true), " heading: s\n paragraph: Text with 값.\n"},
		{"an HTML body alone", mime("Subject: s", "Content-Type: text/html; charset=utf-8", "", "<h2>Hello</h2><table><tr><th>a<th>b<tr><td>1<td>2</table>"), " heading: s\n heading: Hello\n headrow: a | b\n row: 1 | 2\n"},
		{"signed", mime("Subject: s", "Content-Type: multipart/signed; boundary=b", "", "--b", "Content-Type: text/plain", "", "Signed text.", "--b", "Content-Type: application/pkcs7-signature; name=smime.p7s", "", "x", "--b--"), " heading: s\n paragraph: Signed text.\n"},
		{"one that breaks off", mime("Subject: s", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "Half a"), " heading: s\n paragraph: Half a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, blocks(tree(t, "a.eml", c.data))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	part := func(headers ...string) string { return "--b\r\n" + strings.Join(headers, "\r\n") + "\r\n" }
	mail := mime("Subject: s", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "Text.", "") +
		part("Content-Type: image/png; name=logo.png", "", "x") +
		part("Content-Disposition: attachment; filename*0*=utf-8''Bericht%20; filename*1*=%C3%BCber.csv", "Content-Transfer-Encoding: base64", "", "bmFtZSxwcmljZQo=") +
		part("Content-Type: application/pdf", "Content-Disposition: attachment", "", "%PDF-") +
		part("Content-Type: message/rfc822", "", "Subject: Re: a/b", "", "Inner.") +
		part("Content-Disposition: attachment; filename=\"../../etc/x.txt\"", "", "one") + part("Content-Disposition: attachment; filename=\"../../etc/x.txt\"", "", "two") + "--b--"
	archive := ziptest.Archive(t, "guide/setup.md", "# Setup", "../../etc/passwd.txt", "traversal", "/abs.txt", "absolute", "a\\b.txt", "back", "__MACOSX/._x.txt", "junk", ".hidden.txt", "junk", "pic.png", "x", string([]byte{0xbe, 0xc8, 0xb3, 0xbb, 0xb9, 0xae})+".txt", "korean name")
	for _, c := range []struct{ name, path, data, want, warning string }{
		{"a mail", "m.eml", mail, "Bericht über.csv: name,price\n|part 5.pdf: %PDF-|Re: a_b.eml: Subject: Re: a/b\r\n\r\nInner.|.._.._etc_x.txt: one|.._.._etc_x (2).txt: two", "1 of 6 files in it are of formats that are not read: logo.png"},
		{"an archive", "m.zip", archive, "guide/setup.md: # Setup|etc/passwd.txt: traversal|abs.txt: absolute|a/b.txt: back|안내문.txt: korean name", "1 of 6 files in it are of formats that are not read: pic.png"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			members, err := extract.Members(context.Background(), extract.Source{Path: c.path, Data: []byte(c.data)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range members {
				data, err := m.Read(context.Background())
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
				}
				got = append(got, m.Name+": "+string(data))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "|")); diff != "" {
				t.Error(diff)
			}
			tr := tree(t, c.path, c.data)
			if diff := cmp.Diff([]string{c.warning}, tr.Warnings); diff != "" {
				t.Error(diff)
			}
			if want := (doctree.Facts{Unit: "part", Total: 6, Covered: 5}); !cmp.Equal(want, tr.Facts) {
				t.Error(tr.Facts)
			}
		})
	}
}

func TestABrokenMemberFailsAlone(t *testing.T) {
	t.Parallel()
	data := []byte(ziptest.Archive(t, "a.txt", strings.Repeat("first ", 50), "b.txt", "second"))
	at := bytes.Index(data, []byte("a.txt")) + len("a.txt")
	for i := range 12 {
		data[at+4+i] ^= 0xff
	}
	members, err := extract.Members(context.Background(), extract.Source{Path: "m.zip", Data: data})
	if err != nil || len(members) != 2 {
		t.Fatal(members, err)
	}
	var known *extract.Error
	if _, err := members[0].Read(context.Background()); !errors.As(err, &known) || !strings.Contains(known.Reason, "the part a.txt is damaged") {
		t.Error(err)
	}
	if got, err := members[1].Read(context.Background()); string(got) != "second" || err != nil {
		t.Error(got, err)
	}
}

func TestMailRefusals(t *testing.T) {
	t.Parallel()
	deep := "Subject: s\r\n"
	for i := range 300 {
		deep += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	for _, c := range []struct{ name, data, want string }{
		{"no mail at all", "\r\n\r\n", "no text found"},
		{"encrypted", mime("Subject: s", "Content-Type: multipart/encrypted; boundary=b", "", "--b--"), "encrypted"},
		{"encrypted with S/MIME", mime("Subject: s", "Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m", "", "x"), "encrypted (S/MIME)"},
		{"parts in parts", deep + "\r\nx", "nests parts more than 256 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := extract.Extract(context.Background(), extract.Source{Path: "a.eml", Data: []byte(c.data)})
			var known *extract.Error
			if !errors.As(err, &known) || !strings.Contains(known.Reason, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestFormatsThatAreNotReadSayWhatToDo(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"a.tar": "unpack the archive", "a.doc": "save it as .docx", "a.xls": "save it as .xlsx", "a.xyz": "convert it",
	} {
		_, err := extract.Extract(context.Background(), extract.Source{Path: file, Data: []byte("x")})
		if extract.Supported(file) || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestATikaServerReadsOtherFormats(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if string(data) != "old bytes" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = io.WriteString(w, "<html><head><title>Staff rules</title></head><body><h1>Leave</h1><p>Thirty days.</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>")
	}))
	t.Cleanup(server.Close)
	other, err := tika.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := extract.Extract(context.Background(), extract.Source{Path: "in/old.doc", Data: []byte("old bytes"), Tika: other})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(" heading: Leave\n paragraph: Thirty days.\n headrow: a | b\n row: 1 | 2\n", blocks(tr)); diff != "" || tr.Format != "doc" || tr.Title != "Staff rules" {
		t.Error(diff, tr.Format, tr.Title)
	}
	for path, want := range map[string]string{"a.docx": "not a Word document", "a.png": "unsupported format", "a.odt": "cannot read it"} {
		if _, err := extract.Extract(context.Background(), extract.Source{Path: path, Data: []byte("x"), Tika: other}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	mailed := mime("Subject: s", "Content-Type: multipart/mixed; boundary=b", "", "--b", "Content-Disposition: attachment; filename=a.doc", "", "x", "--b--")
	for _, s := range []*tika.Server{nil, other} {
		members, err := extract.Members(context.Background(), extract.Source{Path: "a.eml", Data: []byte(mailed), Tika: s})
		if err != nil || (len(members) == 1) != (s != nil) {
			t.Error(members, err)
		}
	}
}

func TestCase_X1_ABlankWordDocumentSaysSo(t *testing.T) {
	t.Parallel()
	data := ziptest.Archive(t, "word/document.xml", `<w:document xmlns:w="w"><w:body><w:p/></w:body></w:document>`)
	_, err := extract.Extract(context.Background(), extract.Source{Path: "a.docx", Data: []byte(data)})
	if err == nil || !strings.Contains(err.Error(), "no text found") {
		t.Error(err)
	}
}

func TestCase_X9_AZipBombFailsAlone(t *testing.T) {
	t.Parallel()
	data := []byte(ziptest.Archive(t, "word/document.xml", "<w:document>"+strings.Repeat(" ", 40<<20)))
	began := time.Now()
	for _, file := range []string{"a.docx", "a.pptx", "a.xlsx"} {
		_, err := extract.Extract(context.Background(), extract.Source{Path: file, Data: data})
		var known *extract.Error
		if !errors.As(err, &known) || !strings.Contains(known.Reason, "unpacks to") {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Logf("refused in %v", time.Since(began))
}

func TestLimitsAreOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, data, want string
		limits                 bounds.Limits
	}{
		{"cells", "a.csv", "a,b\nc,d\n", "more than 3 cells", bounds.Limits{Cells: 3}},
		{"text", "a.vtt", "WEBVTT\n\n00:01.0 --> 00:02.0\nlong text\n", "of text, which is the limit (ingest.extract.text_megabytes)", bounds.Limits{Text: 4}},
		{"nesting of JSON", "a.json", strings.Repeat("[", 20), "nests more than 5 deep, which is the limit (ingest.extract.nesting)", bounds.Limits{Nesting: 5}},
		{"nesting of YAML", "a.yaml", strings.Repeat("[", 20) + strings.Repeat("]", 20), "nests more than 5 deep, which is the limit (ingest.extract.nesting)", bounds.Limits{Nesting: 5}},
		{"nesting of XML", "a.docx", ziptest.Archive(t, "word/document.xml", strings.Repeat("<w:x>", 20)), "nests elements more than 5 deep", bounds.Limits{Nesting: 5}},
		{"parts of a mail", "a.eml", mime("Subject: s", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "x", "--b", "", "y", "--b--"), "more than 2 parts", bounds.Limits{Parts: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := extract.Extract(context.Background(), extract.Source{Path: c.file, Data: []byte(c.data), Limits: c.limits})
			var known *extract.Error
			if !errors.As(err, &known) || !strings.Contains(known.Reason, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAnEndedContextEndsEveryFormat(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, file := range []string{"a.csv", "a.vtt", "a.json", "a.eml", "a.docx", "a.pptx", "a.xlsx", "a.pdf"} {
		if _, err := extract.Extract(ctx, extract.Source{Path: file, Data: []byte("x")}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func fuzzWith(f *testing.F, name string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, name, data) })
}

func FuzzTable(f *testing.F) {
	fuzzWith(f, "a.csv", "a,b\n1,2\n", "sep=;\na;\"b \"\"c\"\"\n\"\n", "\"", "a\tb|c;d,e\n\n")
}

func FuzzCaptions(f *testing.F) {
	fuzzWith(f, "a.vtt", "WEBVTT\n\n1\n01:00:05.1 --> 01:00:06\n<v A>x</v> &amp; <\n", "1\n00:00:01,000 --> 00:00:02,000\n{\\an1}<font>a\n2\n")
}

func FuzzJSON(f *testing.F) { fuzzWith(f, "a.json", `{"a":[1,"b",{"c d":null}]}`, "[[[", "1 2 3") }
func FuzzYAML(f *testing.F) { fuzzWith(f, "a.yaml", "a: &x [1, b]\nc: *x\n---\n? d\n: e\n", "{{") }

func FuzzMail(f *testing.F) {
	fuzzWith(f, "a.eml", mime("Subject: =?utf-8?q?x?=", "Content-Type: multipart/mixed; boundary=b", "", "--b", "Content-Type: text/html", "", "<p>x", "--b", "Content-Type: message/rfc822", "", "Subject: y", "", "z", "--b", "Content-Disposition: attachment; filename=a.csv", "Content-Transfer-Encoding: base64", "", "YSxi", "--b--"), "x", "Subject: a\n\nb")
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(ziptest.Archive(f, "a.txt", "x", "../b/c.zip", ziptest.Archive(f, "d.md", "y"))), true)
	f.Add([]byte(mime("Subject: s", "Content-Type: multipart/mixed; boundary=b", "", "--b", "Content-Disposition: attachment; filename=a.txt", "", "x", "--b", "Content-Type: message/rfc822", "", "Subject: i", "", "y", "--b--")), false)
	f.Fuzz(func(t *testing.T, data []byte, zipped bool) {
		name := "a.eml"
		if zipped {
			name = "a.zip"
		}
		members, err := extract.Members(context.Background(), extract.Source{Path: name, Data: data})
		var known *extract.Error
		if err != nil && !errors.As(err, &known) {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range members {
			if seen[m.Name] || !filepath.IsLocal(m.Name) || strings.HasPrefix(m.Name, "/") || !utf8.ValidString(m.Name) {
				t.Fatalf("the name %q", m.Name)
			}
			seen[m.Name] = true
			if _, err := m.Read(context.Background()); err != nil && !errors.As(err, &known) {
				t.Fatal(err)
			}
		}
	})
}
