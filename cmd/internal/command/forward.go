package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
)

// While footnote serve holds the data directory, other commands run inside it:
// they send their command line to a socket that it listens on, and print what
// comes back.
//
//	POST /command   a request as JSON; a frame a line comes back, the last one has Code
//
// The socket lies in the data directory, or, where that path is too long for
// one, in a directory of its own; the file serve.addr names it.
//
// SECURITY: both directories can be entered by their owner alone, who could
// read the data directory as well. Secrets are not sent.

// request is a command line with what it depends on.
type request struct {
	Args    []string `json:"args"`
	Dir     string   `json:"dir"`
	Config  string   `json:"config"` // file, "" none
	Data    string   `json:"data"`
	Redis   string   `json:"redis,omitempty"` // address, as --redis said it
	Environ []string `json:"environ"`
}

// frame is a part of the output, or the end.
type frame struct {
	Out  []byte `json:"out,omitempty"`
	Err  []byte `json:"err,omitempty"`
	Code *int   `json:"code,omitempty"`
}

// forwarded are the commands that may run inside the server: those that read
// nothing from standard input and end by themselves.
var forwarded = []string{"ask", "docs", "explain", "index", "ingest", "search", "sla", "sync"}

// errServerOnly says that only the server knows.
var errServerOnly = errors.New("no footnote serve runs on this data directory")

const (
	addressFile = "serve.addr"
	longestPath = 100 // bytes of a socket's path; the least limit of all systems is 104
)

// forward runs the command line inside the server. It reports false if there
// is none, or the command is not one for it.
func (p *program) forward(ctx context.Context, args []string) (code int, ok bool) {
	c, err := p.config()
	if err != nil || !forwardable(args) {
		return 0, false
	}
	address, err := os.ReadFile(filepath.Join(c.Data, addressFile))
	if err != nil {
		return 0, false
	}
	body, err := json.Marshal(request{Args: args, Dir: p.workingDir(), Config: c.File, Data: c.Data, Redis: p.redis, Environ: config.Public(p.environ)})
	if err != nil {
		return 0, false
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimSpace(string(address)))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://footnote/command", strings.NewReader(string(body)))
	if err != nil {
		return 0, false
	}
	res, err := client.Do(r)
	if err != nil {
		return 0, false
	}
	defer func() { _ = res.Body.Close() }()
	return p.replay(ctx, res.Body), true
}

// forwardable reports that the command may run inside the server.
func forwardable(args []string) bool {
	c, rest, err := new(program).root().Find(args)
	if err != nil {
		return false
	}
	words := strings.Fields(c.CommandPath())
	batch := slices.ContainsFunc(rest, func(a string) bool { return strings.HasPrefix(a, "--batch") })
	return len(words) > 1 && slices.Contains(forwarded, words[1]) && !batch
}

// replay prints what comes back and returns the exit code.
func (p *program) replay(ctx context.Context, from io.Reader) int {
	d := json.NewDecoder(from)
	for {
		var f frame
		if err := d.Decode(&f); err != nil {
			if ctx.Err() == nil {
				_, _ = fmt.Fprintln(p.Err, "footnote: the server ended before it had answered")
			}
			return ExitFailure
		}
		_, errOut := p.Out.Write(f.Out)
		_, errErr := p.Err.Write(f.Err)
		switch {
		case errors.Join(errOut, errErr) != nil:
			return ExitDone // nobody reads it
		case f.Code != nil:
			return *f.Code
		}
	}
}

// operator is the server's side.
type operator struct {
	s       *assemble.Service
	l       net.Listener
	log     *slog.Logger
	address string // file that names the socket
	own     string // directory that was made for it, "" none
}

// listenOperator takes the socket. Only the holder of the data directory calls
// it, so that a socket that is there is of a process that has ended.
func listenOperator(ctx context.Context, data string, s *assemble.Service, log *slog.Logger) (o *operator, err error) {
	o = &operator{s: s, log: log, address: filepath.Join(data, addressFile)}
	socket := filepath.Join(data, "serve.sock")
	if len(socket) > longestPath {
		if o.own, err = os.MkdirTemp("", "footnote-"); err != nil {
			return nil, err
		}
		socket = filepath.Join(o.own, "serve.sock")
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, o.close())
	}
	var lc net.ListenConfig
	if o.l, err = lc.Listen(ctx, "unix", socket); err == nil {
		if err = os.Chmod(socket, 0o600); err == nil {
			err = os.WriteFile(o.address, []byte(socket+"\n"), 0o600)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for commands: %w", err), o.close())
	}
	return o, nil
}

func (o *operator) close() error {
	var err error
	if o.l != nil {
		if err = o.l.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
	}
	if e := os.Remove(o.address); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if o.own != "" {
		err = errors.Join(err, os.RemoveAll(o.own))
	}
	return err
}

// run serves commands until ctx is done; it ends those that run then.
func (o *operator) run(ctx context.Context) error {
	server := &http.Server{
		Handler: o, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(o.l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving commands: %w", err)
	}
	return nil
}

// ServeHTTP runs one command.
func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if r.Method != http.MethodPost || r.URL.Path != "/command" || json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&req) != nil {
		http.Error(w, "not a command", http.StatusBadRequest)
		return
	}
	f := &framer{w: json.NewEncoder(w), flush: http.NewResponseController(w).Flush}
	p := &program{
		Streams: Streams{In: strings.NewReader(""), Out: f.stream(false), Err: f.stream(true)},
		environ: req.Environ, lookup: lookupIn(req.Environ), served: o.s, request: req,
	}
	code := ExitUsage
	if forwardable(req.Args) {
		code = p.main(r.Context(), req.Args)
	}
	_ = f.send(frame{Code: &code}) // whoever asked has gone
}

// framer sends frames, one at a time.
type framer struct {
	mu    sync.Mutex
	w     *json.Encoder
	flush func() error
}

func (f *framer) send(x frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.w.Encode(x), f.flush())
}

// stream is one of the two outputs.
func (f *framer) stream(isErr bool) io.Writer {
	return writer(func(b []byte) error {
		if isErr {
			return f.send(frame{Err: b})
		}
		return f.send(frame{Out: b})
	})
}

type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, err
	}
	return len(b), nil
}
