package discordtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot/clocktest"
)

// town is a small guild: ada owns it, bob is staff, cy is nobody in particular.
type town struct {
	world                dt.World
	guild, staff         string
	ada, bob, cy         string
	open, closed, forum  string
	news, voice          string
	thread, hidden, gone string
}

func newTown() *town {
	w := dt.NewWorld()
	x := &town{}
	x.ada, x.bob, x.cy = w.AddUser(dt.User{Name: "ada"}), w.AddUser(dt.User{Name: "bob"}), w.AddUser(dt.User{Name: "cy", Locale: "de"})
	x.guild = w.AddGuild(dt.Guild{Name: "town", Owner: x.ada})
	x.staff = w.AddRole(x.guild, dt.Role{Name: "staff"})
	w.AddMember(x.guild, x.ada)
	w.AddMember(x.guild, x.bob, x.staff)
	w.AddMember(x.guild, x.cy)
	private := []dt.Overwrite{
		{ID: x.guild, Deny: dt.ViewChannel}, {ID: x.staff, Allow: dt.ViewChannel}, {ID: w.App.BotUser, Member: true, Allow: dt.ViewChannel},
	}
	add := func(c dt.Channel) string { c.GuildID = x.guild; return w.AddChannel(c) }
	x.open = add(dt.Channel{Name: "general", Type: dt.Text})
	x.closed = add(dt.Channel{Name: "staff", Type: dt.Text, Overwrites: private})
	x.gone = add(dt.Channel{Name: "vault", Type: dt.Text, Overwrites: private[:2]})
	x.forum = add(dt.Channel{Name: "ideas", Type: dt.Forum})
	x.news = add(dt.Channel{Name: "news", Type: dt.Announcement})
	x.voice = add(dt.Channel{Name: "talk", Type: dt.Voice})
	x.thread = add(dt.Channel{Name: "public thread", Type: dt.PublicThread, Parent: x.open, Owner: x.bob, Members: []string{x.bob}})
	x.hidden = add(dt.Channel{Name: "staff thread", Type: dt.PublicThread, Parent: x.closed, Owner: x.bob, Members: []string{x.bob}})
	x.world = w
	return x
}

// start runs the town with a manual clock.
func (x *town) start(t *testing.T, opts ...dt.Option) (*dt.Server, *clocktest.ManualClock) {
	t.Helper()
	clock := clocktest.NewManualClock(time.Time{})
	return dt.New(t, x.world, append([]dt.Option{dt.WithClock(clock)}, opts...)...), clock
}

type reply struct {
	Status int
	Header http.Header
	Body   string
	Code   int
}

func (r reply) at(path ...string) any {
	var v any
	_ = json.Unmarshal([]byte(r.Body), &v)
	for _, p := range path {
		o, _ := v.(map[string]any)
		v = o[p]
	}
	return v
}

// api makes one call as the bot.
func api(t *testing.T, s *dt.Server, verb, path string, body any, change ...func(*http.Request)) reply {
	t.Helper()
	var b []byte
	switch v := body.(type) {
	case nil:
	case string:
		b = []byte(v)
	default:
		b, _ = json.Marshal(v)
	}
	req, err := http.NewRequest(verb, s.URL()+"/api/v9"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "DiscordBot (https://example.org, 1)")
	req.Header.Set("Authorization", "Bot "+s.App().Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{Status: resp.StatusCode, Header: resp.Header, Body: string(got)}
	if c, isNumber := r.at("code").(float64); isNumber {
		r.Code = int(c)
	}
	return r
}

type obj = map[string]any

var quiet = obj{"parse": []string{}}

func msg(content string) obj { return obj{"content": content, "allowed_mentions": quiet} }

// ask registers /ask and the message command for the guild.
func register(t *testing.T, s *dt.Server, guild string) {
	t.Helper()
	r := api(t, s, "PUT", "/applications/"+s.App().ID+"/guilds/"+guild+"/commands", []obj{
		{"name": "ask", "description": "Ask", "options": []obj{
			{"type": 3, "name": "question", "description": "What", "required": true, "max_length": 100},
			{"type": 5, "name": "private", "description": "Only for me"},
		}},
		{"name": "footnote", "description": "About", "options": []obj{{"type": 1, "name": "status", "description": "How it is"}}},
		{"type": 3, "name": "Ask footnote"},
	})
	if r.Status != 200 {
		t.Fatalf("registering: %d %s", r.Status, r.Body)
	}
}

func clean(t *testing.T, s *dt.Server) {
	t.Helper()
	if diff := cmp.Diff([]string(nil), s.CheckInvariants()); diff != "" {
		t.Errorf("invariants (-want +got):\n%s", diff)
	}
}

// callback answers the interaction for the first time.
func callback(t *testing.T, s *dt.Server, i *dt.Interaction, kind int, data any) reply {
	t.Helper()
	b := obj{"type": kind}
	if data != nil {
		b["data"] = data
	}
	return api(t, s, "POST", "/interactions/"+i.ID+"/"+i.Token+"/callback", b)
}

func hook(s *dt.Server, i *dt.Interaction, rest string) string {
	return "/webhooks/" + s.App().ID + "/" + i.Token + rest
}

const original = "/messages/@original"
