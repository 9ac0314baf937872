package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// EnvLibrary names the environment variable with the path of libonnxruntime, a
// file or its directory. If it is set, no other place is tried.
const EnvLibrary = "FOOTNOTE_ONNXRUNTIME"

const libraryVersion = "1.32.0"

// The process can load the library once; ort keeps it in package state too.
var process struct {
	sync.Mutex
	library string
}

func loadLibrary(path string) (string, error) {
	process.Lock()
	defer process.Unlock()
	if process.library != "" && (path == "" || path == process.library) {
		return process.library, nil
	}
	if process.library != "" {
		return "", fmt.Errorf("the ONNX runtime is already loaded from %s; it cannot be loaded again from %s", process.library, path)
	}
	if path == "" {
		found, err := findLibrary(machine())
		if err != nil {
			return "", err
		}
		path = found
	}
	boundHeap()
	ort.SetSharedLibraryPath(path)
	// Its errors come back as values; it need not print them as well.
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return "", fmt.Errorf("loading the ONNX runtime from %s (version %s is needed; make build fetches it): %w", path, libraryVersion, err)
	}
	process.library = path
	return path, nil
}

// place is where the library may lie.
type place struct {
	dir string
	why string
	// pinned: the directory is one that a stranger may have prepared.
	pinned bool
}

// surroundings are what the search depends on.
type surroundings struct {
	os, arch   string
	env        string // value of EnvLibrary
	executable string
	workingDir string
	cacheDir   string // of the user
	system     []string
	pins       map[string]string // os-arch -> sha256 of the library
}

func machine() surroundings {
	s := surroundings{os: runtime.GOOS, arch: runtime.GOARCH, env: os.Getenv(EnvLibrary), pins: librarySums}
	// What cannot be told is a place less to look in.
	if exe, err := os.Executable(); err == nil {
		s.executable = exe
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			s.executable = real
		}
	}
	s.workingDir, _ = os.Getwd()
	s.cacheDir, _ = os.UserCacheDir()
	s.system = systemDirs(s.os, s.arch)
	return s
}

func systemDirs(goos, goarch string) []string {
	if goos == "darwin" {
		return []string{"/opt/homebrew/lib", "/usr/local/lib"}
	}
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[goarch]
	return []string{"/usr/local/lib", "/usr/lib/" + triplet, "/usr/lib64", "/usr/lib"}
}

// fileNames are what the library is called, the wanted version first.
func fileNames(goos string) []string {
	if goos == "darwin" {
		return []string{"libonnxruntime." + libraryVersion + ".dylib", "libonnxruntime.dylib"}
	}
	return []string{"libonnxruntime.so." + libraryVersion, "libonnxruntime.so"}
}

// findLibrary returns the first library among: EnvLibrary alone if it is set;
// beside the program and in ../lib; .cache/native/os-arch in the directories
// over the program; the user's cache (footnote/native/os-arch); .cache/native/
// os-arch in the working directory and those over it; the system's directories.
func findLibrary(s surroundings) (string, error) {
	if s.env != "" {
		return explicitLibrary(s)
	}
	var tried []string
	for _, p := range places(s) {
		for _, name := range fileNames(s.os) {
			path := filepath.Join(p.dir, name)
			err := usable(path, p, s)
			if err == nil {
				return path, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				tried = append(tried, fmt.Sprintf("  %s: %v", path, err))
			}
		}
		tried = append(tried, fmt.Sprintf("  %s (%s)", p.dir, p.why))
	}
	return "", fmt.Errorf("%s was not found; tried:\n%s\nRun `make build` in the source tree, put the library beside the program, or set %s to its path",
		fileNames(s.os)[0], strings.Join(tried, "\n"), EnvLibrary)
}

func explicitLibrary(s surroundings) (string, error) {
	info, err := os.Stat(s.env)
	if err != nil {
		return "", fmt.Errorf("%s names no library: %w", EnvLibrary, err)
	}
	if !info.IsDir() {
		return s.env, nil
	}
	for _, name := range fileNames(s.os) {
		if path := filepath.Join(s.env, name); exists(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s=%s holds none of: %s", EnvLibrary, s.env, strings.Join(fileNames(s.os), ", "))
}

func places(s surroundings) []place {
	platform := s.os + "-" + s.arch
	var ps []place
	if s.executable != "" {
		dir := filepath.Dir(s.executable)
		ps = append(ps, place{dir: dir, why: "beside the program"},
			place{dir: filepath.Join(filepath.Dir(dir), "lib"), why: "in lib next to the program"})
		for _, dir := range upwards(dir) {
			ps = append(ps, place{dir: filepath.Join(dir, ".cache", "native", platform), why: "the program's source tree", pinned: true})
		}
	}
	if s.cacheDir != "" {
		ps = append(ps, place{dir: filepath.Join(s.cacheDir, "footnote", "native", platform), why: "the user's cache"})
	}
	for _, dir := range upwards(s.workingDir) {
		ps = append(ps, place{dir: filepath.Join(dir, ".cache", "native", platform), why: "the source tree", pinned: true})
	}
	for _, dir := range s.system {
		ps = append(ps, place{dir: dir, why: "the system"})
	}
	return ps
}

// upwards is dir and every directory over it, the nearest first.
func upwards(dir string) []string {
	if dir == "" {
		return nil
	}
	dirs := []string{dir}
	for parent := filepath.Dir(dir); parent != dir; parent = filepath.Dir(dir) {
		dir = parent
		dirs = append(dirs, dir)
	}
	return dirs
}

// usable reports whether the library may be loaded from there.
//
// SECURITY: a directory over the program or the working directory may be
// anybody's (/tmp); a library in a .cache there is loaded only if it is bit for
// bit the one that the build fetches.
func usable(path string, p place, s surroundings) error {
	if err := exists(path); err != nil || !p.pinned {
		return err
	}
	want, ok := s.pins[s.os+"-"+s.arch]
	if !ok {
		return fmt.Errorf("not used: no checksum is known for %s-%s", s.os, s.arch)
	}
	found, err := fileSum(path)
	if err != nil {
		return err
	}
	if found != want {
		return fmt.Errorf("not used: sha256 is %s, not %s", found, want)
	}
	return nil
}

func exists(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file: %w", path, fs.ErrNotExist)
	}
	return err
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
