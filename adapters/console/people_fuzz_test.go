package console

import (
	"testing"

	"footnote/acl"
)

// FuzzParsePeople: whoever is known holds only principals in canonical form,
// and every room has viewers.
func FuzzParsePeople(f *testing.F) {
	for _, s := range []string{"people: {ada: {email: a@b.c, groups: [x]}}\nrooms: {r: {members: [ada]}, g: {everyone: true}}", "people: {a: &x {}, b: *x}", "people: {'': {}}", "people: {!!str 1: {}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parsePeople(data)
		if err != nil {
			return
		}
		for k, who := range file.People {
			for _, p := range who.principals(k.text) {
				if q, err := acl.ParsePrincipal(string(p)); err != nil || q != p {
					t.Errorf("%q holds %q: %v", k.text, p, err)
				}
			}
		}
		for k, r := range file.Rooms {
			if !r.Everyone && len(r.Members) == 0 {
				t.Errorf("the room %q has no viewers", k.text)
			}
		}
	})
}
