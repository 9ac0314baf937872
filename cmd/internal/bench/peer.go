package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// peer is a rival in a process of its own. It says "ready" once, then for
// each line it gets it does its round and answers with the median seconds of
// one unit.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startPeer(name string, args ...string) (*peer, error) {
	p := &peer{cmd: exec.Command(name, args...)}
	p.cmd.Stderr = os.Stderr
	// One thread, as in the comparison; and no CPU kernel that the surroundings prefer.
	p.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := p.line(); err != nil || line != "ready" {
		return nil, errors.Join(fmt.Errorf("%s said %q, not ready", name, line), err, p.close())
	}
	return p, nil
}

func (p *peer) line() (string, error) {
	if !p.out.Scan() {
		return "", errors.Join(errors.New("the peer has ended"), p.out.Err())
	}
	return strings.TrimSpace(p.out.Text()), nil
}

func (p *peer) round() (time.Duration, error) {
	if _, err := fmt.Fprintln(p.in, "go"); err != nil {
		return 0, err
	}
	line, err := p.line()
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(line, 64)
	return time.Duration(seconds * float64(time.Second)), err
}

func (p *peer) close() error {
	_ = p.in.Close() // its end of input is the signal to go
	return p.cmd.Wait()
}
