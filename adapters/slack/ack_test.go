package slack

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// S-99: Slack ignores acknowledgements of 20 KB and more, so a large one goes
// without what it carries.
func TestS99AcknowledgementsStaySmall(t *testing.T) {
	t.Parallel()
	got := make(chan string, 2)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for range 2 {
			_, b, err := conn.ReadMessage()
			if err != nil {
				return
			}
			got <- string(b)
		}
	}))
	defer web.Close()
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(web.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	k := newSocket(nil, conn, time.Second)
	for _, n := range []int{100, 30_000} {
		if err := k.ack("e1", map[string]any{"text": strings.Repeat("x", n)}); err != nil {
			t.Fatal(err)
		}
		b := <-got
		if len(b) >= maxAck || !strings.Contains(b, `"envelope_id":"e1"`) || strings.Contains(b, "payload") != (n == 100) {
			t.Errorf("%d characters: %.60s… of %d bytes", n, b, len(b))
		}
	}
}
