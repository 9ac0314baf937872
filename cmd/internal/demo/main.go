// Command demo shows footnote on the documents of deploy/demo, for make demo:
// it ingests them into a fresh directory, asks five questions as different
// people, checks every outcome and every quote, and leaves a prompt if there
// is a terminal.
//
// Its one idea: it uses the built program as anybody would, and nothing else,
// so that what it shows is what a newcomer gets.
//
// With the address of a Redis it shows the same exchanges on that, for make
// demo-redis, and holds them to those on the embedded index: they are identical.
//
// usage: demo PROGRAM [REDIS] (from the top of the source tree)
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/term"
)

const (
	documents = "deploy/demo"
	people    = "deploy/demo-people.yaml"
	data      = ".cache/demo"
)

// exchange is a question with what must come of it.
type exchange struct {
	As       string `json:"as"`
	Text     string `json:"text"`
	why      string
	document string // that must be cited, by the end of its path; "": refused
	quote    string // that must be in a cited place
}

const incident = "When was the contractor's laptop stolen?"

var exchanges = []exchange{
	{"bob", "What does the Schooner plan cost per month?", "the answer is a row of a table", "product/price-list.md", "| Schooner | 189 EUR |"},
	{"mina", "휴가는 언제까지 신청해야 하나요?", "Korean question, Korean document", "handbook/휴가-정책.md", "최소 2주 전"},
	{"ada", incident, "ada is in the group security, which may read the incident report", "security/incident-2031-04.md", "On 12 April 2031"},
	{"bob", incident, "bob is not: for him the report does not exist", "", ""},
	{"bob", "What does the canteen serve on Fridays?", "no document says so", "", ""},
}

// source and reply are the parts of ask --json that are checked.
type source struct {
	Document       string `json:"document"`
	Title          string `json:"title"`
	Revision       string `json:"revision"`
	Quote          string `json:"quote"`
	From           int    `json:"from"`
	To             int    `json:"to"`
	SourceFromByte int    `json:"source_from_byte"`
	SourceToByte   int    `json:"source_to_byte"`
	Path           string `json:"path"`
}

type reply struct {
	Outcome string   `json:"outcome"`
	Sources []source `json:"sources"`
}

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: demo PROGRAM [REDIS]")
		os.Exit(2)
	}
	if err := run(os.Args[1], strings.Join(os.Args[2:], "")); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run shows the exchanges, on a Redis if there is an address.
func run(program, redis string) error {
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	settings := [][2]string{{"FOOTNOTE_DATA", data}, {"FOOTNOTE_PEOPLE", people}, {"FOOTNOTE_INDEX", "embedded"}}
	var embedded []map[string]any
	if redis != "" {
		var err error
		if embedded, err = aside(program, settings); err != nil {
			return err
		}
		settings = append(settings[:2], [2]string{"FOOTNOTE_INDEX", "redis"}, [2]string{"FOOTNOTE_REDIS_URL", redis})
	}
	for _, v := range settings {
		if err := os.Setenv(v[0], v[1]); err != nil {
			return err
		}
		fmt.Printf("$ export %s=%s\n", v[0], v[1])
	}
	if code, err := show(program, "ingest", documents); err != nil || code != 0 {
		return fmt.Errorf("ingestion ended with %d: %w", code, err)
	}
	for i, e := range exchanges {
		fmt.Printf("\n%d of %d: %s\n", i+1, len(exchanges), e.why)
		if err := e.ask(program); err != nil {
			return err
		}
	}
	if err := check(program); err != nil {
		return err
	}
	if redis != "" {
		if err := identical(program, embedded); err != nil {
			return err
		}
	}
	return prompt(program)
}

// aside takes the documents into an embedded index and returns the replies.
func aside(program string, settings [][2]string) ([]map[string]any, error) {
	for _, v := range settings {
		if err := os.Setenv(v[0], v[1]); err != nil {
			return nil, err
		}
	}
	if out, err := exec.Command(program, "ingest", documents).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ingestion into the embedded index: %w\n%s", err, out)
	}
	return replies(program)
}

// identical holds the replies to those of the embedded index.
func identical(program string, embedded []map[string]any) error {
	here, err := replies(program)
	if err != nil {
		return err
	}
	for i, e := range exchanges {
		if !reflect.DeepEqual(here[i], embedded[i]) {
			return fmt.Errorf("%s asked %q: on Redis the reply is\n%v\non the embedded index\n%v", e.As, e.Text, here[i], embedded[i])
		}
	}
	fmt.Printf("All %d replies are those of the embedded index, field by field.\n", len(exchanges))
	return nil
}

// replies are the replies to all questions, without what differs between any
// two runs.
func replies(program string) ([]map[string]any, error) {
	out, err := batch(program)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	lines := json.NewDecoder(bytes.NewReader(out))
	for range exchanges {
		var r map[string]any
		if err := lines.Decode(&r); err != nil {
			return nil, err
		}
		for _, field := range []string{"trace", "ms", "generation"} {
			delete(r, field)
		}
		all = append(all, r)
	}
	return all, nil
}

// show runs the program where the reader sees it, and returns its exit code.
func show(program string, args ...string) (int, error) {
	var shown []string
	for _, a := range args {
		if strings.ContainsAny(a, " ?") {
			a = `"` + a + `"`
		}
		shown = append(shown, a)
	}
	fmt.Printf("$ %s %s\n", program, strings.Join(shown, " "))
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// ask shows one exchange and holds its exit code to the expected outcome.
func (e exchange) ask(program string) error {
	code, err := show(program, "ask", e.Text, "--as", e.As)
	if err != nil {
		return err
	}
	if want := e.code(); code != want {
		return fmt.Errorf("%s asked %q: the program ended with %d, expected was %d", e.As, e.Text, code, want)
	}
	return nil
}

// code is the exit code of the expected outcome.
func (e exchange) code() int {
	if e.document == "" {
		return 6
	}
	return 0
}

// check asks all questions again, as a batch in JSON, and verifies outcomes,
// documents and quotes.
func check(program string) error {
	out, err := batch(program)
	if err != nil {
		return err
	}
	quotes := 0
	lines := json.NewDecoder(bytes.NewReader(out))
	for _, e := range exchanges {
		var r reply
		if err := lines.Decode(&r); err != nil {
			return fmt.Errorf("reading the reply to %q: %w", e.Text, err)
		}
		if err := e.holds(r); err != nil {
			return fmt.Errorf("%s asked %q: %w", e.As, e.Text, err)
		}
		for _, s := range r.Sources {
			if err := s.verify(program); err != nil {
				return err
			}
			quotes++
		}
	}
	fmt.Printf("\nAll %d exchanges are as expected; %d quotes stand verbatim at their places.\n", len(exchanges), quotes)
	return nil
}

// batch asks all questions at once and returns the replies as JSON.
func batch(program string) ([]byte, error) {
	var in bytes.Buffer
	for _, e := range exchanges {
		if err := json.NewEncoder(&in).Encode(e); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(program, "ask", "--batch", "-", "--json")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("asking as a batch: %w", err)
	}
	return out, nil
}

// holds compares a reply with what is expected.
func (e exchange) holds(r reply) error {
	if e.document == "" {
		if r.Outcome != "refused" || len(r.Sources) > 0 {
			return fmt.Errorf("outcome %s with %d sources, expected was a refusal", r.Outcome, len(r.Sources))
		}
		return nil
	}
	for _, s := range r.Sources {
		if strings.HasSuffix(filepath.ToSlash(s.Path), e.document) && strings.Contains(s.Quote, e.quote) {
			return nil
		}
	}
	return fmt.Errorf("outcome %s, and no source quotes %q from %s", r.Outcome, e.quote, e.document)
}

// verify holds a quote to the canonical text of its revision and to the bytes
// of its file.
func (s source) verify(program string) error {
	out, err := exec.Command(program, "docs", "show", s.Document, "--text", "--revision", s.Revision).Output()
	if err != nil {
		return fmt.Errorf("reading the text of %s: %w", s.Title, err)
	}
	text := []rune(string(out))
	if s.From < 0 || s.To > len(text) || s.From >= s.To || string(text[s.From:s.To]) != s.Quote {
		return fmt.Errorf("%q does not stand at %d to %d of %s", s.Quote, s.From, s.To, s.Title)
	}
	raw, err := os.ReadFile(s.Path)
	if err != nil {
		return err
	}
	if s.SourceToByte > len(raw) || s.SourceFromByte < 0 || s.SourceFromByte > s.SourceToByte {
		return fmt.Errorf("%s has no bytes %d to %d", s.Path, s.SourceFromByte, s.SourceToByte)
	}
	if strings.HasSuffix(s.Path, ".md") && !bytes.Contains(raw[s.SourceFromByte:s.SourceToByte], []byte(s.Quote)) {
		return fmt.Errorf("%q is not among the bytes %d to %d of %s", s.Quote, s.SourceFromByte, s.SourceToByte, s.Path)
	}
	return nil
}

// prompt hands a terminal over to a chat.
func prompt(program string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	fmt.Printf("\nYour turn, as ada. Others are bob, mina and gus: %s chat --as gus\n$ %s chat --as ada\n", program, program)
	cmd := exec.Command(program, "chat", "--as", "ada")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
