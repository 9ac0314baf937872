package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"footnote/adapters/slack/event"
)

// maxBody bounds a delivery by HTTP.
const maxBody = 1 << 20

// Handlers are what Slack posts to in HTTP mode, by path; none in Socket Mode.
func (a *Adapter) Handlers() map[string]http.Handler {
	if a.c.Mode != HTTP {
		return map[string]http.Handler{}
	}
	return map[string]http.Handler{
		"/slack/events":       a.signed(a.serveEvents),
		"/slack/interactions": a.signed(a.serveInteractions),
		"/slack/commands":     a.signed(a.serveCommands),
	}
}

// signed lets through what Slack has signed in the last five minutes.
//
// SECURITY: nothing is parsed before the raw bytes are verified. A refusal
// says nothing of why.
func (a *Adapter) signed(next func(http.ResponseWriter, *http.Request, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				a.log.Error("a panic was caught", "doing", "taking a delivery")
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if !a.verified(r.Header, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		a.health.inbound(a.now())
		next(w, r, body)
	})
}

// window is how far the time of a delivery may be from ours.
const window = 5 * 60 // s

// verified reports that Slack signed the bytes: HMAC-SHA256 over
// v0:timestamp:body with the signing secret, in hex, not long ago.
//
// SECURITY: compared in constant time; a blank secret verifies nothing.
func (a *Adapter) verified(h http.Header, body []byte) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	at, err := strconv.ParseInt(stamp, 10, 64)
	now := a.now().Unix()
	if err != nil || at < now-window || at > now+window || strings.TrimSpace(a.c.SigningSecret) == "" {
		return false
	}
	sent, ok := strings.CutPrefix(h.Get("X-Slack-Signature"), "v0=")
	got, err := hex.DecodeString(sent)
	if !ok || err != nil {
		return false
	}
	m := hmac.New(sha256.New, []byte(a.c.SigningSecret))
	_, _ = io.WriteString(m, "v0:"+stamp+":")
	_, _ = m.Write(body)
	return hmac.Equal(got, m.Sum(nil))
}

// serveEvents takes an event. The answer has no body.
func (a *Adapter) serveEvents(w http.ResponseWriter, r *http.Request, body []byte) {
	c, err := event.Parse(body)
	if err != nil {
		w.Header().Set("X-Slack-No-Retry", "1")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if c.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, c.Challenge)
		return
	}
	a.answerHTTP(w, r, "events_api", body)
}

// answerHTTP takes a delivery. Without an answer the status alone says whether
// Slack is to send it again.
func (a *Adapter) answerHTTP(w http.ResponseWriter, r *http.Request, kind string, payload []byte) {
	answer, err := a.take(context.WithoutCancel(r.Context()), kind, payload)
	if err != nil {
		a.log.Warn("a delivery could not be taken, Slack will repeat it", "type", kind, "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(answer)
	_ = http.NewResponseController(w).Flush()
	acknowledged(answer)
}

// form reads the body of a form post; what is in the address does not count.
func form(w http.ResponseWriter, body []byte) (url.Values, bool) {
	f, err := url.ParseQuery(string(body))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return nil, false
	}
	if f.Get("ssl_check") == "1" {
		w.WriteHeader(http.StatusOK)
		return nil, false
	}
	return f, true
}

func (a *Adapter) serveInteractions(w http.ResponseWriter, r *http.Request, body []byte) {
	if f, ok := form(w, body); ok {
		a.answerHTTP(w, r, "interactive", []byte(f.Get("payload")))
	}
}

func (a *Adapter) serveCommands(w http.ResponseWriter, r *http.Request, body []byte) {
	f, ok := form(w, body)
	if !ok {
		return
	}
	fields := map[string]string{}
	for k := range f {
		fields[k] = f.Get(k)
	}
	payload, err := json.Marshal(fields)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.answerHTTP(w, r, "slash_commands", payload)
}
