package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

var (
	errOversized = errors.New("the response is too large")
	errSlow      = errors.New("no whole response in time")
)

// transport makes attempts, each read whole within its own time. It remembers
// nothing.
type transport struct {
	next     http.RoundTripper
	attempts int
	timeout  time.Duration // of an attempt
	wait     time.Duration // longest between attempts
	limit    int64         // bytes of a response
	pause    func(context.Context, time.Duration) error
}

// newClient is the HTTP client of a server.
func newClient(o Options) *http.Client {
	return &http.Client{
		Transport: transport{
			next: &http.Transport{
				Proxy:               onlyTLS,
				MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 20 * time.Second, ForceAttemptHTTP2: true,
			},
			attempts: o.Attempts, timeout: o.Timeout, wait: o.Wait, limit: o.MaxBytes, pause: o.Pause,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// onlyTLS uses a proxy where it cannot read what passes.
func onlyTLS(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	for n := 1; ; n++ {
		response, err := t.attempt(r)
		delay, again := t.again(n, response, err)
		if r.Context().Err() != nil || !again {
			return response, err
		}
		if err := t.pause(r.Context(), delay); err != nil {
			return nil, err
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// attempt sends the request once and reads the response.
func (t transport) attempt(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), t.timeout, errSlow)
	defer cancel()
	response, err := t.next.RoundTrip(r.Clone(ctx))
	if err != nil {
		return nil, late(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, t.limit+1))
	switch {
	case err != nil:
		return nil, late(ctx, err)
	case int64(len(body)) > t.limit:
		return nil, errOversized
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func late(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return err
}

// again says whether, and after what time, the nth attempt is repeated: when
// the server is away or busy. One that is merely slow has enough to do.
func (t transport) again(n int, response *http.Response, err error) (time.Duration, bool) {
	if n >= t.attempts || errors.Is(err, errOversized) || errors.Is(err, errSlow) {
		return 0, false
	}
	delay := min(500*time.Millisecond<<(2*(n-1)), t.wait)
	delay -= rand.N(delay/4 + 1) // so that those who failed together do not return together
	if err != nil {
		return delay, true
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0, false
	}
	if asked, ok := retryAfter(response.Header.Get("Retry-After"), time.Now()); ok {
		return asked, asked <= t.wait
	}
	return delay, true
}

// retryAfter reads the header of RFC 9110, 10.2.3: seconds or a date.
func retryAfter(v string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
