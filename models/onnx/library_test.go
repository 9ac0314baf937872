package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const genuine = "the library"

// TestFindLibrary lays out a machine in a temporary directory: program in
// opt/bin, working directory in home/docs, user cache in home/.cache.
func TestFindLibrary(t *testing.T) {
	t.Parallel()
	name := "libonnxruntime.so.1.32.0"
	for _, tc := range []struct {
		situation string
		files     map[string]string
		env       string
		want      string // path, or part of the error if it has a space
	}{
		{"beside the program", map[string]string{"opt/bin/" + name: "x", "home/.cache/footnote/native/linux-amd64/" + name: "x"}, "", "opt/bin/" + name},
		{"in lib next to the program", map[string]string{"opt/lib/" + name: "x"}, "", "opt/lib/" + name},
		{"program in bin of the source tree", map[string]string{"opt/.cache/native/linux-amd64/" + name: genuine}, "", "opt/.cache/native/linux-amd64/" + name},
		{"the user's cache", map[string]string{"home/.cache/footnote/native/linux-amd64/" + name: "x"}, "", "home/.cache/footnote/native/linux-amd64/" + name},
		{"working directory inside the source tree", map[string]string{"home/.cache/native/linux-amd64/" + name: genuine}, "", "home/.cache/native/linux-amd64/" + name},
		{"another library over the working directory", map[string]string{"home/.cache/native/linux-amd64/" + name: "planted"}, "", "not used: sha256 is "},
		{"another library over the program", map[string]string{"opt/.cache/native/linux-amd64/" + name: "planted"}, "", "not used: sha256 is "},
		{"another library there, a good one in the system", map[string]string{"home/.cache/native/linux-amd64/" + name: "planted", "usr/lib/" + name: "x"}, "", "usr/lib/" + name},
		{"another platform's", map[string]string{"home/.cache/native/linux-arm64/" + name: genuine}, "", name + " was not found"},
		{"the system, without version", map[string]string{"usr/lib/libonnxruntime.so": "x"}, "", "usr/lib/libonnxruntime.so"},
		{"a directory of that name", map[string]string{"opt/bin/" + name + "/x": "x"}, "", name + " was not found"},
		{"the environment names a file", map[string]string{"a/b.so": "x", "opt/bin/" + name: "x"}, "a/b.so", "a/b.so"},
		{"the environment names a directory", map[string]string{"a/" + name: "x", "opt/bin/" + name: "x"}, "a", "a/" + name},
		{"the environment names nothing, though others are there", map[string]string{"opt/bin/" + name: "x"}, "a/b.so", EnvLibrary + " names no library"},
		{"the environment names an empty directory", map[string]string{"a/other": "x"}, "a", "holds none of"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, content := range tc.files {
				write(t, filepath.Join(root, path), content)
			}
			sum := sha256.Sum256([]byte(genuine))
			s := surroundings{
				os: "linux", arch: "amd64",
				executable: filepath.Join(root, "opt/bin/footnote"),
				workingDir: filepath.Join(root, "home/docs/deep"),
				cacheDir:   filepath.Join(root, "home/.cache"),
				system:     []string{filepath.Join(root, "usr/lib")},
				pins:       map[string]string{"linux-amd64": hex.EncodeToString(sum[:])},
			}
			if tc.env != "" {
				s.env = filepath.Join(root, tc.env)
			}
			got, err := findLibrary(s)
			if strings.Contains(tc.want, " ") {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %q and error %v, want an error with %q", got, err, tc.want)
				}
				return
			}
			if err != nil || got != filepath.Join(root, tc.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestNotFoundNamesEveryPlaceAndTheCure(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := surroundings{os: "darwin", arch: "arm64", executable: filepath.Join(root, "bin/footnote"),
		workingDir: filepath.Join(root, "w"), cacheDir: filepath.Join(root, "c"), system: []string{filepath.Join(root, "s")}}
	_, err := findLibrary(s)
	if err == nil {
		t.Fatal("found one in an empty directory")
	}
	for _, want := range []string{"libonnxruntime.1.32.0.dylib", "/bin", "/lib", "/w/.cache/native/darwin-arm64", "/c/footnote/native/darwin-arm64", "/s (", "make build", EnvLibrary} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %q:\n%v", want, err)
		}
	}
}

// The sums that the program trusts are those that the build fetches.
func TestSumsAgreeWithTheBuild(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../deploy/native/onnxruntime.pins")
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); !strings.HasPrefix(line, "#") {
			pins[f[0]] = f[4]
			goos, _, _ := strings.Cut(f[0], "-")
			if name := filepath.Base(f[3]); name != fileNames(goos)[0] {
				t.Errorf("%s: the build writes %s, looked for is %s", f[0], name, fileNames(goos)[0])
			}
		}
	}
	if diff := cmp.Diff(pins, librarySums); diff != "" {
		t.Errorf("-build +program:\n%s", diff)
	}
}

func TestLibraryIsLoadedOnce(t *testing.T) {
	embedder(t)
	if _, err := New(Options{Library: "/elsewhere/libonnxruntime.so"}); err == nil || !strings.Contains(err.Error(), "already loaded") {
		t.Errorf("a second library: %v", err)
	}
	if _, err := New(Options{Threads: -1}); err == nil {
		t.Error("-1 threads are accepted")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
