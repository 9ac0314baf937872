// Package redistest gives tests a real Redis with its Query Engine: the one
// that FOOTNOTE_TEST_REDIS names (host:port, or a redis:// address), else one
// that it starts from the files that "make redis-get" puts into the cache.
//
// Its one idea: what needs the server never passes without it. Without the
// files a test is skipped with the words that say what to do, and fails where
// CI is set.
//
// Tests leave their keys on a server that is named: give them one of their own.
//
// A server is started once for a test binary, on a free port over a directory
// of its own, and ended by Main. Tests share it and keep apart by key
// prefixes. It speaks just enough of the protocol to know that the server is
// ready; clients are the caller's.
package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Environment names the server to use instead of starting one.
const Environment = "FOOTNOTE_TEST_REDIS"

// Patience is how long a server may take to load its data.
const Patience = 2 * time.Minute

// Server is a running server.
type Server struct {
	Address string // host:port
	Dir     string // its data

	args  []string
	cmd   *exec.Cmd
	ended chan struct{} // closed when its process has
	out   bytes.Buffer
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests and ends the server that they shared. For TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	if s := shared.server; s != nil && s.cmd != nil {
		s.Kill()
		os.RemoveAll(s.Dir)
	}
	return code
}

// URL is the address of the shared server, for a client.
func URL(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = share() })
	if shared.err != nil {
		missing(t, shared.err)
	}
	return "redis://" + shared.server.Address
}

// share starts the server that the tests of this binary share.
func share() (*Server, error) {
	if address := strings.TrimPrefix(os.Getenv(Environment), "redis://"); address != "" {
		return &Server{Address: address}, await(address, time.Now().Add(Patience))
	}
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	return Start(dir)
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("this test needs a Redis with its Query Engine: %v", err)
	}
	t.Skipf("this test needs a Redis with its Query Engine: %v", err)
}

// New starts a server for one test, over a directory that it may start again
// after Kill.
func New(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	s, err := Start(dir, args...)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(s.Kill)
	return s
}

// WithoutEngine as the first of Start's arguments leaves the Query Engine out.
const WithoutEngine = "without engine"

// Start starts a server over dir on a free port and waits until it is ready.
// args follow those of make redis and win over them; a --loadmodule among them
// stands instead of the Query Engine with its settings.
func Start(dir string, args ...string) (s *Server, err error) {
	bin, err := files()
	if err != nil {
		return nil, err
	}
	var with []string
	switch {
	case len(args) > 0 && args[0] == WithoutEngine:
		args = args[1:]
	case !slices.Contains(args, "--loadmodule"):
		with = []string{"--loadmodule", filepath.Join(bin, "redisearch.so"), "ON_TIMEOUT", "FAIL", "FORK_GC_CLEAN_THRESHOLD", "0"}
	}
	// A port that was free may be another's by now.
	for range 5 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s = &Server{Address: "127.0.0.1:" + port, Dir: dir}
		s.args = slices.Concat([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"}, with, args)
		if err = s.start(filepath.Join(bin, "redis-server")); err == nil || !taken(err) {
			return s, err
		}
	}
	return s, err
}

// taken reports that a server could not have its port.
func taken(err error) bool { return strings.Contains(err.Error(), "Address already in use") }

func (s *Server) start(program string) error { return s.startUntil(program, ready) }

func (s *Server) startUntil(program string, enough func(answer string) bool, more ...string) error {
	s.cmd = exec.Command(program, append(slices.Clip(s.args), more...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.SysProcAttr = dieWithParent()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := s.cmd, make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its log says why
	}()
	err := awaitUntil(s.Address, time.Now().Add(Patience), ended, func(answer string) bool { return enough(answer) && s.own() })
	if err != nil {
		s.Kill()
		return fmt.Errorf("%w; its log:\n%s", err, s.out.String())
	}
	return nil
}

// Restart kills the server and starts it again, under the same address.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	if err := s.start(s.cmd.Path); err != nil {
		t.Fatal(err)
	}
}

// RestartSlowly kills the server and starts it again, under the same address.
// It takes 0.2 ms more for each command that it loads, and answers after each
// 1,024 of them; this returns once it answers that it is loading.
func (s *Server) RestartSlowly(t testing.TB) {
	t.Helper()
	s.Kill()
	loading := false
	err := s.startUntil(s.cmd.Path, func(answer string) bool {
		loading = strings.HasPrefix(answer, "-LOADING")
		return loading || ready(answer)
	}, "--key-load-delay", "200")
	if err != nil {
		t.Fatal(err)
	}
	if !loading {
		t.Fatal("the server had so little to load that it never said so")
	}
}

// Module is the path of the cached Query Engine, for servers with other
// arguments.
func Module() (string, error) {
	bin, err := files()
	return filepath.Join(bin, "redisearch.so"), err
}

// Kill ends the server without letting it save anything. It may be called
// again.
func (s *Server) Kill() {
	if s.ended == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.ended
}

// own reports that it is this server that answers at its address.
func (s *Server) own() bool {
	said, err := s.Say("INFO server")
	return err == nil && strings.Contains(said, fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid))
}

// files finds the cache of the source tree that the test runs in.
func files() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the test runs outside of the source tree; set " + Environment)
		}
		dir = filepath.Dir(dir)
	}
	bin := filepath.Join(dir, ".cache", "redis", runtime.GOOS+"-"+runtime.GOARCH)
	for _, name := range []string{"redis-server", "redisearch.so"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", fmt.Errorf("%s is not in the cache: run make redis-get, or make redis and set %s", name, Environment)
		}
	}
	return bin, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// ready is told from LOADING, which the server answers while it reads its data.
func ready(answer string) bool { return answer == "+PONG" }

// await pings until the server answers that it is ready.
func await(address string, deadline time.Time) error {
	return awaitUntil(address, deadline, nil, ready)
}

func awaitUntil(address string, deadline time.Time, ended <-chan struct{}, enough func(answer string) bool) error {
	last := ""
	for time.Now().Before(deadline) {
		select {
		case <-ended:
			return fmt.Errorf("the server at %s ended", address)
		default:
		}
		answer, err := ping(address)
		if err == nil && enough(answer) {
			return nil
		}
		if last = answer; err != nil {
			last = err.Error()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the server at %s is not ready: %s", address, last)
}

func ping(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}
