package extract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
)

// maxYAML bounds what is read as YAML, whose tree takes many times the memory
// of its text. Beyond it the text is read as it stands.
const maxYAML = 8 << 20

// parseData reads JSON, JSON lines and YAML as one line for each value, with
// the path that leads to it: "servers[0].name: alpha". References in YAML are
// not followed, so they cannot multiply. What is no JSON or YAML after all,
// such as a template, reads as plain text, with a warning.
func parseData(ctx context.Context, in input) (doctree.Tree, error) {
	d := values{ctx: ctx, d: draft.New(in.limits, false), depth: in.limits.Nesting}
	var err error
	if ext := ending(in.name); ext == ".yaml" || ext == ".yml" {
		err = d.yaml(in.text)
	} else {
		err = d.json(in.text)
	}
	var known *Error
	switch {
	case ctx.Err() != nil:
		return doctree.Tree{}, ctx.Err()
	case errors.As(err, &known):
		return doctree.Tree{}, err
	case err != nil:
		t, fault := parseText(ctx, in)
		t.Warnings = append(t.Warnings, fmt.Sprintf("read as plain text, not by its values: %v", err))
		return t, fault
	}
	return d.d.Tree(in.title, nil)
}

// values writes one line for each value.
type values struct {
	ctx   context.Context
	d     *draft.Document
	depth int // of nesting at most
	n     int
}

func (v *values) add(path, value string) error {
	if v.n++; v.n%1024 == 0 && v.ctx.Err() != nil {
		return v.ctx.Err()
	}
	if strings.TrimSpace(value) == "" {
		return nil
	}
	if path != "" {
		value = path + ": " + value
	}
	v.d.Cells(1)
	v.d.Add(doctree.Item, value)
	return v.d.Err()
}

// plainKey needs no quotes in a path.
var plainKey = regexp.MustCompile(`^[\pL\pN_$@-]+$`)

// key adds a key to a path.
func key(path, name string) string {
	switch {
	case !plainKey.MatchString(name):
		return path + "[" + oneLine(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func (v *values) deep(level int) error {
	if level > v.depth {
		return refuse("the data nests more than %d deep, which is the limit (ingest.extract.nesting)", v.depth)
	}
	return nil
}

// json reads one value after another: JSON lines hold many.
func (v *values) json(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for n := 0; ; n++ {
		v.d.Break()
		if err := v.value(dec, "", 0); errors.Is(err, io.EOF) && n > 0 {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (v *values) value(dec *json.Decoder, path string, level int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if err := v.deep(level + 1); err != nil {
			return err
		}
		if t == '{' {
			return v.object(dec, path, level)
		}
		return v.array(dec, path, level)
	case nil:
		return nil
	}
	return v.add(path, fmt.Sprint(token))
}

func (v *values) object(dec *json.Decoder, path string, level int) error {
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return noEnd(err)
		}
		if err := v.value(dec, key(path, fmt.Sprint(name)), level+1); err != nil {
			return noEnd(err)
		}
	}
	_, err := dec.Token()
	return noEnd(err)
}

func (v *values) array(dec *json.Decoder, path string, level int) error {
	for i := 0; dec.More(); i++ {
		if err := v.value(dec, fmt.Sprintf("%s[%d]", path, i), level+1); err != nil {
			return noEnd(err)
		}
	}
	_, err := dec.Token()
	return noEnd(err)
}

// noEnd tells an end within a value from the end of the file.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (v *values) yaml(text string) error {
	if len(text) > maxYAML {
		return fmt.Errorf("it holds more than %d MB", maxYAML>>20)
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		v.d.Break()
		if err := v.node(&n, "", 0); err != nil {
			return err
		}
	}
}

func (v *values) node(n *yaml.Node, path string, level int) error {
	if err := v.deep(level); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil
		}
		return v.add(path, n.Value)
	case yaml.AliasNode:
		return v.add(path, "*"+n.Value)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := v.node(n.Content[i+1], key(path, n.Content[i].Value), level+1); err != nil {
				return err
			}
		}
		return nil
	}
	for i, c := range n.Content {
		at := path
		if n.Kind == yaml.SequenceNode {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if err := v.node(c, at, level+1); err != nil {
			return err
		}
	}
	return nil
}
