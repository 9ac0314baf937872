package shelf

import (
	"errors"
	"io"
	"strings"

	"footnote/bot"
)

// FileName is a name of a file without what leads elsewhere.
func FileName(s string) string {
	s = strings.NewReplacer("/", "_", `\`, "_").Replace(strings.TrimSpace(s))
	if s == "" {
		return "the file"
	}
	return s
}

// ErrOther is for the person: what was handed over is not what was announced.
var ErrOther = &bot.UserError{Text: "I was handed over another file than was announced. Post it again."}

// Exactly is a body that must hold as many bytes as were announced: reading it
// ends with ErrOther if it holds others.
func Exactly(body io.ReadCloser, size int64) io.ReadCloser { return &exactly{body, size} }

type exactly struct {
	io.ReadCloser
	left int64 // may go below 0
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.left -= int64(n)
	if e.left < 0 || errors.Is(err, io.EOF) && e.left > 0 {
		return n, ErrOther
	}
	return n, err
}
