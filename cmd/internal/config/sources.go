package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"footnote/acl"
	"footnote/adapters/files"
)

// Source is one entry of sources, a folder whose documents are kept up with:
//
//	sources:
//	  - name: handbook                # in reports; the last part of the folder if not given
//	    folder: docs/handbook         # or one file; relative to the configuration
//	    include: ["**/*.md"]          # none: everything
//	    exclude: ["drafts/**"]
//	    access: [everyone]            # of documents of which no access file or front matter speaks
//	    follow_links: false           # links that lead out of the folder
type Source struct {
	Name        string
	Folder      string // absolute
	Include     []string
	Exclude     []string
	Access      acl.List
	FollowLinks bool
}

// acceptsSources says what may stand at sources.
const acceptsSources = "a list of folders, for example - folder: docs/handbook"

var sourceKeys = []string{"access", "exclude", "folder", "follow_links", "include", "name"}

// aName is what a source may be called.
var aName = regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,63}$`)

// readSources reads the list at sources.
func (c *Config) readSources(n *yaml.Node, file string, p *Problems) {
	if n.Kind != yaml.SequenceNode {
		p.add(fmt.Sprintf("%s:%d: sources", file, n.Line), "must be a list", acceptsSources)
		return
	}
	for i, e := range n.Content {
		r := sourceReader{file: file, at: fmt.Sprintf("sources[%d]", i+1), p: p}
		if isChannel(e) {
			ch, ok := r.channel(e)
			switch {
			case ok && slices.ContainsFunc(c.Channels, func(o Channel) bool { return o.ID == ch.ID }):
				r.problem(e, "slack_channel", ch.ID+" is a source twice", "each channel once")
			case ok:
				c.Channels = append(c.Channels, ch)
			}
			continue
		}
		s, ok := r.read(e)
		if !ok {
			continue
		}
		if slices.ContainsFunc(c.Sources, func(o Source) bool { return o.Name == s.Name }) {
			r.problem(e, "name", fmt.Sprintf("%q is the name of two sources", s.Name), "another name")
		}
		c.Sources = append(c.Sources, s)
	}
}

// sourceReader reads one entry.
type sourceReader struct {
	file, at string
	p        *Problems
}

func (r sourceReader) problem(n *yaml.Node, key, what, accepts string) {
	r.p.add(fmt.Sprintf("%s:%d: %s", r.file, n.Line, strings.TrimSuffix(join(r.at, key), ".")), what, accepts)
}

// read reports false if the entry cannot be used.
func (r sourceReader) read(e *yaml.Node) (s Source, ok bool) {
	if e.Kind != yaml.MappingNode {
		r.problem(e, "", "must be a group of settings", "keys "+strings.Join(sourceKeys, ", "))
		return s, false
	}
	before := len(r.p.All)
	seen := map[string]bool{}
	for i := 0; i+1 < len(e.Content); i += 2 {
		key, value := e.Content[i], e.Content[i+1]
		if seen[key.Value] {
			r.problem(key, key.Value, "is set twice", "one value")
			continue
		}
		seen[key.Value] = true
		r.set(&s, key, value)
	}
	if !seen["folder"] {
		r.problem(e, "folder", "is missing", "a path")
	}
	if s.Name == "" && s.Folder != "" {
		s.Name = strings.ReplaceAll(filepath.Base(s.Folder), " ", "-")
		if !aName.MatchString(s.Name) {
			r.problem(e, "name", "is missing, and the folder gives none", acceptsName)
		}
	}
	return s, len(r.p.All) == before
}

const acceptsName = "letters, digits and . _ -, at most 64"

func (r sourceReader) set(s *Source, key, value *yaml.Node) {
	switch key.Value {
	case "name":
		if v, ok := r.text(key, value, acceptsName); ok {
			if !aName.MatchString(v) {
				r.problem(key, "name", fmt.Sprintf("%q is not a name", v), acceptsName)
			}
			s.Name = v
		}
	case "folder":
		if v, ok := r.text(key, value, "a path"); ok {
			if err := path("folder", &s.Folder).set(v, filepath.Dir(r.file)); err != nil {
				r.problem(key, "folder", err.Error(), "a path")
			}
		}
	case "include":
		s.Include = r.patterns(key, value)
	case "exclude":
		s.Exclude = r.patterns(key, value)
	case "access":
		words := r.texts(key, value, acceptsAccess)
		list, err := acl.ParseList(words)
		if words != nil && err != nil {
			r.problem(key, "access", err.Error(), acceptsAccess)
		}
		s.Access = list
	case "follow_links":
		v, ok := r.text(key, value, oneOf([]string{"true", "false"}))
		if b, err := parseYesNo(v); ok && err != nil {
			r.problem(key, "follow_links", err.Error(), oneOf([]string{"true", "false"}))
		} else {
			s.FollowLinks = b
		}
	default:
		r.problem(key, key.Value, "is not a setting", "one of "+strings.Join(sourceKeys, ", "))
	}
}

const acceptsAccess = "one or more of everyone, group:NAME, user:NAME, an e-mail address"

// text is a single value.
func (r sourceReader) text(key, value *yaml.Node, accepts string) (string, bool) {
	if value.Kind != yaml.ScalarNode || value.Tag == "!!null" || value.Value == "" {
		r.problem(key, key.Value, "must be a single value", accepts)
		return "", false
	}
	return value.Value, true
}

// texts is a value or a list of them, nil if it is neither.
func (r sourceReader) texts(key, value *yaml.Node, accepts string) []string {
	if value.Kind != yaml.SequenceNode {
		v, ok := r.text(key, value, accepts)
		if !ok {
			return nil
		}
		return []string{v}
	}
	if len(value.Content) == 0 {
		r.problem(key, key.Value, "is empty", accepts)
	}
	var out []string
	for _, e := range value.Content {
		v, ok := r.text(&yaml.Node{Value: key.Value, Line: e.Line}, e, accepts)
		if !ok {
			return nil
		}
		out = append(out, v)
	}
	return out
}

func (r sourceReader) patterns(key, value *yaml.Node) []string {
	all := r.texts(key, value, "patterns, for example \"**/*.md\"")
	for _, v := range all {
		if err := files.CheckPattern(v); err != nil {
			r.problem(key, key.Value, err.Error(), "patterns, for example \"**/*.md\"")
		}
	}
	return all
}

// Folders makes the sources, in order. The error is a *Problems that says which
// of them answer for the same documents: those would be taken in by both, each
// with its own access list.
func (c Config) Folders() ([]*files.Folder, error) {
	var p Problems
	var out []*files.Folder
	for _, s := range c.Sources {
		f, err := files.New(s.Folder, files.Options{
			Include: s.Include, Exclude: s.Exclude, Default: s.Access, FollowOutside: s.FollowLinks, MaxBytes: int64(c.Ingest.MaxMegabytes) << 20,
		})
		if err != nil {
			p.add("sources: "+s.Name, err.Error(), acceptsSources)
			continue
		}
		for i, o := range out {
			p.overlap(c.Sources[i].Name, o, s.Name, f)
		}
		out = append(out, f)
	}
	return out, p.err()
}

func (p *Problems) overlap(aName string, a *files.Folder, bName string, b *files.Folder) {
	outer, inner, outerName, innerName := a, b, aName, bName
	if len(b.Root()) < len(a.Root()) {
		outer, inner, outerName, innerName = b, a, bName, aName
	}
	rel, err := filepath.Rel(outer.Root(), inner.Root())
	if err != nil || !filepath.IsLocal(rel) || rel != "." && outer.Excludes(inner.Root()) {
		return
	}
	if rel == "." {
		p.add("sources: "+innerName, "has the folder of "+outerName, "each folder once")
		return
	}
	p.add("sources: "+innerName, "lies in the folder of "+outerName, fmt.Sprintf("there also exclude: [%q]", filepath.ToSlash(rel)))
}
