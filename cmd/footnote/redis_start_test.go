package main

import (
	"bufio"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"footnote/retrieval/redisindex/redistest"
)

// saying is a server that answers every command with the same words, as one that
// loads its data does.
func saying(t *testing.T, words string) (address string) {
	t.Helper()
	return counting(t, words, new(atomic.Int64))
}

// counting is such a server that counts the commands.
func counting(t *testing.T, words string, commands *atomic.Int64) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					if strings.HasPrefix(in.Text(), "*") { // a command begins
						commands.Add(1)
						if _, err := c.Write([]byte("-" + words + "\r\n")); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// awaiting is footnote serve, or a worker, that has nothing to connect to yet.
func awaiting(t *testing.T, file, command string, env ...string) *served {
	t.Helper()
	p := &served{t: t, cmd: program(t, "", command, "--config", file), said: make(chan struct{}), ended: make(chan error, 1)}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.address = regexp.MustCompile(`listen: '([^']+)'`).FindStringSubmatch(read(t, file))[1]
	p.begin()
	return p
}

// A Redis that is away, loads its data, or takes no writes at the start is waited
// for, with a word on each of these, by replicas and by workers beside them.
func TestRedis_Start(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	r := &onRedis{T: t, server: server, proxy: redistest.NewProxy(t, server.Address)}
	r.connect()
	r.proxy.Down()
	file := r.configuration("sources: [{folder: '" + filepath.Join(work, "docs") + "'}]\n")
	secrets := []string{"FOOTNOTE_REDIS_USERNAME=default", "FOOTNOTE_REDIS_PASSWORD=canary"}
	r.do("CONFIG", "SET", "requirepass", "canary")
	s, w, stopped := awaiting(t, file, "serve", secrets...), awaiting(t, file, "worker", secrets...), awaiting(t, file, "worker", secrets...)
	stopped.line("trying again until it answers")
	if err := stopped.stop(syscall.SIGTERM); err != nil || strings.Contains(stopped.log(), "Redis answers") {
		t.Errorf("told to stop while it waited it ended with %v:\n%s", err, stopped.log())
	}
	for _, stage := range []struct {
		begin func()
		says  string
	}{
		{func() {}, "connection refused"},
		{func() { r.proxy.Point(saying(t, "LOADING Redis is loading the dataset in memory")) }, "LOADING"},
		{func() { r.do("REPLICAOF", "127.0.0.1", "1"); r.proxy.Point(server.Address) }, "READONLY"},
		{func() { r.do("REPLICAOF", "NO", "ONE"); r.do("CONFIG", "SET", "maxmemory", "1") }, "OOM"},
	} {
		stage.begin()
		for _, p := range []*served{s, w} {
			if line := p.line(stage.says); !strings.Contains(line, "redis://"+r.proxy.Address()+": ") || !strings.Contains(line, "trying again until it answers") {
				t.Errorf("%s: it says %q", stage.says, line)
			}
		}
		if status, body := s.get("/readyz"); status != http.StatusServiceUnavailable || body != "redis failing\n" {
			t.Errorf("%s: /readyz gives %d %s", stage.says, status, body)
		}
		if status, _ := s.get("/source/a/1"); status != http.StatusServiceUnavailable {
			t.Errorf("%s: what is served later on gives %d", stage.says, status)
		}
		if status, _ := s.get("/healthz"); status != http.StatusOK {
			t.Errorf("%s: /healthz gives %d", stage.says, status)
		}
		if !regexp.MustCompile(`msg="not ready" check=redis error=.*` + stage.says).MatchString(s.log()) {
			t.Errorf("%s: the log does not say why it is not ready:\n%s", stage.says, s.log())
		}
	}
	r.do("CONFIG", "SET", "maxmemory", "0")
	w.line("taking in documents, ")
	s.line("no chat platform is configured")
	s.ready(http.StatusOK)
	for _, p := range []*served{s, w} {
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
		}
		if strings.Contains(p.log(), "canary") {
			t.Errorf("it tells the password:\n%s", p.log())
		}
	}
}

// What waiting does not mend ends the start, with what to do.
func TestRedis_Refused(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir(), "--maxmemory-policy", "allkeys-lru")
	r := &onRedis{T: t, server: server}
	r.connect()
	r.do("CONFIG", "SET", "requirepass", "sesame")
	bare := redistest.New(t, t.TempDir(), redistest.WithoutEngine)
	for _, tt := range []struct {
		name, address string
		env           []string
		want          string
	}{
		{"no password", server.Address, nil, "NOAUTH"},
		{"wrong password", server.Address, []string{"FOOTNOTE_REDIS_PASSWORD=wrong-canary"}, "WRONGPASS"},
		{"data may be thrown away", server.Address, []string{"FOOTNOTE_REDIS_PASSWORD=sesame"}, "CONFIG SET maxmemory-policy noeviction"},
		{"no Query Engine", bare.Address, nil, "has no Query Engine: use Redis 8"},
	} {
		for _, command := range []string{"serve", "worker", "ingest", "sync", "docs retry"} {
			t.Run(tt.name+", "+command, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "footnote.yaml")
				write(t, file, "data: "+t.TempDir()+"\nredis: {url: 'redis://"+tt.address+"'}\nsources: [{folder: '"+filepath.Join(work, "docs")+"'}]\n")
				args := append(strings.Fields(command), "--config", file)
				if command == "ingest" {
					args = append(args, filepath.Join(work, "docs"))
				}
				cmd := program(t, "", args...)
				cmd.Env = append(cmd.Env, tt.env...)
				out, err := cmd.CombinedOutput()
				if exitCode(err) != 1 || !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), tt.address) {
					t.Errorf("it ended with %d:\n%s", exitCode(err), out)
				}
				if strings.Contains(string(out), "canary") || strings.Contains(string(out), "sesame") {
					t.Errorf("it tells a password:\n%s", out)
				}
			})
		}
	}
}

// Keys that a Redis threw away are missed by whoever checks the index.
func TestRedis_Evicted(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	r := &onRedis{T: t, server: server, proxy: redistest.NewProxy(t, server.Address)}
	r.connect()
	file := r.configuration("")
	run := func(args ...string) (int, string) {
		t.Helper()
		out, err := program(t, "", append(args, "--config", file)...).CombinedOutput()
		return exitCode(err), string(out)
	}
	if code, out := run("ingest", filepath.Join(work, "docs")); code != 0 {
		t.Fatalf("ingest ended with %d:\n%s", code, out)
	}
	if code, out := run("docs", "verify"); code != 0 || !strings.Contains(out, "index and catalog agree") {
		t.Errorf("nothing is missing, and docs verify ended with %d:\n%s", code, out)
	}
	if code, out := run("doctor", "--json"); code != 0 {
		t.Errorf("nothing is missing, and doctor ended with %d:\n%s", code, out)
	}
	for kind, part := range map[string]string{"chunks": "c", "passages": "p", "texts": "t"} {
		found, err := r.link.Keys(t.Context(), "footnote:{*}:"+part+":*").Result()
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", kind, found, err)
		}
		r.do("RENAME", found[0], "elsewhere")
		for _, who := range []string{"docs", "index"} {
			if code, out := run(who, "verify"); code != 1 || !strings.Contains(out, "not in order") {
				t.Errorf("some of the %s are missing, and %s verify ended with %d:\n%s", kind, who, code, out)
			}
		}
		r.do("RENAME", "elsewhere", found[0])
	}
	if code, out := run("docs", "verify"); code != 0 {
		t.Errorf("all is there again, and docs verify ended with %d:\n%s", code, out)
	}
	r.do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	r.do("CONFIG", "SET", "maxmemory", "1") // it throws away all that it can, at once
	r.do("CONFIG", "SET", "maxmemory", "0")
	r.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	if _, out := run("doctor", "--json"); !regexp.MustCompile(`"redis","state":"failure","what":"it has thrown \d+ keys away`).MatchString(out) {
		t.Errorf("doctor does not say what was thrown away:\n%s", out)
	}
}
