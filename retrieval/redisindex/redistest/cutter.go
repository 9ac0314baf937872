package redistest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
)

// Cutter cuts a connection before the answer to its nth request is read: the
// server has done what it was told to. Left is n, counted down over all
// connections made by Dial.
type Cutter struct {
	Left atomic.Int64
}

// Dial is a client's Dialer.
func (c *Cutter) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	return &cutConn{conn, c}, err
}

type cutConn struct {
	net.Conn
	c *Cutter
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.c.Left.Add(-1) == 0 {
		return 0, errors.Join(net.ErrClosed, c.Close())
	}
	return n, err
}
