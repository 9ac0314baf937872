package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"footnote/adapters/discord/discordtest"
	"footnote/adapters/slack/slacktest"
)

// served is footnote serve as a process.
type served struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // of its web server

	mu    sync.Mutex
	lines []string
	said  chan struct{} // closed and replaced with each line
	ended chan error
}

// serve starts the program with nothing but a configuration file and the
// environment, and waits until it is connected.
func serve(t *testing.T, file string, env ...string) *served {
	t.Helper()
	s := start(t, file, env...)
	s.line("connected by ", "ready for deliveries")
	return s
}

// start is serve without a chat platform.
func start(t *testing.T, file string, env ...string) *served {
	t.Helper()
	s := &served{t: t, cmd: program(t, "", "serve", "--config", file), said: make(chan struct{}), ended: make(chan error, 1)}
	s.cmd.Env = append(s.cmd.Env, env...)
	s.begin()
	s.address = strings.TrimPrefix(s.line("HTTP: listening on "), "footnote: HTTP: listening on ")
	return s
}

// begin starts the process. It ends with the test.
func (s *served) begin() {
	s.t.Helper()
	out, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go s.read(out)
	s.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
}

func (s *served) read(r io.Reader) {
	for sc := bufio.NewScanner(r); sc.Scan(); {
		s.mu.Lock()
		s.lines = append(s.lines, sc.Text())
		close(s.said)
		s.said = make(chan struct{})
		s.mu.Unlock()
	}
	s.ended <- s.cmd.Wait()
}

// line waits for a line that holds one of the texts.
func (s *served) line(texts ...string) string {
	s.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		said := s.said
		for _, l := range s.lines {
			for _, text := range texts {
				if strings.Contains(l, text) {
					s.mu.Unlock()
					return l
				}
			}
		}
		s.mu.Unlock()
		select {
		case <-said:
		case err := <-s.ended:
			s.ended <- err
			s.t.Fatalf("footnote serve ended with %v before it said %q:\n%s", err, texts, s.log())
		case <-late:
			s.t.Fatalf("footnote serve never said %q:\n%s", texts, s.log())
		}
	}
}

func (s *served) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// stop sends a signal and returns how the process ended.
func (s *served) stop(sig os.Signal) error {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		s.t.Fatalf("footnote serve goes on after %v:\n%s", sig, s.log())
	}
	return nil
}

func (s *served) get(path string) (int, string) {
	s.t.Helper()
	r, err := http.Get("http://" + s.address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func (s *served) holds(path string, want ...string) {
	s.t.Helper()
	status, body := s.get(path)
	for _, w := range want {
		if status != http.StatusOK || !strings.Contains(body, w) {
			s.t.Errorf("GET %s: %d, lacks %q:\n%s", path, status, w, body)
		}
	}
	if strings.Contains(body, "rotate") || strings.Contains(body, "U0ADA") {
		s.t.Errorf("GET %s tells of a question or a person:\n%s", path, body)
	}
}

const (
	rotate = "How do I rotate the API key?"
	leave  = "How many days of paid leave do I have?"
)

// patient waits for something on a fake, with time for a busy machine.
func patient(t *testing.T, what string, wait func(context.Context, func() bool) error, until func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := wait(ctx, until); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// slackAnswers counts final answers in a thread: those with buttons.
func slackAnswers(s *slacktest.Server, m slacktest.Message) (n int) {
	for _, r := range s.Thread(m.Channel, m.TS) {
		if r.AppID != "" && bytes.Contains(r.Blocks, []byte("source_1")) {
			n++
		}
	}
	return n
}

func newSlack(t *testing.T) *slacktest.Server {
	w := slacktest.DemoWorld()
	w.App.Scopes = append(w.App.Scopes, append(slacktest.DefaultScopes, "channels:history", "groups:history")...)
	return slacktest.New(t, w, slacktest.WithRules(slacktest.Rules{Lost: true}))
}

func slackEnv(s *slacktest.Server) []string {
	a := s.App()
	return []string{"FOOTNOTE_SLACK_BOT_TOKEN=" + a.BotToken, "FOOTNOTE_SLACK_APP_TOKEN=" + a.AppToken, "FOOTNOTE_SLACK_SIGNING_SECRET=" + a.SigningSecret}
}

// configuration writes a configuration file over a copy of the shared index.
func configuration(t *testing.T, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "footnote.yaml")
	write(t, file, fmt.Sprintf("data: %s\nweb: {listen: '127.0.0.1:0', public_url: 'https://footnote.example.org'}\nlog: {level: info}\n%s", copyOf(t), more))
	return file
}

func TestServe_SlackBySocket(t *testing.T) {
	t.Parallel()
	s := newSlack(t)
	file := configuration(t, "slack: {mode: socket, api_url: '"+s.APIURL()+"'}\n")
	p := serve(t, file, slackEnv(s)...)
	if !strings.Contains(p.log(), "Slack: connected by Socket Mode as bot U0BOT of workspace T0HOME") {
		t.Errorf("it does not say as whom it is connected:\n%s", p.log())
	}
	m := s.Mention("U0ADA", "C0GENERAL", rotate)
	patient(t, "an answer in the thread", s.Wait, func() bool { return slackAnswers(s, m) == 1 })
	viewed(t, s, p, m)
	p.holds("/readyz", "index ok", "ledger ok", "slack ok")
	p.holds("/metrics", `footnote_deliveries_received_total{platform="slack"} 1`)
	p.holds("/healthz", "ok")

	// Killed with a question in hand: it is answered once, after the restart.
	acks := func() (n int) {
		for _, f := range s.Frames() {
			if f.Type == "ack" {
				n++
			}
		}
		return n
	}
	before := acks()
	second := s.Mention("U0BOB", "C0GENERAL", leave)
	patient(t, "the acknowledgement", s.Wait, func() bool { return acks() > before })
	_ = p.stop(syscall.SIGKILL)
	p = serve(t, file, slackEnv(s)...)
	patient(t, "the answer after the restart", s.Wait, func() bool { return slackAnswers(s, second) > 0 })
	if n := slackAnswers(s, second) + slackAnswers(s, m); n != 2 {
		t.Errorf("%d answers to two questions", n)
	}

	beside(t, file, s)
	if err := p.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
	for _, word := range []string{"rotate", "paid leave", "Customers", "ada@", s.App().BotToken, s.App().AppToken} {
		if strings.Contains(p.log(), word) {
			t.Errorf("the log holds %q:\n%s", word, p.log())
		}
	}
	for _, broken := range s.CheckInvariants() {
		t.Error(broken)
	}
}

var aLink = regexp.MustCompile(`"https://footnote\.example\.org(/source/[^"]+)"`)

// viewed presses a source and follows the presser's own link to the viewer.
func viewed(t *testing.T, s *slacktest.Server, p *served, m slacktest.Message) {
	t.Helper()
	for _, r := range s.Thread(m.Channel, m.TS) {
		if bytes.Contains(r.Blocks, []byte("source_1")) {
			s.Click("U0BOB", r, "source_1")
		}
	}
	patient(t, "the passage", s.Wait, func() bool { return len(s.Views("U0BOB")) > 0 })
	found := aLink.FindSubmatch(s.Views("U0BOB")[0].Blocks)
	s.CloseView("U0BOB")
	if found == nil {
		t.Fatal("the passage has no link to the viewer")
	}
	var path string
	if err := json.Unmarshal([]byte(`"`+string(found[1])+`"`), &path); err != nil {
		t.Fatal(err)
	}
	if status, body := p.get(path); status != http.StatusOK || !strings.Contains(body, "API key rotation") {
		t.Errorf("the viewer answers %d:\n%s", status, body)
	}
	if status, _ := p.get(strings.Replace(path, "U0BOB", "U0ADA", 1)); status != http.StatusNotFound {
		t.Errorf("the link of another person gives %d", status)
	}
}

// beside runs an operator's commands while footnote serve holds the directory.
func beside(t *testing.T, file string, s *slacktest.Server) {
	t.Helper()
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := program(t, "", append(args, "--config", file)...)
		cmd.Env = append(cmd.Env, slackEnv(s)...)
		out, err := cmd.CombinedOutput()
		if exitCode(err) != want {
			t.Fatalf("footnote %s ended with %d, want %d:\n%s", strings.Join(args, " "), exitCode(err), want, out)
		}
		return string(out)
	}
	if out := run(0, "ingest", filepath.Join(work, "docs")); !strings.Contains(out, "0 published, 13 unchanged") {
		t.Errorf("ingest inside the server:\n%s", out)
	}
	var d struct {
		Asker, State string
		Changes      []any
	}
	if err := json.Unmarshal([]byte(run(0, "deliveries", "--json", "--as", "slack:T0HOME:user/U0ADA")), &d); err != nil || d.State != "answered" || len(d.Changes) < 3 {
		t.Errorf("deliveries of ada: %+v, %v", d, err)
	}
	if out := run(0, "deliveries"); strings.Count(out, "\n") != 2 || strings.Contains(out, "rotate") || !strings.Contains(out, "asker slack:T0HOME:user/U0ADA") || !strings.Contains(out, "room slack:T0HOME:channel/") {
		t.Errorf("deliveries of all:\n%s", out)
	}
	if out := run(0, "deliveries", "--as", "slack:T0HOME:user/U0NOBODY"); !strings.Contains(out, "No questions") {
		t.Errorf("deliveries of nobody:\n%s", out)
	}
	explain := func(as, room, doc string) (out struct {
		Admitted bool
		Why      string
		Clauses  []struct{ Meets []string }
	}) {
		t.Helper()
		args := []string{"acl", "explain", "--json", "--as", as, doc}
		if room != "" {
			args = append(args, "--room", room)
		}
		if err := json.Unmarshal([]byte(run(0, args...)), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	leaveDoc, report := filepath.Join(work, "docs/handbook/leave.md"), filepath.Join(work, "docs/security/incident-2031-04.md")
	if e := explain("slack:T0HOME:user/U0ADA", "", leaveDoc); !e.Admitted || len(e.Clauses) != 1 || len(e.Clauses[0].Meets) != 1 {
		t.Errorf("ada and the handbook: %+v", e)
	}
	if e := explain("slack:T0HOME:user/U0ADA", "slack:T0HOME:channel/C0HELP", leaveDoc); e.Admitted || !strings.Contains(e.Why, "viewer") {
		t.Errorf("ada and the handbook where a guest reads: %+v", e)
	}
	if e := explain("slack:T0HOME:user/U0ADA", "", report); e.Admitted || !strings.Contains(e.Why, "the asker holds none of [group:security]") {
		t.Errorf("a group of the people file is none of Slack's: %+v", e)
	}
	if e := explain("slack:T0HOME:user/U0NOBODY", "", leaveDoc); e.Admitted || e.Why == "" {
		t.Errorf("nobody and the handbook: %+v", e)
	}
	if e := explain("ada", "", leaveDoc); !e.Admitted {
		t.Errorf("ada of the terminal and the handbook: %+v", e)
	}
	if out := run(0, "acl", "explain", "--as", "slack:T0HOME:user/U0DAN", leaveDoc); !strings.Contains(out, "DENIES") || !strings.Contains(out, "slack:T0HOME:guests") {
		t.Errorf("a guest and the handbook:\n%s", out)
	}
}

func TestServe_SlackByHTTP(t *testing.T) {
	t.Parallel()
	s := newSlack(t)
	file := configuration(t, "slack: {mode: http, api_url: '"+s.APIURL()+"'}\n")
	p := serve(t, file, slackEnv(s)...)
	at := "http://" + p.address + "/slack/"
	s.UseHTTP(&slacktest.Webhook{Events: at + "events", Interactions: at + "interactions", Commands: at + "commands"})
	m := s.Mention("U0ADA", "C0GENERAL", rotate)
	patient(t, "an answer in the thread", s.Wait, func() bool { return slackAnswers(s, m) == 1 })
	i := s.Slash("U0BOB", "C0GENERAL", "/footnote", "status")
	patient(t, "an acknowledgement", s.Wait, func() bool { _, ok := i.Acked(); return ok })
	if status, _ := p.get("/slack/events"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET of the events gives %d", status)
	}
	p.holds("/metrics", `route="slack_events"`)
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
	for _, broken := range s.CheckInvariants() {
		t.Error(broken)
	}
}

// newDiscord is a server with one member, and others without a channel, with
// the bot in each of them.
func newDiscord(t *testing.T, others ...string) (s *discordtest.Server, ada, channel string) {
	w := discordtest.NewWorld()
	ada = w.AddUser(discordtest.User{Name: "ada"})
	guild := w.AddGuild(discordtest.Guild{Name: "home", Owner: ada})
	w.AddMember(guild, ada)
	channel = w.AddChannel(discordtest.Channel{GuildID: guild, Name: "general"})
	for _, name := range others {
		w.AddGuild(discordtest.Guild{Name: name, Owner: ada})
	}
	return discordtest.New(t, w, discordtest.WithRules(discordtest.Rules{Explicit: true, Lost: true})), ada, channel
}

func discordAnswers(s *discordtest.Server, channel string) (n int) {
	for _, m := range s.FromBot(channel) {
		if !m.Thinking && bytes.Contains(m.Components, []byte(":s1")) {
			n++
		}
	}
	return n
}

// In several servers it is not known whose documents are for everyone: nobody
// gets them, and the operator is told.
func TestServe_DiscordInSeveralServers(t *testing.T) {
	t.Parallel()
	s, ada, channel := newDiscord(t, "another organisation")
	file := configuration(t, "discord: {api_url: '"+s.URL()+"'}\n")
	env := "FOOTNOTE_DISCORD_TOKEN=" + s.App().Token
	p := serve(t, file, env)
	p.line("Discord: the bot is in 2 servers (")
	patient(t, "the commands", s.Wait, func() bool { return len(s.Commands("")) > 0 })
	i := s.Command(ada, channel, "ask", map[string]any{"question": rotate})
	patient(t, "a refusal", s.Wait, func() bool { m, ok := i.Response(); return ok && !m.Thinking })
	if n := discordAnswers(s, channel); n != 0 {
		t.Errorf("answered from documents for everyone")
	}
	doctor := program(t, "", "doctor", "--config", file)
	doctor.Env = append(doctor.Env, env)
	if out, err := doctor.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("list the servers of your organisation in discord.guilds")) {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

func TestServe_Discord(t *testing.T) {
	for _, mode := range []string{"gateway", "http"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s, ada, channel := newDiscord(t)
			file := configuration(t, "discord: {mode: "+mode+", api_url: '"+s.URL()+"'}\n")
			env := []string{"FOOTNOTE_DISCORD_TOKEN=" + s.App().Token, "FOOTNOTE_DISCORD_PUBLIC_KEY=" + s.PublicKey()}
			p := serve(t, file, env...)
			patient(t, "the commands", s.Wait, func() bool { return len(s.Commands("")) > 0 })
			if mode == "http" {
				if err := s.SetEndpoint(context.Background(), "http://"+p.address+"/discord/interactions"); err != nil {
					t.Fatal(err)
				}
			}
			s.Command(ada, channel, "ask", map[string]any{"question": rotate})
			patient(t, "an answer", s.Wait, func() bool { return discordAnswers(s, channel) == 1 })
			p.holds("/readyz", "discord ok")
			p.holds("/metrics", `footnote_deliveries_received_total{platform="discord"} 1`)

			i := s.Command(ada, channel, "ask", map[string]any{"question": leave})
			patient(t, "the deferral", s.Wait, func() bool { _, ok := i.Acked(); return ok })
			_ = p.stop(syscall.SIGKILL)
			p = serve(t, file, env...)
			patient(t, "the answer after the restart", s.Wait, func() bool { return discordAnswers(s, channel) > 1 })
			if err := p.stop(os.Interrupt); err != nil {
				t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
			}
			if n := discordAnswers(s, channel); n != 2 {
				t.Errorf("%d answers to two questions", n)
			}
			for _, broken := range s.CheckInvariants() {
				t.Error(broken)
			}
		})
	}
}

// A platform whose token is not valid leaves the other alone.
func TestServe_OnePlatformOfTwo(t *testing.T) {
	t.Parallel()
	s := newSlack(t)
	s.KillToken(s.App().BotToken, "token_revoked")
	d, ada, channel := newDiscord(t)
	file := configuration(t, "slack: {mode: socket, api_url: '"+s.APIURL()+"'}\ndiscord: {api_url: '"+d.URL()+"'}\n")
	p := serve(t, file, append(slackEnv(s), "FOOTNOTE_DISCORD_TOKEN="+d.App().Token)...)
	p.line("The other platform goes on.")
	patient(t, "the commands", d.Wait, func() bool { return len(d.Commands("")) > 0 })
	d.Command(ada, channel, "ask", map[string]any{"question": rotate})
	patient(t, "an answer", d.Wait, func() bool { return discordAnswers(d, channel) == 1 })
	if status, body := p.get("/readyz"); status != 503 || !strings.Contains(body, "slack") {
		t.Errorf("readiness says %d: %s", status, body)
	}
	if err := p.stop(os.Interrupt); err != nil {
		t.Errorf("told to stop it ended with %v:\n%s", err, p.log())
	}
}

func TestServe_Refuses(t *testing.T) {
	t.Parallel()
	s := newSlack(t)
	empty := filepath.Join(t.TempDir(), "data")
	for _, tt := range []struct {
		name, data string
		file       string
		env        []string
		code       int
		want       []string
	}{
		{"nothing configured", empty, "", nil, 2, []string{"no chat platform is configured", "FOOTNOTE_SLACK_BOT_TOKEN", "FOOTNOTE_DISCORD_TOKEN"}},
		{"no index", empty, "slack: {mode: socket, api_url: '" + s.APIURL() + "'}\n", slackEnv(s), 5, []string{"there is no index yet", "footnote ingest FOLDER"}},
		{"all problems at once", empty, "slack: {mode: http}\ndiscord: {mode: http}\nserve: {workers: 0}\n", nil, 2, []string{"FOOTNOTE_SLACK_SIGNING_SECRET", "web.listen", "FOOTNOTE_DISCORD_PUBLIC_KEY", "serve.workers"}},
		{"token that Slack does not take", "", "slack: {mode: socket, api_url: '" + s.APIURL() + "'}\n", []string{"FOOTNOTE_SLACK_BOT_TOKEN=xoxb-wrong", "FOOTNOTE_SLACK_APP_TOKEN=xapp-wrong"}, 1, []string{"Slack: FOOTNOTE_SLACK_BOT_TOKEN"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.data == "" {
				tt.data = copyOf(t)
			}
			file := filepath.Join(t.TempDir(), "footnote.yaml")
			write(t, file, tt.file)
			cmd := program(t, tt.data, "serve", "--config", file)
			cmd.Env = append(cmd.Env, tt.env...)
			out, err := cmd.CombinedOutput()
			if exitCode(err) != tt.code {
				t.Errorf("ended with %d, want %d", exitCode(err), tt.code)
			}
			for _, w := range tt.want {
				if !bytes.Contains(out, []byte(w)) {
					t.Errorf("lacks %q:\n%s", w, out)
				}
			}
			if bytes.Contains(out, []byte("xoxb-wrong")) {
				t.Errorf("shows a token:\n%s", out)
			}
		})
	}
}

func TestDoctor_Platforms(t *testing.T) {
	t.Parallel()
	lacking := slacktest.DemoWorld()
	for _, scope := range slacktest.DefaultScopes {
		if scope != "groups:read" && scope != "commands" {
			lacking.App.Scopes = append(lacking.App.Scopes, scope)
		}
	}
	s := slacktest.New(t, lacking)
	d, _, _ := newDiscord(t)
	for _, tt := range []struct {
		name, file string
		env        []string
		want       []string // check, state and a word of what or do
	}{
		{"a scope is missing", "slack: {mode: socket, api_url: '" + s.APIURL() + "'}\n", slackEnv(s), []string{"slack failure groups:read", "slack warning commands", "slack ok sockets"}},
		{"token that Discord does not take", "discord: {api_url: '" + d.URL() + "'}\n", []string{"FOOTNOTE_DISCORD_TOKEN=wrong"}, []string{"discord failure FOOTNOTE_DISCORD_TOKEN"}},
		{"Discord", "discord: {api_url: '" + d.URL() + "'}\n", []string{"FOOTNOTE_DISCORD_TOKEN=" + d.App().Token}, []string{"discord ok token", "discord ok GUILDS"}},
		{"half", "discord: {mode: http}\n", nil, []string{"platforms failure FOOTNOTE_DISCORD_TOKEN", "platforms failure web.listen"}},
		{"none", "", nil, []string{"platforms ok none"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "footnote.yaml")
			write(t, file, tt.file)
			cmd := program(t, filepath.Join(t.TempDir(), "data"), "doctor", "--json", "--config", file)
			cmd.Env = append(cmd.Env, tt.env...)
			out, err := cmd.Output()
			if exitCode(err) > 1 {
				t.Fatalf("doctor ended with %v", err)
			}
			for _, w := range tt.want {
				f := strings.SplitN(w, " ", 3)
				if !found(out, f[0], f[1], f[2]) {
					t.Errorf("no finding %q:\n%s", w, out)
				}
			}
		})
	}
}

// found looks for a finding among JSON lines.
func found(out []byte, check, state, word string) bool {
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var f struct{ Check, State, What, Do string }
		if d.Decode(&f) != nil {
			return false
		}
		if f.Check == check && f.State == state && strings.Contains(f.What+" "+f.Do, word) {
			return true
		}
	}
	return false
}
