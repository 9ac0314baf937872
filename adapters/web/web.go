// Package web is the one HTTP server of the program: health, readiness and
// metrics, the mounting points of the chat platforms, and the source viewer.
//
// Its one idea: everything that every request needs is decided in one place,
// before any handler: the method, the size of the body, the time it may take,
// and what a panic becomes.
//
//	GET  /healthz                the process lives
//	GET  /readyz                 200 if every check passes, else 503; names what fails, not why;
//	                             "degraded" is said beside that and fails nothing
//	GET  /metrics                Prometheus text; holds no text, names or ids of people
//	POST /slack/events           /slack/interactions /slack/commands /discord/interactions
//	GET  /source/{answer}/{n}    a cited passage in its surroundings, for the person named in the link
//	     /v1/                    documents of other systems, see push
//
// What is configured and cannot be served yet gives 503 with Retry-After.
//
// Bodies are read whole, at most 1 MiB, before a handler is called, so that a
// handler verifies the very bytes that were signed. Verifying is the handlers'
// part: this package knows no platform. The API below /v1/ alone decides about
// methods and bodies itself, for its bodies are documents.
//
// The viewer's links are signed (HMAC-SHA-256, key in viewer.key of the data
// directory), short-lived, and bound to the person to whom they were shown;
// whoever holds one until it expires is that person to the viewer. Access is
// decided anew at each request. Absent, forbidden, forged and expired give
// one and the same page.
//
// It terminates no TLS and limits no rates: that is a proxy's part, which
// should also keep /metrics and /readyz to itself.
package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// MaxBody is the greatest body of a request, in bytes.
const MaxBody = 1 << 20

// Check is one condition of readiness. Probe returns nil if it holds; it may
// not block past its context.
type Check struct {
	Name string
	// Advisory says that one that fails is told and is no reason for not being
	// ready. Whoever probes knows why and logs it.
	Advisory bool
	Probe    func(ctx context.Context) error
}

// Mounts are the handlers of the platforms; nil ones answer 404.
type Mounts struct {
	SlackEvents         http.Handler
	SlackInteractions   http.Handler
	SlackCommands       http.Handler
	DiscordInteractions http.Handler
}

// Options of a server.
type Options struct {
	Listen string // host:port
	Mounts Mounts
	Ready  []Check
	// Metrics is what /metrics shows; nil: 404.
	Metrics *Metrics
	// Viewer serves /source; nil: 404.
	Viewer *Viewer
	// API serves /v1/; nil: 404.
	API http.Handler
	// Starting are paths (as routes have them) that will be served as soon as
	// what is behind them is there. Until then they answer 503, which
	// platforms and proxies try again, and not 404, which may be believed.
	Starting []string
	// Grace is how long requests may take to finish at a shutdown: 10 s.
	Grace time.Duration
	Log   *slog.Logger // nil: none
}

// SourcePath is the pattern of the viewer's pages.
const SourcePath = "/source/{answer}/{n}"

// Server is the HTTP server.
type Server struct {
	o       Options
	handler http.Handler
}

// New makes a server.
func New(o Options) *Server {
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o}
	s.handler = s.routes()
	return s
}

// route is one path of the server.
type route struct {
	pattern, name string
	post          bool
	handler       http.Handler
}

func (s *Server) routes() http.Handler {
	m := s.o.Mounts
	mux := http.NewServeMux()
	for _, r := range []route{
		{"/healthz", "healthz", false, http.HandlerFunc(healthz)},
		{"/readyz", "readyz", false, http.HandlerFunc(s.readyz)},
		{"/metrics", "metrics", false, orNil(s.o.Metrics)},
		{SourcePath, "source", false, orNil(s.o.Viewer)},
		{"/slack/events", "slack_events", true, m.SlackEvents},
		{"/slack/interactions", "slack_interactions", true, m.SlackInteractions},
		{"/slack/commands", "slack_commands", true, m.SlackCommands},
		{"/discord/interactions", "discord_interactions", true, m.DiscordInteractions},
	} {
		if r.handler == nil && slices.Contains(s.o.Starting, r.pattern) {
			r.handler = http.HandlerFunc(starting)
		}
		if r.handler != nil {
			mux.Handle(r.pattern, s.wrap(r))
		}
	}
	mux.Handle("/", s.wrap(route{name: "other", handler: http.HandlerFunc(notFound)}))
	if s.o.API == nil {
		return mux
	}
	// Not by the mux, which would redirect ids that it finds untidy.
	api := s.counted("documents", s.o.API)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.EscapedPath(), "/v1/") {
			api.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// orNil keeps a nil pointer from becoming a handler that is not nil.
func orNil[T interface {
	comparable
	http.Handler
}](h T) http.Handler {
	var none T
	if h == none {
		return nil
	}
	return h
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run listens and serves until ctx is done, then lets requests finish for the
// grace period.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s (web.listen): %w", s.o.Listen, err)
	}
	return s.Serve(ctx, l)
}

// Serve is Run on a listener, which it closes.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Grace)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			return server.Close() // what is still open is cut off
		}
		return nil
	})
	return g.Wait()
}

// wrap does for a handler what every request needs.
func (s *Server) wrap(r route) http.Handler {
	return s.counted(r.name, http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		if allow := r.allow(); r.name != "other" && !allows(allow, req.Method) {
			out.Header().Set("Allow", allow)
			http.Error(out, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if status := readBody(req); status != 0 {
			http.Error(out, http.StatusText(status), status)
			return
		}
		r.handler.ServeHTTP(out, req)
	}))
}

// counted does what even a handler needs that decides about all else itself.
func (s *Server) counted(name string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		out := &recorder{ResponseWriter: w}
		defer s.account(name, out, time.Now())
		defer s.recovered(name, out)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(out, req)
	})
}

func (r route) allow() string {
	if r.post {
		return http.MethodPost
	}
	return "GET, HEAD"
}

func allows(allow, method string) bool {
	return method == allow || allow != http.MethodPost && (method == http.MethodGet || method == http.MethodHead)
}

// readBody puts the whole body in the place of the stream. It returns the
// status to refuse with, 0 if there is none.
func readBody(r *http.Request) int {
	if r.Body == nil || r.Body == http.NoBody {
		return 0
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case len(b) > MaxBody:
		return http.StatusRequestEntityTooLarge
	case err != nil:
		return http.StatusBadRequest
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return 0
}

// recorder remembers the status of a response.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// recovered turns a panic into a 500 with a reference. The value of the panic
// may hold text of a request: only its type is logged.
func (s *Server) recovered(name string, out *recorder) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http knows the very value, not one that wraps it
		panic(v)
	}
	ref := rand.Text()[:10]
	s.o.Log.Error("an HTTP handler panicked", "reference", ref, "route", name, "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
	if out.status == 0 {
		http.Error(out, "Something went wrong. (Reference: "+ref+")", http.StatusInternalServerError)
	}
}

func (s *Server) account(name string, out *recorder, start time.Time) {
	if s.o.Metrics != nil {
		s.o.Metrics.request(name, strconv.Itoa(max(out.status, http.StatusOK)), time.Since(start))
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "not found", http.StatusNotFound)
}

// starting answers for what is not there yet.
func starting(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, "starting: try again", http.StatusServiceUnavailable)
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// probing is how long the checks may take, all of them: who asks waits no longer
// than 5 s in most cases.
const probing = 3 * time.Second

// readyz runs the checks. Why one fails is for the log: here everybody reads.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), probing)
	defer cancel()
	var body bytes.Buffer
	status := http.StatusOK
	for _, c := range s.o.Ready {
		said := "ok"
		err := c.Probe(ctx)
		switch {
		case err != nil && c.Advisory:
			said = "degraded"
		case err != nil:
			said, status = "failing", http.StatusServiceUnavailable
			s.o.Log.Warn("not ready", "check", c.Name, "error", err)
		}
		fmt.Fprintf(&body, "%s %s\n", c.Name, said)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w)
}
