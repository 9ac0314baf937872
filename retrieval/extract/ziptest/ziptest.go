// Package ziptest makes zip archives for tests: plain ones, and the containers
// of Office files, which are archives of parts.
package ziptest

import (
	"archive/zip"
	"bytes"
	"maps"
	"slices"
	"testing"
)

// Archive makes an archive of names and contents in turn.
func Archive(t testing.TB, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i+1 < len(parts); i += 2 {
		f, err := w.Create(parts[i])
		if err == nil {
			_, err = f.Write([]byte(parts[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Parts makes an archive of contents by name, in the order of the names.
func Parts(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, name, parts[name])
	}
	return []byte(Archive(t, all...))
}
