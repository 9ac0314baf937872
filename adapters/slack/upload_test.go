package slack_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/desk"
	"footnote/bot/shelf"
	"footnote/bot/shelf/shelftest"
)

// shelf gives the adapter a place for files, if the test has one, and returns
// what keeps messages about them up to date.
func (p *program) shelf(d *slack.Deps) (run func(context.Context)) {
	p.t.Helper()
	if p.files == nil {
		return func(context.Context) {}
	}
	n, err := shelf.OpenNotices(p.dir, p.files, shelf.Options{Every: 5 * time.Millisecond, Now: p.now, Log: d.Log})
	if err != nil {
		p.t.Fatal(err)
	}
	d.Files, d.Notices = p.files, n
	return func(ctx context.Context) { _ = n.Run(ctx) }
}

// takesFiles lets the user group security add Markdown and text of up to 100
// bytes.
func takesFiles(k *shelftest.Keeper) option {
	return func(p *program) {
		p.files = k
		p.c.Uploads = shelf.Rules{
			By: acl.NewList("slack:T0HOME:usergroup/S0SECURITY"), MaxBytes: 100, MaxFiles: 2,
			Supported: func(name string) bool { return strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".txt") },
		}
	}
}

// withFiles is the workspace of the demo in which the app may read files and
// hears of deletions.
func withFiles(change func(*slacktest.World)) slacktest.World {
	w := slacktest.DemoWorld()
	w.App.Scopes = append(slices.Clone(slacktest.DefaultScopes), "files:read", "channels:history", "groups:history")
	w.App.Events = append(slices.Clone(slacktest.DefaultEvents), "file_deleted", "message.channels", "message.groups")
	if change != nil {
		change(&w)
	}
	return w
}

var notes = slacktest.File{ID: "F0NOTES", Name: "notes.md", Content: "The printer is on the second floor."}

// told waits for a message of the app in the conversation that holds the text.
func told(s *slacktest.Server, channel, text string) slacktest.Message {
	return s.WaitMessage(channel, func(m slacktest.Message) bool { return m.BotID == "B0BOT" && strings.Contains(m.Text, text) })
}

// byTheApp are the texts of the app in the thread.
func byTheApp(s *slacktest.Server, root slacktest.Message) []string {
	var out []string
	for _, m := range s.Messages(root.Channel) {
		if m.BotID == "B0BOT" && m.ThreadTS == root.TS && !m.Deleted {
			out = append(out, m.Text)
		}
	}
	return out
}

func TestFileIsTakenInForItsRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		post   func(*slacktest.Server) slacktest.Message
		access acl.Principal
	}{
		"in a direct message": {func(s *slacktest.Server) slacktest.Message {
			return s.PostFile("U0ADA", s.DMChannel("U0ADA"), "", "", []slacktest.File{notes})
		}, "slack:T0HOME:user/U0ADA"},
		"in a public channel": {func(s *slacktest.Server) slacktest.Message {
			return s.PostFile("U0ADA", "C0GENERAL", "", "<@U0BOT> add this", []slacktest.File{notes})
		}, "slack:T0HOME:channel/C0GENERAL"},
		"in a private channel, in Korean": {func(s *slacktest.Server) slacktest.Message {
			return s.PostFile("U0BOB", "C0SECURITY", "", "<@U0BOT> 이거 추가해줘", []slacktest.File{notes})
		}, "slack:T0HOME:channel/C0SECURITY"},
		"in a thread": {func(s *slacktest.Server) slacktest.Message {
			root := s.Say("U0BOB", "C0GENERAL", "Where is the printer?")
			return s.PostFile("U0ADA", "C0GENERAL", root.TS, "<@U0BOT> Add this, please.", []slacktest.File{notes})
		}, "slack:T0HOME:channel/C0GENERAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
			p := start(t, s, newStore(t, handbook), takesFiles(k))
			m := c.post(s)
			told(s, m.Channel, "Taking")
			id := "slack/T0HOME/" + m.Channel + "/F0NOTES"
			s.Eventually("the file", func() bool { _, ok := k.Get(id); return ok || nudge(s) })
			d, _ := k.Get(id)
			want := shelftest.Kept{Document: shelf.Document{
				ID: id, Name: "notes.md", Author: "slack:T0HOME:user/" + m.User, Access: []acl.Principal{c.access}, Modified: d.Modified,
				Link: "https://home.slack.com/archives/" + m.Channel + "/p" + strings.ReplaceAll(m.TS, ".", ""),
			}, Content: notes.Content}
			if diff := cmp.Diff(want, d); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			k.Settle(id, shelf.State{Published: true, Chunks: 12})
			end := told(s, m.Channel, "12 chunks; ask me about it")
			root := m
			if m.ThreadTS != "" {
				root.TS = m.ThreadTS
			}
			if got := byTheApp(s, root); len(got) != 1 || end.ThreadTS != root.TS {
				t.Errorf("messages in the thread: %q", got)
			}
			p.done()
		})
	}
}

func TestFileIsNotTaken(t *testing.T) {
	t.Parallel()
	html := "<!DOCTYPE html><title>Sign in</title>"
	for name, c := range map[string]struct {
		user, channel string // "": the direct conversation
		file          slacktest.File
		world         func(*slacktest.World)
		want          string // in what the person is told
		aloud         bool   // in the thread
		asked         int    // downloads
	}{
		"by somebody who may not":        {user: "U0CYD", file: notes, want: "may not add"},
		"by a guest who may not":         {user: "U0DAN", channel: "C0HELP", file: notes, want: "may not add"},
		"too large":                      {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: strings.Repeat("x", 101)}, want: "at most", aloud: true},
		"of a type that is not read":     {user: "U0ADA", file: slacktest.File{Name: "a.exe", Content: "x"}, want: "cannot read", aloud: true},
		"outside Slack":                  {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: "x", Mode: "external", URL: "https://drive.example.org/a.md"}, want: "outside Slack", aloud: true},
		"on a foreign host":              {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: "x", URL: "https://files.slack.com.example.org/a.md"}, want: "file host", aloud: true},
		"on a host of Slack in name":     {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: "x", URL: "https://evil-slack.com/a.md"}, want: "file host", aloud: true},
		"with a user in its address":     {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: "x", URL: "https://files.slack.com@evil.example.org/a.md"}, want: "file host", aloud: true},
		"a page to sign in":              {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: html, Served: "text/html; charset=utf-8"}, want: "sign in", aloud: true, asked: 1},
		"with other bytes than promised": {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: "more than it said", Size: 4}, want: "another file", aloud: true, asked: 1},
		"that Slack does not hand over":  {user: "U0ADA", file: slacktest.File{Name: "a.md", Content: "x", Broken: true}, want: "did not hand it over", aloud: true, asked: 1},
		"where outsiders read": {user: "U0ADA", channel: "C0SHARED", file: notes, world: func(w *slacktest.World) {
			w.Others = []slacktest.Team{{ID: "T0OTHER", Name: "Other"}}
			w.AddChannel(slacktest.Channel{Name: "shared", Members: []string{"U0BOT", "U0ADA"}, ExtShared: true, Connected: []string{"T0OTHER"}})
		}, want: "outside the organisation"},
		"without the scope": {user: "U0ADA", file: notes, world: func(w *slacktest.World) { w.App.Scopes = slacktest.DefaultScopes }, want: "files:read", aloud: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := slacktest.New(t, withFiles(c.world)), shelftest.New()
			p := start(t, s, newStore(t, handbook), takesFiles(k))
			channel, text := c.channel, "<@U0BOT> add this"
			if channel == "" {
				channel, text = s.DMChannel(c.user), ""
			}
			m := s.PostFile(c.user, channel, "", text, []slacktest.File{c.file})
			if c.aloud || c.channel == "" {
				told(s, channel, c.want)
			} else {
				s.Eventually("a private word", func() bool {
					return slices.ContainsFunc(s.Ephemerals(c.user), func(m slacktest.Message) bool { return strings.Contains(m.Text, c.want) })
				})
				if got := byTheApp(s, m); len(got) > 0 {
					t.Errorf("said aloud: %q", got)
				}
			}
			p.quiet()
			if n := k.Puts(); n != 0 {
				t.Errorf("%d documents were kept", n)
			}
			if n := len(s.Requests("file")); n != c.asked {
				t.Errorf("%d downloads, want %d", n, c.asked)
			}
			p.done()
		})
	}
}

// A redirect is not followed, wherever it leads: the token stays here.
func TestFileThatRedirectsIsNotFollowed(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer foreign.Close()
	for name, to := range map[string]string{"to a foreign host": foreign.URL + "/a.md", "to the page to sign in": ""} {
		s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
		p := start(t, s, newStore(t, handbook), takesFiles(k))
		f := notes
		if f.Redirect = to; to == "" {
			f.Redirect = s.SignInURL()
		}
		m := s.PostFile("U0ADA", s.DMChannel("U0ADA"), "", "", []slacktest.File{f})
		told(s, m.Channel, "sign in")
		p.done()
		if calls.Load() != 0 || k.Puts() != 0 {
			t.Errorf("%s: %d calls, %d documents", name, calls.Load(), k.Puts())
		}
	}
}

func TestFilePostedAgainIsTheSameDocument(t *testing.T) {
	t.Parallel()
	s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
	p := start(t, s, newStore(t, handbook), takesFiles(k))
	k.Settle("slack/T0HOME/C0GENERAL/F0NOTES", shelf.State{Published: true, Chunks: 1})
	first := s.PostFile("U0ADA", "C0GENERAL", "", "<@U0BOT> add this", []slacktest.File{notes}, slacktest.Delivery{Copies: 2, NewIDs: 1})
	told(s, "C0GENERAL", "1 chunk;")
	second := s.PostFile("U0ADA", "C0GENERAL", "", "<@U0BOT> add this", []slacktest.File{notes})
	s.Eventually("two words", func() bool { return len(byTheApp(s, first))+len(byTheApp(s, second)) == 2 })
	p.quiet()
	if list := k.Kept(""); len(list) != 1 || !strings.HasSuffix(list[0].Link, strings.ReplaceAll(second.TS, ".", "")) {
		t.Errorf("kept: %+v", list)
	}
	s.Delete(first)
	s.WaitSettled()
	if len(k.Kept("")) != 1 {
		t.Error("the deletion of the first message took the file of the second")
	}
	p.done()
}

func TestDeletionRemovesTheDocument(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*slacktest.Server, slacktest.Message){
		"of the message": func(s *slacktest.Server, m slacktest.Message) { s.Delete(m) },
		"of the file":    func(s *slacktest.Server, _ slacktest.Message) { s.DeleteFile("F0NOTES") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
			p := start(t, s, newStore(t, handbook), takesFiles(k))
			m := s.PostFile("U0ADA", "C0SECURITY", "", "<@U0BOT> add this", []slacktest.File{notes})
			s.Eventually("the file", func() bool { return k.Puts() == 1 || nudge(s) })
			remove(s, m)
			s.Eventually("the file to go", func() bool { return len(k.Kept("")) == 0 || nudge(s) })
			told(s, m.Channel, "removed again")
			p.done()
		})
	}
	t.Run("of the file while the bot was away", func(t *testing.T) {
		t.Parallel()
		s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
		p := start(t, s, newStore(t, handbook), takesFiles(k))
		s.PostFile("U0ADA", "C0SECURITY", "", "<@U0BOT> add this", []slacktest.File{notes})
		s.Eventually("the file", func() bool { return k.Puts() == 1 || nudge(s) })
		p.quiet()
		p.halt()
		s.ChangeFile("F0NOTES", func(f *slacktest.File) { f.Deleted = true })
		p.again()
		s.Eventually("the file to go", func() bool { return len(k.Kept("")) == 0 || nudge(s) })
	})
}

// A question with a file beside it is answered, without a word that the file is
// not read, and the file is taken in.
func TestFileBesideAQuestion(t *testing.T) {
	t.Parallel()
	s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
	p := start(t, s, newStore(t, handbook), takesFiles(k))
	m := s.PostFile("U0ADA", s.DMChannel("U0ADA"), "", qHandbook, []slacktest.File{notes})
	if got := p.answer(m); !strings.Contains(got.Text, "thirty vacation days") || strings.Contains(shown(got), "not the files") {
		t.Errorf("answer: %s", shown(got))
	}
	s.Eventually("the file", func() bool { return k.Puts() == 1 || nudge(s) })
	p.quiet()
}

// The bot ends between any two of its steps: there is one message all the same,
// and it tells the end.
func TestFileSurvivesARestart(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]slacktest.Fault{
		"before the file is asked for": {Route: "files.info", Calls: slacktest.Nth(1), Latency: 300 * time.Millisecond},
		"while the message is posted":  {Route: "chat.postMessage", Calls: slacktest.Nth(1), Latency: 300 * time.Millisecond},
		"after the message was posted": {Route: "chat.postMessage", Calls: slacktest.Nth(1), ResetAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
			s.AddFault(f)
			p := start(t, s, newStore(t, handbook), takesFiles(k), withDesk(func(o *desk.Options) { o.Grace, o.Patience = time.Millisecond, time.Second }))
			m := s.PostFile("U0ADA", "C0GENERAL", "", "<@U0BOT> add this", []slacktest.File{notes})
			if f.Latency > 0 {
				s.Eventually("the call", func() bool { return p.desk.Health().Running > 0 || nudge(s) })
			}
			p.again()
			s.Eventually("the file", func() bool { return k.Puts() > 0 || nudge(s) })
			p.quiet()
			p.again()
			k.Settle("slack/T0HOME/C0GENERAL/F0NOTES", shelf.State{Published: true, Chunks: 3})
			told(s, "C0GENERAL", "3 chunks")
			p.again()
			if got := byTheApp(s, m); len(got) != 1 {
				t.Errorf("messages: %q", got)
			}
		})
	}
}

func TestSeveralFilesAndNone(t *testing.T) {
	t.Parallel()
	s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
	p := start(t, s, newStore(t, handbook), takesFiles(k))
	file := func(n string) slacktest.File { return slacktest.File{Name: n + ".md", Content: n} }
	m := s.PostFile("U0ADA", "C0GENERAL", "", "<@U0BOT> add these", []slacktest.File{file("a"), file("b"), file("c")})
	s.Eventually("two files", func() bool { return k.Puts() == 2 || nudge(s) })
	s.Eventually("a word about the third", func() bool {
		return slices.ContainsFunc(s.Ephemerals("U0ADA"), func(m slacktest.Message) bool { return strings.Contains(m.Text, "At most 2") })
	})
	s.Mention("U0BOB", "C0GENERAL", "add this", slacktest.Delivery{Copies: 1})
	s.Eventually("a word about no file", func() bool { return len(s.Ephemerals("U0BOB")) > 0 })
	p.quiet()
	if got := s.Ephemerals("U0BOB"); len(got) != 1 || !strings.Contains(got[0].Text, "no file in your message") {
		t.Errorf("told: %+v", got)
	}
	if got := byTheApp(s, m); len(got) != 2 {
		t.Errorf("messages: %q", got)
	}
	for _, d := range k.Kept("") {
		k.Settle(d.ID, shelf.State{Reason: "it has no text"})
	}
	told(s, "C0GENERAL", "failed: it has no text")
}

// Doctor names the scopes that only settings need, and no others.
func TestCheckNamesWhatTheSettingsNeed(t *testing.T) {
	t.Parallel()
	s, k := slacktest.New(t, slacktest.DemoWorld()), shelftest.New()
	named := func(o ...option) (out []string) {
		p := prepare(t, s, newStore(t, handbook), o...)
		for _, f := range p.check(t) {
			for _, scope := range []string{"files:read", "channels:history", "groups:history", "file_deleted", "message.channels"} {
				if strings.Contains(f, scope) {
					out = append(out, scope)
				}
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	if got := named(); len(got) > 0 {
		t.Errorf("without settings: %q", got)
	}
	if diff := cmp.Diff([]string{"file_deleted", "files:read"}, named(takesFiles(k))); diff != "" {
		t.Errorf("with uploads.by (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"channels:history", "groups:history", "message.channels"}, named(source("C0HELP", k))); diff != "" {
		t.Errorf("with a channel (-want +got):\n%s", diff)
	}
}

// source makes a channel one whose threads are documents.
func source(channel string, k *shelftest.Keeper) option {
	return func(p *program) {
		p.sources = append(p.sources, slack.Source{Channel: channel, Keeper: k})
		p.c.ScanPace = time.Millisecond
	}
}

// check is what doctor finds.
func (p *program) check(t *testing.T) (out []string) {
	t.Helper()
	p.run()
	defer p.halt()
	for _, f := range p.adapter.Check(t.Context()) {
		out = append(out, f.What+" "+f.Do)
	}
	return out
}

func TestChannelWithoutRightsSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channel, want string
		scopes        []string
	}{
		"without the scope":           {"C0HELP", "channels:history", slacktest.DefaultScopes},
		"a channel that is not there": {"C0NOWHERE", "not a member", nil},
		"where outsiders read":        {"C0SHARED", "outside the organisation", nil},
	} {
		s, k := slacktest.New(t, withFiles(func(w *slacktest.World) {
			if c.scopes != nil {
				w.App.Scopes = c.scopes
			}
			w.AddChannel(slacktest.Channel{Name: "shared", Members: []string{"U0BOT", "U0ADA"}, PendingExt: true})
		})), shelftest.New()
		s.Say("U0ADA", "C0HELP", "The printer is upstairs.")
		p := start(t, s, newStore(t, handbook), source(c.channel, k))
		s.Eventually(name, func() bool { return strings.Contains(p.adapter.Trouble(c.channel), c.want) || nudge(s) })
		if n := k.Puts(); n != 0 {
			t.Errorf("%s: %d threads were taken", name, n)
		}
		p.done()
	}
}

// Threads of a source are followed; what mentions the bot, and its answers, are
// none of it.
func TestChannelIsFollowed(t *testing.T) {
	t.Parallel()
	s, k := slacktest.New(t, withFiles(nil)), shelftest.New()
	root := s.Say("U0ADA", "C0HELP", "Where is the <https://a.example|printer>?")
	p := start(t, s, newStore(t, handbook), source("C0HELP", k))
	holds := func(what, want string) {
		t.Helper()
		s.Eventually(what, func() bool { d, _ := k.Get(root.TS); return strings.Contains(d.Content, want) || nudge(s) })
	}
	holds("the thread", "Where is the printer (https://a.example)?")
	reply := s.ReplyInThread("U0BOB", "C0HELP", root.TS, "Ask <@U0CYD>.")
	holds("a reply", "Ask @cyd.")
	s.Edit(reply, "Upstairs.")
	holds("an edited reply", "Upstairs.")
	p.answer(s.Mention("U0ADA", "C0HELP", qHandbook))
	later := s.Say("U0BOB", "C0HELP", "The lift is broken.")
	s.Eventually("another thread", func() bool { _, ok := k.Get(later.TS); return ok || nudge(s) })
	if list := k.Kept(""); len(list) != 2 {
		t.Errorf("documents: %+v", list)
	}
	s.Delete(later)
	s.Eventually("the deletion", func() bool { return len(k.Kept("")) == 1 || nudge(s) })
	p.done()
}
