package extract_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
)

func tree(t testing.TB, name, data string) doctree.Tree {
	t.Helper()
	tr, err := extract.Extract(context.Background(), extract.Source{Path: name, Data: []byte(data)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tr
}

func wide(s string, order binary.AppendByteOrder, mark bool) string {
	var out []byte
	if mark {
		s = "\ufeff" + s
	}
	for _, u := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

func TestCharsets(t *testing.T) {
	t.Parallel()
	korean := must(korean.EUCKR.NewEncoder().String("휴가 정책은 매년 개정됩니다. 연차는 15일입니다.\n"))
	for _, c := range []struct{ name, file, data, want string }{
		{"UTF-8", "a.txt", "plain é\n", "plain é\n"},
		{"UTF-8 with mark", "a.txt", "\xef\xbb\xbfplain é\n", "plain é\n"},
		{"UTF-8 with a few bad bytes", "a.txt", "이름 \xff값 é\n", "이름 \ufffd값 é\n"},
		{"UTF-16LE with mark", "a.txt", wide("Hello 값\r\nx", binary.LittleEndian, true), "Hello 값\nx"},
		{"UTF-16BE with mark", "a.txt", wide("Hello 값\r\nx", binary.BigEndian, true), "Hello 값\nx"},
		{"UTF-16LE without mark", "a.txt", wide("Hello world, this is text\n", binary.LittleEndian, false), "Hello world, this is text\n"},
		{"UTF-16BE without mark", "a.txt", wide("Hello world, this is text\n", binary.BigEndian, false), "Hello world, this is text\n"},
		{"Korean UTF-16LE without mark", "a.txt", wide("휴가 정책은 매년 개정됩니다. 연차는 15일입니다.\n", binary.LittleEndian, false), "휴가 정책은 매년 개정됩니다. 연차는 15일입니다.\n"},
		{"Korean UTF-16BE without mark", "a.md", wide("# 휴가\n\n정책은 매년 개정됩니다.\n", binary.BigEndian, false), "# 휴가\n\n정책은 매년 개정됩니다.\n"},
		{"emoji in UTF-16", "a.txt", wide("ok 🙂 ok", binary.LittleEndian, true), "ok 🙂 ok"},
		{"stray surrogate in UTF-16", "a.txt", "\xff\xfeo\x00k\x00\x00\xd8 \x00x\x00", "ok\ufffd x"},
		{"EUC-KR", "a.txt", korean, "휴가 정책은 매년 개정됩니다. 연차는 15일입니다.\n"},
		{"EUC-KR Markdown", "a.md", "# x\n\n" + korean, "# x\n\n휴가 정책은 매년 개정됩니다. 연차는 15일입니다.\n"},
		{"EUC-KR page that says so", "a.html", "<meta charset=euc-kr><p>" + korean, "휴가 정책은 매년 개정됩니다. 연차는 15일입니다."},
		{"EUC-KR page that says UTF-8", "a.html", "<meta charset=utf-8><p>" + korean, "휴가 정책은 매년 개정됩니다. 연차는 15일입니다."},
		{"Shift_JIS", "a.txt", must(japanese.ShiftJIS.NewEncoder().String("パスワードの変更方法について説明します。\n")), "パスワードの変更方法について説明します。\n"},
		{"EUC-JP", "a.txt", must(japanese.EUCJP.NewEncoder().String("パスワードの変更方法について説明します。\n")), "パスワードの変更方法について説明します。\n"},
		{"ISO-2022-JP", "a.txt", must(japanese.ISO2022JP.NewEncoder().String("パスワードの変更方法について説明します。\n")), "パスワードの変更方法について説明します。\n"},
		{"GBK", "a.txt", must(simplifiedchinese.GBK.NewEncoder().String(strings.Repeat("本手册说明如何重置密码以及如何申请休假。公司的员工每年有十五天的假期。\n", 3))), strings.Repeat("本手册说明如何重置密码以及如何申请休假。公司的员工每年有十五天的假期。\n", 3)},
		{"windows-1252", "a.txt", "caf\xe9 \x93quoted\x94 \x80 5\n", "café “quoted” € 5\n"},
		{"CR and CRLF", "a.txt", "a\r\nb\rc\n\r\nd", "a\nb\nc\n\nd"},
		{"ANSI escapes and controls", "a.txt", "red \x1b[31mtext\x1b[0m \a\x7f\u009b1m.\fnext", "red \ufffd[31mtext\ufffd[0m \ufffd\ufffd\ufffd1m.\nnext"},
		{"an escape as a character reference", "a.html", "<p>x&#27;[2Jy&#x9b;z</p>", "x\ufffd[2Jy›z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr := tree(t, c.file, c.data)
			if diff := cmp.Diff(c.want, tr.Canonical); diff != "" {
				t.Error(diff)
			}
			cs, err := chunk.Split(tr, chunk.Options{Count: words})
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults(tr, []byte(c.data), cs, chunk.Options{Count: words}) {
				t.Error(fault)
			}
		})
	}
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, data, want string }{
		{"0 bytes", "a.txt", "", "no text found: the file is empty"},
		{"0 bytes of Markdown", "a.md", "", "no text found: the file is empty"},
		{"white space", "a.md", " \n\n\t\n", "no text found"},
		{"front matter alone", "a.md", "---\ntitle: x\n---\n\n", "no text found"},
		{"markup alone", "a.html", "<html><body><div></div><script>x()</script></body></html>", "no text found"},
		{"a mark alone", "a.txt", "\xef\xbb\xbf", "no text found"},
		{"NUL bytes", "a.txt", "ab\x00cd\x00\x00\x01\x02 and more of it", "not text: it holds NUL bytes"},
		{"code with NUL bytes", "a.txt", strings.Repeat("key=value\x00next=1\n", 40), "not text"},
		{"random bytes", "a.md", "\x00\x9f\x12\x00\xff\xd8\x00\x01\xdb\xff\x13\x37\x00\x02", "not text"},
		{"a PDF called text", "a.txt", "%PDF-1.7\n", "not text: it holds a PDF"},
		{"an Office document called Markdown", "a.md", "PK\x03\x04....", "not text: it holds a zip"},
		{"another format", "a.xyz", "text", "unsupported format .xyz"},
		{"a list that is a map", "a.md", "---\naccess: {a: b}\n---\nx", "access must be given once"},
		{"a list of numbers", "a.md", "---\naccess: [1]\n---\nx", "access must be given once"},
		{"two lists", "a.md", "---\naccess: [a]\nAccess: [b]\n---\nx", "access"},
		{"a list in broken YAML", "a.md", "---\ntitle: a: b\naccess: [hr]\n---\nx", "front matter with an access list cannot be read"},
		{"a list twice", "a.md", "---\naccess: [hr]\naccess: [it]\n---\nx", "front matter with an access list cannot be read (line 2: access is given twice, also in line 1)"},
		{"a list in TOML", "a.md", "+++\naccess = [\"hr\"]\n+++\nx", "front matter with an access list cannot be read"},
		{"a list in front matter without end", "a.txt", "---\naccess: [hr]\ntext\n", "does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := extract.Extract(context.Background(), extract.Source{Path: c.file, Data: []byte(c.data)})
			var e *extract.Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestCase_X1_EmptyDocumentsSaySo(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "\n\n", "\ufeff \r\n", "\x1b\a"} {
		if _, err := extract.Extract(context.Background(), extract.Source{Path: "a.txt", Data: []byte(data)}); err == nil || !strings.Contains(err.Error(), "no text found") {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestCase_X8_TextCalledEUCKRIsReadAsWindows949(t *testing.T) {
	t.Parallel()
	const want = "뷁과 쨰는 완성형에 없는 글자입니다. 그래도 읽혀야 합니다.\n"
	raw := must(korean.EUCKR.NewEncoder().String(want))
	if got := tree(t, "a.txt", raw).Canonical; got != want {
		t.Errorf("text: %q", got)
	}
	if got := tree(t, "a.html", `<meta http-equiv="Content-Type" content="text/html; charset=ks_c_5601-1987"><p>`+raw).Canonical; got != strings.TrimSpace(want) {
		t.Errorf("page: %q", got)
	}
}

func TestCase_X9_SizeIsCheckedFirst(t *testing.T) {
	t.Parallel()
	if err := extract.CheckSize(200 << 20); err == nil || !strings.Contains(err.Error(), "200 MB, the limit is 64 MB") {
		t.Error(err)
	}
	if err := extract.CheckSize(extract.MaxBytes); err != nil {
		t.Error(err)
	}
	if _, err := extract.Extract(context.Background(), extract.Source{Path: "a.txt", Data: make([]byte, extract.MaxBytes+1)}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}

func TestCase_C14_LocatorCountsCodePoints(t *testing.T) {
	t.Parallel()
	const data = "First 🙂 line.\r\n\r\nThe 🙂 answer.\r\n"
	tr := tree(t, "a.txt", data)
	cs, err := chunk.Split(tr, chunk.Options{Count: words, Size: 16})
	if err != nil || len(cs) != 2 {
		t.Fatal(len(cs), err)
	}
	c := cs[1]
	if c.Locator != "#char=15,28" || c.Content != "The 🙂 answer." || data[c.Span.SourceFrom:c.Span.SourceTo] != c.Content {
		t.Errorf("%+v", c)
	}
}

// TestHardInputEndsSoon runs what is quadratic or recursive in many parsers.
// The deadline only tells linear from quadratic.
func TestHardInputEndsSoon(t *testing.T) {
	t.Parallel()
	const n = 1 << 17
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	inputs := map[string]string{
		"one line of words":    strings.Repeat("word ", 1<<20),
		"one word":             strings.Repeat("x", 1<<20),
		"no spaces, Korean":    rep("가나다"),
		"brackets":             rep("["),
		"links that never end": rep("[a]("),
		"emphasis":             rep("*a_b"),
		"backticks":            rep("`a``b"),
		"angle brackets":       rep("<"),
		"open tags":            rep("<a "),
		"quotations":           rep(">"),
		"lists on one line":    rep("- * "),
		"numbers on one line":  rep("1. "),
		"definitions":          rep("[a]: b\n"),
		"lines":                rep("word word.\n"),
		"bars":                 rep("|"),
		"columns":              strings.Repeat("|a", 2000) + "\n" + strings.Repeat("|-", 2000) + "\n" + strings.Repeat("|a\n", 2000),
		"rows":                 "|a|b|\n|-|-|\n" + rep("|x|y|\n"),
		"items":                rep("- item\n"),
		"ampersands":           rep("&"),
		"backslashes":          rep("\\"),
		"divs":                 strings.Repeat("<div>", 100_000) + "deep" + strings.Repeat("</div>", 100_000),
		"lists in lists":       strings.Repeat("<ul><li>x", 100_000),
		"tables in tables":     strings.Repeat("<table><tr><td>x", 100_000),
		"comments":             rep("<!-- x"),
		"template tags":        rep("{% x "),
		"braces":               rep("{{< "),
		"JSX comments":         rep("{/*\n"),
		"fences":               rep("```\n"),
		"stops":                rep("."),
		"empty lines":          "a" + rep("\n") + "b",
	}
	for name, data := range inputs {
		files := []string{"a.md"}
		if strings.ContainsAny(data[:64], "<&") {
			files = append(files, "a.html")
		} else if !strings.Contains(data, "\n") {
			files = append(files, "a.txt")
		}
		for _, file := range files {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			began := time.Now()
			tr, err := extract.Extract(ctx, extract.Source{Path: file, Data: []byte(data)})
			took := time.Since(began)
			var e *extract.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%s as %s: %v", name, file, err)
			}
			if err == nil {
				if _, err := chunk.Split(tr, chunk.Options{Count: words}); err != nil {
					t.Error(err)
				}
			}
			t.Logf("%s as %s: extract %v, split %v", name, file, took, time.Since(began)-took)
			if ctx.Err() != nil {
				t.Errorf("%s as %s took over a minute", name, file)
			}
			cancel()
		}
	}
}

// TestFormatFiles holds the expectations that come with the files beside the
// checkout, where they are present.
func TestFormatFiles(t *testing.T) {
	t.Parallel()
	const dir = "../../../shared/data/formats"
	f, err := os.Open(filepath.Join(dir, "expect.jsonl"))
	if err != nil {
		t.Skip("no format files beside the checkout")
	}
	defer f.Close()
	space := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var want struct {
			File, Expect   string
			MustContain    []string `json:"must_contain"`
			MustNotContain []string `json:"must_not_contain"`
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if !extract.Supported(want.File) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "files", want.File))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := extract.Extract(context.Background(), extract.Source{Path: want.File, Data: data})
		var known *extract.Error
		switch want.Expect {
		case "text", "dates":
			if err != nil {
				t.Errorf("%s: %v", want.File, err)
			}
		case "text-or-error", "no-crash":
		case "no-text-layer":
			if err != nil && !strings.Contains(err.Error(), "no text found") {
				t.Errorf("%s: %v", want.File, err)
			}
		default:
			if !errors.As(err, &known) || want.Expect == "encrypted" && !strings.Contains(err.Error(), "encrypted") {
				t.Errorf("%s: %v, want a refusal", want.File, err)
			}
		}
		if err != nil {
			continue
		}
		got := space(tr.Canonical)
		for _, s := range want.MustContain {
			if !strings.Contains(got, space(s)) {
				t.Errorf("%s lacks %q", want.File, s)
			}
		}
		for _, s := range want.MustNotContain {
			if strings.Contains(got, space(s)) {
				t.Errorf("%s holds %q", want.File, s)
			}
		}
	}
}
