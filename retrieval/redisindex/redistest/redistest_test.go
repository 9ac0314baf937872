package redistest

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A server whose port was taken meanwhile says so at once, also where another
// server answers there.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	other := New(t, t.TempDir())
	_, port, err := net.SplitHostPort(other.Address)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := files()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: other.Address, args: []string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir()}}
	begun := time.Now()
	if err := s.start(filepath.Join(bin, "redis-server")); err == nil || !taken(err) || time.Since(begun) > Patience/2 {
		t.Errorf("it gives %v", err)
	}
	s.Kill()
	if said, err := other.Say("PING"); err != nil || said != "+PONG\r\n" {
		t.Errorf("the other says %q, %v", said, err)
	}
	other.Restart(t)
	if said, err := other.Say("PING"); err != nil || !strings.HasPrefix(said, "+PONG") {
		t.Errorf("started again it says %q, %v", said, err)
	}
}
