package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The kinds of delivery.
const (
	kindEvents      = "events_api"
	kindInteractive = "interactive"
	kindSlash       = "slash_commands"
)

// retryDelays are the waits before the retries of an event, counted from the
// moment that the delivery before was seen to fail.
var retryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}

const ackTime = 3 * time.Second

// Delivery says how something reaches the app. The zero Delivery is one copy, at once.
type Delivery struct {
	Copies       int           // further copies with the same envelope id and no retry mark
	NewIDs       int           // further copies with a new event_id and no retry mark
	Delay        time.Duration // before the first copy
	CopyDelay    time.Duration // before each further copy
	DropFirst    bool          // the first copy is lost: 3 s later comes retry 1
	RetryNum     int           // the only copy is marked as this retry
	Both         bool          // send the app_mention and the message event, whatever is subscribed
	MessageFirst bool          // of the two, the message event first
	PairGap      time.Duration // between the two
	NoMention    bool          // only the message event, as for some shared files
	Edited       bool          // the app_mention comes of an edit
}

// delivery is one event, command or interaction until it is settled.
type delivery struct {
	kind    string
	payload map[string]any
	accepts bool
	retry   int
	settled bool
	acked   bool
	answer  json.RawMessage // what the acknowledgement carried
	user    string
	onAck   func(json.RawMessage) // with s.mu held
	channel string
	ts      string
}

// sending is one copy on its way over one socket (0: HTTP).
type sending struct {
	d        *delivery
	envelope string
	socket   int
	retry    int
	at       time.Time
	acks     int
	ackedAt  time.Time // of the first
	late     bool
	excused  bool // the socket died or the app refused on purpose
}

type deliveryState struct {
	deliveries []*delivery
	sendings   []*sending
	byEnvelope map[string][]*sending
	pending    []*delivery // no socket was open
	scatter    func(*rand.Rand, Delivery) Delivery
}

func newDeliveryState() deliveryState {
	return deliveryState{byEnvelope: map[string][]*sending{}}
}

// SetScatter lets f change how each message of a person is delivered, for storms.
func (s *Server) SetScatter(f func(*rand.Rand, Delivery) Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scatter = f
}

// deliver sends the payload as the options say; the caller holds s.mu.
func (s *Server) deliver(d *delivery, o Delivery) {
	s.deliveries = append(s.deliveries, d)
	d.retry = o.RetryNum
	envelope := s.envelopeID()
	s.Later(o.Delay, func() {
		if o.DropFirst {
			s.After(ackTime, func() { s.again(d, "timeout") })
			return
		}
		s.transmit(d, envelope, "")
		for range o.Copies {
			s.Later(o.CopyDelay, func() { s.transmit(d, envelope, "") })
		}
		for range o.NewIDs {
			s.Later(o.CopyDelay, func() { s.anew(d) })
		}
	})
	s.Bump()
}

// anew delivers the same event once more as if it were another one.
func (s *Server) anew(d *delivery) {
	c := &delivery{kind: d.kind, payload: maps.Clone(d.payload), channel: d.channel, ts: d.ts, user: d.user}
	if c.kind == kindEvents {
		c.payload["event_id"] = s.id("Ev")
	}
	s.deliveries = append(s.deliveries, c)
	s.transmit(c, s.envelopeID(), "")
}

func (s *Server) envelopeID() string {
	s.ids["envelope"]++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.ids["envelope"])
}

// transmit sends one copy by whatever transport is in use.
func (s *Server) transmit(d *delivery, envelope, reason string) {
	if s.webhook != nil {
		s.postDelivery(d, reason)
		return
	}
	sock := s.pick()
	if sock == nil {
		s.undeliverable(d)
		return
	}
	env := map[string]any{
		"envelope_id": envelope, "type": d.kind, "payload": d.payload, "accepts_response_payload": d.accepts,
	}
	if d.kind == kindEvents {
		env["retry_attempt"], env["retry_reason"] = d.retry, reason
	}
	snd := s.sent(d, envelope, sock.id)
	s.push(sock, d.kind, envelope, d.retry, env)
	s.After(ackTime, func() { s.overdue(snd, "timeout") })
}

// sent notes one copy.
func (s *Server) sent(d *delivery, envelope string, socket int) *sending {
	snd := &sending{d: d, envelope: envelope, socket: socket, retry: d.retry, at: s.clock.Now()}
	s.sendings = append(s.sendings, snd)
	s.byEnvelope[envelope] = append(s.byEnvelope[envelope], snd)
	return snd
}

// undeliverable keeps events until a socket opens; people learn at once that
// their command or click reached nobody.
func (s *Server) undeliverable(d *delivery) {
	if d.settled {
		return
	}
	if d.kind == kindEvents {
		s.pending = append(s.pending, d)
		return
	}
	s.giveUp(d, "dispatch_failed")
}

// flush delivers what waited for a socket, marked as a retry.
func (s *Server) flush() {
	waiting := s.pending
	s.pending = nil
	for _, d := range waiting {
		d.retry = max(1, d.retry)
		s.transmit(d, s.envelopeID(), "connection_failed")
	}
}

// overdue is called when a copy was not acknowledged in time.
func (s *Server) overdue(snd *sending, reason string) {
	if snd.acks > 0 || snd.d.settled || snd.retry < snd.d.retry {
		return
	}
	s.again(snd.d, reason)
}

// again schedules the next retry of an event, or gives the delivery up.
func (s *Server) again(d *delivery, reason string) {
	if d.settled {
		return
	}
	if d.kind != kindEvents {
		s.giveUp(d, "operation_timeout")
		return
	}
	if d.retry >= len(s.retries) {
		s.giveUp(d, "")
		return
	}
	wait := s.retries[d.retry]
	d.retry++
	n := d.retry
	s.Later(wait, func() {
		if !d.settled && d.retry == n {
			s.transmit(d, s.envelopeID(), reason)
		}
	})
}

func (s *Server) giveUp(d *delivery, told string) {
	d.settled = true
	if told != "" {
		s.userErrors[d.user] = append(s.userErrors[d.user], told)
	}
	s.Bump()
}

// acknowledge counts an acknowledgement of one copy, with what it carried.
func (s *Server) acknowledge(snd *sending, payload json.RawMessage) {
	if snd.acks++; snd.acks == 1 {
		snd.ackedAt = s.clock.Now()
	}
	limit := s.rules.AckWithin
	if limit == 0 {
		limit = ackTime
	}
	if s.clock.Now().Sub(snd.at) > limit {
		snd.late = true
	}
	d := snd.d
	if string(payload) == "null" {
		payload = nil
	}
	if len(payload) > 0 && !d.accepts {
		s.violate("acknowledgement of %s carries a payload that is not accepted", snd.envelope)
		payload = nil
	}
	if !d.settled {
		d.settled, d.acked, d.answer = true, true, payload
		if d.onAck != nil {
			d.onAck(payload)
		}
	}
	s.Bump()
}

// checkAcks says which copies were not acknowledged exactly once and in time.
func (s *Server) checkAcks() []string {
	var out []string
	limit := s.rules.AckWithin
	if limit == 0 {
		limit = ackTime
	}
	for _, snd := range s.sendings {
		name := fmt.Sprintf("envelope %s (%s, socket %d, retry %d)", snd.envelope, snd.d.kind, snd.socket, snd.retry)
		switch {
		case snd.acks > 1:
			out = append(out, fmt.Sprintf("%s acknowledged %d times", name, snd.acks))
		case snd.late:
			out = append(out, name+" acknowledged too late")
		case snd.acks == 0 && !snd.excused && !s.rules.Lost && s.clock.Now().Sub(snd.at) >= limit:
			out = append(out, name+" never acknowledged")
		}
	}
	return out
}

// Unsettled is how many deliveries are neither acknowledged nor given up.
func (s *Server) Unsettled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range s.deliveries {
		if !d.settled {
			n++
		}
	}
	return n
}

// Ack is one acknowledged copy, for latency figures.
type Ack struct {
	Kind  string
	Retry int
	After time.Duration
}

// Lost is how many events the app never acknowledged in all their retries.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range s.deliveries {
		if d.settled && !d.acked {
			n++
		}
	}
	return n
}

// Acks lists how long each acknowledgement took, in the order of the sendings.
func (s *Server) Acks() []Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Ack
	for _, snd := range s.sendings {
		if snd.acks > 0 {
			out = append(out, Ack{snd.d.kind, snd.retry, snd.ackedAt.Sub(snd.at)})
		}
	}
	return out
}

// Redeliver sends the events of the message again, as Slack does after a
// reconnect or an hour later: with a new event_id or, marked as a retry, with the old one.
func (s *Server) Redeliver(channel, ts string, newID bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range slices.Clone(s.deliveries) {
		if d.kind != kindEvents || d.channel != channel || d.ts != ts {
			continue
		}
		n++
		if newID {
			s.anew(d)
			continue
		}
		c := &delivery{kind: d.kind, payload: d.payload, channel: channel, ts: ts, retry: 1}
		s.deliveries = append(s.deliveries, c)
		s.transmit(c, s.envelopeID(), "timeout")
	}
	return n
}

// eventScopes is what an app needs besides the subscription.
var eventScopes = map[string]string{
	"app_mention": "app_mentions:read", "message.im": "im:history", "message.channels": "channels:history",
	"message.groups": "groups:history", "message.mpim": "mpim:history", "user_change": "users:read", "team_join": "users:read",
	"file_deleted": "files:read", "subteam_created": "usergroups:read", "subteam_updated": "usergroups:read", "subteam_members_changed": "usergroups:read",
}

// subscribed reports that the app gets such events.
func (s *Server) subscribed(sub string) bool {
	need := eventScopes[sub]
	return slices.Contains(s.world.App.Events, sub) && (need == "" || slices.Contains(s.world.App.Scopes, need))
}

// emit sends an event if it is subscribed; the caller holds s.mu.
func (s *Server) emit(sub string, event map[string]any, ch *Channel, o Delivery) {
	if s.subscribed(sub) {
		s.emitAnyway(event, ch, o)
	}
}

func (s *Server) emitAnyway(event map[string]any, ch *Channel, o Delivery) {
	ts, _ := event["ts"].(string)
	d := &delivery{kind: kindEvents, payload: s.outer(event, ch), ts: ts}
	if ch != nil {
		d.channel = ch.ID
	}
	s.deliver(d, o)
}

// outer wraps an inner event as the Events API does. The event is copied by
// way of JSON: it must not change while it waits.
func (s *Server) outer(event map[string]any, ch *Channel) map[string]any {
	w := s.world
	var inner map[string]any
	_ = json.Unmarshal(raw(event), &inner)
	var enterprise any
	if w.Team.Enterprise != "" {
		enterprise = w.Team.Enterprise
	}
	team := w.Team.ID
	// In shared channels the outer team may be the author's own.
	if id, _ := event["user"].(string); ch != nil && ch.ExtShared && w.users[id] != nil {
		team = w.users[id].TeamID
	}
	id := s.id("Ev")
	return map[string]any{
		"token": "legacy-verification-token", "team_id": team, "context_team_id": w.Team.ID, "context_enterprise_id": enterprise,
		"enterprise_id": enterprise, "api_app_id": w.App.ID, "event": inner, "type": "event_callback", "event_id": id,
		"event_time": s.clock.Now().Unix(), "event_context": "4-" + id,
		"is_ext_shared_channel": ch != nil && ch.ExtShared,
		"authorizations": []any{map[string]any{
			"enterprise_id": enterprise, "team_id": w.Team.ID, "user_id": w.App.BotUser, "is_bot": true,
			"is_enterprise_install": w.App.IsEnterpriseInstall,
		}},
	}
}

var messageSubs = map[Kind]string{Public: "message.channels", Private: "message.groups", IM: "message.im", MPIM: "message.mpim"}

// emitMessage sends what a new message causes: a message event where the bot is
// a member, and an app_mention when it names the bot anywhere but in a DM.
func (s *Server) emitMessage(ch *Channel, m *Message, o Delivery) {
	e := s.messageEvent(ch, m)
	sub := messageSubs[ch.Kind]
	mention := func(o Delivery) {
		if ch.Kind == IM || o.NoMention || !strings.Contains(m.Text, "<@"+s.world.App.BotUser) {
			return
		}
		a := maps.Clone(e)
		a["type"] = "app_mention"
		for _, k := range []string{"channel_type", "subtype", "parent_user_id"} {
			delete(a, k)
		}
		if o.Both {
			s.emitAnyway(a, ch, o)
		} else {
			s.emit("app_mention", a, ch, o)
		}
	}
	message := func(o Delivery) {
		switch {
		case o.Edited || !ch.has(s.world.App.BotUser):
		case o.Both:
			s.emitAnyway(e, ch, o)
		default:
			s.emit(sub, e, ch, o)
		}
	}
	second := o
	second.Delay += o.PairGap
	if o.MessageFirst {
		message(o)
		mention(second)
		return
	}
	mention(o)
	message(second)
}

// messageEvent is the message as an inner event.
func (s *Server) messageEvent(ch *Channel, m *Message) map[string]any {
	e := m.wire()
	e["channel"], e["event_ts"], e["channel_type"], e["team"] = ch.ID, m.TS, string(ch.Kind), s.world.Team.ID
	if p := s.world.live(ch.ID, m.ThreadTS); p != nil {
		e["parent_user_id"] = p.User
	}
	if m.BotID == "" {
		e["client_msg_id"] = fmt.Sprintf("c0ffee00-0000-4000-8000-%012d", s.seq+len(s.deliveries))
	}
	s.withFiles(e, m)
	if m.Subtype == "file_share" && len(m.Files) == 0 {
		e["files"] = []any{map[string]any{"id": "F0FILE", "name": "screen.png", "mimetype": "image/png", "url_private": "https://files.slack.com/F0FILE"}}
	}
	if u := s.world.users[m.User]; u != nil && u.TeamID != s.world.Team.ID {
		e["user_team"], e["source_team"], e["team"] = u.TeamID, u.TeamID, u.TeamID
		e["user_profile"] = map[string]any{"name": u.Name, "team": u.TeamID}
	}
	return e
}

// withFiles adds what was posted with the message.
func (s *Server) withFiles(o map[string]any, m *Message) map[string]any {
	if len(m.Files) > 0 {
		var files []any
		for _, id := range m.Files {
			files = append(files, s.world.fileWire(id))
		}
		o["files"] = files
	}
	return o
}

// emitChanged sends a message_changed for the message; extra fields go into it.
func (s *Server) emitChanged(ch *Channel, m *Message, oldText string, extra map[string]any) {
	if !ch.has(s.world.App.BotUser) {
		return
	}
	now, before := s.withFiles(m.wire(), m), s.withFiles(m.wire(), m)
	maps.Copy(now, extra)
	before["text"] = oldText
	at := s.world.nextTS(ch.ID, s.clock.Now())
	s.emit(messageSubs[ch.Kind], map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": ch.ID, "channel_type": string(ch.Kind),
		"ts": at, "event_ts": at, "message": now, "previous_message": before,
	}, ch, Delivery{})
}

func (s *Server) emitDeleted(ch *Channel, m *Message) {
	if !ch.has(s.world.App.BotUser) {
		return
	}
	at := s.world.nextTS(ch.ID, s.clock.Now())
	s.emit(messageSubs[ch.Kind], map[string]any{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": ch.ID, "channel_type": string(ch.Kind),
		"ts": at, "event_ts": at, "deleted_ts": m.TS, "previous_message": s.withFiles(m.wire(), m),
	}, ch, Delivery{})
}
