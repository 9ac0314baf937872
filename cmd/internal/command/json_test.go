package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzWriteJSON(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31m", "\u009b2J", "\u202e\x7f", "<&>", "가", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b bytes.Buffer
		if err := writeJSON(&b, map[string]string{"k": s}); err != nil {
			t.Fatal(err)
		}
		line := b.String()
		if strings.ContainsFunc(line[:len(line)-1], func(r rune) bool { return r < 0x20 || obeyed(r) }) {
			t.Fatalf("%q holds characters that a terminal obeys", line)
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back["k"] != want && !strings.Contains(s, "\xff") && strings.ToValidUTF8(s, "") == s {
			t.Fatalf("%q came back as %q", s, back["k"])
		}
	})
}
