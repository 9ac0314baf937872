package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// failed says what an error of the library means. The library's own text may
// quote what was sent or said, and goes nowhere.
func (c *Chat) failed(err error) error {
	status, names := statusOf(err)
	switch {
	case errors.Is(err, errOversized):
		return fmt.Errorf("%w: more than a response may hold", ErrNoAnswer)
	case errors.Is(err, errSlow):
		return fmt.Errorf("%w: %s did not answer in time", ErrUnavailable, c.host)
	case errors.Is(err, errOther):
		return fmt.Errorf("%w: what answers at %s is no chat server", ErrUnavailable, c.host)
	case errors.As(err, new(*url.Error)):
		return fmt.Errorf("%w: %s cannot be reached", ErrUnavailable, c.host)
	case status == 0:
		return fmt.Errorf("%w: the response was cut off or cannot be read", ErrNoAnswer)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("%w: %s refuses the key (status %d)", ErrUnavailable, c.host, status)
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: %s has no model %q, or no chat completions at this address (status 404)", ErrUnavailable, c.host, c.model)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s takes no more requests for now (status 429)", ErrUnavailable, c.host)
	case status >= 500:
		return fmt.Errorf("%w: %s answers with status %d", ErrUnavailable, c.host, status)
	case status == http.StatusRequestEntityTooLarge || overflow(names):
		return ErrTooLong
	}
	return fmt.Errorf("%s refuses the request (status %d)", c.host, status)
}

// statusOf is the status of a response that is an error, 0 if there is none,
// and the names that the server gives it.
func statusOf(err error) (status int, names []string) {
	var named *openai.APIError
	var other *openai.RequestError
	switch {
	case errors.As(err, &named):
		return named.HTTPStatusCode, []string{fmt.Sprint(named.Code), named.Type}
	case errors.As(err, &other):
		return other.HTTPStatusCode, nil
	}
	return 0, nil
}

// overflow knows the names that servers have for an overflow of the window.
func overflow(names []string) bool {
	for _, n := range names {
		if n == "context_length_exceeded" || n == "exceed_context_size_error" {
			return true
		}
	}
	return false
}

var errOther = errors.New("the response is of another kind")

// completions sees to it that only what claims to be JSON is read as such.
type completions struct{ *http.Client }

// Do implements the library's HTTPDoer.
func (c completions) Do(r *http.Request) (*http.Response, error) {
	response, err := c.Client.Do(r)
	if err != nil || response.StatusCode >= 400 {
		return response, err
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Content-Type"), "json") {
		return nil, errors.Join(errOther, response.Body.Close())
	}
	return response, nil
}
