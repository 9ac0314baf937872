package slack

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// linkTo makes a supervisor of sockets that talk to serve, on another port
// than the Web API, as some platforms that speak like Slack do.
func linkTo(t *testing.T, silent time.Duration, serve func(*websocket.Conn)) *supervisor {
	t.Helper()
	up := websocket.Upgrader{}
	link := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello"}`))
		serve(conn)
	}))
	t.Cleanup(link.Close)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "url": "ws" + strings.TrimPrefix(link.URL, "http") + "/?ticket=1"})
	}))
	t.Cleanup(api.Close)
	c := Config{APIURL: api.URL + "/", AppToken: "xapp-1", Silence: silent}
	a := &Adapter{c: c, log: slog.New(slog.NewTextHandler(io.Discard, nil)), now: time.Now}
	a.api = newClient(c, func(error) {})
	return newSupervisor(a)
}

// What answers pings but sends none gets a successor before it is closed; what
// has pinged once and stops is dead, whatever it answers.
func TestSilenceOfALink(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	s := linkTo(t, 600*time.Millisecond, func(conn *websocket.Conn) {
		answer := conn.PingHandler()
		conn.SetPingHandler(func(data string) error {
			asked <- struct{}{}
			return answer(data)
		})
		_, _, _ = conn.ReadMessage()
	})
	k, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go k.serve(t.Context())
	for what, c := range []<-chan struct{}{asked, k.leaving, k.done} {
		select {
		case <-c:
		case <-time.After(10 * time.Second):
			t.Fatalf("step %d did not come", what)
		}
	}
	s = linkTo(t, 150*time.Millisecond, func(conn *websocket.Conn) {
		_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		_, _, _ = conn.ReadMessage()
	})
	if k, err = s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	go k.serve(t.Context())
	select {
	case <-k.done:
	case <-time.After(40 * time.Second):
		t.Fatal("a link that has fallen silent is kept")
	}
}

// S-21: what falls silent between two looks is noticed at its bound, not a
// third of it later.
func TestS21SilenceIsNoticedAtItsBound(t *testing.T) {
	t.Parallel()
	const silent = 3 * time.Second
	heard := make(chan time.Time, 1)
	s := linkTo(t, silent, func(conn *websocket.Conn) {
		time.Sleep(100 * time.Millisecond)
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"other"}`))
		heard <- time.Now()
		_, _, _ = conn.ReadMessage()
	})
	k, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go k.serve(t.Context())
	from := <-heard
	select {
	case <-k.leaving:
	case <-time.After(40 * time.Second):
		t.Fatal("the silence is not noticed")
	}
	if took := time.Since(from); took > silent+700*time.Millisecond {
		t.Errorf("noticed after %v, %v are allowed", took, silent)
	}
}

// S-17: link_disabled ends Run though the other side keeps the socket open.
func TestS17LinkDisabledEndsAnOpenSocket(t *testing.T) {
	t.Parallel()
	s := linkTo(t, time.Minute, func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"disconnect","reason":"link_disabled"}`))
		_, _, _ = conn.ReadMessage()
	})
	ran := make(chan error, 1)
	go func() { ran <- s.run(t.Context()) }()
	select {
	case err := <-ran:
		if err == nil || !strings.Contains(err.Error(), "Socket Mode is switched off") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(40 * time.Second):
		t.Fatal("goes on")
	}
}
