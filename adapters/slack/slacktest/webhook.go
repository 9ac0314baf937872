package slacktest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"footnote/adapters/fakeserver"
)

// Webhook is where HTTP deliveries go. Setting it switches Socket Mode off.
type Webhook struct {
	Events, Interactions, Commands string // URLs of the app
}

// UseHTTP delivers by HTTP from now on; a nil Webhook returns to sockets.
func (s *Server) UseHTTP(w *Webhook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = w
}

// Post is one signed request to the app. Zero fields are filled in: the right
// secret, the time of the clock, the signature over both.
type Post struct {
	URL, ContentType string
	Body             []byte
	Secret           string
	At               time.Time
	Method           string
	// Change may spoil the headers after signing.
	Change func(http.Header)
}

// Answer is what the app answered.
type Answer = fakeserver.Answer

// Sign is Slack's signature: HMAC-SHA256 over v0:timestamp:body, in hex.
func Sign(secret string, at time.Time, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(m, "v0:%d:%s", at.Unix(), body)
	return "v0=" + hex.EncodeToString(m.Sum(nil))
}

var errRedirects = errors.New("too many redirects")

// redirects follows two, as Slack does.
func redirects(_ *http.Request, via []*http.Request) error {
	if len(via) > 2 {
		return errRedirects
	}
	return nil
}

// Send posts to the app and waits for the answer; it is not retried.
func (s *Server) Send(ctx context.Context, p Post) (Answer, error) {
	s.mu.Lock()
	if p.Secret == "" {
		p.Secret = s.world.App.SigningSecret
	}
	s.mu.Unlock()
	if p.At.IsZero() {
		p.At = s.clock.Now()
	}
	if p.Method == "" {
		p.Method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, p.Method, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("making a request to the app: %w", err)
	}
	req.Header.Set("Content-Type", p.ContentType)
	req.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	req.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(p.At.Unix(), 10))
	req.Header.Set("X-Slack-Signature", Sign(p.Secret, p.At, p.Body))
	if p.Change != nil {
		p.Change(req.Header)
	}
	return s.Do(req)
}

// EncodeHTTP is the request that carries the payload: JSON for events, a form
// with a payload field for interactions, plain fields for commands.
func (s *Server) EncodeHTTP(payload json.RawMessage) Post {
	var p map[string]any
	if err := json.Unmarshal(payload, &p); err != nil {
		s.Failf("payload is not a JSON object: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.webhook == nil {
		s.Failf("EncodeHTTP without UseHTTP")
	}
	return s.encode(kindOf(p), p)
}

const formType = "application/x-www-form-urlencoded"

func (s *Server) encode(kind string, p map[string]any) Post {
	switch kind {
	case kindSlash:
		form := url.Values{}
		for k, v := range p {
			form.Set(k, fmt.Sprint(v))
		}
		return Post{URL: s.webhook.Commands, ContentType: formType, Body: []byte(form.Encode())}
	case kindInteractive:
		form := url.Values{"payload": {string(raw(p))}}
		return Post{URL: s.webhook.Interactions, ContentType: formType, Body: []byte(form.Encode())}
	}
	return Post{URL: s.webhook.Events, ContentType: "application/json", Body: raw(p)}
}

// postDelivery sends one copy by HTTP; the caller holds s.mu.
func (s *Server) postDelivery(d *delivery, reason string) {
	p := s.encode(d.kind, d.payload)
	snd := s.sent(d, "http-"+s.envelopeID(), 0)
	s.frame(Frame{Out: true, Type: d.kind, Envelope: snd.envelope, Retry: d.retry, Body: raw(d.payload)})
	if d.retry > 0 && d.kind == kindEvents {
		n := strconv.Itoa(d.retry)
		p.Change = func(h http.Header) {
			h.Set("X-Slack-Retry-Num", n)
			h.Set("X-Slack-Retry-Reason", httpReason(reason))
		}
	}
	s.After(ackTime, func() { s.overdue(snd, "http_timeout") })
	s.Spawn(func() {
		ctx, cancel := s.Context() // the answer may come long after the time-out
		defer cancel()
		a, err := s.Send(ctx, p)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answered(snd, a, err)
	})
}

func httpReason(reason string) string {
	switch reason {
	case "", "timeout":
		return "http_timeout"
	}
	return reason
}

// answered settles the copy by the app's answer, or has it retried.
func (s *Server) answered(snd *sending, a Answer, err error) {
	reason := "http_error"
	switch {
	case s.Closed:
		return
	case errors.Is(err, errRedirects):
		reason = "too_many_redirects"
	case err != nil:
		reason = "connection_failed"
	case a.Status >= 200 && a.Status < 300:
		var payload json.RawMessage
		if json.Valid([]byte(a.Body)) {
			payload = json.RawMessage(a.Body)
		} else if a.Body != "" && snd.d.kind == kindSlash {
			payload = raw(map[string]any{"text": a.Body})
		}
		if snd.d.kind == kindEvents {
			payload = nil
		}
		s.frame(Frame{Type: "ack", Envelope: snd.envelope, Body: payload})
		s.acknowledge(snd, payload)
		return
	}
	s.frame(Frame{Type: "refused", Envelope: snd.envelope, Body: raw(map[string]any{"status": a.Status, "reason": reason})})
	snd.excused = true
	if a.Header.Get("X-Slack-No-Retry") == "1" {
		s.giveUp(snd.d, "")
		return
	}
	s.overdue(snd, reason)
}

// URLVerification asks the app to confirm its events address.
func (s *Server) URLVerification(ctx context.Context, challenge string) (Answer, error) {
	return s.Send(ctx, s.EncodeEvents(map[string]any{"token": "legacy-verification-token", "challenge": challenge, "type": "url_verification"}))
}

// EncodeEvents is a request to the events address with any body.
func (s *Server) EncodeEvents(body map[string]any) Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.webhook == nil {
		s.Failf("EncodeEvents without UseHTTP")
	}
	return s.encode(kindEvents, body)
}

// SSLCheck asks the commands address as Slack does once in a while.
func (s *Server) SSLCheck(ctx context.Context) (Answer, error) {
	s.mu.Lock()
	w := s.webhook
	s.mu.Unlock()
	if w == nil {
		s.Failf("SSLCheck without UseHTTP")
	}
	return s.Send(ctx, Post{URL: w.Commands, ContentType: formType, Body: []byte("ssl_check=1&token=legacy-verification-token")})
}

// SlowBody starts a request of which only the first byte ever arrives. The caller
// closes the connection; the reader gives the app's answer, if any.
func (s *Server) SlowBody(target string) (net.Conn, *bufio.Reader, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %q: %w", target, err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, nil, fmt.Errorf("dialling the app: %w", err)
	}
	head := []string{
		"POST " + u.RequestURI() + " HTTP/1.1", "Host: " + u.Host, "Content-Type: application/json", "Content-Length: 100000",
		"X-Slack-Request-Timestamp: " + strconv.FormatInt(s.clock.Now().Unix(), 10), "X-Slack-Signature: v0=00", "", "{",
	}
	if _, err := io.WriteString(conn, strings.Join(head, "\r\n")); err != nil {
		return nil, nil, fmt.Errorf("starting a slow request: %w", err)
	}
	return conn, bufio.NewReader(conn), nil
}
