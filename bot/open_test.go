package bot

import (
	"strings"
	"testing"

	"footnote/retrieval"
)

// Front matter names who else may read: no view of a passage shows it.
func TestAroundLeavesFrontMatterOut(t *testing.T) {
	t.Parallel()
	const body, quote = "# Fees\n\nThe fee is 10 euros.\nNot for guests.\n", "The fee is 10 euros."
	tests := []struct{ name, front string }{
		{"none", ""},
		{"YAML", "---\ntitle: Fees\naccess: [everyone, leads@acme.example]\n---\n"},
		{"YAML with a remark, dots and white space", "\n---  \n# ours\n\n\"access\": [leads@acme.example]\n...\n\n"},
		{"TOML", "+++\naccess = [\"leads@acme.example\"]\n+++\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from := len(tt.front) + strings.Index(body, quote)
			o := Opened{Document: retrieval.Document{Canonical: tt.front + body}, Quote: quote, From: from, To: from + len(quote), Superseded: true}
			o.Current.Canonical = strings.Replace(o.Document.Canonical, "leads@", "ceo@", 1)
			if n, want := o.Around(1000), (Surroundings{Before: "# Fees\n\n", After: "\nNot for guests.\n"}); n != want {
				t.Errorf("surroundings are %+v, want %+v", n, want)
			}
			if n, want := o.Around(3), (Surroundings{"s\n\n", "\nNo", true, true}); n != want {
				t.Errorf("the nearest surroundings are %+v, want %+v", n, want)
			}
			for _, l := range o.Changes() {
				if strings.Contains(l.Text, "acme.example") {
					t.Errorf("the changes show %q", l.Text)
				}
			}
			if c := o.Changes(); len(c) == 0 || c[0].Text != "# Fees" {
				t.Errorf("the changes are %v, want them from the first line on", c)
			}
		})
	}
}

func TestAroundKeepsWhatIsNoFrontMatter(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"---\nA rule above.\n---\nThe fee is 10 euros.", "---\nnote: no end\n\nThe fee is 10 euros.", "a\n---\nb: c\n---\nThe fee is 10 euros."} {
		at := strings.Index(text, "The fee")
		o := Opened{Document: retrieval.Document{Canonical: text}, Quote: text[at:], From: at, To: len(text)}
		if n, want := o.Around(1000), (Surroundings{Before: text[:at]}); n != want {
			t.Errorf("%q: surroundings are %+v, want %+v", text, n, want)
		}
	}
}
