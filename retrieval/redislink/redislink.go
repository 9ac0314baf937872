// Package redislink connects to a Redis: one server, or the master that
// Sentinels name.
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
//
// Names in certificates are those of the address; what Sentinels name, a master
// or another Sentinel, needs one for the name or number that they give.
//
// Failover: replicas follow with index and alias (FT.CREATE, FT.ALIASUPDATE and
// FT.DROPINDEX replicate). Commands fail as unavailable from the master's end
// until the Sentinels name another, and go on by themselves then. Replication is
// asynchronous: what a replica had not yet when it took over is gone, though
// acknowledged, always the latest writes and never one out of the middle; also
// where a failover is asked for, since the old master takes writes for another
// moment. What must not be lost waits for a replica (WAIT).
//
// A cluster is refused. Measured with Redis 8.2.3 and the engine 2.10.5: an index
// is on the shard of its name's slot, and when that slot moves to another shard
// its keys do, and it does not: searches say that there is no such index. An
// alias and its index must share a slot. Engines that ask all shards (Redis 8)
// do not search within transactions, on which a search relies to see one state.
// One shard would hold the index anyway: a master with replicas does as much.
//
// It knows no keys and keeps nothing.
package redislink

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
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

	SentinelUsername string // of the Sentinels, where they ask for one
	SentinelPassword string

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
	address string                 // host:port of the server, or of the first Sentinel
	secure  bool                   // by TLS
	named   *redis.FailoverOptions // nil: no Sentinels
	room    room
}

// Open makes a link. It sends nothing yet: a server that is down is found by
// the first command. The error is one of the options.
func Open(o Options) (*Link, error) {
	o.Deadline = cmp.Or(o.Deadline, 1500*time.Millisecond)
	o.Trip = cmp.Or(o.Trip, 5)
	o.Probe = cmp.Or(o.Probe, 500*time.Millisecond)
	silent()
	u, err := o.parse()
	if err != nil {
		return nil, err
	}
	l := &Link{where: u.Scheme + "://" + u.Host, secure: u.Scheme == "rediss"}
	l.address = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379"))
	if err := l.connect(o, u); err != nil {
		return nil, err
	}
	l.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      o.Probe,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= o.Trip },
		IsSuccessful: func(err error) bool { return !Unavailable(err) },
	})
	l.AddHook(hook{l.breaker, o.Deadline})
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

// errCluster says why a cluster is refused.
var errCluster = errors.New("a cluster cannot hold the index: it lies on one shard, and does not move with its slot; " +
	"use one server, or a master with replicas and Sentinels (?master_name=NAME)")

// parse reads the address.
func (o Options) parse() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss":
		return nil, errors.New("the address of Redis must be redis://HOST:PORT, or rediss:// for TLS")
	case u.Query().Has("cluster"):
		return nil, errCluster
	}
	return u, nil
}

// connect makes the client that the address asks for.
func (l *Link) connect(o Options, u *url.URL) error {
	secure, err := o.tls(u)
	if err != nil {
		return err
	}
	if !u.Query().Has("master_name") {
		l.UniversalClient, err = o.single(u.String(), secure)
		return err
	}
	if l.named, err = o.sentinel(u.String(), secure); err != nil {
		return err
	}
	l.where += " (master " + l.named.MasterName + ")"
	l.UniversalClient = redis.NewFailoverClient(l.named)
	return nil
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

func (o Options) sentinel(at string, secure *tls.Config) (*redis.FailoverOptions, error) {
	c, err := redis.ParseFailoverURL(at)
	if err != nil {
		return nil, wrong(err)
	}
	c.Username, c.Password, c.TLSConfig = cmp.Or(o.Username, c.Username), cmp.Or(o.Password, c.Password), secure
	c.SentinelUsername, c.SentinelPassword = cmp.Or(o.SentinelUsername, c.SentinelUsername), cmp.Or(o.SentinelPassword, c.SentinelPassword)
	c.Protocol, c.ContextTimeoutEnabled = 3, true
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.MaxRetries = o.Deadline, o.Deadline, o.Deadline, 2
	c.DialerRetries = 1
	return c, nil
}

// wrong drops what a parser says of the address: it may quote the password.
func wrong(error) error {
	return errors.New("the address of Redis has a part that is not understood: redis://HOST:PORT/0, and after ? only master_name and addr")
}

// hook puts the breaker and the deadline around every command.
type hook struct {
	breaker  *gobreaker.CircuitBreaker[struct{}]
	deadline time.Duration
}

// DialHook tells what Sentinels say from what the server does: their "there is
// no such master" must not look like "there is no such key".
func (h hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		switch {
		case errors.Is(err, redis.Nil):
			err = errNoMaster
		case err != nil && strings.Contains(err.Error(), "all sentinels"):
			err = sentinelError{err}
		}
		return c, err
	}
}

var errNoMaster = errors.New("the Sentinels know no master of this name")

// sentinelError is what the Sentinels say, or why none can be asked.
type sentinelError struct{ error }

func (e sentinelError) Unwrap() error { return e.error }

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
	if _, alert := refusedTLS(err); alert {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Failed says what was being done when the client gave an error, what to do if
// that is known, and, by retrieval.ErrUnavailable, whether trying again can help.
// nil stays nil.
func Failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if do := remedy(err); do != "" {
		err = fmt.Errorf("%w: %s", err, do)
	}
	if Unavailable(err) {
		return fmt.Errorf("%s: %w: %w", doing, retrieval.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
