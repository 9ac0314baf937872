package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Documents that do not fit into the memory of the Redis fail with a reason, and
// questions are answered all the same. With more memory they are taken in.
func TestRedis_DocumentsFillMemory(t *testing.T) {
	t.Parallel()
	r, s := newOnRedis(t), newSlack(t)
	docs := filepath.Join(t.TempDir(), "docs")
	write(t, filepath.Join(docs, ".access.yaml"), "access: [everyone]\n")
	write(t, filepath.Join(docs, "small.md"), "# Small\n\nIt fits.\n")
	file := r.configuration(fmt.Sprintf("slack: {mode: socket, api_url: '%s'}\nsources: [{folder: '%s'}]\n", s.APIURL(), docs))
	p := serve(t, file, slackEnv(s)...)
	p.line("sources: 1, kept up with")
	listed := func(line string) func() bool {
		return func() bool {
			out, _ := program(t, "", "docs", "list", "--config", file).CombinedOutput()
			return regexp.MustCompile(line).Match(out)
		}
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waiting for %s:\n%s", what, p.log())
			}
		}
	}
	await("the first document", listed(`published .*small\.md`))
	info, err := r.link.InfoMap(context.Background(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	if _, err := fmt.Sscan(info["Memory"]["used_memory"], &used); err != nil {
		t.Fatal(err)
	}
	r.do("CONFIG", "SET", "maxmemory", used+3<<20) // 4 MB are kept; what is used goes up and down
	write(t, filepath.Join(docs, "large.md"), "# Large\n\nThe lighthouse is 40 metres high.\n")
	await("a failure with its reason", listed(`failed .*large\.md .*the memory of Redis is full`))
	asks(t, s, "U0ADA")
	if status, body := p.get("/readyz"); status != http.StatusOK || !strings.Contains(body, "memory degraded") {
		t.Errorf("/readyz gives %d %s", status, body)
	}
	r.do("CONFIG", "SET", "maxmemory", 0)
	write(t, filepath.Join(docs, "large.md"), "# Large\n\nThe lighthouse is 41 metres high.\n") // else it is tried again in 30 s
	await("the document", listed(`published .*large\.md`))
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
}
