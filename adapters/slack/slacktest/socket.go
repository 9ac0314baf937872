package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"footnote/adapters/fakeserver"
)

const (
	maxSockets  = 10
	maxAck      = 20 << 10
	warningTime = 10 * time.Second
)

// DialMode is what happens to the next sockets.
type DialMode int

// The ways to treat a dial.
const (
	DialOK      DialMode = iota
	DialRefuse           // HTTP 503 instead of an upgrade
	DialHang             // no answer at all
	DialNoHello          // upgraded, never greeted
	DialDrop             // upgraded and closed at once
)

type socketState struct {
	sockets   []*socket
	socketID  int
	tickets   map[string]bool // true: used
	pingEvery time.Duration
	dialMode  DialMode
	dialLeft  int // how many dials the mode is for; < 0: all
	openError string
	helloApp  string
	foreign   int // sockets of other processes, only counted
	next      int
	choose    func(n int) int
	killOnAck int
}

func newSocketState() socketState {
	return socketState{tickets: map[string]bool{}, pingEvery: time.Second}
}

// socket is one WebSocket; its writer goroutine alone writes data.
type socket struct {
	id     int
	conn   *websocket.Conn
	out    chan []byte
	gone   chan struct{}
	ready  bool
	silent bool
	closed bool
}

func openConnection(s *Server, _ *call) reply {
	if s.openError != "" {
		return failure(s.openError)
	}
	ticket := s.id("ticket-")
	s.tickets[ticket] = false
	return reply{"ok": true, "url": "ws" + strings.TrimPrefix(s.Base, "http") + "/socket/" + ticket + "?app_id=" + s.world.App.ID}
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// serveSocket takes a dial: the address works once only.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := strings.TrimPrefix(r.URL.Path, "/socket/")
	args := map[string]string{}
	fill(args, r.URL.Query())
	req := &Request{At: s.clock.Now(), Route: "socket", Verb: r.Method, Header: r.Header.Clone(), Args: args, Status: 101}
	s.mu.Lock()
	used, known := s.tickets[ticket]
	s.tickets[ticket] = true
	mode := DialOK
	if s.dialLeft != 0 {
		mode = s.dialMode
		s.dialLeft--
	}
	switch {
	case used || !known:
		req.Status, req.Error = http.StatusBadRequest, "socket address is not known or was used before"
		s.violate("socket address used twice or never given")
	case mode == DialRefuse:
		req.Status = http.StatusServiceUnavailable
	}
	s.record(req)
	s.mu.Unlock()
	if req.Status != 101 {
		http.Error(w, req.Error, req.Status)
		return
	}
	if mode == DialHang {
		select {
		case <-s.Done():
		case <-r.Context().Done():
		}
		return
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.greet(conn, mode)
}

// greet registers the socket, says hello and reads until it ends.
func (s *Server) greet(conn *websocket.Conn, mode DialMode) {
	s.mu.Lock()
	if s.Closed || mode == DialDrop {
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	s.socketID++
	k := &socket{id: s.socketID, conn: conn, out: make(chan []byte, 4096), gone: make(chan struct{})}
	s.sockets = append(s.sockets, k)
	s.Spawn(func() { s.writeLoop(k) })
	switch {
	case len(s.sockets)+s.foreign > maxSockets:
		s.push(k, "disconnect", "", 0, map[string]any{"type": "disconnect", "reason": "too_many_websockets", "debug_info": debugInfo(k)})
		s.hangUp(k)
	case mode != DialNoHello:
		s.hello(k)
	}
	s.mu.Unlock()
	conn.SetPingHandler(func(data string) error { return s.pong(k, data) })
	for {
		kind, data, err := conn.ReadMessage()
		if err != nil {
			break
		}
		if kind == websocket.TextMessage {
			s.received(k, data)
		}
	}
	s.mu.Lock()
	s.drop(k)
	s.mu.Unlock()
}

// pong answers a ping, unless the link is half open.
func (s *Server) pong(k *socket, data string) error {
	s.mu.Lock()
	silent := k.silent
	s.mu.Unlock()
	if !silent {
		_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	}
	return nil
}

func debugInfo(k *socket) map[string]any {
	return map[string]any{"host": fmt.Sprintf("applink-%d", k.id), "build_number": 7, "approximate_connection_time": 18060}
}

func (s *Server) hello(k *socket) {
	app := s.helloApp
	if app == "" {
		app = s.world.App.ID
	}
	k.ready = true
	s.push(k, "hello", "", 0, map[string]any{
		"type": "hello", "num_connections": len(s.sockets) + s.foreign, "debug_info": debugInfo(k),
		"connection_info": map[string]any{"app_id": app},
	})
	s.flush()
}

// push queues one frame; the caller holds s.mu.
func (s *Server) push(k *socket, kind, envelope string, retry int, v any) {
	b := raw(v)
	s.frame(Frame{Socket: k.id, Out: true, Type: kind, Envelope: envelope, Retry: retry, Body: b})
	if k.silent || k.closed {
		return
	}
	select {
	case k.out <- b:
	default:
		s.drop(k) // a client that reads nothing
	}
}

// hangUp closes the socket after what is queued has gone out.
func (s *Server) hangUp(k *socket) {
	k.ready = false
	if !k.closed {
		select {
		case k.out <- nil:
		default:
			s.drop(k)
		}
	}
}

// drop closes the socket at once; what was not acknowledged on it is excused
// and will be sent again.
func (s *Server) drop(k *socket) {
	if k.closed {
		return
	}
	k.closed, k.ready = true, false
	close(k.gone)
	fakeserver.ResetConn(k.conn.NetConn())
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == k })
	for _, snd := range s.sendings {
		if snd.socket == k.id && snd.acks == 0 && s.clock.Now().Sub(snd.at) <= ackTime {
			snd.excused = true
		}
	}
	s.Bump()
}

// writeLoop sends frames and pings; pings follow real time.
func (s *Server) writeLoop(k *socket) {
	ping := time.NewTicker(s.pingEvery)
	defer ping.Stop()
	s.ping(k)
	for {
		select {
		case <-k.gone:
			return
		case <-ping.C:
			s.ping(k)
		case b := <-k.out:
			if b == nil {
				s.close(k)
				return
			}
			if k.conn.WriteMessage(websocket.TextMessage, b) != nil {
				_ = k.conn.Close() // the reader notices and drops the socket
				return
			}
		}
	}
}

func (s *Server) ping(k *socket) {
	s.mu.Lock()
	silent := k.silent
	s.mu.Unlock()
	if !silent {
		_ = k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
	}
}

// close says goodbye properly and leaves the rest to the reader.
func (s *Server) close(k *socket) {
	msg := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = k.conn.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second))
	_ = k.conn.SetReadDeadline(time.Now().Add(time.Second))
}

// received handles what the app sent: acknowledgements and nothing else.
func (s *Server) received(k *socket, data []byte) {
	var a struct {
		Envelope string          `json:"envelope_id"`
		Payload  json.RawMessage `json:"payload"`
	}
	bad := json.Unmarshal(data, &a) != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.silent || k.closed {
		return
	}
	s.frame(Frame{Socket: k.id, Type: "ack", Envelope: a.Envelope, Body: data})
	switch {
	case bad:
		s.violate("socket %d received a frame that is not JSON", k.id)
	case len(data) >= maxAck:
		s.violate("acknowledgement of %s has %d bytes and was ignored", a.Envelope, len(data))
	case a.Envelope == "":
		s.violate("socket %d received an acknowledgement without envelope_id", k.id)
	case s.killOnAck > 0:
		s.killOnAck--
		s.drop(k)
	default:
		s.match(k, a.Envelope, a.Payload)
	}
}

// match finds the copy that is acknowledged: the oldest one on this socket
// that waits, else the newest one there, which was then acknowledged twice.
func (s *Server) match(k *socket, envelope string, payload json.RawMessage) {
	var here *sending
	excused := false
	for _, snd := range s.byEnvelope[envelope] {
		excused = excused || snd.excused
		if snd.socket == k.id && (here == nil || here.acks > 0) {
			here = snd
		}
	}
	switch {
	case here != nil:
		s.acknowledge(here, payload)
	case !excused:
		s.violate("acknowledgement of %s on socket %d, which did not send it", envelope, k.id)
	}
}

// pick chooses the socket for the next payload, or nil.
func (s *Server) pick() *socket {
	var ready []*socket
	for _, k := range s.sockets {
		if k.ready {
			ready = append(ready, k)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	i := s.next % len(ready)
	s.next++
	if s.choose != nil {
		i = s.choose(len(ready)) % len(ready)
	}
	return ready[i]
}

// Sockets is how many sockets are open and greeted.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, k := range s.sockets {
		if k.ready {
			n++
		}
	}
	return n
}

// Distribute sets which of n open sockets gets the next payload; nil: in turn.
func (s *Server) Distribute(choose func(n int) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choose = choose
}

// Disconnect asks every socket to go: warning leaves ten seconds,
// refresh_requested and others close at once; after link_disabled no
// connection can be opened any more.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason == "link_disabled" {
		s.openError = "link_disabled" // the real code is not documented
	}
	for _, k := range slices.Clone(s.sockets) {
		s.push(k, "disconnect", "", 0, map[string]any{"type": "disconnect", "reason": reason, "debug_info": debugInfo(k)})
		if reason == "warning" {
			s.After(warningTime, func() { s.hangUp(k) })
		} else {
			s.hangUp(k)
		}
	}
}

// CloseSockets cuts every TCP connection without a word.
func (s *Server) CloseSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Clone(s.sockets) {
		s.drop(k)
	}
}

// Silence makes the open sockets half-open: nothing is sent, pings neither,
// nothing that arrives counts, and the connection stays.
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		k.silent = true
	}
}

// OnDial treats the next n dials (all, for n < 0) in the given way.
func (s *Server) OnDial(mode DialMode, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialMode, s.dialLeft = mode, n
}

// FailOpen makes apps.connections.open answer the code; "" ends that.
func (s *Server) FailOpen(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openError = code
}

// KillOnAck cuts the socket on each of the next n acknowledgements, before they count.
func (s *Server) KillOnAck(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killOnAck = n
}

// HelloAppID makes hello name another app.
func (s *Server) HelloAppID(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.helloApp = id
}

// ForeignSockets counts sockets of other processes in hello and the limit of ten.
func (s *Server) ForeignSockets(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign = n
}

// SendFrame writes any frame to every open socket, for what Slack may send one
// day. It is not tracked: nobody expects an acknowledgement.
func (s *Server) SendFrame(frame json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		s.push(k, "raw", "", 0, frame)
	}
}

// Deliver sends a payload as it stands, and follows it like any other: an
// event callback or app_rate_limited, a slash command, an interaction, or any
// type under the kind given ("" to tell by the payload).
func (s *Server) Deliver(kind string, payload json.RawMessage, o ...Delivery) {
	var p map[string]any
	if err := json.Unmarshal(payload, &p); err != nil {
		s.Failf("payload is not a JSON object: %v", err)
	}
	if kind == "" {
		kind = kindOf(p)
	}
	d := &delivery{kind: kind, payload: p, accepts: kind != kindEvents}
	if e, ok := p["event"].(map[string]any); ok {
		d.channel, d.ts = str(e, "channel"), str(e, "ts")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliver(d, one(o))
}

func kindOf(p map[string]any) string {
	switch {
	case p["command"] != nil:
		return kindSlash
	case p["event"] != nil || p["type"] == "event_callback" || p["type"] == "app_rate_limited":
		return kindEvents
	}
	return kindInteractive
}

func one[T any](list []T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	return list[0]
}
