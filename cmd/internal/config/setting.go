package config

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// setting is one row of the table. set parses a value into the Config; base
// is the directory that relative paths start from, "" the working directory.
type setting struct {
	path    string
	accepts string
	set     func(value, base string) error
}

func (s setting) env() string {
	return "FOOTNOTE_" + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

func directory(at string, to *string) setting {
	s := path(at, to)
	s.accepts = "a directory, made when needed"
	return s
}

func path(at string, to *string) setting {
	return setting{at, "a path", func(v, base string) error {
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
	return setting{at, fmt.Sprintf("a whole number from %d to %d", low, high), func(v, _ string) error {
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
	return setting{at, fmt.Sprintf("a number from %g to %g", low, high), func(v, _ string) error {
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
	return setting{at, "one of " + strings.Join(options, ", "), func(v, _ string) error {
		if !slices.Contains(options, v) {
			return fmt.Errorf("%q is not known", v)
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
