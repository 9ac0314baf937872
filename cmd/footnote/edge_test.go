package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"footnote/cmd/internal/command"
	"footnote/retrieval/memindex"
)

// program is a run of the program as a process of its own.
func program(t *testing.T, data string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("footnote") // put there by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "FOOTNOTE_ONNXRUNTIME="+native, "HOME=/nonexistent")
	if data != "" {
		cmd.Env = append(cmd.Env, "FOOTNOTE_DATA="+data)
	}
	return cmd
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// obeyed finds what a terminal would obey in what was printed.
func obeyed(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	})
	if i < 0 {
		return ""
	}
	return s[max(0, i-30):min(len(s), i+30)]
}

// A document, its name, its headings and the question all carry sequences that
// move the cursor, set the window's title or reverse the line.
func TestTerminalObeysNoDocument(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202edlrow\u202c"
	dir := t.TempDir()
	docs, data := filepath.Join(dir, "docs"), filepath.Join(dir, "data")
	write(t, filepath.Join(docs, "evil\x1b[31m.md"), "# Anchor "+evil+" watch\n\nThe anchor watch "+evil+" begins at nine in the evening.\n\n```sh\nring-bell \x1b[5m --anchor-watch\n```\n")
	write(t, filepath.Join(docs, "evil.html"), "<title>Anchor &#27;[2J chain</title><h1>Chain &#x9b;1m</h1><p>The anchor chain &#27;]52;c;eA==&#7; is 80 metres long.</p>")
	write(t, filepath.Join(docs, "empty\x1b[2J.md"), "")
	write(t, filepath.Join(dir, "batch.jsonl"), `{"id":"\u001b[2J","text":"\u001b[31mWhen does the anchor watch begin?\u009b1m"}`+"\n{\"id\":\"\x1b[2J\n")
	for _, args := range [][]string{
		{"ingest", docs, "--access", "everyone"},
		{"ingest", docs, "--access", "everyone", "--json"},
		{"docs", "list"}, {"docs", "list", "--json"}, {"docs", "show", filepath.Join(docs, "evil\x1b[31m.md")},
		{"ask", "When does the anchor watch begin?"}, {"ask", "--json", "When does the anchor watch begin?"},
		{"ask", evil + " When does the anchor watch begin?"}, {"ask", "What colour is the mast? " + evil},
		{"search", "anchor chain"}, {"search", "--json", "anchor chain " + evil},
		{"explain", "anchor chain " + evil}, {"explain", "--json", "anchor chain"},
		{"ask", "--as", evil, "x"}, {"ask", evil, "--room", evil}, {evil}, {"ask", "--" + evil}, {"docs", "show", evil}, {"index", "promote", evil},
		{"ask", "--batch", filepath.Join(dir, "batch.jsonl")}, {"ask", "--batch", filepath.Join(dir, "batch.jsonl"), "--json"}, {"ask", "--batch", evil},
		{"ingest", filepath.Join(docs, evil)}, {"ask", "--config", evil, "x"},
	} {
		r := footnote("", append(args, "--data", data)...)
		if bad := obeyed(r.out + r.err); bad != "" {
			t.Errorf("footnote %q prints %q", args, bad)
		}
	}
	chat := footnote(evil+"\nWhen does the anchor watch begin?\n/sources\n/why\n/"+evil+"\n", "chat", "--data", data)
	if bad := obeyed(chat.out + chat.err); bad != "" {
		t.Errorf("chat prints %q", bad)
	}
	if !strings.Contains(chat.out, "begins at nine") {
		t.Errorf("the answer is lost:\n%s%s", chat.out, chat.err)
	}
}

// Words of documents, questions and replies reach neither logs nor errors,
// whatever goes wrong.
func TestCanaryWordsStayOutOfLogsAndErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	docs, data := filepath.Join(dir, "docs"), filepath.Join(dir, "data")
	const inDocument, inSecret, inQuestion = "zanzibarine", "quetzalite", "wolpertinger"
	write(t, filepath.Join(docs, "a.md"), "# Tides\n\nThe "+inDocument+" tide turns at noon in the old harbour.\n")
	write(t, filepath.Join(docs, "b.md"), "---\naccess: ["+inSecret+"]\n---\n# Crew\n\nThe "+inSecret+" crew meets at eight.\n")
	write(t, filepath.Join(docs, "broken.md"), "---\naccess: [\n---\n"+inSecret+"\n")
	write(t, filepath.Join(docs, "bytes.md"), inSecret+"\x00\xff\xfe\x00"+strings.Repeat("\x01", 50))
	write(t, filepath.Join(dir, "batch.jsonl"), strings.Join([]string{
		`{"id":"1","text":"When does the ` + inDocument + ` tide turn? ` + inQuestion + `"}`,
		`{"id":"2","text":"` + inQuestion, `{"id":"3","text":"` + inQuestion + `","as":"a b"}`, `{"id":"4","text":"` + inQuestion + `","room":"x"}`,
		`{"id":"5","text":"` + strings.Repeat(inQuestion+" ", 4000) + `"}`,
	}, "\n"))
	asked := inQuestion + " when does the " + inDocument + " tide turn?"
	runs := 0
	for _, args := range [][]string{
		{"ingest", docs, "--access", "everyone"}, {"ingest", docs, "--access", "everyone", "--rebuild"},
		{"ask", asked}, {"ask", asked, "--json"}, {"ask", "When does the crew of " + inQuestion + " meet?"}, {"search", asked}, {"explain", asked},
		{"search", strings.Repeat(inQuestion+" ", 4000)}, {"ask", strings.Repeat(inQuestion+" ", 4000)},
		{"ask", "--batch", filepath.Join(dir, "batch.jsonl"), "--json"}, {"search", "--batch", filepath.Join(dir, "batch.jsonl")},
		{"ask", asked, "--room", "nowhere"}, {"ask", asked, "--as", "a b"}, {"doctor"}, {"docs", "list"},
	} {
		r := footnote("", append(args, "--data", data)...)
		if strings.Contains(r.err, "level=") {
			runs++
		}
		for _, word := range []string{inDocument, inSecret, inQuestion} {
			if strings.Contains(strings.ToLower(r.err), word) {
				t.Errorf("footnote %.60q writes the word %s to standard error:\n%.600s", args, word, r.err)
			}
		}
	}
	if runs == 0 {
		t.Error("nothing was logged: the test proves nothing")
	}
}

// head closes its end after the first line: no complaint, no crash.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"search", "harbour", "--top", "200"}, {"search", "harbour", "--top", "200", "--json"}, {"ask", "How long is parental leave?"},
		{"docs", "list"}, {"docs", "list", "--json"}, {"models", "list"}, {"doctor"}, {"version"}, {"--help"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var errs bytes.Buffer
			cmd := program(t, copyOf(t), args...)
			cmd.Stdout, cmd.Stderr = w, &errs
			if code := exitCode(cmd.Run()); code != 0 || errs.Len() > 0 {
				t.Errorf("ended with %d and says %q", code, errs.String())
			}
		})
	}
}

// Standard output that cannot be written for another reason is a failure.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	r := command.Main(context.Background(), []string{"version"}, command.Streams{In: strings.NewReader(""), Out: full{}, Err: io.Discard}, nil)
	if r != command.ExitFailure {
		t.Errorf("ended with %d, want %d", r, command.ExitFailure)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	data := copyOf(t)
	store, err := memindex.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, args := range [][]string{{"ask", "x"}, {"ingest", t.TempDir()}, {"docs", "list"}, {"index", "list"}} {
		r := footnote("", append(args, "--data", data)...)
		if r.code != command.ExitFailure || !strings.Contains(r.out+r.err, "in use by pid") {
			t.Errorf("footnote %v ended with %d and says %s%s", args, r.code, r.out, r.err)
		}
	}
	if r := footnote("", "doctor", "--data", data); r.code != 0 || !strings.Contains(r.out, "a running footnote holds "+data) {
		t.Errorf("doctor ended with %d and says %s%s", r.code, r.out, r.err)
	}
}

// The first signal ends a run in order: the index stays whole, and the next
// run finishes the work.
func TestInterruptedIngest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	docs, data := filepath.Join(dir, "docs"), filepath.Join(dir, "data")
	for i := range 40 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		write(t, filepath.Join(docs, name+".md"), "# Berth "+name+"\n\n"+strings.Repeat("Ship "+name+" lies at berth "+name+" until the tide turns. ", 40)+"\n")
	}
	cmd := program(t, data, "ingest", docs, "--access", "everyone")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := waitFor(stderr, "documents")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(stderr)
	if code := exitCode(cmd.Wait()); code != command.ExitFailure || !strings.Contains(said+string(rest), "interrupted") {
		t.Errorf("ended with %d and says %s%s", code, said, rest)
	}
	before := footnote("", "docs", "list", "--data", data)
	if before.code != 0 {
		t.Errorf("after the interrupt: %s", before.err)
	}
	if r := footnote("", "ingest", docs, "--access", "everyone", "--data", data, "--json"); r.code != 0 || !strings.Contains(r.out, `"failed":[]`) {
		t.Errorf("the next run ended with %d: %s%s", r.code, r.out, r.err)
	}
	if r := footnote("", "docs", "list", "--data", data); !strings.Contains(r.out, "40 published, 0 failed") {
		t.Errorf("documents are missing:\n%s", r.out)
	}
}

// waitFor reads until what was read holds the text.
func waitFor(r io.Reader, text string) string {
	var said strings.Builder
	buf := make([]byte, 256)
	for !strings.Contains(said.String(), text) {
		n, err := r.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return said.String()
}
