package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"footnote/retrieval/redisindex/redistest"
)

const (
	pushSecret = "0123456789abcdef0123456789abcdef"
	wikiSecret = "fedcba9876543210fedcba9876543210"
)

// pusher is footnote serve with the push API and nothing else, begun without
// any document.
type pusher struct {
	*served
	file string
}

func startPush(t *testing.T, file string, env ...string) *pusher {
	t.Helper()
	return &pusher{start(t, file, append(env, "FOOTNOTE_PUSH_TOKEN="+pushSecret, "FOOTNOTE_PUSH_TOKEN_WIKI="+wikiSecret)...), file}
}

func pushConfiguration(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "people.yaml"), "people:\n  ada: {groups: [hr]}\n  bob: {}\n")
	file := filepath.Join(dir, "footnote.yaml")
	write(t, file, "data: state\npeople: people.yaml\nweb: {listen: '127.0.0.1:0'}\nlog: {level: debug}\npush: {tokens: {wiki: {prefix: wiki/, may_grant: 'group:hr'}}}\n")
	return file
}

// send makes a request and returns status and body.
func (p *pusher) send(method, path, secret, access, body string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	if access != "" {
		req.Header.Set("Footnote-Access", access)
		req.Header.Set("Footnote-Link", "https://wiki.example.org/leave")
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	out, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.StatusCode, string(out)
}

func (p *pusher) wants(what string, want int, status int, body string) {
	p.t.Helper()
	if status != want {
		p.t.Fatalf("%s: %d, want %d:\n%s\n%s", what, status, want, body, p.log())
	}
}

// settled asks for the state until it is the one wanted.
func (p *pusher) settled(id, state string) map[string]any {
	p.t.Helper()
	late := time.Now().Add(2 * time.Minute)
	for {
		var d map[string]any
		_, body := p.send("GET", "/v1/documents/"+id, pushSecret, "", "")
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			p.t.Fatal(err)
		}
		if d["state"] == state {
			return d
		}
		if time.Now().After(late) {
			p.t.Fatalf("%s never was %s:\n%s\n%s", id, state, body, p.log())
		}
	}
}

// eventually waits for something that ingestion does.
func (p *pusher) eventually(what string, is func() bool) {
	p.t.Helper()
	for late := time.Now().Add(2 * time.Minute); !is(); {
		if time.Now().After(late) {
			p.t.Fatalf("it never came: %s\n%s", what, p.log())
		}
	}
}

// ask asks inside the server and says whether the answer holds the text.
func (p *pusher) ask(as, text string) (code int, out string) {
	p.t.Helper()
	cmd := program(p.t, "", "ask", text, "--as", as, "--json", "--config", p.file)
	raw, err := cmd.Output()
	return exitCode(err), string(raw)
}

const (
	leaveDocument = "# Parental leave\n\nParents may take eighteen weeks of parental leave in the first two years.\n"
	parental      = "How many weeks of parental leave may parents take?"
)

func TestServe_PushedDocuments(t *testing.T) {
	t.Parallel()
	file := pushConfiguration(t)
	p := startPush(t, file)
	if code, out := p.ask("ada", parental); code != 5 {
		t.Errorf("before any document: %d %s", code, out)
	}
	status, body := p.send("PUT", "/v1/documents/wiki/leave.md", wikiSecret, "group:hr", leaveDocument)
	p.wants("put", 202, status, body)
	if d := p.settled("wiki/leave.md", "published"); d["chunks"] != 1.0 || d["serving"] != d["revision"] {
		t.Errorf("published: %v", d)
	}
	sees := func(when string, ada, bob bool) {
		t.Helper()
		for as, may := range map[string]bool{"ada": ada, "bob": bob} {
			code, out := p.ask(as, parental)
			if may != (code == 0 && strings.Contains(out, "eighteen weeks") && strings.Contains(out, `"path":"push:/wiki/leave.md","link":"https://wiki.example.org/leave"`)) || !may && (code != 6 || strings.Contains(out, "eighteen")) {
				t.Errorf("%s: %s: %d %s", when, as, code, out)
			}
		}
	}
	sees("for ada's group", true, false)
	status, body = p.send("PUT", "/v1/documents/wiki/leave.md", wikiSecret, "everyone", leaveDocument)
	p.wants("a token that may not give this", 403, status, body)
	status, body = p.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "everyone", leaveDocument)
	p.wants("put for all", 202, status, body)
	p.settled("wiki/leave.md", "published")
	sees("for all", true, true)
	status, body = p.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "group:hr", leaveDocument)
	p.wants("narrower", 202, status, body)
	sees("narrower, at once", true, false)
	p.settled("wiki/leave.md", "published")
	status, body = p.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "group:hr", leaveDocument)
	p.wants("the same again", 200, status, body)

	_ = p.stop(syscall.SIGKILL)
	p = startPush(t, file)
	sees("after the power was gone", true, false)
	status, body = p.send("DELETE", "/v1/documents/wiki/leave.md", wikiSecret, "", "")
	p.wants("delete", 204, status, body)
	sees("deleted, at once", false, false)
	status, body = p.send("GET", "/v1/documents/wiki/leave.md", wikiSecret, "", "")
	if status == 200 {
		t.Errorf("get of what was deleted: %d %s", status, body)
	}
	if err := p.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
	for _, word := range []string{"wiki/", "eighteen", "Parental", "group:hr", pushSecret, wikiSecret} {
		if strings.Contains(p.log(), word) {
			t.Errorf("the log holds %q:\n%s", word, p.log())
		}
	}
}

// A document that fails says why, and docs lists and removes pushed documents,
// in the server and without it.
func TestServe_PushedDocumentsAndTheOperator(t *testing.T) {
	t.Parallel()
	file := pushConfiguration(t)
	p := startPush(t, file)
	for id, body := range map[string]string{"a.md": leaveDocument, "b.md": "Text of b.\n", "empty.html": "<html></html>", "refused.md": "---\naccess: [everyone]\n---\nText.\n"} {
		status, said := p.send("PUT", "/v1/documents/"+id, pushSecret, "group:hr", body)
		p.wants("put "+id, 202, status, said)
	}
	p.settled("a.md", "published")
	p.settled("b.md", "published")
	if d := p.settled("empty.html", "failed"); d["retryable"] != false || !strings.Contains(fmt.Sprint(d["reason"]), "no text") {
		t.Errorf("failed: %v", d)
	}
	if d := p.settled("refused.md", "refused"); !strings.Contains(fmt.Sprint(d["reason"]), "everyone") {
		t.Errorf("refused: %v", d)
	}
	command := func(args ...string) string {
		t.Helper()
		out, err := program(t, "", append(args, "--config", file)...).CombinedOutput()
		if err != nil {
			t.Fatalf("footnote %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := command("docs"); strings.Count(out, "push:/") != 4 {
		t.Errorf("docs:\n%s", out)
	}
	out, err := program(t, "", "docs", "retry", "push:/empty.html", "--config", file).CombinedOutput()
	if code := exitCode(err); code != 3 || !strings.Contains(string(out), "failed   push:/empty.html: no text") {
		t.Errorf("docs retry of a pushed document: %d\n%s", code, out)
	}
	out, err = program(t, "", "sync", "--config", file).CombinedOutput()
	if code := exitCode(err); code != 3 || !strings.Contains(string(out), "push:") {
		t.Errorf("sync without sources: %d\n%s", code, out)
	}
	status, said := p.send("PUT", "/v1/documents/b.md", pushSecret, "group:it", "Text of b.\n")
	p.wants("b for others", 202, status, said)
	p.settled("b.md", "published")
	if out := command("sla"); !regexp.MustCompile(`access +1 changes`).MatchString(out) {
		t.Errorf("sla after one change of access:\n%s", out)
	}
	var files strings.Builder
	z := zip.NewWriter(&files)
	f, err := z.Create("pay.md")
	if err == nil {
		_, err = f.Write([]byte("# Pay\n\nPay comes on the twenty-fifth.\n"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	status, said = p.send("PUT", "/v1/documents/files.zip", pushSecret, "group:hr", files.String())
	p.wants("put an archive", 202, status, said)
	p.settled("files.zip", "published")
	p.eventually("its member is published", func() bool {
		_, said = p.send("GET", "/v1/documents/files.zip", pushSecret, "", "")
		return strings.Contains(said, `"chunks":1}]`)
	})
	if !strings.Contains(said, `"members":[{"path":"pay.md","state":"published","retryable":false,"chunks":1}]`) {
		t.Errorf("an archive:\n%s", said)
	}
	if code, out := p.ask("ada", "On which day does pay come?"); code != 0 || !strings.Contains(out, `"push:/files.zip/pay.md"`) {
		t.Errorf("asked for what the archive holds: %d %s", code, out)
	}
	status, said = p.send("DELETE", "/v1/documents/files.zip", pushSecret, "", "")
	p.wants("delete the archive", 204, status, said)
	if code, out := p.ask("ada", "On which day does pay come?"); strings.Contains(out, "twenty-fifth") {
		t.Errorf("asked for what the deleted archive held: %d %s", code, out)
	}
	command("docs", "rm", "push:/a.md")
	if status, body := p.send("GET", "/v1/documents/a.md", pushSecret, "", ""); status != 410 {
		t.Errorf("get of what the operator removed: %d %s", status, body)
	}
	if err := p.stop(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	command("docs", "rm", "push:/b.md")
	p = startPush(t, file)
	for _, id := range []string{"a.md", "b.md"} {
		if status, body := p.send("GET", "/v1/documents/"+id, pushSecret, "", ""); status != 410 {
			t.Errorf("get of %s after the restart: %d %s", id, status, body)
		}
	}
	p.eventually("docs lists the two that are left", func() bool { return strings.Count(command("docs"), "push:/") == 2 })
}

// restricted is a Redis whose user has the rights of deploy/redis/users.acl alone,
// and the environment with that user.
func restricted(t *testing.T) (*onRedis, []string) {
	t.Helper()
	dir := t.TempDir()
	rules := filepath.Join(dir, "users.acl")
	write(t, rules, strings.Replace(read(t, filepath.Join(tree, "deploy/redis/users.acl")), ">CHANGE-ME", ">canary", 1)+"user default on nopass ~* &* +@all\n")
	server := redistest.New(t, dir, "--aclfile", rules)
	r := &onRedis{T: t, server: server, proxy: redistest.NewProxy(t, server.Address)}
	r.connect()
	return r, []string{"FOOTNOTE_REDIS_USERNAME=footnote", "FOOTNOTE_REDIS_PASSWORD=canary"}
}

// working starts a worker.
func (r *onRedis) working(env []string) *served {
	p := &served{t: r.T, cmd: program(r.T, "", "worker", "--config", r.configuration("")), said: make(chan struct{}), ended: make(chan error, 1)}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.begin()
	return p
}

// On a Redis a document is pushed to one replica, taken in by a worker, asked for,
// changed and taken back at another, and what was answered with 2xx survives the end
// of the replica, and of Redis.
func TestRedis_PushedDocuments(t *testing.T) {
	t.Parallel()
	r, env := restricted(t)
	people := filepath.Join(t.TempDir(), "people.yaml")
	write(t, people, "people:\n  ada: {groups: [hr]}\n  bob: {}\n")
	file := func() string {
		return r.configuration("people: " + people + "\ningest: {workers: 0}\npush: {tokens: {wiki: {prefix: wiki/, may_grant: 'group:hr'}}}\n")
	}
	a, b := startPush(t, file(), env...), startPush(t, file(), env...)
	worker := r.working(env)
	sees := func(when string, at *pusher, ada, bob bool) {
		t.Helper()
		for as, may := range map[string]bool{"ada": ada, "bob": bob} {
			code, out := at.ask(as, parental)
			if may != (code == 0 && strings.Contains(out, "eighteen weeks")) || !may && strings.Contains(out, "eighteen") {
				t.Errorf("%s: %s: %d %s", when, as, code, out)
			}
		}
	}
	status, body := a.send("PUT", "/v1/documents/wiki/leave.md", wikiSecret, "group:hr", leaveDocument)
	a.wants("put at a", 202, status, body)
	status, body = b.send("GET", "/v1/documents/wiki/leave.md", wikiSecret, "", "")
	b.wants("get at b", 200, status, body)
	b.settled("wiki/leave.md", "published")
	sees("published", a, true, false)
	sees("published", b, true, false)
	status, body = b.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "everyone", leaveDocument)
	b.wants("wider at b", 202, status, body)
	a.settled("wiki/leave.md", "published")
	a.eventually("it is open to all", func() bool { code, _ := a.ask("bob", parental); return code == 0 })
	status, body = b.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "group:hr", leaveDocument)
	b.wants("narrower at b", 202, status, body)
	sees("narrower, at once", a, true, false)
	status, body = a.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "group:hr", leaveDocument)
	a.wants("the same again at a", 200, status, body)

	for i := range 5 {
		status, body = a.send("PUT", fmt.Sprintf("/v1/documents/more/%d.md", i), pushSecret, "everyone", fmt.Sprintf("# Room %d\n\nRoom %d has %d chairs.\n", i, i, 20+i))
		a.wants("put at a", 202, status, body)
	}
	_ = a.stop(syscall.SIGKILL)
	for i := range 5 {
		b.settled(fmt.Sprintf("more/%d.md", i), "published")
	}
	if status, body = b.send("GET", "/v1/documents?prefix=more/", pushSecret, "", ""); strings.Count(body, `"id":"more/`) != 5 {
		t.Errorf("b lists %d %s", status, body)
	}
	status, body = b.send("PUT", "/v1/documents/last.md", pushSecret, "everyone", "# Gate\n\nThe gate opens at five.\n")
	b.wants("put before Redis ends", 202, status, body)
	r.server.Restart(t)
	b.ready(http.StatusOK)
	b.settled("last.md", "published")

	status, body = b.send("DELETE", "/v1/documents/wiki/leave.md", wikiSecret, "", "")
	b.wants("delete at b", 204, status, body)
	sees("deleted, at once", b, false, false)
	a = startPush(t, a.file, env...)
	sees("deleted at b, at a", a, false, false)
	if status, body = a.send("GET", "/v1/documents/wiki/leave.md", wikiSecret, "", ""); status != 410 {
		t.Errorf("get at a of what b deleted: %d %s", status, body)
	}
	out, err := program(t, "", "docs", "rm", "push:/last.md", "--config", a.file).CombinedOutput()
	if err != nil {
		t.Errorf("docs rm: %v\n%s", err, out)
	}
	if status, body = b.send("GET", "/v1/documents/last.md", pushSecret, "", ""); status != 410 {
		t.Errorf("get at b of what was removed at a: %d %s", status, body)
	}
	for _, p := range []*served{a.served, b.served, worker} {
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("told to stop it ended with %v", err)
		}
		for _, word := range []string{"NOPERM", "eighteen", "group:hr", pushSecret, wikiSecret} {
			if strings.Contains(p.log(), word) {
				t.Errorf("the log holds %q:\n%s", word, p.log())
			}
		}
	}
}

// What was pushed to a data directory moves to the Redis with its replica.
func TestRedis_PushedDocumentsMove(t *testing.T) {
	t.Parallel()
	before := pushConfiguration(t)
	p := startPush(t, before)
	status, body := p.send("PUT", "/v1/documents/wiki/leave.md", pushSecret, "group:hr", leaveDocument)
	p.wants("put", 202, status, body)
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := &onRedis{T: t, server: redistest.New(t, t.TempDir())}
	after := filepath.Join(filepath.Dir(before), "redis.yaml")
	write(t, after, read(t, before)+"redis: {url: 'redis://"+r.server.Address+"'}\n")
	p = startPush(t, after)
	p.settled("wiki/leave.md", "published")
	if code, out := p.ask("ada", parental); code != 0 || !strings.Contains(out, "eighteen weeks") {
		t.Errorf("asked after the move: %d %s", code, out)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(before), "state/inbox/push/*.doc")); err != nil || len(left) != 0 {
		t.Errorf("left in the data directory: %v, %v", left, err)
	}
}

var readmeBlock = regexp.MustCompile(`(?s)## Other systems\n.*?\n    (api=.*?)\n\n`)

// The commands of the README do what it says.
func TestReadme_OtherSystems(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(tree, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := readmeBlock.FindSubmatch(readme)
	if found == nil {
		t.Fatal("README.md has no commands under Other systems")
	}
	p := startPush(t, pushConfiguration(t))
	script := strings.ReplaceAll(string(found[1]), "127.0.0.1:8080", p.address)
	script = strings.ReplaceAll(script, "curl ", `curl -sS -w '%{http_code}\n' `)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "leave.md"), leaveDocument)
	write(t, filepath.Join(dir, "page.html"), "<h1>Leave</h1><p>Ask your lead.</p>")
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "FOOTNOTE_PUSH_TOKEN="+pushSecret)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	got := strings.Fields(regexp.MustCompile(`(?m)^\{.*\}$`).ReplaceAllString(string(out), ""))
	if want := "202 202 200 200 204"; strings.Join(got, " ") != want {
		t.Errorf("the commands gave %v, want %s:\n%s", got, want, out)
	}
	for _, want := range []string{`"title":"Parental leave"`, `"link":"https://wiki.example.org/123"`, `"access":["ada@example.org","group:hr"]`, `{"documents":[{"id":"wiki/123"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the answers lack %s:\n%s", want, out)
		}
	}
}
