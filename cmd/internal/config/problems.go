package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong: where (file, line and path, variable or flag),
// what, and what would be accepted.
type Problem struct {
	Where, What, Accepts string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %s; accepted: %s", p.Where, p.What, p.Accepts)
}

// Problems is everything wrong with a configuration.
type Problems struct{ All []Problem }

func (p *Problems) Error() string {
	lines := make([]string, len(p.All))
	for i, x := range p.All {
		lines[i] = "  " + x.String()
	}
	return fmt.Sprintf("the configuration has %d problem(s):\n%s", len(lines), strings.Join(lines, "\n"))
}

func (p *Problems) add(where, what, accepts string) {
	p.All = append(p.All, Problem{where, what, accepts})
}

// about reports that something is wrong already at one of the places.
func (p *Problems) about(places ...string) bool {
	return slices.ContainsFunc(p.All, func(x Problem) bool {
		return slices.ContainsFunc(places, func(at string) bool { return x.Where == at || strings.HasSuffix(x.Where, ": "+at) })
	})
}

func (p *Problems) err() error {
	if len(p.All) == 0 {
		return nil
	}
	return p
}
