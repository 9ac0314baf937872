package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Authority makes certificates.
type Authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority whose files lie in a directory of the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	a.key = newKey(t)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(form, form, &a.key.PublicKey)
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// CAFile is the authority's own certificate.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, "ca.pem") }

// Certificate makes one for a host (a name, or a number) that ends then, of use
// to servers and to clients, and gives the paths of it and its key.
func (a *Authority) Certificate(host string, ends time.Time) (certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotBefore: ends.Add(-24 * time.Hour), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		form.IPAddresses = []net.IP{ip}
	} else {
		form.DNSNames = []string{host}
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	name := host + ends.Format("-20060102-150405")
	return a.write(name+".pem", "CERTIFICATE", a.sign(form, a.cert, &key.PublicKey).Raw), a.write(name+".key", "PRIVATE KEY", der)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *Authority) sign(form, by *x509.Certificate, of *ecdsa.PublicKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, form, by, of, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	at := filepath.Join(a.dir, name)
	if err := os.WriteFile(at, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return at
}

// NewTLS speaks TLS before the server at the address (host:port): the cached
// server is built without it. It shows a certificate, and wants one of the
// authority from clients if there is one. It gives its own address and ends with
// the test.
func NewTLS(t testing.TB, upstream, certFile, keyFile string, clients *Authority) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		c.ClientCAs.AddCert(clients.cert)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	open.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { join(in, upstream) })
		}
	})
	return l.Addr().String()
}

// join copies both ways until either side ends.
func join(in net.Conn, upstream string) {
	defer in.Close()
	if in.(*tls.Conn).Handshake() != nil {
		return
	}
	out, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		in.Close()
	})
	_, _ = io.Copy(out, in)
	out.Close()
	back.Wait()
}
