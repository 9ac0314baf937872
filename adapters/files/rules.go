package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v3"

	"footnote/acl"
	"footnote/retrieval/ingest"
)

// AccessFile is the name of the file that gives access to a folder:
//
//	access: [everyone]             # the folder and all below it
//	patterns:                      # relative to this folder; the first that matches decides
//	  - match: "security/**"
//	    access: [group:security]
//
// At least one of the two is needed; access takes one principal or a list.
// The nearest file upward that speaks of a document decides: one that has only
// patterns, none of which match, leaves the matter to the next. Upward means to
// the top of the file system, not to the folder that is being walked: else
// walking a part of a tree would open what the whole of it closes.
//
// SECURITY: a file that cannot be read or understood closes its folder and
// all below it, whatever a nearer file says, since what it was to restrict is
// not known.
const AccessFile = ".access.yaml"

// maxAccessBytes bounds an access file: more is a mistake.
const maxAccessBytes = 1 << 20

// ruleBook reads each folder's access file once per walk.
type ruleBook struct {
	cache map[string]folderRules
}

// folderRules is one folder's access file; the zero value is no file.
type folderRules struct {
	file  accessFile
	fault *ingest.Fault
}

func newRuleBook() *ruleBook {
	return &ruleBook{cache: map[string]folderRules{}}
}

// access finds what the rules give the document: a list, nothing (zero), or
// the fault of any access file above it.
func (b *ruleBook) access(path string) (acl.List, *ingest.Fault) {
	var list acl.List
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		r := b.folder(dir)
		if r.fault != nil {
			return acl.List{}, r.fault
		}
		if rel, err := filepath.Rel(dir, path); err == nil && list.IsZero() {
			list = r.file.list(filepath.ToSlash(rel))
		}
		if dir == filepath.Dir(dir) {
			return list, nil
		}
	}
}

func (b *ruleBook) folder(dir string) folderRules {
	r, ok := b.cache[dir]
	if !ok {
		r = loadRules(dir)
		b.cache[dir] = r
	}
	return r
}

func loadRules(dir string) folderRules {
	name, err := findAccessFile(dir)
	if err == nil && name == "" {
		return folderRules{}
	}
	var file accessFile
	if err == nil {
		file, err = readAccessFile(name)
	}
	if err != nil {
		if name == "" {
			name = filepath.Join(dir, AccessFile)
		}
		return folderRules{fault: &ingest.Fault{Refused: true, Reason: fmt.Sprintf("the access file %s is not usable, so nothing under it is taken in", name), Cause: bare(err)}}
	}
	return folderRules{file: file}
}

// findAccessFile returns the folder's access file, "" if it has none.
//
// SECURITY: a name that was meant to be an access file but is not would
// otherwise be passed over, and the document be opened by a wider rule.
func findAccessFile(dir string) (string, error) {
	present, err := likely(dir)
	if err != nil {
		return "", err
	}
	found := ""
	for _, name := range present {
		if name != AccessFile {
			return filepath.Join(dir, name), fmt.Errorf("it must be named %s", AccessFile)
		}
		found = filepath.Join(dir, name)
	}
	return found, nil
}

// accessNames are the names of access files and those meant as such.
var accessNames = []string{AccessFile, ".access.yml", ".access", ".access.json"}

// likely lists what of a folder is or was meant to be an access file, in any
// case of letters. A folder above the documents may be passed through without
// being listed: there the names themselves are tried.
func likely(dir string) (present []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return tried(dir)
	}
	for _, e := range entries {
		if slices.Contains(accessNames, strings.ToLower(e.Name())) {
			present = append(present, e.Name())
		}
	}
	return present, err
}

func tried(dir string) (present []string, err error) {
	for _, name := range accessNames {
		_, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case err == nil:
			present = append(present, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return present, nil
}

func readAccessFile(path string) (accessFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return accessFile{}, err
	}
	if !info.Mode().IsRegular() {
		return accessFile{}, errors.New("it is not a regular file")
	}
	if info.Size() > maxAccessBytes {
		return accessFile{}, fmt.Errorf("it is over %d bytes", maxAccessBytes)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return accessFile{}, errors.New("this user may not read it")
	}
	if err != nil {
		return accessFile{}, err
	}
	return parseAccessFile(data)
}

// accessFile is the decoded form of an access file.
type accessFile struct {
	Access   principals `yaml:"access"`
	Patterns []struct {
		Match  pattern    `yaml:"match"`
		Access principals `yaml:"access"`
	} `yaml:"patterns"`
}

// list returns what the file gives a path relative to its folder.
func (a accessFile) list(rel string) acl.List {
	for _, p := range a.Patterns {
		if doublestar.MatchUnvalidated(string(p.Match), rel) {
			return p.Access.List
		}
	}
	return a.Access.List
}

// parseAccessFile reads strictly: unknown keys, unknown principals, empty
// lists and patterns that match nothing are errors, all told at once.
func parseAccessFile(data []byte) (accessFile, error) {
	var a accessFile
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return accessFile{}, plain(err)
	}
	if line := emptyValue(&tree); line > 0 {
		return accessFile{}, fmt.Errorf("line %d: there is no value; an empty access list admits nobody and is not allowed", line)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&a); err != nil && !errors.Is(err, io.EOF) {
		return accessFile{}, plain(err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return accessFile{}, errors.New("it holds more than one YAML document")
	}
	if a.Access.IsZero() && len(a.Patterns) == 0 {
		return accessFile{}, errors.New("it gives no access: write access: [everyone], or patterns")
	}
	for i, p := range a.Patterns {
		if p.Match == "" || p.Access.IsZero() {
			return accessFile{}, fmt.Errorf("pattern %d needs both match and access", i+1)
		}
	}
	return a, nil
}

// emptyValue returns the line of the first null below the node, 0 if there is
// none: the decoder would take a null for an absent key, and a rule that was
// begun would be passed over.
func emptyValue(n *yaml.Node) int {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return n.Line
	}
	for _, c := range n.Content {
		if line := emptyValue(c); line > 0 {
			return line
		}
	}
	return 0
}

// plain turns the decoder's error into one line.
func plain(err error) error {
	var t *yaml.TypeError
	if errors.As(err, &t) {
		text := unknownKey.ReplaceAllString(strings.Join(t.Errors, "; "), "unknown key $1")
		text = twice.ReplaceAllString(text, "$1 is given twice, also in line $2")
		return errors.New(misfit.ReplaceAllString(text, "something else belongs here"))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
}

// These find the decoder's words for a key that the format lacks, for one that
// is there twice, and for a value of another kind.
var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type [\w.]+`)
	twice      = regexp.MustCompile(`mapping key "([^"]*)" already defined at line (\d+)`)
	misfit     = regexp.MustCompile("cannot unmarshal !!\\w+( `[^`]*`)? into \\S+")
)

// principals is an access list in YAML: one principal or a list.
type principals struct{ acl.List }

// UnmarshalYAML names the line of each entry that is no principal.
func (p *principals) UnmarshalYAML(n *yaml.Node) error {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	if len(nodes) == 0 {
		return atLine(n, "an access list needs at least one principal, for example everyone")
	}
	var ps []acl.Principal
	var bad []string
	for _, e := range nodes {
		if e.Kind != yaml.ScalarNode || e.Tag == "!!null" {
			bad = append(bad, fmt.Sprintf("line %d: a principal is a word, for example group:security", e.Line))
			continue
		}
		q, err := acl.ParsePrincipal(e.Value)
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: %v", e.Line, err))
			continue
		}
		ps = append(ps, q)
	}
	if len(bad) > 0 {
		return &yaml.TypeError{Errors: bad}
	}
	p.List = acl.NewList(ps...)
	return nil
}

// pattern is a doublestar pattern relative to the access file's folder.
type pattern string

// UnmarshalYAML refuses a pattern that can match nothing, with its line.
func (p *pattern) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return atLine(n, "a pattern is a text, for example security/**")
	}
	if err := CheckPattern(n.Value); err != nil {
		return atLine(n, err.Error())
	}
	*p = pattern(n.Value)
	return nil
}

func atLine(n *yaml.Node, what string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, what)}}
}
