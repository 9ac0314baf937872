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

// walk sets what the mapping at prefix says and reports what it cannot.
func walk(m *yaml.Node, prefix, file string, table map[string]setting, p *Problems) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		at := strings.TrimPrefix(prefix+"."+key.Value, ".")
		where := fmt.Sprintf("%s:%d: %s", file, key.Line, at)
		if seen[key.Value] {
			p.add(where, "is set twice", "one value")
			continue
		}
		seen[key.Value] = true
		s, leaf := table[at]
		switch {
		case leaf && value.Kind == yaml.ScalarNode && value.Tag != "!!null":
			if err := s.set(value.Value, filepath.Dir(file)); err != nil {
				p.add(where, err.Error(), s.accepts)
			}
		case leaf && value.Kind == yaml.ScalarNode:
			p.add(where, "has no value", s.accepts)
		case leaf:
			p.add(where, "must be a single value", s.accepts)
		case !isGroup(at, table):
			p.add(where, "is not a setting", "one of "+strings.Join(children(prefix, table), ", "))
		case value.Kind != yaml.MappingNode:
			p.add(where, "must be a group of settings", "keys "+strings.Join(children(at, table), ", "))
		default:
			walk(value, at, file, table, p)
		}
	}
}

func isGroup(at string, table map[string]setting) bool { return len(children(at, table)) > 0 }

// children lists the keys that may stand under prefix, sorted.
func children(prefix string, table map[string]setting) []string {
	var out []string
	for path := range table {
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
