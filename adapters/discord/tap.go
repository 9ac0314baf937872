package discord

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Orders of the server that the library obeys in ways that hang it, or spend
// the identify budget.
var (
	errReconnect = errors.New("Discord asked to reconnect")
	errInvalid   = errors.New("Discord ended the session")
	errSilent    = errors.New("nothing came from Discord for too long")
	errStuck     = errors.New("the connection did not become ready in time")
	errGarbage   = errors.New("Discord sent what is no event")
)

// closeError is the close code of the server.
type closeError int

func (c closeError) Error() string {
	return fmt.Sprintf("Discord closed the connection with code %d", int(c))
}

// tap is the connection below the library. It sees each frame before the
// library does, and ends the connection at an order to reconnect or at an
// invalid session: so the library's own ways with them, which lock it up or
// identify without a pause, are never taken. Ending it takes no lock of the
// library.
//
// It understands unmasked frames without extensions, as servers send them. Of
// what it does not understand, it only sees that it came.
type tap struct {
	net.Conn

	mu   sync.Mutex
	last time.Time     // latest byte
	end  error         // why it ended; nil before that
	done chan struct{} // closed then

	// Of the one reader:
	upgraded bool
	tail     []byte // of the HTTP response, up to 3 bytes
	head     []byte // of a frame that has begun
	left     uint64 // bytes of its payload still to come
	payload  []byte // its first bytes
}

func newTap(c net.Conn) *tap { return &tap{Conn: c, last: time.Now(), done: make(chan struct{})} }

// maxPayload is how much of a frame is looked at. Longer ones hold events.
const maxPayload = 4096

// Read implements net.Conn.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if n > 0 {
		t.mu.Lock()
		t.last = time.Now()
		t.mu.Unlock()
		if keep, order := t.feed(p[:n]); order != nil {
			t.cut(order)
			return keep, order
		}
	}
	if err != nil {
		t.cut(err)
	}
	return n, err
}

// cut ends the connection; the first reason counts.
func (t *tap) cut(why error) {
	t.mu.Lock()
	if t.end == nil {
		t.end = why
		close(t.done)
	}
	t.mu.Unlock()
	_ = t.Conn.Close()
}

// Close implements net.Conn.
func (t *tap) Close() error {
	t.cut(net.ErrClosed)
	return nil
}

// why is the reason of the end, nil before it.
func (t *tap) why() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}

func (t *tap) quiet() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}

// feed looks at bytes. At an order it returns how many bytes came before the
// frame that holds it, as far as they are in p.
func (t *tap) feed(p []byte) (keep int, order error) {
	at := 0
	if !t.upgraded {
		if at = t.response(p); !t.upgraded {
			return len(p), nil
		}
	}
	start := at
	for at < len(p) {
		if t.left == 0 && t.payload == nil {
			if len(t.head) == 0 {
				start = at
			}
			t.head = append(t.head, p[at])
			at++
			t.begin()
		} else {
			n := int(min(uint64(len(p)-at), t.left))
			if room := maxPayload + 1 - len(t.payload); room > 0 {
				t.payload = append(t.payload, p[at:at+min(n, room)]...)
			}
			t.left -= uint64(n)
			at += n
		}
		if t.left == 0 && t.payload != nil {
			op, payload := t.head[0]&0x0f, t.payload
			t.head, t.payload = t.head[:0], nil
			if order := look(op, payload); order != nil {
				return start, order
			}
		}
	}
	return len(p), nil
}

// response skips the HTTP response before the frames and returns where they
// begin.
func (t *tap) response(p []byte) int {
	end := []byte("\r\n\r\n")
	joined := append(append([]byte{}, t.tail...), p...)
	if i := bytes.Index(joined, end); i >= 0 {
		t.upgraded = true
		at := i + len(end) - len(t.tail)
		t.tail = nil
		return at
	}
	t.tail = joined[max(0, len(joined)-3):]
	return len(p)
}

// begin starts a frame once its header is complete.
func (t *tap) begin() {
	if len(t.head) < 2 {
		return
	}
	size := uint64(t.head[1] & 0x7f)
	need := 2
	switch size {
	case 126:
		need = 4
	case 127:
		need = 10
	}
	if len(t.head) < need {
		return
	}
	switch need {
	case 4:
		size = uint64(binary.BigEndian.Uint16(t.head[2:]))
	case 10:
		size = binary.BigEndian.Uint64(t.head[2:])
	}
	t.left, t.payload = size, []byte{}
}

// look finds an order in a whole frame.
func look(op byte, payload []byte) error {
	const text, closing = 1, 8
	switch {
	case op == closing && len(payload) >= 2:
		return closeError(binary.BigEndian.Uint16(payload))
	case op == closing:
		return closeError(1005)
	case op != text || len(payload) > maxPayload:
		return nil
	}
	var e struct {
		Op   *int            `json:"op"`
		Data json.RawMessage `json:"d"`
	}
	if trimmed := bytes.TrimSpace(payload); len(trimmed) == 0 || trimmed[0] != '{' {
		return errGarbage // the library does not survive it
	}
	if json.Unmarshal(payload, &e) != nil || e.Op == nil {
		return nil //nolint:nilerr // no order can be read in it: the library judges the frame
	}
	switch *e.Op {
	case 7:
		return errReconnect
	case 9:
		if string(bytes.TrimSpace(e.Data)) == "true" {
			return errReconnect
		}
		return errInvalid
	}
	return nil
}
