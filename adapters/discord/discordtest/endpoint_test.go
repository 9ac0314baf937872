package discordtest_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dt "footnote/adapters/discord/discordtest"
)

// verifier is an app that checks signatures and then does what inner says.
func verifier(t *testing.T, key string, inner http.HandlerFunc) string {
	t.Helper()
	pub, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sig, _ := hex.DecodeString(r.Header.Get("X-Signature-Ed25519"))
		if len(sig) != ed25519.SignatureSize || !ed25519.Verify(pub, append([]byte(r.Header.Get("X-Signature-Timestamp")), body...), sig) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var p struct{ Type int }
		_ = json.Unmarshal(body, &p)
		w.Header().Set("Content-Type", "application/json")
		if p.Type == 1 {
			_, _ = w.Write([]byte(`{"type":1}`))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestEndpointInlineAnswer(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	url := verifier(t, s.PublicKey(), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"type":4,"data":{"content":"inline","allowed_mentions":{"parse":[]}}}`))
	})
	if err := s.SetEndpoint(context.Background(), url); err != nil {
		t.Fatal(err)
	}
	if m := x.ask(s).WaitAnswer(); m.Content != "inline" {
		t.Errorf("answer %q", m.Content)
	}
	clean(t, s)
}

func TestEndpointAcceptedThenCallback(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	url := verifier(t, s.PublicKey(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	if err := s.SetEndpoint(context.Background(), url); err != nil {
		t.Fatal(err)
	}
	i := x.ask(s)
	s.Eventually("the 202", func() bool {
		for _, f := range s.Frames() {
			if f.Type == "answer" && strings.Contains(string(f.Body), "202") {
				return true
			}
		}
		return false
	})
	expect(t, "callback", callback(t, s, i, 4, msg("later")), 204, 0)
	clean(t, s)
}

func TestEndpointIsProbedBeforeUse(t *testing.T) {
	t.Parallel()
	_, s, _ := askedIn(t)
	careless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"type":1}`))
	}))
	defer careless.Close()
	if err := s.SetEndpoint(context.Background(), careless.URL); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("an app that checks no signature was accepted: %v", err)
	}
	if err := s.SetEndpoint(context.Background(), verifier(t, strings.Repeat("00", 32), nil)); err == nil {
		t.Error("an app with another key was accepted")
	}
	if _, err := s.Send(context.Background(), dt.Post{Body: s.PingBody()}); err == nil {
		t.Error("nothing to send to, and no error")
	}
}

func TestForgedRequests(t *testing.T) {
	t.Parallel()
	_, s, _ := askedIn(t)
	url := verifier(t, s.PublicKey(), nil)
	_, other, _ := ed25519.GenerateKey(nil)
	for name, p := range map[string]dt.Post{
		"wrong signature": {Change: dt.BadSignature},
		"no signature":    {Change: dt.NoSignature},
		"wrong key":       {Key: other},
	} {
		p.URL, p.Body = url, s.PingBody()
		a, err := s.Send(context.Background(), p)
		if err != nil || a.Status != http.StatusUnauthorized {
			t.Errorf("%s: status %d, %v", name, a.Status, err)
		}
	}
}
