package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// setting is one row of the table. set parses a value into the Config; base
// is the directory that relative paths start from, "" the working directory.
//
// A path may hold one "*", which stands for a key of the operator's, such as
// the id of a channel. Such a setting has setAt instead of set, and no
// variable.
type setting struct {
	path    string
	accepts string
	set     func(value, base string) error
	setAt   func(key, value string) error
	list    bool // in the file it may be a list; set is given its values with commas between them
}

// keyed reports that the path holds a key of the operator's.
func (s setting) keyed() bool { return s.setAt != nil }

// env is the variable of the setting, "" if it has none.
func (s setting) env() string {
	if s.keyed() {
		return ""
	}
	return "FOOTNOTE_" + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

func directory(at string, to *string) setting {
	s := path(at, to)
	s.accepts = "a directory, made when needed"
	return s
}

func path(at string, to *string) setting {
	return setting{path: at, accepts: "a path", set: func(v, base string) error {
		if strings.ContainsRune(v, 0) {
			return fmt.Errorf("%q is not a path", v)
		}
		if !filepath.IsAbs(v) {
			v = filepath.Join(base, v)
		}
		abs, err := filepath.Abs(v)
		if err != nil {
			return err
		}
		*to = abs
		return nil
	}}
}

func whole(at string, to *int, low, high int) setting {
	return setting{path: at, accepts: fmt.Sprintf("a whole number from %d to %d", low, high), set: func(v, _ string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", v)
		}
		if n < low || n > high {
			return fmt.Errorf("%d is out of range", n)
		}
		*to = n
		return nil
	}}
}

func fraction(at string, to **float64, low, high float64) setting {
	return setting{path: at, accepts: fmt.Sprintf("a number from %g to %g", low, high), set: func(v, _ string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(f) {
			return fmt.Errorf("%q is not a number", v)
		}
		if f < low || f > high {
			return fmt.Errorf("%g is out of range", f)
		}
		*to = &f
		return nil
	}}
}

func choice(at string, to *string, options ...string) setting {
	return setting{path: at, accepts: oneOf(options), set: func(v, _ string) error {
		if !slices.Contains(options, v) {
			return fmt.Errorf("%q is not known", v)
		}
		*to = v
		return nil
	}}
}

func oneOf(options []string) string { return "one of " + strings.Join(options, ", ") }

// yesNo is true or false.
func yesNo(at string, to *bool) setting {
	return setting{path: at, accepts: oneOf([]string{"true", "false"}), set: func(v, _ string) error {
		b, err := parseYesNo(v)
		if err == nil {
			*to = b
		}
		return err
	}}
}

func parseYesNo(v string) (bool, error) {
	if v != "true" && v != "false" {
		return false, fmt.Errorf("%q is neither true nor false", v)
	}
	return v == "true", nil
}

// listen is an address to listen on. An empty host is every interface, which
// must be meant: it is written 0.0.0.0 or [::].
func listen(at string, to *string) setting {
	return setting{path: at, accepts: "host:port, for example 127.0.0.1:8080", set: func(v, _ string) error {
		host, port, err := net.SplitHostPort(v)
		if err != nil || host == "" {
			return fmt.Errorf("%q is not host:port", v)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return fmt.Errorf("%q has no port from 0 to 65535", v)
		}
		*to = v
		return nil
	}}
}

// address is the base address of something that speaks HTTP.
func address(at string, to *string) setting {
	return setting{path: at, accepts: "an http or https address", set: func(v, _ string) error {
		u, err := url.Parse(v)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%q is not an http or https address", v)
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("the address holds a user, a query or a fragment")
		}
		*to = v
		return nil
	}}
}

// ids are words that a platform made, separated by commas.
func ids(at, accepts string, to *[]string, good func(string) bool) setting {
	return setting{path: at, accepts: accepts, set: func(v, _ string) error {
		var out []string
		for _, id := range strings.Split(v, ",") {
			if id = strings.TrimSpace(id); !good(id) {
				return fmt.Errorf("%q is no such id", id)
			}
			out = append(out, id)
		}
		*to = out
		return nil
	}}
}

// id is one such word.
func id(at, accepts string, to *string, good func(string) bool) setting {
	return setting{path: at, accepts: accepts, set: func(v, _ string) error {
		if !good(v) {
			return fmt.Errorf("%q is no such id", v)
		}
		*to = v
		return nil
	}}
}

// setPath sets a path that came from a flag.
func setPath(to *string, v, base, origin string, p *Problems) {
	s := path(origin, to)
	if err := s.set(v, base); err != nil {
		p.add(origin, err.Error(), s.accepts)
	}
}
