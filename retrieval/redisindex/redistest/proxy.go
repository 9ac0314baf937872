package redistest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Proxy stands between a client and a server, and gets in the way when it is
// told to.
type Proxy struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// NewProxy starts a proxy before the server at the address (host:port). It
// ends with the test.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	p := &Proxy{t, toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "redis", "127.0.0.1:0", upstream)}
	p.Heal()
	t.Cleanup(p.proxy.Stop)
	return p
}

// Address is where the proxy listens (host:port). It stays.
func (p *Proxy) Address() string { return p.proxy.Listen }

// URL is the proxy as a client's address.
func (p *Proxy) URL() string { return "redis://" + p.Address() }

// Down ends all connections and takes no more.
func (p *Proxy) Down() { p.proxy.Stop() }

// Point leads to another server from now on, as after a failover. Connections
// end.
func (p *Proxy) Point(upstream string) {
	p.t.Helper()
	p.Down()
	p.proxy.Upstream = upstream
	p.Heal()
}

// Heal takes connections, and leaves them alone.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.proxy.Toxics.ResetToxics(context.Background())
	if err := p.proxy.Start(); err != nil && err != toxiproxy.ErrProxyAlreadyStarted {
		p.t.Fatal(err)
	}
}

// Stall lets nothing of the server's through, and keeps connections open.
func (p *Proxy) Stall() { p.toxic("timeout", map[string]any{"timeout": 0}) }

// Delay holds every answer back for as many milliseconds.
func (p *Proxy) Delay(ms int) { p.toxic("latency", map[string]any{"latency": ms}) }

// Reset ends connections hard when the server answers.
func (p *Proxy) Reset() { p.toxic("reset_peer", map[string]any{"timeout": 0}) }

// Cut ends each connection after as many bytes of answers, in the middle of
// one.
func (p *Proxy) Cut(bytes int) { p.toxic("limit_data", map[string]any{"bytes": bytes}) }

func (p *Proxy) toxic(kind string, with map[string]any) {
	p.t.Helper()
	what, err := json.Marshal(map[string]any{"name": kind, "type": kind, "stream": "downstream", "attributes": with})
	if err == nil {
		_, err = p.proxy.Toxics.AddToxicJson(strings.NewReader(string(what)))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
