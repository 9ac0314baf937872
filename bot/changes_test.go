package bot

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	old := "a\nb\nc\nd\nThe fee is 10 euros.\ne\nf\ng\nh\ni"
	tests := []struct{ name, now, want string }{
		{"the passage changed", "a\nb\nc\nd\nThe fee is 20 euros.\ne\nf\ng\nh\ni", " b| c| d|-The fee is 10 euros.|+The fee is 20 euros.| e| f| g"},
		{"the passage is gone", "a\nb\nc\nd\ne\nf\ng\nh\ni", " b| c| d|-The fee is 10 euros.| e| f| g"},
		{"something far away changed", "a!\nb\nc\nd\nThe fee is 10 euros.\ne\nf\ng\nh\ni!", " b| c| d| The fee is 10 euros.| e| f| g"},
		{"a line was added after it", "a\nb\nc\nd\nThe fee is 10 euros.\nNot for guests.\ne\nf\ng\nh\ni", " b| c| d| The fee is 10 euros.|+Not for guests.| e| f| g"},
		{"all is new", "x\ny", "-b|-c|-d|-The fee is 10 euros.|-e|-f|-g"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := Opened{Document: retrieval.Document{Canonical: old}, Current: retrieval.Document{Canonical: tt.now}, Superseded: true, Quote: "The fee is 10 euros.", From: 8, To: 28}
			var got []string
			for _, l := range o.Changes() {
				got = append(got, map[LineKind]string{Kept: " ", Dropped: "-", Added: "+"}[l.Kind]+l.Text)
			}
			if d := cmp.Diff(tt.want, strings.Join(got, "|")); d != "" {
				t.Errorf("changes (-want +got):\n%s", d)
			}
			o.Superseded = false
			if c := o.Changes(); c != nil {
				t.Errorf("a document that has not changed has changes %v", c)
			}
		})
	}
}

// What is kept and dropped is the old revision, what is kept and added the new.
func TestCompareRebuildsBoth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 12)
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		all := compare(a, b)
		of := func(other LineKind) (out []string) {
			for _, l := range all {
				if l.Kind != other {
					out = append(out, l.Text)
				}
			}
			return out
		}
		if !slices.Equal(of(Added), a) || !slices.Equal(of(Dropped), b) {
			t.Fatalf("%q to %q gives %v", a, b, all)
		}
	})
}
