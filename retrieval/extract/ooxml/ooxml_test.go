package ooxml_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/ooxml"
	"footnote/retrieval/extract/ziptest"
)

func open(t *testing.T, l bounds.Limits, parts map[string]string) (p *ooxml.Package, main string) {
	t.Helper()
	p, main, err := ooxml.Open(context.Background(), ziptest.Parts(t, parts), ooxml.Format{Name: "file", Ending: ".docx"}, "", l.Filled())
	if err != nil {
		t.Fatal(err)
	}
	return p, main
}

func TestRelationsLeadFromPartToPart(t *testing.T) {
	t.Parallel()
	p, main := open(t, bounds.Limits{}, map[string]string{
		"_rels/.rels":             `<Relationships><Relationship Id="1" Type="http://x/officeDocument" Target="ppt/main.xml"/></Relationships>`,
		"ppt/main.xml":            "<x/>",
		"ppt/_rels/main.xml.rels": `<Relationships><Relationship Id="a" Type="http://x/slide" Target="../ppt/s/1.xml"/><Relationship Id="b" Type="http://x/slide" Target="/abs.xml"/><Relationship Id="c" Type="http://x/hyperlink" Target="http://y/" TargetMode="External"/><Relationship Id="d" Type="http://x/slide" Target="../../../../etc/passwd"/></Relationships>`,
	})
	if main != "ppt/main.xml" {
		t.Fatal(main)
	}
	got, err := p.Relations(context.Background(), main)
	if err != nil {
		t.Fatal(err)
	}
	want := []ooxml.Relation{
		{ID: "a", Kind: "slide", Target: "ppt/s/1.xml"},
		{ID: "b", Kind: "slide", Target: "abs.xml"},
		{ID: "c", Kind: "hyperlink", Target: "http://y/", Mode: "External"},
		{ID: "d", Kind: "slide", Target: "etc/passwd"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestElementsByLocalName(t *testing.T) {
	t.Parallel()
	p, _ := open(t, bounds.Limits{}, map[string]string{
		"word/document.xml": "",
		"x":                 `<a:p xmlns:a="http://x/main" xmlns:r="http://purl.oclc.org/ooxml/officeDocument/relationships" id="1" r:id="2"><b val="0"/>text &amp; more</a:p>`,
	})
	var got []string
	err := p.Walk(context.Background(), "x", func(e ooxml.Element) {
		switch {
		case e.Start && e.Name == "p":
			got = append(got, e.Attr("id"), e.Attr("r:id"), e.Attr("none"))
		case e.Start:
			if e.On() {
				t.Error("a property of the value 0 is on")
			}
		case e.Text != "":
			got = append(got, e.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", "2", "", "text & more"}, got); diff != "" {
		t.Error(diff)
	}
	if err := p.Walk(context.Background(), "absent", func(ooxml.Element) { t.Error("an absent part has elements") }); err != nil {
		t.Error(err)
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	p, _ := open(t, bounds.Limits{Nesting: 3}, map[string]string{"xl/workbook.xml": "", "deep": strings.Repeat("<a>", 4), "flat": strings.Repeat("<a></a>", 1) + strings.Repeat(" ", 10)})
	if err := p.Walk(context.Background(), "deep", func(ooxml.Element) {}); err == nil || !strings.Contains(err.Error(), "more than 3 deep") {
		t.Error(err)
	}
	if err := p.Walk(context.Background(), "flat", func(ooxml.Element) {}); err != nil {
		t.Error(err)
	}
}
