package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// writeJSON writes v as one line. Characters that a terminal would obey
// (DEL, C1 controls, those that reverse a line) are escaped, which changes
// nothing for a reader of JSON.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing the result as JSON: %w", err)
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON escapes within valid JSON: outside its strings everything is
// printable ASCII.
func escapeJSON(raw []byte) []byte {
	if !bytes.ContainsFunc(raw, obeyed) {
		return raw
	}
	out := make([]byte, 0, len(raw)+64)
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if obeyed(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, raw[i:i+n]...)
		}
		i += n
	}
	return out
}

func obeyed(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
