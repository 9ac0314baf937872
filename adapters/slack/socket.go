package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"footnote/bot/outbox"
)

// Times of sockets.
const (
	dialTime  = 15 * time.Second
	helloTime = 15 * time.Second
	ackTime   = 2 * time.Second
	lived     = 10 * time.Second // a socket that lived so long was a good one
)

// supervisor keeps a socket open: a new address for each dial, a few at once
// and then ever more slowly, for ever, unless Slack says that it is of no use.
type supervisor struct {
	a      *Adapter
	quick  int           // redials that may follow at once
	silent time.Duration // without a ping or frame after which a socket is dead
	pause  *outbox.Backoff
	pinged atomic.Bool // Slack pings: its silence is death, whatever answers
}

// burst is how many sockets may be opened in a row without a pause.
const burst = 2

func newSupervisor(a *Adapter) *supervisor {
	s := &supervisor{a: a, quick: burst, silent: a.c.Silence, pause: &outbox.Backoff{Least: time.Second, Most: time.Minute}}
	return s
}

// run opens sockets until ctx is done or it is of no use. It leaves none open.
func (s *supervisor) run(ctx context.Context) error {
	var sockets sync.WaitGroup
	defer sockets.Wait()
	ctx, closeAll := context.WithCancel(ctx)
	defer closeAll()
	for {
		k, err := s.open(ctx)
		if err == nil {
			s.a.sockets.Add(1)
			sockets.Go(func() {
				defer func() {
					if s.a.sockets.Add(-1) == 0 {
						s.a.health.down()
					}
				}()
				k.serve(ctx)
			})
			select {
			case <-k.leaving: // Slack will close it soon: have another before
			case <-k.done:
			case <-ctx.Done():
			}
			err = k.why()
		}
		if ctx.Err() != nil {
			return nil
		}
		if what, is := fatal[codeOf(err)]; is {
			if k == nil {
				err = fmt.Errorf("FOOTNOTE_SLACK_APP_TOKEN: %w", err)
			}
			return fmt.Errorf("connecting to Slack: %w: %s", err, what)
		}
		if err := s.wait(ctx, k, err); err != nil {
			return nil
		}
	}
}

// wait waits before the next dial.
func (s *supervisor) wait(ctx context.Context, k *socket, err error) error {
	good := k != nil && time.Since(k.since) >= lived
	if good {
		s.quick = burst
		s.pause.Reset()
	}
	slow := k != nil && k.reason() == "too_many_websockets"
	if k != nil && s.quick > 0 && !slow {
		s.quick--
		return nil
	}
	pause := s.pause.Next()
	if slow {
		pause = max(pause, 10*time.Second)
	}
	var limited *outbox.Limited
	if errors.As(err, &limited) {
		pause = max(pause, limited.After)
	}
	s.a.log.Warn("the connection to Slack is down", "error", err, "next attempt in", pause)
	return outbox.Pause(ctx, pause)
}

// open fetches an address and dials it.
func (s *supervisor) open(ctx context.Context) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	address, err := s.a.api.openSocket(ctx)
	if err != nil {
		return nil, err
	}
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTime}
	conn, resp, err := d.DialContext(ctx, address, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		// The address is a secret for as long as it is good; the error names it not.
		return nil, fmt.Errorf("dialling the socket: %w", err)
	}
	conn.SetReadLimit(4 << 20)
	k := newSocket(s.a, conn, s.silent)
	k.pinged = &s.pinged
	return k, nil
}

// socket is one connection. One goroutine reads; whoever writes holds writing.
type socket struct {
	a       *Adapter
	conn    *websocket.Conn
	silent  time.Duration
	pinged  *atomic.Bool // the supervisor's
	since   time.Time
	leaving chan struct{} // closed when Slack asked us to go
	done    chan struct{} // closed when it has ended
	once    sync.Once
	hello   atomic.Bool
	heard   atomic.Int64 // when the other side last sent something of its own, in Unix ns
	writing sync.Mutex

	mu    sync.Mutex
	asked string // reason of a disconnect
	err   error
}

func newSocket(a *Adapter, conn *websocket.Conn, silent time.Duration) *socket {
	return &socket{
		a: a, conn: conn, silent: silent, pinged: new(atomic.Bool), since: time.Now(), leaving: make(chan struct{}), done: make(chan struct{}),
	}
}

func (k *socket) reason() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// why is the reason why the socket ends, as an error.
func (k *socket) why() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.asked != "":
		return &failure{code: k.asked, err: k.err}
	case k.err != nil:
		return k.err
	}
	return errors.New("the connection ended")
}

// frame is what comes over a socket.
type frame struct {
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`
	Reason   string          `json:"reason"`
	Accepts  bool            `json:"accepts_response_payload"`
	Conns    int             `json:"num_connections"`
	Info     struct {
		App string `json:"app_id"`
	} `json:"connection_info"`
}

// serve reads until the socket ends. It never waits for work.
func (k *socket) serve(ctx context.Context) {
	defer close(k.done)
	defer func() { _ = k.conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = k.conn.Close() })
	defer stop()
	k.alive(helloTime)
	k.heard.Store(time.Now().UnixNano())
	k.conn.SetPingHandler(func(data string) error {
		k.pinged.Store(true)
		if k.hello.Load() {
			k.alive(k.silent)
			k.a.health.pinged()
		}
		k.writing.Lock()
		defer k.writing.Unlock()
		_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(ackTime))
		return nil
	})
	k.conn.SetPongHandler(func(string) error {
		if k.hello.Load() && !k.pinged.Load() {
			k.alive(k.silent)
			k.a.health.pinged()
		}
		return nil
	})
	go k.ask()
	for {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			k.mu.Lock()
			k.err = fmt.Errorf("reading the socket: %w", err)
			k.mu.Unlock()
			return
		}
		k.received(ctx, data)
	}
}

// ask pings until the socket ends, unless the other side does: not every
// platform that speaks like Slack pings. What only answers may be half-open all
// the same, so after a silence another socket is opened beside it, and after a
// second one it is closed.
func (k *socket) ask() {
	wait := k.silent / 3
	for {
		select {
		case <-k.done:
			return
		case <-time.After(wait):
		}
		if k.pinged.Load() {
			return
		}
		quiet := time.Duration(time.Now().UnixNano() - k.heard.Load())
		if quiet >= k.silent {
			k.once.Do(func() { close(k.leaving) })
		}
		if quiet >= 2*k.silent {
			_ = k.conn.Close()
			return
		}
		k.writing.Lock()
		_ = k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(ackTime))
		k.writing.Unlock()
		wait = k.silent / 3 // or less, to be there at the next bound
		for _, left := range []time.Duration{k.silent - quiet, 2*k.silent - quiet} {
			if left > 0 {
				wait = min(wait, left)
			}
		}
	}
}

// alive puts off the moment at which the silence is taken for death.
func (k *socket) alive(d time.Duration) { _ = k.conn.SetReadDeadline(time.Now().Add(d)) }

// received handles one frame. What cannot be read in full is read as far as it
// can be, so that it is acknowledged.
func (k *socket) received(ctx context.Context, data []byte) {
	var f frame
	if json.Unmarshal(data, &f) != nil {
		f = salvage(data)
	}
	k.heard.Store(time.Now().UnixNano())
	if k.hello.Load() {
		k.alive(k.silent)
	}
	switch f.Type {
	case "hello":
		k.greeted(f)
	case "disconnect":
		k.mu.Lock()
		k.asked = f.Reason
		k.mu.Unlock()
		k.a.log.Info("Slack asks for a new connection", "reason", f.Reason)
		k.once.Do(func() { close(k.leaving) })
	default:
		if f.Envelope != "" {
			k.a.health.inbound(k.a.now())
			k.a.work(ctx, func(ctx context.Context) { k.handle(ctx, f) })
		}
	}
}

func (k *socket) greeted(f frame) {
	k.hello.Store(true)
	k.alive(k.silent)
	k.a.health.up()
	if want := k.a.c.AppID; want != "" && f.Info.App != "" && f.Info.App != want {
		k.a.fail(fmt.Errorf("the app token belongs to the app %s, not to %s: check FOOTNOTE_SLACK_APP_TOKEN", f.Info.App, want))
		return
	}
	k.a.setApp(f.Info.App)
	if f.Conns > max(int(k.a.sockets.Load()), k.a.c.Connections) {
		k.a.log.Warn("another process is connected with the same app: each gets a part of the questions, and they must share one ledger", "connections", f.Conns)
	}
}

// salvage reads the fields of a frame one by one.
func salvage(data []byte) frame {
	var raw map[string]json.RawMessage
	var f frame
	if json.Unmarshal(data, &raw) != nil {
		return f
	}
	_ = json.Unmarshal(raw["type"], &f.Type)
	_ = json.Unmarshal(raw["envelope_id"], &f.Envelope)
	_ = json.Unmarshal(raw["reason"], &f.Reason)
	_ = json.Unmarshal(raw["accepts_response_payload"], &f.Accepts)
	f.Payload = raw["payload"]
	return f
}

// handle takes one delivery and acknowledges it, on the socket it came from.
func (k *socket) handle(ctx context.Context, f frame) {
	start := time.Now()
	answer, err := k.a.take(ctx, f.Type, f.Payload)
	if err != nil {
		k.a.log.Warn("a delivery could not be taken, Slack will repeat it", "type", f.Type, "error", err)
		return
	}
	defer acknowledged(answer)
	carried := answer
	if !f.Accepts {
		carried = nil
	}
	if err := k.ack(f.Envelope, carried); err != nil {
		k.a.log.Warn("a delivery could not be acknowledged", "type", f.Type, "error", err)
		return
	}
	k.a.health.acked(time.Since(start))
	if !f.Accepts {
		k.a.unsaid(ctx, f.Payload, answer)
	}
}

// maxAck is the size from which Slack ignores acknowledgements.
const maxAck = 20 << 10

func (k *socket) ack(envelope string, answer any) error {
	out := map[string]any{"envelope_id": envelope}
	if answer != nil {
		out["payload"] = answer
	}
	b, err := json.Marshal(out)
	if err != nil || len(b) >= maxAck {
		b, err = json.Marshal(map[string]any{"envelope_id": envelope})
	}
	if err != nil {
		return err
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	_ = k.conn.SetWriteDeadline(time.Now().Add(ackTime))
	return k.conn.WriteMessage(websocket.TextMessage, b)
}

// health is how the connection is doing.
type health struct {
	mu        sync.Mutex
	connected time.Time // zero: not
	last      time.Time // delivery
	ping      time.Time
	hellos    int
	acks      []time.Duration
	n         int
	fatal     string
}

func (h *health) up() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connected.IsZero() {
		h.connected = time.Now()
	}
	h.hellos++
	h.ping = time.Now()
}

func (h *health) down() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connected = time.Time{}
}

func (h *health) pinged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ping = time.Now()
}

func (h *health) inbound(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = at
}

func (h *health) acked(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.acks) < 512 {
		h.acks = append(h.acks, took)
	} else {
		h.acks[h.n%512] = took
	}
	h.n++
}

// Health is how the adapter is doing.
type Health struct {
	Connected  time.Time     // since when, zero if not
	Last       time.Time     // delivery, zero if none yet
	Reconnects int           // since the start
	AckP99     time.Duration // of the latest deliveries
	Limited    int           // refusals for the rate
	Waiting    int           // calls that wait for their turn
	Fatal      string        // why it has stopped, "" if it has not
}

// Health says how the adapter is doing.
func (a *Adapter) Health() Health {
	out := a.out.Health()
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	h := Health{
		Connected: a.health.connected, Last: a.health.last, Reconnects: max(0, a.health.hellos-1), Fatal: a.health.fatal,
		Limited: out.Limited, Waiting: out.Waiting,
	}
	if acks := slices.Sorted(slices.Values(a.health.acks)); len(acks) > 0 {
		h.AckP99 = acks[(len(acks)*99+99)/100-1]
	}
	return h
}
