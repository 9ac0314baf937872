package redislink

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// tls is the TLS configuration that the address and the files ask for, nil for
// none.
func (o Options) tls(u *url.URL) (*tls.Config, error) {
	if u.Scheme != "rediss" {
		if o.CAFile+o.CertFile+o.KeyFile != "" {
			return nil, errors.New("certificates are set for Redis, but its address begins with redis://: write rediss://")
		}
		return nil, nil
	}
	// The name is that of each address that is dialled: Sentinels name others.
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates for Redis: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", o.CAFile)
		}
	}
	if o.CertFile != "" || o.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading our certificate for Redis: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// alerts are the words with which the other side of TLS says that it will not
// talk to us as we are, and what to do. The library has no type for them.
var alerts = []struct{ says, do string }{
	{"certificate required", "it asks for a certificate of ours: set redis.cert_file and redis.key_file"},
	{"handshake failure", "it asks for a certificate of ours, or for another version of TLS: set redis.cert_file and redis.key_file"},
	{"unknown certificate authority", "it does not know who made our certificate: set redis.cert_file and redis.key_file to one of an authority that it trusts"},
	{"expired certificate", "our certificate (redis.cert_file) is past its time: renew it"},
	{"bad certificate", "it refuses our certificate: set redis.cert_file and redis.key_file to one that it trusts, for the use by clients"},
	{"unsupported certificate", "it refuses our certificate: set redis.cert_file and redis.key_file to one that it trusts, for the use by clients"},
	{"revoked certificate", "our certificate (redis.cert_file) was revoked: get another"},
	{"access denied", "it refuses our certificate (redis.cert_file): allow it there"},
	{"protocol version not supported", "it speaks only older versions of TLS: allow it 1.2 or 1.3"},
	{"unrecognized name", "it does not know itself by this name: use a name of its certificate in redis.url"},
}

// refusedTLS reports that the other side refused us for good, and what to do.
func refusedTLS(err error) (do string, refused bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return "", false
	}
	for _, a := range alerts {
		if strings.Contains(op.Err.Error(), a.says) {
			return a.do, true
		}
	}
	return "", false
}

// answers are the beginnings of what a server says against us, and what to do.
var answers = []struct{ says, do string }{
	{"WRONGPASS", "check FOOTNOTE_REDIS_USERNAME and FOOTNOTE_REDIS_PASSWORD"},
	{"NOAUTH", "it asks for a password: set FOOTNOTE_REDIS_PASSWORD, and FOOTNOTE_REDIS_USERNAME where the user has a name"},
	{"ERR AUTH <password> called without", "it asks for no password: set none, or FOOTNOTE_REDIS_USERNAME too"},
	{"NOPERM", "give the user the rights of deploy/redis/users.acl; footnote doctor names those that are missing"},
	{"READONLY", "it is a replica; if it stays one, set redis.url to the master, or to the Sentinels with ?master_name=NAME"},
	{"MOVED ", errCluster.Error()},
	{"ASK ", errCluster.Error()},
	{"CROSSSLOT", errCluster.Error()},
	{"CLUSTERDOWN", errCluster.Error()},
	{"OOM", "its memory is full: raise maxmemory, or drop generations that are no longer needed"},
	{"MISCONF", "it cannot save its data: check its disk"},
	{"NOREPLICAS", "it takes no writes without its replicas: start those"},
}

// remedy says what to do about an error, as far as the error alone tells; "" if
// it does not.
func remedy(err error) string {
	if do, refused := refusedTLS(err); refused {
		return do
	}
	if do := certificate(err); do != "" {
		return do
	}
	if errors.Is(err, errNoMaster) {
		return "check master_name in redis.url"
	}
	if notRedis(err) {
		return "what answers there is not Redis: check host and port in redis.url"
	}
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return ""
	}
	if _, ok := errors.AsType[sentinelError](err); ok {
		if noSentinel(answer) {
			return "what answers there is no Sentinel: set redis.url to the Sentinels (their port is 26379 by default), or drop ?master_name= where it is the server itself"
		}
		return "check FOOTNOTE_REDIS_SENTINEL_USERNAME and FOOTNOTE_REDIS_SENTINEL_PASSWORD"
	}
	for _, a := range answers {
		if strings.HasPrefix(answer.Error(), a.says) {
			return a.do
		}
	}
	return ""
}

// notRedis reports an answer in another protocol, such as HTTP. The library has
// no type for it. That of TLS is seen to elsewhere.
func notRedis(err error) bool {
	says := err.Error()
	return (strings.Contains(says, "redis: can't parse") || strings.Contains(says, "redis: invalid reply")) && !strings.Contains(says, `"\x15`)
}

// noSentinel reports that what was asked for a master does not know the command.
func noSentinel(answer error) bool {
	return strings.Contains(strings.ToLower(answer.Error()), "unknown command 'sentinel")
}

// certificate says what to do about a server's certificate.
func certificate(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "set redis.ca_file to the certificate of the authority that made the server's"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "use a name of the certificate in redis.url, or have the server's made for this one"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS at this port: write redis:// in redis.url, or its port for TLS"
	}
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case !ok:
		return ""
	case invalid.Reason == x509.Expired:
		return "renew the server's certificate; if it is not past its time, this machine's clock is wrong"
	}
	return "give the server a certificate for the use by servers"
}

// Remedy says what to do about an error of the link, "" if that is not known. It
// may look whether the server speaks TLS.
func (l *Link) Remedy(ctx context.Context, err error) string {
	if do := remedy(err); do != "" {
		return do
	}
	return l.mismatch(ctx)
}

// looking is how long a look at the server may take.
const looking = 2 * time.Second

// mismatch looks whether the server speaks TLS where the address says that it
// does not, or the other way round. No secret is sent.
func (l *Link) mismatch(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }() // nothing is written that matters
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	switch {
	case !l.secure && speaksTLS(ctx, c):
		return "it speaks TLS at this port: write rediss:// in redis.url"
	case l.secure && speaksPlain(c):
		return certificate(tls.RecordHeaderError{})
	}
	return ""
}

// speaksTLS reports that the other side answers a greeting of TLS in kind.
func speaksTLS(ctx context.Context, c net.Conn) bool {
	// Nothing is sent or believed: whether it is TLS is all that is asked.
	err := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx) //nolint:gosec // see above
	op, ok := errors.AsType[*net.OpError](err)
	return err == nil || ok && op.Op == "remote error"
}

// speaksPlain reports that the other side answers PING without TLS.
func speaksPlain(c net.Conn) bool {
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	first, err := bufio.NewReader(c).ReadByte()
	return err == nil && (first == '+' || first == '-')
}
