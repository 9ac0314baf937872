package files

import "testing"

// FuzzParseAccessFile: whatever is taken gives somebody access, and each of
// its patterns does.
func FuzzParseAccessFile(f *testing.F) {
	for _, s := range []string{"access: everyone", "access: [a, user:b]\npatterns: [{match: 'x/**', access: c}]", "access: &a [*a]", "patterns: [{match: '[', access: x}]", "", "\ufeffaccess: x", "access: !!null x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAccessFile(data)
		if err != nil {
			return
		}
		if a.Access.IsZero() && len(a.Patterns) == 0 {
			t.Error("a file that gives nothing was taken")
		}
		for _, p := range a.Patterns {
			if p.Access.IsZero() || CheckPattern(string(p.Match)) != nil {
				t.Errorf("pattern %q with %v was taken", p.Match, p.Access)
			}
		}
		a.list("security/x.md")
	})
}
