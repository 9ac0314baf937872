package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"footnote/cmd/internal/command"
)

var update = flag.Bool("update", false, "rewrite the expected output inside the scripts")

// tree is the top of the source tree, seen from this package.
const tree = "../.."

// native is the ONNX runtime that make native puts into the cache; work the
// directory that all tests share: docs, a copy of deploy/demo, and data, the
// index of it; people is the people file that goes with it.
var native, work, people string

func TestMain(m *testing.M) {
	testscript.Main(prepared{m}, map[string]func(){"footnote": func() { os.Exit(run()) }})
}

// prepared makes the shared index before the tests and removes it after them.
type prepared struct{ *testing.M }

func (p prepared) Run() int {
	err := prepare()
	if err != nil {
		fmt.Fprintln(os.Stderr, "preparing the shared index:", err)
		return 1
	}
	defer os.RemoveAll(work)
	overlap()
	return p.M.Run()
}

// overlap runs more tests at once than there are cores: most of their time they
// wait, for processes that start and for what these wait for themselves.
func overlap() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // the flag is there, and takes numbers
	}
}

func prepare() (err error) {
	found, err := filepath.Glob(filepath.Join(tree, ".cache/native", runtime.GOOS+"-"+runtime.GOARCH, "libonnxruntime*"))
	if err != nil || len(found) == 0 {
		return errors.New("the native parts are missing: make native")
	}
	if native, err = filepath.Abs(found[0]); err != nil {
		return err
	}
	if work, err = os.MkdirTemp("", "footnote-test-"); err != nil {
		return err
	}
	if work, err = filepath.EvalSymlinks(work); err != nil {
		return err
	}
	if people, err = filepath.Abs(filepath.Join(tree, "deploy/demo-people.yaml")); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(work, "docs"), os.DirFS(filepath.Join(tree, "deploy/demo"))); err != nil {
		return err
	}
	r := footnote("", "ingest", filepath.Join(work, "docs"), "--data", filepath.Join(work, "data"))
	if r.code != 0 {
		return fmt.Errorf("ingest ended with %d: %s%s", r.code, r.out, r.err)
	}
	return nil
}

// result is what one run of the program gave.
type result struct {
	code     int
	out, err string
}

// footnote runs the command line inside this process.
func footnote(stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := command.Main(context.Background(), args, command.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, []string{
		"HOME=/nonexistent", "FOOTNOTE_LOG_LEVEL=debug", "FOOTNOTE_MODELS_RUNTIME=" + native,
	})
	return result{code, out.String(), errs.String()}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FOOTNOTE_ONNXRUNTIME", native)
			e.Setenv("FOOTNOTE_DATA", filepath.Join(e.WorkDir, "data"))
			e.Setenv("ESC", "\x1b")
			e.Setenv("STOLEN", "When was the contractor's laptop stolen?")
			e.Setenv("DOCS", filepath.Join(work, "docs"))
			e.Setenv("PEOPLE", people)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "indexed": indexed, "plain": plain, "shape": shape, "quotes": quotes,
		},
	})
}

// exits runs the program and holds its exit code: exits CODE ARGUMENTS…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGUMENTS…")
	}
	err := ts.Exec("footnote", args[1:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("footnote %s ended with %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// indexed copies the shared index of the demo documents to $FOOTNOTE_DATA.
func indexed(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(os.CopyFS(ts.Getenv("FOOTNOTE_DATA"), os.DirFS(filepath.Join(work, "data"))))
}

var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{8}-\d{6}-\d{3}`), "GENERATION"},
	{regexp.MustCompile(`"trace":"[^"]*"`), `"trace":"TRACE"`},
	{regexp.MustCompile(`"ms":\d+`), `"ms":0`},
	{regexp.MustCompile(`"modified":"[^"]*"`), `"modified":"TIME"`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
}

// plain writes standard output to a file, without what differs from run to
// run: plain FILE
func plain(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile("stdout"), work, "")
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK")
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// shape writes the fields and kinds of the JSON lines on standard output to a
// file, so that a contract can be compared: shape FILE
func shape(ts *testscript.TestScript, _ bool, args []string) {
	seen := map[string]bool{}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	for d.More() {
		var v any
		ts.Check(d.Decode(&v))
		fields("", v, seen)
	}
	var lines []string
	for l := range seen {
		if field, null := strings.CutSuffix(l, " null"); !null || !seen[field+" float64"] && !seen[field+" string"] {
			lines = append(lines, l)
		}
	}
	slices.Sort(lines)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

func fields(at string, v any, seen map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			fields(at+"."+k, x, seen)
		}
	case []any:
		seen[at+" list"] = true
		for _, x := range v {
			fields(at+"[]", x, seen)
		}
	case nil:
		seen[at+" null"] = true
	default:
		seen[fmt.Sprintf("%s %T", at, v)] = true
	}
}

// quotes holds every source of the replies on standard output to the canonical
// text and to the bytes of its file: quotes NUMBER, the least expected.
func quotes(ts *testscript.TestScript, _ bool, args []string) {
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	found := 0
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	for d.More() {
		var r struct {
			Sources []struct {
				Document, Revision, Quote, Path string
				From, To                        int
				SourceFromByte                  int `json:"source_from_byte"`
				SourceToByte                    int `json:"source_to_byte"`
			}
		}
		ts.Check(d.Decode(&r))
		for _, s := range r.Sources {
			found++
			ts.Check(ts.Exec("footnote", "docs", "show", s.Document, "--text", "--revision", s.Revision))
			if text := []rune(ts.ReadFile("stdout")); s.To > len(text) || string(text[s.From:s.To]) != s.Quote {
				ts.Fatalf("%q does not stand at %d to %d of %s", s.Quote, s.From, s.To, s.Path)
			}
			raw, err := os.ReadFile(s.Path)
			ts.Check(err)
			if strings.HasSuffix(s.Path, ".md") && !bytes.Contains(raw[s.SourceFromByte:s.SourceToByte], []byte(s.Quote)) {
				ts.Fatalf("%q is not among the bytes %d to %d of %s", s.Quote, s.SourceFromByte, s.SourceToByte, s.Path)
			}
		}
	}
	if found < least {
		ts.Fatalf("%d sources, want at least %d", found, least)
	}
}

// copyOf copies the shared index for one test.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(work, "data"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
}
