package discordtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"footnote/adapters/fakeserver"
)

// Post is one signed request to the app. Zero fields are filled in: the right
// key, the time of the clock, the signature over both.
type Post struct {
	URL  string // the endpoint when empty
	Body []byte
	Key  ed25519.PrivateKey // another key: a forged request
	At   time.Time
	// Change may spoil the headers after signing.
	Change func(http.Header)
}

// Answer is what the app answered.
type Answer = fakeserver.Answer

// Sign is Discord's signature: Ed25519 over timestamp and body, in hex.
func Sign(key ed25519.PrivateKey, at time.Time, body []byte) string {
	return hex.EncodeToString(ed25519.Sign(key, append([]byte(strconv.FormatInt(at.Unix(), 10)), body...)))
}

// BadSignature is a Change that spoils the signature.
func BadSignature(h http.Header) { h.Set("X-Signature-Ed25519", strings.Repeat("0", 128)) }

// NoSignature is a Change that removes both headers.
func NoSignature(h http.Header) {
	h.Del("X-Signature-Ed25519")
	h.Del("X-Signature-Timestamp")
}

var errNoEndpoint = errors.New("no interactions endpoint is set; call SetEndpoint first")

// Send posts to the app and waits for the answer.
func (s *Server) Send(ctx context.Context, p Post) (Answer, error) {
	s.mu.Lock()
	if p.URL == "" {
		p.URL = s.endpoint
	}
	s.mu.Unlock()
	if p.URL == "" {
		return Answer{}, errNoEndpoint
	}
	if p.Key == nil {
		p.Key = s.key
	}
	if p.At.IsZero() {
		p.At = s.clock.Now()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("making a request to the app: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Discord-Interactions/1.0 (+https://discord.com)")
	req.Header.Set("X-Signature-Timestamp", strconv.FormatInt(p.At.Unix(), 10))
	req.Header.Set("X-Signature-Ed25519", Sign(p.Key, p.At, p.Body))
	if p.Change != nil {
		p.Change(req.Header)
	}
	return s.Do(req)
}

// PingBody is the body of a PING.
func (s *Server) PingBody() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return raw(object{
		"id": s.world.snowflake(s.clock.Now()), "application_id": s.world.app.ID, "type": pingKind, "token": "ping", "version": 1,
		"user": s.world.userWire(s.world.app.BotUser), "entitlements": []any{},
	})
}

// SetEndpoint does what saving the address in the portal does: a PING that must
// be answered with a PONG, and one with a bad signature that must get 401. From then
// on interactions go there and not to the gateway. An empty address goes back.
func (s *Server) SetEndpoint(ctx context.Context, address string) error {
	if address != "" {
		if err := s.probe(ctx, address); err != nil {
			return fmt.Errorf("the interactions endpoint could not be verified: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoint = address
	return nil
}

func (s *Server) probe(ctx context.Context, address string) error {
	bad, err := s.Send(ctx, Post{URL: address, Body: s.PingBody(), Change: BadSignature})
	if err != nil {
		return err
	}
	if bad.Status != http.StatusUnauthorized {
		return fmt.Errorf("a PING with a bad signature got status %d, want 401", bad.Status)
	}
	good, err := s.Send(ctx, Post{URL: address, Body: s.PingBody()})
	if err != nil {
		return err
	}
	var pong struct{ Type int }
	if good.Status != http.StatusOK || !strings.HasPrefix(good.Header.Get("Content-Type"), "application/json") ||
		json.Unmarshal([]byte(good.Body), &pong) != nil || pong.Type != pongReply {
		return fmt.Errorf("a PING got status %d, type %q, body %.100q, want 200 application/json {\"type\":1}", good.Status, good.Header.Get("Content-Type"), good.Body)
	}
	return nil
}

// post delivers an interaction by HTTP; the caller holds s.mu.
func (s *Server) post(x *interaction, body json.RawMessage) {
	s.frame(Frame{Out: true, Type: "INTERACTION_CREATE", Body: body})
	s.Spawn(func() {
		ctx, cancel := s.Context() // the answer may come long after the time-out
		defer cancel()
		a, err := s.Send(ctx, Post{Body: body})
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.Closed {
			s.answered(x, a, err)
		}
	})
}

// answered takes an inline response, or the 202 that announces a callback.
func (s *Server) answered(x *interaction, a Answer, err error) {
	if err != nil {
		a.Body = err.Error()
	}
	s.frame(Frame{Op: -1, Type: "answer", Body: raw(object{"status": a.Status, "body": a.Body})})
	if err == nil && a.Status == http.StatusAccepted && a.Body == "" {
		return
	}
	var b struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err != nil || a.Status != http.StatusOK || json.Unmarshal([]byte(a.Body), &b) != nil {
		return // the three seconds run out
	}
	if out := s.respond(x, b.Type, b.Data); out.status >= 400 && len(x.sentAt) == 1 {
		s.violate("interaction %s: inline response refused: %s", x.id, raw(out.body))
	}
}
