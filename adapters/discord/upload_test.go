package discord

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	dt "footnote/adapters/discord/discordtest"
	uploads "footnote/bot/shelf"
	"footnote/bot/shelf/shelftest"
)

// keep gives the adapter a place for files, if the test has one.
func (r *rig) keep(s setting, d *Deps) {
	r.t.Helper()
	r.notices = func(context.Context) {}
	if s.files == nil {
		return
	}
	n, err := uploads.OpenNotices(s.dir, s.files, uploads.Options{Every: 5 * time.Millisecond, Log: d.Log})
	if err != nil {
		r.t.Fatal(err)
	}
	d.Files, d.Notices = s.files, n
	r.notices = func(ctx context.Context) { _ = n.Run(ctx) }
}

// takesFiles lets the staff add Markdown of up to 100 bytes.
func takesFiles(t *testing.T, x *town) setting {
	return setting{files: shelftest.New(), dir: t.TempDir(), config: func(c *Config) {
		c.Mentions = true
		c.Uploads = uploads.Rules{
			By: acl.NewList(of(x.guild, "role/"+x.staff)), MaxBytes: 100, MaxFiles: 2,
			Supported: func(name string) bool { return strings.HasSuffix(name, ".md") },
		}
	}}
}

var notes = dt.File{Name: "notes.md", Content: "The printer is on the second floor."}

// told waits for a message of the bot that holds the text.
func (r *rig) told(channel, text string) dt.Message {
	r.t.Helper()
	return r.WaitMessage(channel, func(m dt.Message) bool { return m.Author == r.App().BotUser && strings.Contains(m.Content, text) })
}

func TestFileIsTakenInForItsSender(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := takesFiles(t, x)
	r := newRig(t, x, s)
	dm := r.DMChannel(x.bob)
	m := r.PostFile(x.bob, dm, "add this", []dt.File{notes}, dt.Delivery{Copies: 2})
	state := r.told(dm, "Taking")
	r.Eventually("the file", func() bool { return s.files.Puts() == 1 })
	list := s.files.Kept("")
	id := "discord/dm/" + dm + "/" + m.Files[0].ID
	want := uploads.Document{
		ID: id, Name: "notes.md", Link: "https://discord.com/channels/@me/" + dm + "/" + m.ID, Author: "discord:dm:user/" + x.bob,
		Modified: list[0].Modified, Access: []acl.Principal{of(x.guild, "user/"+x.bob)},
	}
	if diff := cmp.Diff([]uploads.Document{want}, list); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	r.idle()

	// The bot is started anew: the same message tells the end.
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	s.server, s.ledger = r.Server, r.ledger
	r = newRig(t, x, s)
	s.files.Settle(id, uploads.State{Published: true, Chunks: 12})
	if end := r.told(dm, "12 chunks; ask me about it"); end.ID != state.ID {
		t.Errorf("told in another message: %+v", end)
	}
	n := 0
	for _, m := range r.Messages(dm) {
		if m.Author == r.App().BotUser {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d messages", n)
	}
	r.Delete(m)
	r.Eventually("the file to go", func() bool { return len(s.files.Kept("")) == 0 })
	r.clean()
}

func TestFileIsNotTaken(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer foreign.Close()
	x := newTown()
	for name, c := range map[string]struct {
		user, channel string // "": the direct conversation
		file          dt.File
		want          string
	}{
		"by somebody who may not":        {user: x.cy, file: notes, want: "may not add"},
		"in a channel":                   {user: x.bob, channel: x.open, file: notes, want: "direct messages only"},
		"too large":                      {user: x.bob, file: dt.File{Name: "a.md", Content: strings.Repeat("x", 101)}, want: "at most"},
		"of a type that is not read":     {user: x.bob, file: dt.File{Name: "a.exe", Content: "x"}, want: "cannot read"},
		"on a foreign host":              {user: x.bob, file: dt.File{Name: "a.md", Content: "x", URL: foreign.URL + "/a.md"}, want: "file host"},
		"on a host of Discord in name":   {user: x.bob, file: dt.File{Name: "a.md", Content: "x", URL: "https://cdn.discordapp.com.example.org/a.md"}, want: "file host"},
		"that redirects":                 {user: x.bob, file: dt.File{Name: "a.md", Content: "x", Redirect: foreign.URL}, want: "something else"},
		"with other bytes than promised": {user: x.bob, file: dt.File{Name: "a.md", Content: "more than that", Size: 3}, want: "something else"},
		"a page":                         {user: x.bob, file: dt.File{Name: "a.md", Content: "<html>", Served: "text/html"}, want: "something else"},
	} {
		t.Run(name, func(t *testing.T) {
			s := takesFiles(t, x)
			r := newRig(t, x, s)
			channel, text := c.channel, ""
			if channel == "" {
				channel = r.DMChannel(c.user)
			} else {
				text = "<@" + r.App().BotUser + "> add this"
			}
			r.PostFile(c.user, channel, text, []dt.File{c.file})
			r.told(channel, c.want)
			r.idle()
			if s.files.Puts() != 0 || calls.Load() != 0 {
				t.Errorf("%d documents were kept, %d calls of another host", s.files.Puts(), calls.Load())
			}
			r.clean()
		})
	}
}

func TestFileDeletedWhileTheBotWasAway(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := takesFiles(t, x)
	r := newRig(t, x, s)
	m := r.PostFile(x.bob, r.DMChannel(x.bob), "", []dt.File{notes})
	r.Eventually("the file", func() bool { return s.files.Puts() == 1 })
	r.idle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.Delete(m)
	s.server, s.ledger = r.Server, r.ledger
	r = newRig(t, x, s)
	r.Eventually("the file to go", func() bool { return len(s.files.Kept("")) == 0 })
}

// A question with a file beside it is answered, and the file taken in.
func TestFileBesideAQuestion(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := takesFiles(t, x)
	r := newRig(t, x, s)
	dm := r.DMChannel(x.bob)
	r.PostFile(x.bob, dm, "what about all", []dt.File{notes})
	r.told(dm, "docall")
	r.Eventually("the file", func() bool { return s.files.Puts() == 1 })
	r.idle()
}
