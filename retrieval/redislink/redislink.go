// Package redislink connects to a Redis: one server, a master that Sentinels
// name, or a cluster.
//
// Its one idea: a Redis that is unwell costs nobody more than a moment. Every
// command has a deadline with its repetitions, and after a few failures in a
// row nothing is sent any more but a probe now and then (a circuit breaker),
// so that what waits is told at once, and a server that comes back is not
// stormed.
//
// Addresses:
//
//	redis://HOST:PORT/0                      one server
//	rediss://HOST:PORT/0                     the same by TLS
//	redis://HOST:26379?master_name=NAME      Sentinels; more of them by addr=HOST:PORT
//	redis://HOST:6379?cluster=true           a cluster; more seeds by addr=HOST:PORT
//
// It knows no keys and keeps nothing.
package redislink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/sony/gobreaker/v2"

	"footnote/retrieval"
)

// Options say where the Redis is; zero values mean the defaults.
type Options struct {
	URL      string // see the package comment
	Username string // instead of the one in URL
	Password string // likewise
	CAFile   string // certificates that the server's must come from; "" the system's
	CertFile string // our certificate, and its key, where the server asks for one
	KeyFile  string

	Deadline time.Duration // of one command with its repetitions: 1.5 s
	Trip     int           // failures in a row after which nothing is sent: 5
	Probe    time.Duration // after which the first command is let through again: 0.5 s
}

// ErrOpen says that nothing was sent, since the last commands all failed.
var ErrOpen error = openError{}

// openError is a fault of the network to those who ask errors for their kind.
type openError struct{}

func (openError) Error() string   { return "Redis does not answer" }
func (openError) Timeout() bool   { return false }
func (openError) Temporary() bool { return true }

// Link is a client with its breaker. It is safe for concurrent use.
type Link struct {
	redis.UniversalClient

	breaker *gobreaker.CircuitBreaker[struct{}]
	where   string
}

// Open makes a link. It sends nothing yet: a server that is down is found by
// the first command. The error is one of the options.
func Open(o Options) (*Link, error) {
	o.Deadline = cmp.Or(o.Deadline, 1500*time.Millisecond)
	o.Trip = cmp.Or(o.Trip, 5)
	o.Probe = cmp.Or(o.Probe, 500*time.Millisecond)
	silent()
	client, where, err := o.client()
	if err != nil {
		return nil, err
	}
	l := &Link{UniversalClient: client, where: where}
	l.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      o.Probe,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= o.Trip },
		IsSuccessful: func(err error) bool { return !Unavailable(err) },
	})
	client.AddHook(hook{l.breaker, o.Deadline})
	return l, nil
}

// silent keeps the client from writing to standard error: what it finds comes
// back as errors, and its words may hold what must not be logged.
var silent = sync.OnceFunc(func() { redis.SetLogger(noLog{}) })

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

// Where is the address without its secrets, for people.
func (l *Link) Where() string { return l.where }

// Open reports that nothing is sent now.
func (l *Link) Open() bool { return l.breaker.State() == gobreaker.StateOpen }

// client makes the client that the address asks for.
func (o Options) client() (redis.UniversalClient, string, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, "", errors.New("the address of Redis must be redis://HOST:PORT, or rediss:// for TLS")
	}
	secure, err := o.tls(u)
	if err != nil {
		return nil, "", err
	}
	q := u.Query()
	cluster := q.Get("cluster") == "true"
	q.Del("cluster")
	u.RawQuery = q.Encode()
	where := u.Scheme + "://" + u.Host
	switch {
	case cluster && q.Has("master_name"):
		return nil, "", errors.New("the address of Redis names a master and says cluster=true: it can be one of them")
	case cluster:
		c, err := o.cluster(u.String(), secure)
		return c, where + " (cluster)", err
	case q.Has("master_name"):
		c, err := o.sentinel(u.String(), secure)
		return c, where + " (master " + q.Get("master_name") + ")", err
	}
	c, err := o.single(u.String(), secure)
	return c, where, err
}

// quiet turns off a protocol of hosted servers that nothing here needs.
var quiet = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

func (o Options) single(at string, secure *tls.Config) (redis.UniversalClient, error) {
	c, err := redis.ParseURL(at)
	if err != nil {
		return nil, wrong(err)
	}
	c.Username, c.Password, c.TLSConfig = cmp.Or(o.Username, c.Username), cmp.Or(o.Password, c.Password), secure
	c.Protocol, c.ContextTimeoutEnabled, c.MaintNotificationsConfig = 3, true, quiet
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.MaxRetries = o.Deadline, o.Deadline, o.Deadline, 2
	c.DialerRetries = 1
	return redis.NewClient(c), nil
}

func (o Options) sentinel(at string, secure *tls.Config) (redis.UniversalClient, error) {
	c, err := redis.ParseFailoverURL(at)
	if err != nil {
		return nil, wrong(err)
	}
	c.Username, c.Password, c.TLSConfig = cmp.Or(o.Username, c.Username), cmp.Or(o.Password, c.Password), secure
	c.Protocol, c.ContextTimeoutEnabled = 3, true
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.MaxRetries = o.Deadline, o.Deadline, o.Deadline, 2
	c.DialerRetries = 1
	return redis.NewFailoverClient(c), nil
}

func (o Options) cluster(at string, secure *tls.Config) (redis.UniversalClient, error) {
	c, err := redis.ParseClusterURL(at)
	if err != nil {
		return nil, wrong(err)
	}
	c.Username, c.Password, c.TLSConfig = cmp.Or(o.Username, c.Username), cmp.Or(o.Password, c.Password), secure
	c.Protocol, c.ContextTimeoutEnabled, c.MaintNotificationsConfig = 3, true, quiet
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.MaxRedirects = o.Deadline, o.Deadline, o.Deadline, 3
	return redis.NewClusterClient(c), nil
}

// wrong drops what a parser says of the address: it may quote the password.
func wrong(error) error {
	return errors.New("the address of Redis has a part that is not understood: redis://HOST:PORT/0, and after ? only master_name, cluster and addr")
}

// tls is the TLS configuration that the address and the files ask for, nil for
// none.
func (o Options) tls(u *url.URL) (*tls.Config, error) {
	if u.Scheme != "rediss" {
		if o.CAFile+o.CertFile+o.KeyFile != "" {
			return nil, errors.New("certificates are set for Redis, but its address begins with redis://: write rediss://")
		}
		return nil, nil
	}
	c := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
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

// hook puts the breaker and the deadline around every command.
type hook struct {
	breaker  *gobreaker.CircuitBreaker[struct{}]
	deadline time.Duration
}

// DialHook changes nothing.
func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is for single commands.
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := h.through(ctx, blocks(cmd), func(ctx context.Context) error { return next(ctx, cmd) })
		if errors.Is(err, ErrOpen) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook is for pipelines and transactions.
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := h.through(ctx, 0, func(ctx context.Context) error { return because(next(ctx, cmds), cmds) })
		if errors.Is(err, ErrOpen) {
			for _, c := range cmds {
				c.SetErr(err)
			}
		}
		return err
	}
}

// because is why the server discarded a transaction: what it said of one of its
// commands.
func because(err error, cmds []redis.Cmder) error {
	if err == nil || !strings.HasPrefix(err.Error(), "EXECABORT") {
		return err
	}
	for _, c := range cmds {
		if e := c.Err(); e != nil && e.Error() != err.Error() {
			return e
		}
	}
	return err
}

// inside marks the context of what the breaker let through: a command on a new
// connection sends others, which greet the server.
type inside struct{}

// through sends something, if the breaker lets it, under a deadline.
func (h hook) through(ctx context.Context, blocks time.Duration, send func(context.Context) error) error {
	if ctx.Value(inside{}) != nil {
		return send(ctx)
	}
	ctx = context.WithValue(ctx, inside{}, true)
	ctx, cancel := context.WithTimeout(ctx, h.deadline+blocks)
	defer cancel()
	_, err := h.breaker.Execute(func() (struct{}, error) { return struct{}{}, send(ctx) })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrOpen
	}
	return err
}

// blocks is how long a command waits in the server of its own will.
func blocks(cmd redis.Cmder) time.Duration {
	args := cmd.Args()
	for i, a := range args[:max(0, len(args)-1)] {
		if s, ok := a.(string); ok && strings.EqualFold(s, "block") {
			if ms, ok := args[i+1].(int64); ok {
				return time.Duration(ms) * time.Millisecond
			}
		}
	}
	return 0
}

// passing are the beginnings of answers with which a server that is well says
// that it cannot do it now.
var passing = []string{
	"LOADING", "READONLY", "OOM", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF", "UNBLOCKED",
	"MOVED ", "ASK ", "ERR max number of clients", "Timeout limit was reached", "SEARCH_TIMEOUT",
}

// Unavailable reports that the server did not answer, or that it cannot do now
// what it was asked: trying again later can help. A caller that gave up is no
// such error.
func Unavailable(err error) bool {
	var answer redis.Error
	switch {
	case err == nil || errors.Is(err, redis.Nil) || errors.Is(err, redis.TxFailedErr) || errors.Is(err, redis.ErrClosed) || errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, ErrOpen) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted):
		return true
	case errors.As(err, &answer):
		for _, p := range passing {
			if strings.HasPrefix(answer.Error(), p) {
				return true
			}
		}
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Failed says what was being done when the client gave an error, and, by
// retrieval.ErrUnavailable, whether trying again can help. nil stays nil.
func Failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case Unavailable(err):
		return fmt.Errorf("%s: %w: %w", doing, retrieval.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
