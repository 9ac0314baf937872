package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxBatchLine bounds one line of a batch, in bytes.
const maxBatchLine = 16 << 20

// question is one line of a batch: {"id", "text", "as", "room", "history"}.
// Other fields are ignored.
type question struct {
	id      string
	text    string
	as      string
	room    string
	history []turn
}

// turn is an earlier message of the conversation.
type turn struct {
	Speaker string `json:"speaker"` // user, anything else is the bot
	Text    string `json:"text"`
}

// parseQuestion reads one line. n is its number, its id if it has none.
func parseQuestion(line []byte, n int) (question, error) {
	if !utf8.Valid(line) {
		return question{}, errors.New("it is not UTF-8")
	}
	var q struct {
		ID      json.RawMessage `json:"id"`
		Text    *string         `json:"text"`
		As      string          `json:"as"`
		Room    string          `json:"room"`
		History []turn          `json:"history"`
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return question{}, malformed(err)
	}
	if q.Text == nil {
		return question{}, errors.New(`it has no "text"`)
	}
	out := question{text: *q.Text, as: q.As, room: q.Room, history: q.History}
	var err error
	out.id, err = identifier(q.ID, n)
	return out, err
}

// malformed says what is wrong with a line in the words of the contract, not
// in those of this program.
func malformed(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return fmt.Errorf("it is not a JSON object with id and text: %w", err)
	case kind.Field == "":
		return fmt.Errorf("it is not a JSON object with id and text: it is of the kind %s", kind.Value)
	}
	return fmt.Errorf("its %q is of the wrong kind: %s", kind.Field, kind.Value)
}

// identifier accepts a string or a number; none: the line's number.
func identifier(raw json.RawMessage, n int) (string, error) {
	s := string(raw)
	switch {
	case s == "" || s == "null":
		return fmt.Sprint(n), nil
	case strings.HasPrefix(s, `"`):
		err := json.Unmarshal(raw, &s)
		return s, err
	case strings.ContainsAny(s[:1], "-0123456789"):
		return s, nil
	}
	return "", errors.New(`its "id" is neither text nor a number`)
}

// eachQuestion calls do for each line in order. A line that cannot be read,
// or an error of do that is not fatal, goes to report with the line's number,
// and the next line follows. It returns the number of lines that failed.
func eachQuestion(r io.Reader, do func(question) error, report func(line int, err error), fatal func(error) bool) (failed int, err error) {
	lines := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return failed, nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return failed, fmt.Errorf("reading the batch: %w", err)
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err == nil {
			var q question
			if q, err = parseQuestion(bytes.TrimPrefix(line, []byte("\ufeff")), n); err == nil {
				err = do(q)
			}
		}
		if err != nil && fatal(err) {
			return failed, err
		}
		if err != nil {
			failed++
			report(n, err)
		}
	}
}

var errLongLine = fmt.Errorf("it is longer than %d bytes", maxBatchLine)

// readLine returns the next line without its break; a line over the limit is
// read to its end and given up.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > maxBatchLine {
			long, line = true, nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		default:
			return bytes.TrimRight(line, "\r\n"), nil
		}
	}
}
