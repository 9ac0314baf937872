package config

import (
	"strings"
	"testing"
)

func TestDocumentPasswords(t *testing.T) {
	t.Parallel()
	of, err := DocumentPasswords(environment(documentPasswords, "**/contracts/*.pdf: open: sesame\n\n/in/mail.eml/*.docx: second\n**/*.pdf: last "))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/in/contracts/a.pdf": "open: sesame", "/in/contracts/deep/a.pdf": "last ", "/in/mail.eml/a.docx": "second", "/in/a.txt": "",
	} {
		if got := of(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for name, value := range map[string]string{"no pattern": "canary", "a bad pattern": "[a: canary", "no password": "*.pdf: "} {
		if _, err := DocumentPasswords(environment(documentPasswords, value)); err == nil || !strings.Contains(err.Error(), "line 1") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if of, err := DocumentPasswords(environment()); err != nil || of("/a.pdf") != "" {
		t.Error(err)
	}
}

func TestTheDefaultsAreThoseOfExtraction(t *testing.T) {
	t.Parallel()
	l := Default().Ingest.Extract.Limits()
	if filled := l.Filled(); l != filled {
		t.Errorf("%+v, want %+v", l, filled)
	}
	var none Extract
	if got := none.Limits().Filled(); got != l {
		t.Errorf("%+v, want %+v", got, l)
	}
}
