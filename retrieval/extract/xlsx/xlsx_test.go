package xlsx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/xlsx"
)

// workbook makes a file by a function that fills its first sheet.
func workbook(t testing.TB, fill func(*excelize.File), o ...excelize.Options) []byte {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	fill(f)
	var b bytes.Buffer
	if err := f.Write(&b, o...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func set(t testing.TB, f *excelize.File, sheet string, cells ...any) {
	t.Helper()
	for i := 0; i+1 < len(cells); i += 2 {
		if err := f.SetCellValue(sheet, cells[i].(string), cells[i+1]); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, data []byte, password string) doctree.Tree {
	t.Helper()
	tree, err := xlsx.Read(context.Background(), data, password, bounds.Limits{}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// outline writes sections and rows as lines.
func outline(t doctree.Tree) string {
	var b strings.Builder
	for _, s := range t.Sections {
		b.WriteString("# " + strings.Join(s.Path, " > ") + "\n")
		for _, x := range s.Blocks {
			fmt.Fprintf(&b, "%s %s\n", x.Kind, x.Place)
			for _, r := range x.Parts {
				fmt.Fprintf(&b, "  %s %s: %s\n", r.Kind, r.Place, strings.ReplaceAll(t.Canonical[r.Span.FromByte:r.Span.ToByte], "\t", "|"))
			}
		}
	}
	return b.String()
}

func TestRowsAreReadAsTheyShow(t *testing.T) {
	t.Parallel()
	data := workbook(t, func(f *excelize.File) {
		set(t, f, "Sheet1", "B2", "Item", "C2", "Price", "D2", "Share", "B3", "Nut", "C3", 1234.5, "D3", 0.125, "B4", "Bolt", "C4", 2, "B6", "Other", "C6", "Table", "B7", "x", "C7", "y")
		euro, err := f.NewStyle(&excelize.Style{NumFmt: 4})
		percent, err2 := f.NewStyle(&excelize.Style{NumFmt: 10})
		if err := errors.Join(err, err2, f.SetCellStyle("Sheet1", "C3", "C3", euro), f.SetCellStyle("Sheet1", "D3", "D3", percent), f.SetSheetName("Sheet1", "Prices & more")); err != nil {
			t.Fatal(err)
		}
	})
	const want = `# Prices & more
table sheet=Prices%20%26%20more&range=B2:D4
  headrow sheet=Prices%20%26%20more&range=B2:D2: ||Item|Price|Share
  row sheet=Prices%20%26%20more&range=B3:D3: ||Nut|1,234.50|12.50%
  row sheet=Prices%20%26%20more&range=B4:C4: ||Bolt|2
table sheet=Prices%20%26%20more&range=B6:C7
  headrow sheet=Prices%20%26%20more&range=B6:C6: ||Other|Table
  row sheet=Prices%20%26%20more&range=B7:C7: ||x|y
`
	if diff := cmp.Diff(want, outline(read(t, data, ""))); diff != "" {
		t.Error(diff)
	}
}

func TestCase_X6_DatesOfBothSystems(t *testing.T) {
	t.Parallel()
	for _, from1904 := range []bool{false, true} {
		data := workbook(t, func(f *excelize.File) {
			if err := f.SetWorkbookProps(&excelize.WorkbookPropsOptions{Date1904: &from1904}); err != nil {
				t.Fatal(err)
			}
			day, err := f.NewStyle(&excelize.Style{NumFmt: 14})
			own := "dd.mm.yyyy hh:mm"
			minute, err2 := f.NewStyle(&excelize.Style{CustomNumFmt: &own})
			set(t, f, "Sheet1", "A1", time.Date(2024, 3, 5, 0, 0, 0, 0, time.UTC), "B1", time.Date(2023, 12, 31, 14, 30, 0, 0, time.UTC))
			if err := errors.Join(err, err2, f.SetCellStyle("Sheet1", "A1", "A1", day), f.SetCellStyle("Sheet1", "B1", "B1", minute)); err != nil {
				t.Fatal(err)
			}
		})
		if got := read(t, data, "").Canonical; got != "2024-03-05\t31.12.2023 14:30" {
			t.Errorf("1904 %v: %q", from1904, got)
		}
	}
}

func TestMergedCellsReadInEveryRow(t *testing.T) {
	t.Parallel()
	data := workbook(t, func(f *excelize.File) {
		set(t, f, "Sheet1", "A1", "Region", "B1", "City", "A2", "North", "B2", "Oslo", "B3", "Bergen", "A4", "South", "B4", "Rome")
		if err := f.MergeCell("Sheet1", "A2", "A3"); err != nil {
			t.Fatal(err)
		}
	})
	if got := read(t, data, "").Canonical; got != "Region\tCity\nNorth\tOslo\nNorth\tBergen\nSouth\tRome" {
		t.Errorf("%q", got)
	}
}

func TestFormulasShowTheValueThatWasSaved(t *testing.T) {
	t.Parallel()
	data := workbook(t, func(f *excelize.File) {
		set(t, f, "Sheet1", "A1", 55)
		if err := f.SetCellFormula("Sheet1", "A1", "SUM(B1:B9)"); err != nil {
			t.Fatal(err)
		}
	})
	if got := read(t, data, "").Canonical; got != "55" {
		t.Errorf("%q", got)
	}
}

func TestHiddenSheetsAreLeftOutAndSaidSo(t *testing.T) {
	t.Parallel()
	data := workbook(t, func(f *excelize.File) {
		set(t, f, "Sheet1", "A1", "shown")
		if _, err := f.NewSheet("Secret"); err != nil {
			t.Fatal(err)
		}
		set(t, f, "Secret", "A1", "salaries")
		if err := f.SetSheetVisible("Secret", false); err != nil {
			t.Fatal(err)
		}
	})
	tree := read(t, data, "")
	if tree.Canonical != "shown" {
		t.Errorf("%q", tree.Canonical)
	}
	if diff := cmp.Diff([]string{"left out 1 hidden sheets: Secret"}, tree.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestEveryChunkNamesItsColumnsAndCells(t *testing.T) {
	t.Parallel()
	data := workbook(t, func(f *excelize.File) {
		set(t, f, "Sheet1", "A1", "article", "B1", "price")
		for i := range 50 {
			set(t, f, "Sheet1", fmt.Sprintf("A%d", i+2), fmt.Sprintf("article number %d", i), fmt.Sprintf("B%d", i+2), i)
		}
	})
	cs, err := chunk.Split(read(t, data, ""), chunk.Options{Budget: 60, Count: func(s string) int { return utf8.RuneCountInString(s)/4 + 1 }})
	if err != nil || len(cs) < 4 {
		t.Fatal(len(cs), err)
	}
	if want := "#sheet=Sheet1&range=A1:B"; !strings.HasPrefix(cs[0].Locator, want) {
		t.Errorf("%s, want %s…", cs[0].Locator, want)
	}
	for _, c := range cs[1:] {
		first := strings.Fields(c.Content)[2]
		var n int
		if _, err := fmt.Sscan(first, &n); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("#sheet=Sheet1&range=A%d:B%d&char=", n+2, n+2+strings.Count(c.Content, "\n")); !strings.HasPrefix(c.Locator, want) {
			t.Errorf("%s, want %s…", c.Locator, want)
		}
		if !strings.Contains(c.Text, "article\tprice\n") || strings.Contains(c.Content, "price") {
			t.Errorf("%q quotes %q", c.Text, c.Content)
		}
	}
}

func TestEncryptedAndDamagedFiles(t *testing.T) {
	t.Parallel()
	fill := func(f *excelize.File) { set(t, f, "Sheet1", "A1", "inside") }
	locked, plain := workbook(t, fill, excelize.Options{Password: "right"}), workbook(t, fill)
	if got := read(t, locked, "right").Canonical; got != "inside" {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		name, password, want string
		data                 []byte
		limits               bounds.Limits
	}{
		{"encrypted", "", "encrypted: save it without a password", locked, bounds.Limits{}},
		{"a wrong password", "wrong", "the password given does not open it", locked, bounds.Limits{}},
		{"cut off", "", "damaged or cut off", plain[:len(plain)/2], bounds.Limits{}},
		{"too many cells", "", "more than 1 cells", workbook(t, func(f *excelize.File) { set(t, f, "Sheet1", "A1", "a", "B1", "b") }), bounds.Limits{Cells: 1}},
		{"too large unpacked, encrypted", "right", "unpacks to", locked, bounds.Limits{Unpacked: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := xlsx.Read(context.Background(), c.data, c.password, c.limits.Filled())
			var known *bounds.Error
			if !errors.As(err, &known) || !strings.Contains(known.Reason, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A panic of the library fails one document, see extract.Extract; here it is
// let pass, to look at what is read.
func FuzzXLSX(f *testing.F) {
	f.Add(workbook(f, func(x *excelize.File) { set(f, x, "Sheet1", "A1", "a", "B2", 1.5) }))
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := tolerant(data)
		var known *bounds.Error
		if err != nil && !errors.As(err, &known) || !utf8.ValidString(tree.Canonical) {
			t.Fatal(err)
		}
	})
}

func tolerant(data []byte) (tree doctree.Tree, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = bounds.Refuse("panic: %v", r)
		}
	}()
	l := bounds.Limits{Cells: 10_000, Unpacked: 1 << 20}
	return xlsx.Read(context.Background(), data, "", l.Filled())
}
