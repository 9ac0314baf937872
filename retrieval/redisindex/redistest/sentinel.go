package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Replicated is a master, a replica that follows it, both with the Query
// Engine, and Sentinels that make the replica the master when that is gone.
type Replicated struct {
	Master, Replica *Server
	Sentinels       []*Server
}

// MasterName is what the Sentinels call the master.
const MasterName = "footnote"

// NewReplicated starts them for one test and waits until the replica follows
// and the Sentinels know of each other. args are the servers'.
func NewReplicated(t testing.TB, args ...string) *Replicated {
	t.Helper()
	args = append(args, "--repl-diskless-sync-delay", "0")
	r := &Replicated{Master: New(t, t.TempDir(), args...)}
	_, port, _ := net.SplitHostPort(r.Master.Address)
	r.Replica = New(t, t.TempDir(), append(args, "--replicaof", "127.0.0.1 "+port)...)
	for range 3 {
		r.Sentinels = append(r.Sentinels, NewSentinel(t, r.Master.Address))
	}
	Await(t, func() string {
		for _, s := range r.Sentinels {
			said, err := s.Say("SENTINEL CKQUORUM " + MasterName)
			if err != nil || !strings.HasPrefix(said, "+OK 3 usable") {
				return "a Sentinel says " + said
			}
			// Without a replica that it knows of it has nothing to put in the
			// master's place.
			if said, err := s.Say("SENTINEL MASTER " + MasterName); err != nil || !strings.Contains(said, "num-slaves\r\n$1\r\n1") {
				return "a Sentinel knows no replica"
			}
		}
		said, _ := r.Replica.Say("INFO replication")
		if !strings.Contains(said, "master_link_status:up") {
			return "the replica does not follow"
		}
		return ""
	})
	return r
}

// URL asks the Sentinels.
func (r *Replicated) URL() string {
	url := "redis://" + r.Sentinels[0].Address + "?master_name=" + MasterName
	for _, s := range r.Sentinels[1:] {
		url += "&addr=" + s.Address
	}
	return url
}

// Await waits until nothing is amiss any more.
func Await(t testing.TB, amiss func() string) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		what := amiss()
		switch {
		case what == "":
			return
		case time.Now().After(deadline):
			t.Fatalf("it stays so: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// NewSentinel starts a Sentinel that looks after the master at the address
// (host:port). Two of them must agree that it is gone.
func NewSentinel(t testing.TB, master string) *Server {
	t.Helper()
	bin, err := files()
	if err != nil {
		missing(t, err)
	}
	for {
		s, err := startSentinel(t.TempDir(), filepath.Join(bin, "redis-server"), master)
		if err == nil {
			t.Cleanup(s.Kill)
			return s
		}
		if !taken(err) {
			t.Fatal(err)
		}
	}
}

func startSentinel(dir, program, master string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Address: "127.0.0.1:" + port, Dir: dir}
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor %s %s 2\nsentinel down-after-milliseconds %[2]s 600\nsentinel failover-timeout %[2]s 6000\n",
		port, MasterName, strings.Replace(master, ":", " ", 1))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.args = []string{conf, "--sentinel"}
	return s, s.start(program)
}

// Say sends a command to the server, its words apart by blanks, and gives the
// answer as it comes over the wire.
func (s *Server) Say(command string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	return answer(bufio.NewReader(c))
}

// answer reads one answer, with all that is in it.
func answer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch {
	case line[0] == '$' && n >= 0:
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return line + string(text), err
	case line[0] == '*':
		for range n {
			part, err := answer(r)
			if err != nil {
				return "", err
			}
			line += part
		}
	}
	return line, nil
}

// CutOff ends the replica's following, so that it has nothing of what comes after.
// The Sentinels mend that after some seconds, unless they make it the master.
func (r *Replicated) CutOff(t testing.TB) {
	t.Helper()
	tell(t, r.Replica, "REPLICAOF 127.0.0.1 1")
	Await(t, func() string {
		said, err := r.Master.Say("INFO replication")
		if err != nil || !strings.Contains(said, "connected_slaves:0") {
			return said
		}
		return ""
	})
}
