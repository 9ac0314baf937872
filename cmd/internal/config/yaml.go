package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds what is read as a configuration, in bytes.
const maxFile = 1 << 20

// readYAML reads the one mapping of a file. An empty file is an empty mapping.
func readYAML(file string) (*yaml.Node, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("the file is longer than %d bytes", maxFile)
	}
	return parseYAML(raw)
}

func parseYAML(raw []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if err != nil {
		return nil, err
	}
	if !errors.Is(d.Decode(new(yaml.Node)), io.EOF) {
		return nil, errors.New("the file holds more than one YAML document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: the file must be a mapping of settings", root.Line)
	}
	return root, nil
}

// place is where a mapping stands: its path as written and as the table has
// it, and the operator's key on the way, if there is one.
type place struct{ written, path, key string }

// under is the place of a key of the mapping.
func (at place) under(key string, t table) place {
	in := place{join(at.written, key), join(at.path, key), at.key}
	if !t.knows(in.path) && t.knows(join(at.path, "*")) {
		in.path, in.key = join(at.path, "*"), key
	}
	return in
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// table is every setting by its path.
type table map[string]setting

func tableOf(c *Config) table {
	t := table{}
	for _, s := range c.settings() {
		t[s.path] = s
	}
	return t
}

func (t table) knows(path string) bool { _, leaf := t[path]; return leaf || t.isGroup(path) }

func (t table) isGroup(path string) bool { return len(t.children(path)) > 0 }

// walk sets what the mapping at a place says and reports what it cannot.
func walk(m *yaml.Node, at place, file string, t table, p *Problems) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		in := at.under(key.Value, t)
		where := fmt.Sprintf("%s:%d: %s", file, key.Line, in.written)
		if seen[key.Value] {
			p.add(where, "is set twice", "one value")
			continue
		}
		seen[key.Value] = true
		s, leaf := t[in.path]
		if s.list {
			value = joined(value)
		}
		switch {
		case leaf && value.Kind == yaml.ScalarNode && value.Tag != "!!null":
			if err := s.take(in.key, value.Value, filepath.Dir(file)); err != nil {
				p.add(where, err.Error(), s.accepts)
			}
		case leaf && value.Kind == yaml.ScalarNode:
			p.add(where, "has no value", s.accepts)
		case leaf:
			p.add(where, "must be a single value", s.accepts)
		case !t.isGroup(in.path):
			known := t.children(at.path)
			if at.path == "" {
				known = append(known, "sources")
				slices.Sort(known)
			}
			p.add(where, "is not a setting", "one of "+strings.Join(known, ", "))
		case value.Kind != yaml.MappingNode:
			p.add(where, "must be a group of settings", "keys "+strings.Join(t.children(in.path), ", "))
		default:
			walk(value, in, file, t, p)
		}
	}
}

// joined is a list of single values as one, and anything else as it is.
func joined(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return n
	}
	var all []string
	for _, e := range n.Content {
		if e.Kind != yaml.ScalarNode || e.Tag == "!!null" || strings.Contains(e.Value, ",") {
			return n
		}
		all = append(all, e.Value)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.Join(all, ","), Line: n.Line}
}

// take sets a value that the file gives.
func (s setting) take(key, value, base string) error {
	if s.keyed() {
		return s.setAt(key, value)
	}
	return s.set(value, base)
}

// children lists the keys that may stand under a path, sorted.
func (t table) children(prefix string) []string {
	var out []string
	for path := range t {
		rest, ok := strings.CutPrefix("."+path, strings.TrimSuffix("."+prefix, ".")+".")
		if !ok {
			continue
		}
		key, _, _ := strings.Cut(rest, ".")
		out = append(out, key)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
