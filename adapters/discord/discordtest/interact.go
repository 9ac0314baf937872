package discordtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// Times and numbers that Discord sets for interactions.
const (
	callbackTime  = 3 * time.Second
	tokenLife     = 15 * time.Minute
	userFollowups = 5 // of an app that is only installed by the user
)

// Kinds of interaction, by Discord's numbers.
const (
	pingKind         = 1
	commandKind      = 2
	componentKind    = 3
	autocompleteKind = 4
	modalKind        = 5
)

// Kinds of callback, by Discord's numbers.
const (
	pongReply    = 1
	messageReply = 4
	deferReply   = 5
	deferUpdate  = 6
	updateReply  = 7
	choicesReply = 8
	modalReply   = 9
)

type interactionState struct {
	interactions map[string]*interaction
	byToken      map[string]*interaction
	asked        []*interaction // in order
}

func newInteractionState() interactionState {
	return interactionState{interactions: map[string]*interaction{}, byToken: map[string]*interaction{}}
}

// interaction is the state machine: created, acknowledged once within 3 s,
// edited and followed up for 15 min.
type interaction struct {
	id, token string
	kind      int
	user      string
	guild     string
	channel   string
	payload   object
	at        time.Time

	sentAt    []time.Time // deliveries
	reply     int         // kind of the callback, 0: none yet
	ackedAt   time.Time
	failed    bool // not acknowledged in time
	original  *Message
	source    *Message // of a component
	followups int
	userOnly  bool // not installed in the guild
	modal     object
	choices   []any
	deadCalls int
	goneCalls int
}

// newInteraction makes one and starts its clock; the caller holds s.mu.
func (s *Server) newInteraction(kind int, user string, ch *Channel) *interaction {
	now := s.clock.Now()
	x := &interaction{id: s.world.snowflake(now), kind: kind, user: user, channel: ch.ID, guild: ch.GuildID, at: now}
	x.token = "aW50ZXJhY3Rpb246" + x.id + "." + strconv.FormatUint(hash(x.id), 36)
	s.interactions[x.id], s.byToken[x.token] = x, x
	s.asked = append(s.asked, x)
	s.After(callbackTime, func() {
		if x.reply == 0 {
			x.failed = true
			s.failures[user] = append(s.failures[user], "The application did not respond")
			s.Bump()
		}
	})
	return x
}

// callback is POST /interactions/{interaction}/{token}/callback.
func (s *Server) callback(c *call) result {
	x := s.interactions[c.p["interaction"]]
	if x == nil || x.token != c.p["token"] {
		return unknown("interaction", 10062)
	}
	var body struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if bad := c.bind(&body); bad != nil {
		return *bad
	}
	out := s.respond(x, body.Type, body.Data)
	if out.status >= 400 || c.query.Get("with_response") != "true" {
		return out
	}
	return ok(s.callbackWire(x))
}

func (s *Server) callbackWire(x *interaction) object {
	inter := object{"id": x.id, "type": x.kind}
	res := object{"type": x.reply}
	if m := x.original; m != nil {
		inter["response_message_id"], inter["response_message_ephemeral"] = m.ID, m.EphemeralTo != ""
		inter["response_message_loading"] = m.Thinking
		res["message"] = s.world.messageWire(m)
	}
	return object{"interaction": inter, "resource": res}
}

// respond takes the first response, by whatever way it came; the caller holds s.mu.
func (s *Server) respond(x *interaction, kind int, data json.RawMessage) result {
	switch {
	case x.reply != 0:
		return failure(400, 40060, "Interaction has already been acknowledged.")
	case s.clock.Now().Sub(x.at) > callbackTime:
		s.deadCall(x, "callback")
		return unknown("interaction", 10062)
	}
	if !slices.Contains(repliesTo(x), kind) {
		e := newForm()
		e.add("type", "INTERACTION_APPLICATION_COMMAND_CALLBACK_TYPE", "Callback type "+strconv.Itoa(kind)+" is not allowed for this interaction.")
		return e.result()
	}
	if bad := s.apply(x, kind, data); bad != nil {
		return *bad
	}
	x.reply, x.ackedAt = kind, s.clock.Now()
	s.Bump()
	return none()
}

// repliesTo lists the callbacks that fit the interaction.
func repliesTo(x *interaction) []int {
	switch x.kind {
	case commandKind:
		return []int{messageReply, deferReply, modalReply}
	case componentKind:
		return []int{messageReply, deferReply, deferUpdate, updateReply, modalReply}
	case autocompleteKind:
		return []int{choicesReply}
	case modalKind:
		if x.source != nil {
			return []int{messageReply, deferReply, deferUpdate, updateReply}
		}
		return []int{messageReply, deferReply}
	}
	return []int{pongReply}
}

const messageFlags = FlagEphemeral | FlagSuppressEmbeds | FlagSilent | FlagComponentsV2

// apply does what the callback says.
func (s *Server) apply(x *interaction, kind int, data json.RawMessage) *result {
	switch kind {
	case messageReply:
		return s.firstMessage(x, data)
	case deferReply:
		p, bad := parsePayload(data, "data.", FlagEphemeral)
		if bad != nil {
			return bad
		}
		m := s.responseMessage(x, p.Flags|FlagLoading)
		m.Thinking, m.Original = true, true
		x.original = m
		s.store(m)
	case deferUpdate:
		x.original = x.source
	case updateReply:
		x.original = x.source
		p, bad := parsePayload(data, "data.", messageFlags)
		if bad != nil {
			return bad
		}
		return s.edit(x.source, p)
	case choicesReply:
		return takeChoices(x, data)
	case modalReply:
		var modal object
		_ = json.Unmarshal(data, &modal)
		if bad := checkModal(modal); bad != nil {
			return bad
		}
		x.modal = modal
	}
	return nil
}

func (s *Server) firstMessage(x *interaction, data json.RawMessage) *result {
	p, bad := parsePayload(data, "data.", messageFlags)
	if bad != nil {
		return bad
	}
	m := s.responseMessage(x, p.Flags)
	m.Original = true
	if bad := s.create(m, p); bad != nil {
		return bad
	}
	x.original = m
	return nil
}

func takeChoices(x *interaction, data json.RawMessage) *result {
	var d object
	_ = json.Unmarshal(data, &d)
	choices, isList := d["choices"].([]any)
	e := newForm()
	if !isList {
		e.add("data.choices", "BASE_TYPE_REQUIRED", "This field is required")
	}
	e.count("data.choices", len(choices), 25)
	for i, v := range choices {
		o, _ := v.(object)
		name, _ := o["name"].(string)
		e.text("data.choices."+strconv.Itoa(i)+".name", name, 1, 100)
		if value, isText := o["value"].(string); isText {
			e.text("data.choices."+strconv.Itoa(i)+".value", value, 0, 100)
		}
	}
	if e.n > 0 {
		out := e.result()
		return &out
	}
	x.choices = choices
	return nil
}

// responseMessage is a new message of the interaction, not yet stored.
func (s *Server) responseMessage(x *interaction, flags int) *Message {
	m := &Message{Channel: x.channel, Guild: x.guild, Author: s.world.app.BotUser, Interaction: x.id, Flags: flags, Asker: x.user, askKind: x.kind}
	if flags&FlagEphemeral != 0 {
		m.EphemeralTo = x.user
	}
	if x.kind == commandKind {
		m.Type = 20
		if d, _ := x.payload["data"].(object); d["type"] == 3 {
			m.Type = 23
		}
	}
	return m
}

// deadCall counts calls with a token that can never work again. Whoever lets
// a token run out knows; one late callback is the way to learn of the 3 s.
func (s *Server) deadCall(x *interaction, what string) {
	x.deadCalls++
	allowed := s.rules.DeadTokenCalls
	if what == "callback" {
		allowed++
	}
	if x.deadCalls > allowed {
		s.violate("interaction %s: %s with a dead token", x.id, what)
	}
}

// hook finds the interaction of a webhook route, or says why not.
func (s *Server) hook(c *call) (*interaction, *result) {
	out := failure(401, 50027, "Invalid Webhook Token")
	if c.p["app"] != s.world.app.ID {
		out = unknown("Webhook", 10015)
		return nil, &out
	}
	x := s.byToken[c.p["token"]]
	if x == nil {
		return nil, &out
	}
	if s.clock.Now().Sub(x.at) > tokenLife {
		s.deadCall(x, c.req.Verb)
		return nil, &out
	}
	if x.reply == 0 {
		if x.failed {
			s.deadCall(x, c.req.Verb)
		}
		out = unknown("Webhook", 10015)
		return nil, &out
	}
	return x, nil
}

// hooked finds the message of a webhook route.
func (s *Server) hooked(c *call) (*interaction, *Message, *result) {
	x, bad := s.hook(c)
	if bad != nil {
		return nil, nil, bad
	}
	m := x.original
	if id := c.p["message"]; id != "@original" {
		m = s.world.byID[id]
		if m != nil && m.Interaction != x.id && m != x.original {
			m = nil
		}
	}
	if m == nil || m.Deleted {
		if x.goneCalls++; x.goneCalls > 1+s.rules.DeadTokenCalls {
			s.violate("interaction %s: %s of a message that is known to be gone", x.id, c.req.Verb)
		}
		out := unknown("Message", 10008)
		return nil, nil, &out
	}
	return x, m, nil
}

func (s *Server) getResponse(c *call) result {
	_, m, bad := s.hooked(c)
	if bad != nil {
		return *bad
	}
	return ok(s.world.messageWire(m))
}

// patchResponse edits; a deferral is thereby resolved and keeps its visibility.
func (s *Server) patchResponse(c *call) result {
	_, m, bad := s.hooked(c)
	if bad != nil {
		return *bad
	}
	p, bad := parsePayload(c.body, "", FlagSuppressEmbeds|FlagComponentsV2)
	if bad != nil {
		return *bad
	}
	if bad := s.edit(m, p); bad != nil {
		return *bad
	}
	return ok(s.world.messageWire(m))
}

func (s *Server) deleteResponse(c *call) result {
	_, m, bad := s.hooked(c)
	if bad != nil {
		return *bad
	}
	s.remove(m)
	return none()
}

// followup creates a message; the first one after a deferral edits that and
// its flags are ignored.
func (s *Server) followup(c *call) result {
	x, bad := s.hook(c)
	if bad != nil {
		return *bad
	}
	p, bad := parsePayload(c.body, "", messageFlags)
	if bad != nil {
		return *bad
	}
	if m := x.original; x.reply == deferReply && m.Thinking && !m.Deleted {
		p.Flags = 0
		if bad := s.edit(m, p); bad != nil {
			return *bad
		}
		return ok(s.world.messageWire(m))
	}
	if x.userOnly && x.followups >= userFollowups {
		return failure(400, 40094, "This interaction has reached the maximum number of follow up messages")
	}
	m := s.responseMessage(x, p.Flags)
	m.Type = 0
	if x.original != nil && x.original.Channel == m.Channel {
		m.ReplyTo = x.original.ID
	}
	if bad := s.create(m, p); bad != nil {
		return *bad
	}
	x.followups++
	return ok(s.world.messageWire(m))
}
