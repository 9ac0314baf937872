package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"footnote/adapters/slack/slacktest"
	"footnote/bot"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// onRedis is a Redis with the demo documents, behind a proxy.
type onRedis struct {
	*testing.T
	server *redistest.Server
	proxy  *redistest.Proxy
	link   *redislink.Link // past the proxy
}

func newOnRedis(t *testing.T) *onRedis {
	t.Helper()
	r := &onRedis{T: t, server: redistest.New(t, t.TempDir())}
	r.proxy = redistest.NewProxy(t, r.server.Address)
	r.connect()
	got := footnote("", "ingest", filepath.Join(work, "docs"), "--data", copyOf(t), "--redis", r.proxy.URL())
	if got.code != 0 {
		t.Fatalf("ingest ended with %d: %s%s", got.code, got.out, got.err)
	}
	return r
}

func (r *onRedis) connect() {
	var err error
	if r.link, err = redislink.Open(redislink.Options{URL: "redis://" + r.server.Address}); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = r.link.Close() })
}

// do sends a command past the proxy.
func (r *onRedis) do(args ...any) {
	r.Helper()
	if err := r.link.Do(context.Background(), args...).Err(); err != nil {
		r.Fatalf("%v: %v", args, err)
	}
}

// configuration is one of a replica, with a data directory of its own.
func (r *onRedis) configuration(more string) string {
	r.Helper()
	dir := r.TempDir()
	file := filepath.Join(dir, "footnote.yaml")
	write(r.T, file, fmt.Sprintf("data: %s\nredis: {url: '%s'}\nweb: {listen: '%s', public_url: 'https://footnote.example.org'}\nlog: {level: info}\n%s",
		filepath.Join(dir, "data"), r.proxy.URL(), freeAddress(r.T), more))
	return file
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// unavailable counts how often people were told that there is no search.
func unavailable(s *slacktest.Server) (n int) {
	all := s.Messages("C0GENERAL")
	for _, u := range []string{"U0ADA", "U0BOB"} {
		all = append(all, s.Ephemerals(u)...)
	}
	for _, m := range all {
		if strings.Contains(m.Text, bot.UnavailableText) {
			n++
		}
	}
	return n
}

// ready waits until /readyz gives the status.
func (s *served) ready(want int) {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for range time.Tick(50 * time.Millisecond) {
		if status, body := s.get("/readyz"); status == want {
			return
		} else if time.Now().After(deadline) {
			s.t.Fatalf("/readyz stays at %d:\n%s\n%s", status, body, s.log())
		}
	}
}

// asks asks a question on Slack and waits for the answer.
func asks(t *testing.T, s *slacktest.Server, user string) slacktest.Message {
	t.Helper()
	m := s.Mention(user, "C0GENERAL", rotate)
	patient(t, "an answer in the thread", s.Wait, func() bool { return slackAnswers(s, m) == 1 })
	return m
}

// A Redis that is away at the start is waited for; one that is away later costs
// each person who asks a word, once, and loses nobody's question.
func TestRedis_Unwell(t *testing.T) {
	t.Parallel()
	r, s := newOnRedis(t), newSlack(t)
	r.proxy.Down()
	file := r.configuration("slack: {mode: socket, api_url: '" + s.APIURL() + "'}\n")
	p := &served{t: t, cmd: program(t, "", "serve", "--config", file), said: make(chan struct{}), ended: make(chan error, 1)}
	p.cmd.Env = append(p.cmd.Env, slackEnv(s)...)
	p.address = regexp.MustCompile(`listen: '([^']+)'`).FindStringSubmatch(read(t, file))[1]
	p.begin()
	p.line("trying again until it answers")
	p.ready(http.StatusServiceUnavailable)
	r.proxy.Heal()
	p.line("connected by ")
	p.ready(http.StatusOK)
	asks(t, s, "U0ADA")

	told := 0
	says := func(words string) (func(), func()) {
		other := saying(t, words)
		return func() { r.proxy.Point(other) }, func() { r.proxy.Point(r.server.Address) }
	}
	loading, loaded := says("LOADING Redis is loading the dataset in memory")
	moved, back := says("MOVED 3999 127.0.0.1:1")
	for _, fault := range []struct {
		name       string
		begin, end func()
	}{
		{"down", r.proxy.Down, r.proxy.Heal},
		{"silent", r.proxy.Stall, r.proxy.Heal},
		{"resets connections", r.proxy.Reset, r.proxy.Heal},
		{"cuts answers", func() { r.proxy.Cut(20) }, r.proxy.Heal},
		{"too slow", func() { r.proxy.Delay(5000) }, r.proxy.Heal},
		{"memory full", func() { r.do("CONFIG", "SET", "maxmemory", "1") }, func() { r.do("CONFIG", "SET", "maxmemory", "0") }},
		{"a replica", func() { r.do("REPLICAOF", "127.0.0.1", "1") }, func() { r.do("REPLICAOF", "NO", "ONE") }},
		{"loading", loading, loaded},
		{"moved", moved, back},
	} {
		fault.begin()
		at := time.Now()
		m := s.Mention("U0ADA", "C0GENERAL", leave)
		told++
		patient(t, fault.name+": the word that search is unavailable", s.Wait, func() bool { return unavailable(s) >= told })
		t.Logf("%s: told after %v", fault.name, time.Since(at).Round(time.Millisecond))
		p.ready(http.StatusServiceUnavailable)
		if status, _ := p.get("/healthz"); status != http.StatusOK {
			t.Errorf("%s: /healthz gives %d", fault.name, status)
		}
		fault.end()
		mended := time.Now()
		p.ready(http.StatusOK)
		t.Logf("%s: ready %v after it was mended", fault.name, time.Since(mended).Round(time.Millisecond))
		asks(t, s, "U0BOB")
		if n := unavailable(s); n != told {
			t.Errorf("%s: told %d times in all, want %d", fault.name, n, told)
			told = n
		}
		if n := slackAnswers(s, m); n != 0 {
			t.Errorf("%s: told and answered", fault.name)
		}
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
	for _, broken := range s.CheckInvariants() {
		t.Error(broken)
	}
}

// Another server with the same data takes over, as after a failover, or the same
// one comes back and must load its data first: service goes on.
func TestRedis_Restart(t *testing.T) {
	t.Parallel()
	r, s := newOnRedis(t), newSlack(t)
	p := serve(t, r.configuration("slack: {mode: socket, api_url: '"+s.APIURL()+"'}\n"), slackEnv(s)...)
	first := asks(t, s, "U0ADA")
	var asked []slacktest.Message
	for i := range 3 {
		// A question is under way while the server is killed.
		m := s.Mention("U0BOB", "C0GENERAL", leave)
		asked = append(asked, m)
		r.server.Kill()
		r.server = redistest.New(t, r.server.Dir)
		r.proxy.Point(r.server.Address)
		p.ready(http.StatusOK)
		asks(t, s, "U0ADA")
		t.Logf("restart %d: the question in hand got %d answers, told unavailable: %d", i+1, slackAnswers(s, m), unavailable(s))
	}
	answered := 0
	patient(t, "a word on each question", s.Wait, func() bool {
		answered = 0
		for _, m := range asked {
			answered += slackAnswers(s, m)
		}
		return answered+unavailable(s) >= len(asked)
	})
	if n := answered + unavailable(s); n != len(asked) {
		t.Errorf("%d words on %d questions", n, len(asked))
	}
	if n := slackAnswers(s, first); n != 1 {
		t.Errorf("%d answers to the first question", n)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Replicas answer each question once, whichever of them gets it, and each of
// them does what a button under another's answer asks for.
func TestRedis_ReplicasOnSlack(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.App.Events = append([]string{"message.channels"}, slacktest.DefaultEvents...)
	w.App.Scopes = append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)
	r, s := newOnRedis(t), slacktest.New(t, w, slacktest.WithRules(slacktest.Rules{Lost: true}))
	settings := fmt.Sprintf("slack: {mode: socket, api_url: '%s', default_follow_ups: true}\nsources: [{folder: '%s'}]\n", s.APIURL(), filepath.Join(work, "docs"))
	a := serve(t, r.configuration(settings), slackEnv(s)...)
	a.line("sources: 1, kept up with")
	b := serve(t, r.configuration(settings), slackEnv(s)...)
	b.line("sources: kept up with by another replica, ")

	var asked []slacktest.Message
	for i := range 6 {
		asked = append(asked, s.Mention([]string{"U0ADA", "U0BOB"}[i%2], "C0GENERAL", rotate))
		patient(t, "an answer", s.Wait, func() bool { return slackAnswers(s, asked[i]) > 0 })
	}
	taken := func(p *served) bool {
		_, metrics := p.get("/metrics")
		return regexp.MustCompile(`footnote_deliveries_received_total\{platform="slack"\} [1-9]`).MatchString(metrics)
	}
	if !taken(a) || !taken(b) {
		t.Error("one of the replicas got no event: the test shows nothing")
	}
	for _, m := range asked {
		if n := slackAnswers(s, m); n != 1 {
			t.Errorf("%d answers to one question", n)
		}
	}
	// Whoever did not answer gets one of two presses, and one of two follow-ups.
	for i, m := range asked[:2] {
		for _, reply := range s.Thread(m.Channel, m.TS) {
			if strings.Contains(string(reply.Blocks), "source_1") {
				s.Click("U0BOB", reply, "source_1")
				patient(t, "the passage", s.Wait, func() bool { return len(s.Views("U0BOB")) > 0 })
				s.CloseView("U0BOB")
			}
		}
		s.ReplyInThread([]string{"U0ADA", "U0BOB"}[i], "C0GENERAL", m.TS, leave)
		patient(t, "the answer to a follow-up", s.Wait, func() bool { return slackAnswers(s, m) == 2 })
	}
	// A generation that one process promotes is the one that all answer from.
	got := footnote("", "ingest", "--rebuild", filepath.Join(work, "docs"), "--data", copyOf(t), "--redis", r.proxy.URL())
	if got.code != 0 {
		t.Fatalf("ingest ended with %d: %s%s", got.code, got.out, got.err)
	}
	for _, p := range []*served{a, b} {
		p.holds("/readyz", "index ok")
	}
	for range 2 {
		asks(t, s, "U0ADA")
	}
	// The other replica takes the sources over.
	if err := a.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, a.log())
	}
	b.line("sources: 1, kept up with")
	asks(t, s, "U0BOB")
	if err := b.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, b.log())
	}
	for _, broken := range s.CheckInvariants() {
		if !strings.Contains(broken, asked[0].TS) && !strings.Contains(broken, asked[1].TS) { // two answers each are meant
			t.Error(broken)
		}
	}
}

// Discord sends each interaction to every session: one of the replicas answers
// it, and none shows an error.
func TestRedis_ReplicasOnDiscord(t *testing.T) {
	t.Parallel()
	r := newOnRedis(t)
	s, ada, channel := newDiscord(t)
	file := func() string { return r.configuration("discord: {api_url: '" + s.URL() + "'}\n") }
	env := "FOOTNOTE_DISCORD_TOKEN=" + s.App().Token
	a := serve(t, file(), env)
	patient(t, "the commands", s.Wait, func() bool { return len(s.Commands("")) > 0 })
	b := serve(t, file(), env)
	const questions = 6
	for i := range questions {
		s.Command(ada, channel, "ask", map[string]any{"question": rotate})
		patient(t, "an answer", s.Wait, func() bool { return discordAnswers(s, channel) > i })
	}
	for _, p := range []*served{a, b} {
		p.holds("/readyz", "discord ok")
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
		}
		if strings.Contains(p.log(), "level=ERROR") {
			t.Errorf("the log has an error:\n%s", p.log())
		}
	}
	if n := len(s.FromBot(channel)); n != questions {
		t.Errorf("%d messages to %d questions", n, questions)
	}
	for _, broken := range s.CheckInvariants() {
		t.Error(broken)
	}
}

// seldom are commands of what the test does not come to: deleting generations and
// what is past its age, documents and workers that take long, replicas, and what
// goes wrong.
var seldom = []string{"unlink", "scan", "ft.dropindex", "ft.config|get", "zcount", "zscore", "zrange", "hsetnx", "discard", "unsubscribe", "auth", "pexpire", "xclaim", "xgroup|delconsumer", "wait"}

// The program works with the rights of deploy/redis/users.acl, uses each command
// that they allow, and can do nothing else.
func TestRedis_LeastPrivilege(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules := read(t, filepath.Join(tree, "deploy/redis/users.acl"))
	file := filepath.Join(dir, "users.acl")
	write(t, file, strings.Replace(rules, ">CHANGE-ME", ">canary", 1)+"user default on nopass ~* &* +@all\n")
	server := redistest.New(t, dir, "--aclfile", file)
	r := &onRedis{T: t, server: server, proxy: redistest.NewProxy(t, server.Address)}
	r.connect()
	secrets := []string{"FOOTNOTE_REDIS_USERNAME=footnote", "FOOTNOTE_REDIS_PASSWORD=canary"}
	data := copyOf(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := program(t, data, append(args, "--redis", r.proxy.URL())...)
		cmd.Env = append(cmd.Env, secrets...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("footnote %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	docs := filepath.Join(work, "docs")
	run("ingest", docs)
	first := strings.Fields(run("index", "list"))[1]
	run("ingest", "--rebuild", docs)
	run("index", "promote", first)
	run("index", "verify")
	run("ask", "--as", "ada", rotate)
	run("doctor")
	run("deliveries")

	s := newSlack(t)
	p := serve(t, r.configuration(fmt.Sprintf("slack: {mode: socket, api_url: '%s'}\nsources: [{folder: '%s'}]\n", s.APIURL(), docs)), append(slackEnv(s), secrets...)...)
	p.line("sources: 1, kept up with")
	m := asks(t, s, "U0ADA")
	viewed(t, s, p, m)
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
	if strings.Contains(p.log(), "NOPERM") {
		t.Errorf("it lacks a right:\n%s", p.log())
	}

	used, err := r.link.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\+([a-z.|_]+)`).FindAllStringSubmatch(rules, -1) {
		if !strings.Contains(strings.ToLower(used), "cmdstat_"+name[1]+":") && !slices.Contains(seldom, name[1]) {
			t.Errorf("the rules allow %s, which nothing needs", name[1])
		}
	}
	u, err := redislink.Open(redislink.Options{URL: "redis://" + r.server.Address, Username: "footnote", Password: "canary"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for _, command := range [][]any{
		{"CONFIG", "SET", "maxmemory", "1"}, {"FLUSHALL"}, {"KEYS", "*"}, {"SHUTDOWN"}, {"ACL", "LIST"}, {"MONITOR"},
		{"SET", "other", "x"}, {"GET", "other:key"}, {"HGETALL", "footnoteless"}, {"PUBLISH", "elsewhere", "x"},
	} {
		if err := u.Do(context.Background(), command...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%v gives %v, want NOPERM", command, err)
		}
	}
	if t.Failed() {
		t.Logf("%s", used)
	}
}
