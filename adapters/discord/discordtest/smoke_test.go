package discordtest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	dt "footnote/adapters/discord/discordtest"
)

// rewrite sends everything to the fake, whatever host the library names.
type rewrite struct{ to *url.URL }

func (r rewrite) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(req)
}

// library is a real client that talks to the fake.
func library(t *testing.T, s *dt.Server, intents discordgo.Intent) *discordgo.Session {
	t.Helper()
	to, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	d, err := discordgo.New("Bot " + s.App().Token)
	if err != nil {
		t.Fatal(err)
	}
	d.Client = &http.Client{Transport: rewrite{to}}
	d.Dialer = &websocket.Dialer{}
	d.Identify.Intents = intents
	d.ShouldReconnectOnError = false
	return d
}

func connect(t *testing.T, d *discordgo.Session) {
	t.Helper()
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
}

var none = &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}

func TestRealClientAnswersACommand(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := dt.New(t, x.world, dt.WithRules(dt.Rules{Explicit: true}))
	d := library(t, s, discordgo.IntentsGuilds)
	cmds := []*discordgo.ApplicationCommand{
		{Name: "ask", Description: "Ask", Options: []*discordgo.ApplicationCommandOption{
			{Type: discordgo.ApplicationCommandOptionString, Name: "question", Description: "What", Required: true},
		}},
		{Name: "Ask footnote", Type: discordgo.MessageApplicationCommand},
	}
	if _, err := d.ApplicationCommandBulkOverwrite(s.App().ID, x.guild, cmds); err != nil {
		t.Fatal(err)
	}
	seen := make(chan *discordgo.GuildCreate, 1)
	d.AddHandler(func(_ *discordgo.Session, g *discordgo.GuildCreate) { seen <- g })
	d.AddHandler(func(d *discordgo.Session, i *discordgo.InteractionCreate) { respond(t, d, i) })
	connect(t, d)
	if g := <-seen; len(g.Roles) != 3 || len(g.Threads) != 2 || g.Channels[1].PermissionOverwrites[0].Deny != int64(dt.ViewChannel) {
		t.Errorf("guild decoded to %d roles and %d threads", len(g.Roles), len(g.Threads))
	}
	i := s.Command(x.bob, x.open, "ask", map[string]any{"question": "why?"})
	m := i.WaitAnswer()
	if m.Content != "about why?" || m.EphemeralTo != x.bob {
		t.Errorf("answer %+v", m)
	}
	click := s.Click(x.bob, m, "source-1").WaitAnswer()
	if click.EphemeralTo != x.bob {
		t.Errorf("the source is shown to %q", click.EphemeralTo)
	}
	said := s.Say(x.cy, x.open, "the lift is broken")
	if m := s.MessageCommand(x.bob, said, "Ask footnote").WaitAnswer(); m.Content != "about the lift is broken" {
		t.Errorf("answer %q", m.Content)
	}
	clean(t, s)
}

// respond defers privately, then edits; a click shows a source.
func respond(t *testing.T, d *discordgo.Session, i *discordgo.InteractionCreate) {
	data := &discordgo.InteractionResponseData{Flags: discordgo.MessageFlagsEphemeral}
	if i.Type == discordgo.InteractionMessageComponent {
		data.Content, data.AllowedMentions = "the source", none
		if err := d.InteractionRespond(i.Interaction, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseChannelMessageWithSource, Data: data}); err != nil {
			t.Errorf("answering a click: %v", err)
		}
		return
	}
	if err := d.InteractionRespond(i.Interaction, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredChannelMessageWithSource, Data: data}); err != nil {
		t.Errorf("deferring: %v", err)
	}
	cmd, text := i.ApplicationCommandData(), ""
	if len(cmd.Options) > 0 {
		text = cmd.Options[0].StringValue()
	} else if cmd.TargetID != "" {
		text = cmd.Resolved.Messages[cmd.TargetID].Content
	}
	text = "about " + text
	edit := &discordgo.WebhookEdit{Content: &text, AllowedMentions: none, Components: &[]discordgo.MessageComponent{
		discordgo.ActionsRow{Components: []discordgo.MessageComponent{discordgo.Button{Label: "1", Style: discordgo.SecondaryButton, CustomID: "source-1"}}},
	}}
	if _, err := d.InteractionResponseEdit(i.Interaction, edit); err != nil {
		t.Errorf("editing: %v", err)
	}
}

func TestRealClientChannelsAndThreads(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := dt.New(t, x.world)
	d := library(t, s, discordgo.IntentsGuilds)
	m, err := d.ChannelMessageSendComplex(x.open, &discordgo.MessageSend{Content: "hello", AllowedMentions: none})
	if err != nil {
		t.Fatal(err)
	}
	th, err := d.MessageThreadStartComplex(x.open, m.ID, &discordgo.ThreadStart{Name: "talk", AutoArchiveDuration: 60})
	if err != nil || th.ID != m.ID || th.ThreadMetadata.AutoArchiveDuration != 60 {
		t.Fatalf("thread %+v, %v", th, err)
	}
	mem, err := d.GuildMember(x.guild, x.bob)
	if err != nil || len(mem.Roles) != 1 || mem.Roles[0] != x.staff {
		t.Errorf("member %+v, %v", mem, err)
	}
	_, err = d.ChannelMessageSend(x.open, strings.Repeat("x", 2001))
	if re, isREST := err.(*discordgo.RESTError); !isREST || re.Message.Code != discordgo.ErrCodeInvalidFormBody {
		t.Errorf("an over-long message gave %v", err)
	}
	bot, err := d.GatewayBot()
	if err != nil || bot.SessionStartLimit.Total != 1000 || bot.URL != s.GatewayURL()+"/" {
		t.Errorf("gateway/bot %+v, %v", bot, err)
	}
}

func TestRealClientNullParsePingsEverybody(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := dt.New(t, x.world)
	d := library(t, s, 0)
	_, err := d.ChannelMessageSendComplex(x.open, &discordgo.MessageSend{Content: "@everyone", AllowedMentions: &discordgo.MessageAllowedMentions{}})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Pings(); len(p) != 1 || p[0].Who != "everyone" {
		t.Errorf("pings %v, want everyone: the zero value of the library is a null list", p)
	}
}

func TestRealClientHangsOnReconnectBeforeReady(t *testing.T) {
	t.Parallel()
	s := dt.New(t, newTown().world)
	s.SetHandshakes(dt.Handshake{Reconnect: true})
	opened := make(chan error, 1)
	go func() { opened <- library(t, s, 0).Open() }()
	s.Eventually("op 7", func() bool {
		for _, f := range s.Frames() {
			if f.Out && f.Op == 7 {
				return true
			}
		}
		return false
	})
	select {
	case err := <-opened:
		t.Errorf("Open returned (%v): the dead-lock that the adapter guards against is gone", err)
	case <-time.After(40 * time.Millisecond):
	}
}

func TestRealClientSeesCloseCode(t *testing.T) {
	t.Parallel()
	s := dt.New(t, newTown().world)
	s.ResetToken()
	d := library(t, s, 0)
	err := d.Open()
	if !websocket.IsCloseError(err, 4004) {
		t.Errorf("Open gave %v, want close code 4004", err)
	}
}
