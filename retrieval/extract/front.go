package extract

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// front is what stands between two lines of three hyphens at the top of a
// document. It describes the document and is no part of its text.
type front struct {
	end    int // first byte after it, 0: there is none
	title  string
	access []string
	values map[string]any
}

// maxFront bounds what is taken for front matter.
const maxFront = 64 << 10

var (
	frontOpen   = regexp.MustCompile(`\A\s*?(---|\+\+\+)[ \t]*\n`)
	accessLine  = regexp.MustCompile(`(?im)^[ \t]*["']?access["']?[ \t]*[:=]`)
	titleLine   = regexp.MustCompile(`(?m)^title[ \t]*[:=][ \t]*(.+)$`)
	yamlEnd     = regexp.MustCompile(`(?m)^(---|\.\.\.)[ \t]*$\n?`)
	tomlEnd     = regexp.MustCompile(`(?m)^\+\+\+[ \t]*$\n?`)
	keyLine     = regexp.MustCompile(`\A\s*(#.*\n\s*)*["']?[\w.-]+["']?[ \t]*[:=]`)
	firstBlanks = regexp.MustCompile(`\n[ \t]*\n`)
)

// readFront reads the front matter. SECURITY: an access list that is seen but
// not understood refuses the document; it is never taken for "no list", which
// could open the document to more people.
func readFront(text string) (front, error) {
	head := text[:min(len(text), maxFront)]
	open := frontOpen.FindStringSubmatchIndex(head)
	if open == nil {
		return front{}, nil
	}
	toml := head[open[2]:open[3]] == "+++"
	end := yamlEnd
	if toml {
		end = tomlEnd
	}
	rest := head[open[1]:]
	at := end.FindStringIndex(rest)
	if at == nil {
		return front{}, unclosed(rest)
	}
	body := rest[:at[0]]
	f := front{end: open[1] + at[1]}
	if toml {
		return f.loose(body, fmt.Errorf("TOML is not read here"))
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(body), &values); err != nil {
		return f.loose(body, errors.New(inWords(err)))
	}
	f.values = values
	return f, f.take()
}

// inWords is a decoder's error in one line, without the decoder's own terms.
func inWords(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.ReplaceAll(strings.TrimPrefix(text, "unmarshal errors:\n  "), "\n  ", "; ")
	text = twice.ReplaceAllString(text, "$1 is given twice, also in line $2")
	return misfit.ReplaceAllString(text, "what stands here is not of the right kind")
}

var (
	twice  = regexp.MustCompile(`mapping key "([^"]*)" already defined at line (\d+)`)
	misfit = regexp.MustCompile("cannot unmarshal !!\\w+( `[^`]*`)? into \\S+")
)

// unclosed refuses an opening line that never ends, if an access list follows.
func unclosed(rest string) error {
	if i := firstBlanks.FindStringIndex(rest); i != nil {
		rest = rest[:i[0]]
	}
	if accessLine.MatchString(rest) {
		return refuse("front matter with an access list does not end: close it with a line of ---")
	}
	return nil
}

// loose reads front matter that is no valid YAML: a line that looks like a
// title counts. What does not look like keys at all is text between rules.
func (f front) loose(body string, cause error) (front, error) {
	if accessLine.MatchString(body) {
		return front{}, refuse("front matter with an access list cannot be read (%v): write it as YAML, for example access: [everyone]", cause)
	}
	if !keyLine.MatchString(body) {
		return front{}, nil
	}
	if m := titleLine.FindStringSubmatch(body); m != nil {
		f.title = strings.Trim(strings.TrimSpace(m[1]), `"'`)
	}
	return f, nil
}

// take finds title and access in the values, whatever the case of the keys.
func (f *front) take() error {
	for k, v := range f.values {
		switch {
		case strings.EqualFold(k, "title"):
			if v != nil {
				f.title = fmt.Sprint(v)
			}
		case strings.EqualFold(strings.TrimSpace(k), "access"):
			list, ok := accessList(v)
			if !ok || f.access != nil {
				return refuse("front matter: access must be given once, as a list of principals, for example access: [everyone]")
			}
			f.access = list
		}
	}
	return nil
}

// accessList reads a list of strings or one string. The result is not nil.
func accessList(v any) ([]string, bool) {
	switch v := v.(type) {
	case nil:
		return []string{}, true
	case string:
		return strings.FieldsFunc(v, func(r rune) bool { return r == ',' }), true
	case []any:
		list := []string{}
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			list = append(list, strings.TrimSpace(s))
		}
		return list, true
	}
	return nil, false
}
