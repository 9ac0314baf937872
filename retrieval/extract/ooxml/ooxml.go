// Package ooxml opens the containers of Word, PowerPoint and Excel: parts,
// the relations between them, and elements in order.
//
// Its one idea: a part is read as a stream of elements by their local names,
// with their depth bounded, so that neither a strict nor a transitional file,
// nor one that nests without end, needs its own code. encoding/xml expands no
// entities of a document type, so there are no entity bombs.
package ooxml

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html/charset"

	"footnote/retrieval/extract/bounds"
)

// Package is an open container.
type Package struct {
	archive *bounds.Archive
	limits  bounds.Limits
	what    string
}

// Format is a kind of file in such a container.
type Format struct {
	Name   string // for reasons: "Word document"
	Ending string // of its files: ".docx"
	Folder string // that its document lies in: "word/"
}

// Open opens a container. main is the part that is its document.
func Open(ctx context.Context, data []byte, f Format, password string, l bounds.Limits) (p *Package, main string, err error) {
	if err := bounds.Office(data, f.Name, f.Ending, password); err != nil {
		return nil, "", err
	}
	a, err := bounds.Zip(data, f.Name, l)
	if err != nil {
		return nil, "", err
	}
	p = &Package{archive: a, limits: l, what: f.Name}
	if main, err = p.main(ctx); err != nil {
		return nil, "", err
	}
	if !strings.HasPrefix(main, f.Folder) {
		return nil, "", bounds.Refuse("this is no %s: its main part is %s; the file has the wrong name", f.Name, main)
	}
	return p, main, nil
}

// main is the part that the container names as its document.
func (p *Package) main(ctx context.Context) (string, error) {
	rels, err := p.Relations(ctx, "")
	if err != nil {
		return "", err
	}
	for _, r := range rels {
		if r.Kind == "officeDocument" && p.archive.Has(r.Target) {
			return r.Target, nil
		}
	}
	for _, name := range []string{"word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"} {
		if p.archive.Has(name) {
			return name, nil
		}
	}
	return "", bounds.Refuse("the %s is damaged: its main part is missing; open and save it again", p.what)
}

// Relation leads from one part to another.
type Relation struct {
	ID     string
	Kind   string // the last word of its type: slide, footnotes, image, …
	Target string // the part, or an address outside
	Mode   string // External or ""
}

// Relations lists those of a part, in their order; "" are those of the
// container.
func (p *Package) Relations(ctx context.Context, part string) ([]Relation, error) {
	data, err := p.archive.Read(ctx, path.Join(path.Dir(part), "_rels", path.Base("/"+part)+".rels"))
	if part == "" {
		data, err = p.archive.Read(ctx, "_rels/.rels")
	}
	if err != nil || data == nil {
		return nil, err
	}
	var out []Relation
	err = p.walk(ctx, data, func(e Element) {
		if e.Name != "Relationship" || !e.Start {
			return
		}
		r := Relation{ID: e.Attr("Id"), Kind: path.Base(e.Attr("Type")), Target: e.Attr("Target"), Mode: e.Attr("TargetMode")}
		if r.Mode != "External" {
			r.Target = resolve(path.Dir(part), r.Target)
		}
		out = append(out, r)
	})
	return out, err
}

func resolve(dir, target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return strings.TrimPrefix(path.Clean("/"+path.Join(dir, target)), "/")
}

// Element is a start, an end or text.
type Element struct {
	Start, End bool
	Name       string // local
	Space      string // its namespace
	Text       string
	attrs      []xml.Attr
}

// Attr is an attribute by its local name, "" if it is absent. "r:id" asks for
// the one of relations.
func (e Element) Attr(name string) string {
	want, relation := strings.CutPrefix(name, "r:")
	for _, a := range e.attrs {
		if a.Name.Local == want && relation == strings.HasSuffix(a.Name.Space, "relationships") {
			return a.Value
		}
	}
	return ""
}

// On reports a property that is set: present and not "false", "0" or "none".
func (e Element) On() bool {
	switch e.Attr("val") {
	case "false", "0", "off", "none":
		return false
	}
	return true
}

// Walk streams a part. An absent part is no error and gives nothing.
func (p *Package) Walk(ctx context.Context, part string, f func(Element)) error {
	data, err := p.archive.Read(ctx, part)
	if err != nil || data == nil {
		return err
	}
	return p.walk(ctx, data, f)
}

// Read unpacks a part as it is, nil if it is absent.
func (p *Package) Read(ctx context.Context, part string) ([]byte, error) {
	return p.archive.Read(ctx, part)
}

func (p *Package) walk(ctx context.Context, data []byte, f func(Element)) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = charset.NewReaderLabel
	depth := 0
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bounds.Refuse("the %s is damaged (%v): open and save it again", p.what, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > p.limits.Nesting {
				return bounds.Refuse("the %s nests elements more than %d deep, which is the limit (ingest.extract.nesting)", p.what, p.limits.Nesting)
			}
			f(Element{Start: true, Name: t.Name.Local, Space: t.Name.Space, attrs: t.Attr})
		case xml.EndElement:
			depth--
			f(Element{End: true, Name: t.Name.Local, Space: t.Name.Space})
		case xml.CharData:
			f(Element{Text: string(t)})
		}
	}
}
