package slacktest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"footnote/adapters/slack/slacktest"
	"footnote/bot/clocktest"
)

// client is a bare socket under full control of the test.
type client struct {
	t    *testing.T
	conn *websocket.Conn
	in   chan envelope
}

type envelope struct {
	ID      string          `json:"envelope_id"`
	Type    string          `json:"type"`
	Reason  string          `json:"reason"`
	Retry   int             `json:"retry_attempt"`
	Why     string          `json:"retry_reason"`
	Payload json.RawMessage `json:"payload"`
	Num     int             `json:"num_connections"`
	Info    struct {
		App string `json:"app_id"`
	} `json:"connection_info"`
}

func (e envelope) eventID() string {
	var p struct {
		ID string `json:"event_id"`
	}
	_ = json.Unmarshal(e.Payload, &p)
	return p.ID
}

func openURL(t *testing.T, s *slacktest.Server) (address, code string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, s.APIURL()+"apps.connections.open", nil)
	req.Header.Set("Authorization", "Bearer "+s.App().AppToken)
	r := do(req)
	address, _ = r.Body["url"].(string)
	return address, r.code()
}

// dial opens a socket and waits for its hello.
func dial(t *testing.T, s *slacktest.Server) *client {
	t.Helper()
	k := dialRaw(t, s)
	if e := k.next("hello"); e.Info.App != "A0APP" {
		t.Fatalf("hello names app %q", e.Info.App)
	}
	return k
}

func dialRaw(t *testing.T, s *slacktest.Server) *client {
	t.Helper()
	u, code := openURL(t, s)
	if code != "ok" {
		t.Fatalf("apps.connections.open: %s", code)
	}
	conn, resp, err := websocket.DefaultDialer.Dial(u, nil)
	if err != nil {
		t.Fatalf("dialling: %v", err)
	}
	_ = resp.Body.Close()
	k := &client{t: t, conn: conn, in: make(chan envelope, 1000)}
	go func() {
		defer close(k.in)
		for {
			var e envelope
			if conn.ReadJSON(&e) != nil {
				return
			}
			k.in <- e
		}
	}()
	t.Cleanup(func() { _ = conn.Close() })
	return k
}

func (k *client) next(kind string) envelope {
	k.t.Helper()
	select {
	case e, ok := <-k.in:
		if !ok || e.Type != kind {
			k.t.Fatalf("received %+v (open: %v), want a frame of type %s", e, ok, kind)
		}
		return e
	case <-time.After(10 * time.Second):
		k.t.Fatalf("no frame of type %s", kind)
	}
	return envelope{}
}

func (k *client) ack(e envelope, payload any) {
	k.t.Helper()
	o := map[string]any{"envelope_id": e.ID}
	if payload != nil {
		o["payload"] = payload
	}
	if err := k.conn.WriteJSON(o); err != nil {
		k.t.Fatalf("acknowledging: %v", err)
	}
}

func manual(t *testing.T) (*slacktest.Server, *clocktest.ManualClock) {
	t.Helper()
	clock := clocktest.NewManualClock(time.Time{})
	return slacktest.New(t, world(), slacktest.WithClock(clock)), clock
}

func TestUnacknowledgedEventsComeAgain(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	k := dial(t, s)
	s.Mention("U0ADA", "C0GENERAL", "x")
	first := k.next("events_api")
	for i, wait := range []time.Duration{3 * time.Second, 3*time.Second + time.Minute, 3*time.Second + 5*time.Minute} {
		clock.Advance(wait)
		e := k.next("events_api")
		if e.Retry != i+1 || e.Why != "timeout" || e.ID == first.ID || e.eventID() != first.eventID() {
			t.Errorf("retry %d is %+v", i+1, e)
		}
	}
	clock.Advance(time.Hour)
	if s.Unsettled() != 0 || s.Lost() != 1 {
		t.Errorf("%d unsettled, %d lost; want 0 and 1", s.Unsettled(), s.Lost())
	}
	if got := s.CheckInvariants(); len(got) != 4 || !strings.Contains(got[0], "never acknowledged") {
		t.Errorf("invariants %v, want one line for each of four copies", got)
	}
}

func TestAcknowledgedEventsDoNotComeAgain(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	k := dial(t, s)
	s.Mention("U0ADA", "C0GENERAL", "x")
	k.ack(k.next("events_api"), nil)
	s.WaitSettled()
	clock.Advance(time.Hour)
	if n := len(s.Acks()); n != 1 || len(k.in) != 0 {
		t.Errorf("%d acknowledgements, %d further frames", n, len(k.in))
	}
	clean(t, s)
}

func TestWhatCountsAsAnAcknowledgement(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		do   func(*slacktest.Server, *clocktest.ManualClock, *client, *client, envelope)
		want string
	}{
		"twice": {func(_ *slacktest.Server, _ *clocktest.ManualClock, a, _ *client, e envelope) {
			a.ack(e, nil)
			a.ack(e, nil)
		},
			"acknowledged 2 times"},
		"on another socket": {func(_ *slacktest.Server, _ *clocktest.ManualClock, _, b *client, e envelope) { b.ack(e, nil) },
			"which did not send it"},
		"without an id": {func(_ *slacktest.Server, _ *clocktest.ManualClock, a, _ *client, _ envelope) { a.ack(envelope{}, nil) },
			"without envelope_id"},
		"too large": {func(_ *slacktest.Server, _ *clocktest.ManualClock, a, _ *client, e envelope) {
			a.ack(e, strings.Repeat("a", 20<<10))
		},
			"was ignored"},
		"with a payload that is not accepted": {func(_ *slacktest.Server, _ *clocktest.ManualClock, a, _ *client, e envelope) {
			a.ack(e, map[string]any{"text": "x"})
		}, "not accepted"},
		"too late": {func(_ *slacktest.Server, c *clocktest.ManualClock, a, _ *client, e envelope) {
			c.Advance(4 * time.Second)
			a.ack(e, nil)
		},
			"too late"},
		"not JSON": {func(_ *slacktest.Server, _ *clocktest.ManualClock, a, _ *client, _ envelope) {
			_ = a.conn.WriteMessage(websocket.TextMessage, []byte("{"))
		}, "not JSON"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := manual(t)
			a, b := dial(t, s), dial(t, s)
			s.Distribute(func(int) int { return 0 })
			s.Mention("U0ADA", "C0GENERAL", "x")
			c.do(s, clock, a, b, a.next("events_api"))
			s.Eventually(c.want, func() bool { return strings.Contains(strings.Join(s.CheckInvariants(), "\n"), c.want) })
		})
	}
}

func TestDeliveriesAreSharedAmongSockets(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	a, b := dial(t, s), dial(t, s)
	for range 4 {
		s.Mention("U0ADA", "C0GENERAL", "x")
	}
	for range 2 {
		a.ack(a.next("events_api"), nil)
		b.ack(b.next("events_api"), nil)
	}
	s.WaitSettled()
	clean(t, s)
}

func TestCopies(t *testing.T) {
	t.Parallel()
	type copyOf struct {
		SameEnvelope, SameEvent bool
		Retry                   int
	}
	cases := map[string]struct {
		delivery slacktest.Delivery
		want     []copyOf
	}{
		"plain":                   {slacktest.Delivery{}, []copyOf{{true, true, 0}}},
		"same envelope twice":     {slacktest.Delivery{Copies: 1}, []copyOf{{true, true, 0}, {true, true, 0}}},
		"new event id":            {slacktest.Delivery{NewIDs: 1}, []copyOf{{true, true, 0}, {false, false, 0}}},
		"marked as a retry":       {slacktest.Delivery{RetryNum: 1}, []copyOf{{true, true, 1}}},
		"first copy lost":         {slacktest.Delivery{DropFirst: true}, []copyOf{{true, true, 1}}},
		"later":                   {slacktest.Delivery{Delay: time.Minute}, []copyOf{{true, true, 0}}},
		"mention and its message": {slacktest.Delivery{Both: true}, []copyOf{{true, true, 0}, {false, false, 0}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := manual(t)
			k := dial(t, s)
			s.Mention("U0ADA", "C0GENERAL", "x", c.delivery)
			clock.Advance(c.delivery.Delay)
			if c.delivery.DropFirst {
				clock.Advance(3 * time.Second)
			}
			var first envelope
			var got []copyOf
			for i := range c.want {
				e := k.next("events_api")
				k.ack(e, nil)
				if i == 0 {
					first = e
				}
				got = append(got, copyOf{e.ID == first.ID, e.eventID() == first.eventID(), e.Retry})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("copies (-want +got):\n%s", diff)
			}
			s.WaitSettled()
			clean(t, s)
		})
	}
}

func TestRedeliveryAnHourLater(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	k := dial(t, s)
	q := s.Mention("U0ADA", "C0GENERAL", "x")
	first := k.next("events_api")
	k.ack(first, nil)
	s.WaitSettled()
	clock.Advance(time.Hour)
	if n := s.Redeliver(q.Channel, q.TS, false) + s.Redeliver(q.Channel, "1.0", false); n != 1 {
		t.Fatalf("%d events sent again, want 1", n)
	}
	again := k.next("events_api")
	k.ack(again, nil)
	if again.Retry != 1 || again.eventID() != first.eventID() {
		t.Errorf("sent again as %+v", again)
	}
	s.WaitSettled()
	clean(t, s)
}

func TestSocketAddressesWorkOnce(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	u, _ := openURL(t, s)
	for i, want := range []int{101, 400} {
		conn, resp, err := websocket.DefaultDialer.Dial(u, nil)
		if resp == nil || resp.StatusCode != want {
			t.Errorf("dial %d: %v %v, want status %d", i, resp, err, want)
			continue
		}
		if conn != nil {
			defer conn.Close()
		}
	}
	if got := s.CheckInvariants(); len(got) != 1 || !strings.Contains(got[0], "used twice") {
		t.Errorf("invariants %v", got)
	}
}

func TestDisconnectReasons(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"warning", "refresh_requested", "link_disabled"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s, clock := manual(t)
			k := dial(t, s)
			s.Disconnect(reason)
			if e := k.next("disconnect"); e.Reason != reason || e.ID != "" {
				t.Errorf("disconnect is %+v", e)
			}
			if reason == "warning" {
				if s.Sockets() != 1 {
					t.Error("closed without the ten seconds")
				}
				clock.Advance(10 * time.Second)
			}
			if e, open := <-k.in; open {
				t.Errorf("received %+v, want the end", e)
			}
			s.WaitSockets(0)
			if _, code := openURL(t, s); (code == "ok") == (reason == "link_disabled") {
				t.Errorf("opening again gives %s", code)
			}
		})
	}
}

func TestTheEleventhSocketIsTurnedAway(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	s.ForeignSockets(9)
	u, _ := openURL(t, s)
	conn, resp, err := websocket.DefaultDialer.Dial(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = resp.Body.Close()
	var e envelope
	if err := conn.ReadJSON(&e); err != nil || e.Num != 10 {
		t.Errorf("hello %+v, %v; want ten connections", e, err)
	}
	k := dialRaw(t, s)
	if e := k.next("disconnect"); e.Reason != "too_many_websockets" {
		t.Errorf("disconnect is %+v", e)
	}
	s.WaitSockets(1)
}

func TestASocketThatDiesOnAnAcknowledgement(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	k := dial(t, s)
	s.KillOnAck(1)
	s.Mention("U0ADA", "C0GENERAL", "x")
	k.ack(k.next("events_api"), nil)
	s.WaitSockets(0)
	k2 := dial(t, s)
	clock.Advance(3 * time.Second)
	e := k2.next("events_api")
	if e.Retry != 1 {
		t.Errorf("retry %d, want 1", e.Retry)
	}
	k2.ack(e, nil)
	s.WaitSettled()
	clean(t, s)
}

func TestHalfOpenSocketsHearAndSayNothing(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	k := dial(t, s)
	s.Silence()
	s.Mention("U0ADA", "C0GENERAL", "x")
	clock.Advance(3 * time.Second)
	if len(k.in) != 0 || s.Sockets() != 1 || s.Unsettled() != 1 {
		t.Errorf("%d frames, %d sockets, %d unsettled", len(k.in), s.Sockets(), s.Unsettled())
	}
}

func TestCommandsAreNeverSentAgain(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	s.Slash("U0BOB", "C0GENERAL", "/ask", "nobody listens")
	k := dial(t, s)
	i := s.Slash("U0ADA", "C0GENERAL", "/ask", "x")
	e := k.next("slash_commands")
	clock.Advance(4 * time.Second)
	k.ack(e, map[string]any{"text": "too late"})
	s.Eventually("the late acknowledgement", func() bool { return len(s.Acks()) == 1 })
	if _, ok := i.Acked(); ok || len(s.Ephemerals("U0ADA")) != 0 {
		t.Error("a late acknowledgement took effect")
	}
	for user, want := range map[string]string{"U0ADA": "operation_timeout", "U0BOB": "dispatch_failed"} {
		if diff := cmp.Diff([]string{want}, s.UserErrors(user)); diff != "" {
			t.Errorf("%s was told (-want +got):\n%s", user, diff)
		}
	}
}

func TestAnAcknowledgedCommandShowsItsPayload(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	k := dial(t, s)
	i := s.Slash("U0ADA", s.DMChannel("U0ADA"), "/ask", "x")
	e := k.next("slash_commands")
	var p map[string]string
	if err := json.Unmarshal(e.Payload, &p); err != nil || p["channel_name"] != "directmessage" || p["text"] != "x" {
		t.Errorf("payload %s, %v", e.Payload, err)
	}
	k.ack(e, map[string]any{"response_type": "ephemeral", "text": "looking"})
	i.Wait()
	if m := s.WaitEphemeral("U0ADA", slacktest.Any); m.Text != "looking" {
		t.Errorf("shown %q", m.Text)
	}
	clean(t, s)
}

func TestOnlySubscribedEventsOfOwnChannelsAreSent(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		do   func(*slacktest.Server)
		want []string
	}{
		"mention":                      {func(s *slacktest.Server) { s.Mention("U0ADA", "C0GENERAL", "x") }, []string{"app_mention"}},
		"mention without the bot":      {func(s *slacktest.Server) { s.Mention("U0ADA", "C0NOTIN", "x") }, []string{"app_mention"}},
		"mention in a direct message":  {func(s *slacktest.Server) { s.DM("U0ADA", "<@U0BOT> x") }, []string{"message im"}},
		"chatter":                      {func(s *slacktest.Server) { s.Say("U0ADA", "C0GENERAL", "x") }, nil},
		"edit that adds a mention":     {func(s *slacktest.Server) { s.Edit(s.Say("U0ADA", "C0GENERAL", "x"), "<@U0BOT> x") }, []string{"app_mention"}},
		"edit of a direct message":     {func(s *slacktest.Server) { s.Edit(s.DM("U0ADA", "x"), "y") }, []string{"message im", "message_changed im"}},
		"preview of a direct message":  {func(s *slacktest.Server) { s.Touch(s.DM("U0ADA", "x")) }, []string{"message im", "message_changed im"}},
		"deletion of a direct message": {func(s *slacktest.Server) { s.Delete(s.DM("U0ADA", "x")) }, []string{"message im", "message_deleted im"}},
		"file":                         {func(s *slacktest.Server) { s.FileShare("U0ADA", s.DMChannel("U0ADA"), "x") }, []string{"file_share im"}},
		"broadcast": {func(s *slacktest.Server) {
			s.Broadcast("U0ADA", "C0GENERAL", s.Say("U0BOB", "C0GENERAL", "x").TS, "<@U0BOT> y")
		}, []string{"app_mention"}},
		"join":               {func(s *slacktest.Server) { s.Join("U0CYD", "C0SECURITY") }, []string{"member_joined_channel"}},
		"join elsewhere":     {func(s *slacktest.Server) { s.Join("U0CYD", "C0SECRET") }, nil},
		"leave":              {func(s *slacktest.Server) { s.Leave("U0BOB", "C0SECURITY") }, []string{"member_left_channel"}},
		"bot leaves":         {func(s *slacktest.Server) { s.Leave("U0BOT", "C0SECURITY") }, []string{"group_left"}},
		"group changes":      {func(s *slacktest.Server) { s.SetGroup("S0SECURITY", "U0ADA") }, []string{"subteam_members_changed", "subteam_updated"}},
		"group disabled":     {func(s *slacktest.Server) { s.DisableGroup("S0SECURITY") }, []string{"subteam_updated"}},
		"group created":      {func(s *slacktest.Server) { s.AddGroup(slacktest.Group{ID: "S0NEW"}) }, []string{"subteam_created"}},
		"account closed":     {func(s *slacktest.Server) { s.UpdateUser("U0BOB", func(u *slacktest.User) { u.Deleted = true }) }, []string{"user_change"}},
		"newcomer":           {func(s *slacktest.Server) { s.AddUser(slacktest.User{ID: "U0NEW", Name: "new"}) }, []string{"team_join"}},
		"shared":             {func(s *slacktest.Server) { s.ShareChannel("C0GENERAL", "T0AWAY", false) }, []string{"channel_shared"}},
		"shared, pending":    {func(s *slacktest.Server) { s.ShareChannel("C0GENERAL", "T0AWAY", true) }, nil},
		"unshared":           {func(s *slacktest.Server) { s.UnshareChannel("C0SHARED", "T0AWAY") }, []string{"channel_unshared"}},
		"archived":           {func(s *slacktest.Server) { s.Archive("C0GENERAL", true) }, []string{"channel_archive"}},
		"unarchived":         {func(s *slacktest.Server) { s.Archive("C0SECURITY", false) }, []string{"group_unarchive"}},
		"renamed":            {func(s *slacktest.Server) { s.Rename("C0GENERAL", "all") }, []string{"channel_rename"}},
		"new id":             {func(s *slacktest.Server) { s.ChangeID("C0GENERAL", "C0MOVED") }, []string{"channel_id_changed"}},
		"uninstalled":        {func(s *slacktest.Server) { s.Uninstall() }, []string{"tokens_revoked", "app_uninstalled"}},
		"home tab":           {func(s *slacktest.Server) { s.OpenHome("U0ADA") }, []string{"app_home_opened"}},
		"cut short by Slack": {func(s *slacktest.Server) { s.RateLimitedNotice() }, []string{"app_rate_limited"}},
		"anything":           {func(s *slacktest.Server) { s.Emit(map[string]any{"type": "of_the_future"}) }, []string{"of_the_future"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := manual(t)
			c.do(s) // before a socket is open: everything waits and then comes in order
			k := dial(t, s)
			var got []string
			for range s.Unsettled() {
				got = append(got, describe(k.next("events_api").Payload))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func describe(payload json.RawMessage) string {
	var p struct {
		Type  string
		Event struct {
			Type, Subtype string
			Channel       string `json:"channel_type"`
		}
	}
	if json.Unmarshal(payload, &p) != nil {
		// channel fields of rename events are objects
		return strings.Trim(strings.SplitN(string(payload), `"type":`, 3)[1], `"},`)
	}
	kind := p.Event.Type
	if p.Event.Subtype != "" {
		kind = p.Event.Subtype
	}
	if kind == "" {
		return p.Type
	}
	if p.Event.Type == "message" {
		kind += " " + p.Event.Channel
	}
	return kind
}

func TestOwnPostsComeBackAndLinksUnfurl(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	k := dial(t, s)
	dm := s.DMChannel("U0ADA")
	call(s, "chat.postMessage", args{"channel": dm, "text": "see https://example.com"})
	e := k.next("events_api")
	if !strings.Contains(string(e.Payload), `"bot_id":"B0BOT"`) {
		t.Errorf("echo without bot_id: %s", e.Payload)
	}
	if got := describe(k.next("events_api").Payload); got != "message_changed im" {
		t.Errorf("after the echo came %s, want the preview's message_changed", got)
	}
	call(s, "chat.postMessage", args{"channel": dm, "text": "see https://example.com", "unfurl_links": "false", "unfurl_media": "false"})
	k.next("events_api")
	if n := s.Unsettled(); n != 3 {
		t.Errorf("%d deliveries, want 3: no preview when both flags are off", n)
	}
}

func TestExternalAuthorsAreMarked(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	k := dial(t, s)
	s.Mention("U0EVE", "C0SHARED", "x")
	var p struct {
		Team   string `json:"team_id"`
		Shared bool   `json:"is_ext_shared_channel"`
		Auth   []struct {
			Team string `json:"team_id"`
		} `json:"authorizations"`
		Event struct {
			UserTeam string `json:"user_team"`
		}
	}
	if err := json.Unmarshal(k.next("events_api").Payload, &p); err != nil {
		t.Fatal(err)
	}
	if p.Team != "T0AWAY" || !p.Shared || p.Auth[0].Team != "T0HOME" || p.Event.UserTeam != "T0AWAY" {
		t.Errorf("outer event %+v", p)
	}
}
