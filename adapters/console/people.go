package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"footnote/acl"
)

// people is the people file as a directory:
//
//	people:
//	  ada: {name: Ada Lim, email: ada@example.org, groups: [security]}
//	  pat: {guest: true}
//	rooms:
//	  general: {everyone: true}
//	  leads: {members: [ada, bob]}
//
// A person holds user:NAME, group:G of each group, the e-mail address, and
// everyone unless a guest. A room has either everyone or members.
//
// The file is read at each lookup and parsed when its bytes have changed, so
// that a change is in force at the next question. A file that can no longer
// be read or understood knows nobody.
type people struct {
	path string

	mu     sync.Mutex
	data   []byte
	parsed peopleFile
}

// OpenPeople reads the people file. All its problems are told at once, each
// with its line.
func OpenPeople(path string) (acl.Directory, error) {
	p := &people{path: path}
	if _, err := p.load(); err != nil {
		return nil, err
	}
	return p, nil
}

// Identify returns what the person of that name holds.
//
// SECURITY: only exact names are known; the empty one is not.
func (p *people) Identify(ctx context.Context, account string) (acl.Identity, error) {
	file, err := p.current(ctx)
	if err != nil {
		return acl.Identity{}, err
	}
	who, ok := file.People[key{text: account}]
	if !ok {
		return acl.Identity{}, fmt.Errorf("%q is not in the people file: %w", account, acl.ErrUnknown)
	}
	return acl.NewIdentity(acl.User(account), who.principals(account)...), nil
}

// Audience returns the readers of a room.
func (p *people) Audience(ctx context.Context, room string) (acl.Audience, error) {
	file, err := p.current(ctx)
	if err != nil {
		return acl.Audience{}, err
	}
	r, ok := file.Rooms[key{text: room}]
	if !ok {
		return acl.Audience{}, fmt.Errorf("the room %q is not in the people file: %w", room, acl.ErrUnknown)
	}
	if r.Everyone {
		return acl.Room([]acl.Principal{acl.Everyone}), nil
	}
	viewers := make([][]acl.Principal, 0, len(r.Members))
	for _, m := range r.Members {
		viewers = append(viewers, file.People[key{text: m.text}].principals(m.text))
	}
	return acl.Room(viewers...), nil
}

func (p *people) current(ctx context.Context) (peopleFile, error) {
	if err := ctx.Err(); err != nil {
		return peopleFile{}, err
	}
	return p.load()
}

func (p *people) load() (peopleFile, error) {
	data, err := readPeople(p.path)
	if err != nil {
		return peopleFile{}, fmt.Errorf("reading the people file: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data != nil && bytes.Equal(data, p.data) {
		return p.parsed, nil
	}
	parsed, err := parsePeople(data)
	if err != nil {
		return peopleFile{}, fmt.Errorf("the people file %s has problems:\n%w", p.path, err)
	}
	p.data, p.parsed = data, parsed
	return parsed, nil
}

// maxPeopleBytes bounds the people file; 100,000 people fit.
const maxPeopleBytes = 16 << 20

func readPeople(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPeopleBytes+1))
	if err == nil && len(data) > maxPeopleBytes {
		err = fmt.Errorf("%s is over %d MB", path, maxPeopleBytes>>20)
	}
	return data, err
}

type peopleFile struct {
	People map[key]person `yaml:"people"`
	Rooms  map[key]room   `yaml:"rooms"`

	lines map[string]int // of the names of people and rooms, for messages
}

type person struct {
	Name   string `yaml:"name"`
	Email  word   `yaml:"email"`
	Groups []word `yaml:"groups"`
	Guest  bool   `yaml:"guest"`
}

type room struct {
	Everyone bool   `yaml:"everyone"`
	Members  []word `yaml:"members"`
}

// principals is what the person of that name holds. The file has been checked.
func (p person) principals(name string) []acl.Principal {
	ps := []acl.Principal{acl.User(name)}
	for _, g := range p.Groups {
		ps = append(ps, acl.Group(strings.TrimPrefix(g.text, "group:")))
	}
	if p.Email.text != "" {
		ps = append(ps, acl.Email(p.Email.text))
	}
	if !p.Guest {
		ps = append(ps, acl.Everyone)
	}
	return ps
}

// key is a name in front of a colon.
type key struct{ text string }

// UnmarshalYAML takes a plain text only: a number or a date would have
// several spellings.
func (k *key) UnmarshalYAML(n *yaml.Node) error {
	var w word
	err := w.UnmarshalYAML(n)
	k.text = w.text
	return err
}

// word is a text with the line it stands on.
type word struct {
	text string
	line int
}

// UnmarshalYAML names the line of what is no text.
func (w *word) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: a text is needed here, for example ada; put numbers in quotes", n.Line)}}
	}
	*w = word{n.Value, n.Line}
	return nil
}

// parsePeople reads strictly. The error joins every problem found.
func parsePeople(data []byte) (peopleFile, error) {
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return peopleFile{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var f peopleFile
	problems := emptyValues(&tree)
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var t *yaml.TypeError
	switch err := d.Decode(&f); {
	case errors.As(err, &t):
		for _, e := range t.Errors {
			problems = append(problems, inWords(e))
		}
	case err != nil && !errors.Is(err, io.EOF):
		return peopleFile{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		problems = append(problems, "the file holds more than one YAML document")
	}
	f.lines = nameLines(&tree)
	problems = append(problems, f.check()...)
	switch {
	case len(problems) > 0:
	case len(f.People) == 0:
		problems = []string{"there are no people; write people: {ada: {groups: [security]}}"}
	default:
		return f, nil
	}
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = errors.New(p)
	}
	return peopleFile{}, errors.Join(errs...)
}

// inWords says a decoder's problem without the decoder's own terms.
func inWords(problem string) string {
	problem = unknownKey.ReplaceAllString(problem, "unknown key $1")
	problem = twice.ReplaceAllString(problem, "$1 is given twice, also in line $2")
	return misfit.ReplaceAllString(problem, "something else belongs here; write for example ada: {name: Ada Lim, groups: [security]}")
}

var (
	twice  = regexp.MustCompile(`mapping key "([^"]*)" already defined at line (\d+)`)
	misfit = regexp.MustCompile("cannot unmarshal !!\\w+( `[^`]*`)? into \\S+")
)

var unknownKey = regexp.MustCompile(`field (\S+) not found in type [\w.]+`)

// emptyValues reports keys without a value, which the decoder passes over.
func emptyValues(n *yaml.Node) []string {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return []string{fmt.Sprintf("line %d: there is no value", n.Line)}
	}
	var out []string
	for _, c := range n.Content {
		out = append(out, emptyValues(c)...)
	}
	return out
}

// nameLines maps "people/ada" and "rooms/general" to their lines.
func nameLines(tree *yaml.Node) map[string]int {
	lines := map[string]int{}
	if len(tree.Content) == 0 {
		return lines
	}
	pairs := func(n *yaml.Node, f func(k, v *yaml.Node)) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			f(n.Content[i], n.Content[i+1])
		}
	}
	pairs(tree.Content[0], func(section, names *yaml.Node) {
		pairs(names, func(name, _ *yaml.Node) { lines[section.Value+"/"+name.Value] = name.Line })
	})
	return lines
}

// check finds what is well formed and yet wrong, in the order of the lines.
func (f peopleFile) check() []string {
	found := map[int][]string{}
	say := func(line int, format string, args ...any) {
		found[line] = append(found[line], fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
	}
	byEmail := map[acl.Principal]string{}
	for _, k := range sortedKeys(f.People) {
		f.checkPerson(k.text, say, byEmail)
	}
	for _, k := range sortedKeys(f.Rooms) {
		f.checkRoom(k.text, say)
	}
	var out []string
	for _, line := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[line]...)
	}
	return out
}

// checkPerson holds each name, group and address to the form of a principal.
//
// SECURITY: an address names one person; were it shared, one would read what
// was meant for the other.
func (f peopleFile) checkPerson(name string, say func(int, string, ...any), byEmail map[acl.Principal]string) {
	who := f.People[key{name}]
	if p, err := acl.ParsePrincipal("user:" + name); err != nil || p != acl.User(name) {
		say(f.lines["people/"+name], "%q cannot be a person's name: leave out blanks, commas, quotes, colons and slashes", name)
	}
	for _, g := range who.Groups {
		want := acl.Group(strings.TrimPrefix(g.text, "group:"))
		if p, err := acl.ParsePrincipal(string(want)); err != nil || p != want {
			say(g.line, "%q cannot be a group's name: leave out blanks, commas, quotes, colons and slashes", g.text)
		}
	}
	if who.Email.line == 0 {
		return
	}
	p, err := acl.ParsePrincipal(who.Email.text)
	if err != nil || p != acl.Email(who.Email.text) || !strings.Contains(who.Email.text, "@") {
		say(who.Email.line, "%q is not an e-mail address", who.Email.text)
		return
	}
	if other, taken := byEmail[p]; taken {
		say(who.Email.line, "%s and %s have the same e-mail address", other, name)
	}
	byEmail[p] = name
}

func (f peopleFile) checkRoom(name string, say func(int, string, ...any)) {
	r := f.Rooms[key{name}]
	if r.Everyone == (len(r.Members) > 0) {
		say(f.lines["rooms/"+name], "the room %q needs either everyone: true or members", name)
	}
	for _, m := range r.Members {
		if _, ok := f.People[key{m.text}]; !ok {
			say(m.line, "the room %q has the member %q, who is not among the people", name, m.text)
		}
	}
}

func sortedKeys[V any](m map[key]V) []key {
	return slices.SortedFunc(maps.Keys(m), func(a, b key) int { return strings.Compare(a.text, b.text) })
}

// anyName is the directory of a machine without a people file.
type anyName struct{}

// AnyName takes everybody at their word: a name holds user:NAME and everyone,
// no name holds everyone. It knows no room. It is for one person's own
// documents: who can run the program can read them anyway.
func AnyName() acl.Directory { return anyName{} }

// Identify never fails for a name that can be written in an access list.
func (anyName) Identify(_ context.Context, account string) (acl.Identity, error) {
	if account == "" {
		return acl.NewIdentity(acl.Everyone), nil
	}
	p, err := acl.ParsePrincipal("user:" + account)
	if err != nil || p != acl.User(account) {
		return acl.Identity{}, fmt.Errorf("%q cannot be a name: leave out blanks, commas, quotes, colons and slashes: %w", account, acl.ErrUnknown)
	}
	return acl.NewIdentity(p, acl.Everyone), nil
}

// Audience knows no room.
func (anyName) Audience(_ context.Context, room string) (acl.Audience, error) {
	return acl.Audience{}, fmt.Errorf("the room %q is unknown, since there is no people file: %w", room, acl.ErrUnknown)
}
