package push

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// problem is an error as RFC 9457 has it. It is an error of Go as well.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"` // of the request, that is wrong
	State  string `json:"state,omitempty"` // of 410

	After int `json:"-"` // seconds until it may be tried again
}

func (p problem) Error() string { return p.Detail }

// fail answers with the problem.
func fail(w http.ResponseWriter, p problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	if p.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.After))
	}
	write(w, p.Status, "application/problem+json", p)
}

// Starting answers in the place of the API until there is anything to serve.
func Starting(w http.ResponseWriter, _ *http.Request) {
	fail(w, problem{Status: http.StatusServiceUnavailable, After: 5, Detail: "The service is starting: try again."})
}

func write(w http.ResponseWriter, status int, kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// isBroken reports that a body ended early or came too slowly.
func isBroken(err error) bool {
	var slow net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &slow) && slow.Timeout()
}
