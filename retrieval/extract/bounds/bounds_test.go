package bounds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/ziptest"
)

func TestCase_X9_ZipBombsAreRefusedBeforeTheyUnpack(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 40<<20)
	small := bounds.Limits{Unpacked: 1000, Parts: 2}.Filled()
	for _, c := range []struct {
		name   string
		data   []byte
		limits bounds.Limits
		want   string
	}{
		{"a bomb", ziptest.Parts(t, map[string]string{"a": zeros}), bounds.Limits{}.Filled(), "(ingest.extract.ratio): it looks like a zip bomb"},
		{"more than the limit", ziptest.Parts(t, map[string]string{"a": strings.Repeat("x", 1001)}), small, "unpacks to 0 MB, the limit is 0 MB (ingest.extract.unpacked_megabytes)"},
		{"many parts", ziptest.Parts(t, map[string]string{"a": "", "b": "", "c": ""}), small, "holds 3 parts, the limit is 2 (ingest.extract.members)"},
		{"cut off", ziptest.Parts(t, map[string]string{"a": "b"})[:20], small, "damaged or cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := bounds.Zip(c.data, "Word document", c.limits)
			var known *bounds.Error
			if !errors.As(err, &known) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAnArchiveThatLiesAboutItsSizeIsStoppedWhileItUnpacks(t *testing.T) {
	t.Parallel()
	data := ziptest.Parts(t, map[string]string{"a": strings.Repeat("x", 5000)})
	// The size in the directory, 24 bytes into its entry.
	at := bytes.LastIndex(data, []byte("PK\x01\x02")) + 24
	binary.LittleEndian.PutUint32(data[at:], 10)
	a, err := bounds.Zip(data, "file", bounds.Limits{Unpacked: 1000}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Read(context.Background(), "a"); err == nil {
		t.Errorf("read %d bytes", len(got))
	}
}

func TestAllPartsShareTheLimit(t *testing.T) {
	t.Parallel()
	a, err := bounds.Zip(ziptest.Parts(t, map[string]string{"a": strings.Repeat("x", 600)}), "file", bounds.Limits{Unpacked: 1000}.Filled())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(context.Background(), "a"); err == nil || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Error(err)
	}
	if data, err := a.Read(context.Background(), "b"); data != nil || err != nil {
		t.Error(data, err)
	}
}

func TestOfficeFilesThatAreNone(t *testing.T) {
	t.Parallel()
	const compound = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	for _, c := range []struct{ name, data, password, want string }{
		{"encrypted", compound + "E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00", "", "encrypted: save it without a password, or give the password"},
		{"encrypted, wrong password", compound + "E\x00n\x00c\x00r\x00y\x00p\x00t\x00i\x00o\x00n\x00I\x00n\x00f\x00o\x00", "x", "the password given does not open it"},
		{"the old format", compound, "", "old binary format: save it as .docx"},
		{"text", "hello", "", "not a Word document"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := bounds.Office([]byte(c.data), "Word document", ".docx", c.password); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestOffice_NamesWhatItIsNot(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{"Word document": "not a Word document:", "Excel workbook": "not an Excel workbook:"} {
		if err := bounds.Office([]byte("a picture"), what, "", ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
