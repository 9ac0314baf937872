package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"footnote/adapters/discord/guild"
	"footnote/adapters/discord/render"
	"footnote/bot/desk"
)

// chat is a message as the gateway brings it.
type chat struct {
	ID        string          `json:"id"`
	Channel   string          `json:"channel_id"`
	Guild     string          `json:"guild_id"`
	Type      int             `json:"type"`
	Content   string          `json:"content"`
	Author    *user           `json:"author"`
	Member    *member         `json:"member"`
	Webhook   string          `json:"webhook_id"`
	Mentions  []user          `json:"mentions"`
	Timestamp json.RawMessage `json:"timestamp"`

	Attachments []attachment `json:"attachments"`
}

var mentioned = regexp.MustCompile(`<@!?(\d+)>`)

// message takes a question that somebody wrote in a message. Only people ask:
// no bots, no webhooks, no notices of the system.
func (a *Adapter) message(ctx context.Context, raw []byte) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			a.count(func(h *Health) { h.Panics++ })
			a.d.Log.Error("a message panicked", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		}
	}()
	var m chat
	if json.Unmarshal(raw, &m) != nil || !isID(m.ID) || !isID(m.Channel) || m.Author == nil || !isID(m.Author.ID) {
		return
	}
	self := a.gate.self()
	if self == "" || m.Author.ID == self || m.Author.Bot || m.Webhook != "" || m.Type != 0 && m.Type != 19 {
		return
	}
	q := question{App: a.application(), ID: m.ID, Guild: m.Guild, Channel: m.Channel, User: m.Author.ID, Message: true, At: a.d.Now()}
	q.Text = strings.TrimSpace(mentioned.ReplaceAllStringFunc(m.Content, func(s string) string {
		if strings.Contains(s, self) {
			return ""
		}
		return s
	}))
	if m.Guild != "" {
		if !isID(m.Guild) || m.Member == nil || !a.mentions(m, self) || !a.dir.tenant(m.Guild) || m.Member.timedOut(a.d.Now()) || a.dir.mode(m.Guild, m.Channel, guild.Channel{}) == Off {
			return
		}
		q.Roles, q.Pending = m.Member.Roles, m.Member.Pending
	}
	if a.offered(ctx, m, q) || q.Text == "" {
		return
	}
	a.takeMessage(ctx, q)
}

func (a *Adapter) mentions(m chat, self string) bool {
	for _, u := range m.Mentions {
		if u.ID == self {
			return true
		}
	}
	return false
}

func (a *Adapter) takeMessage(ctx context.Context, q question) {
	key := Platform + "|" + q.Channel + "|" + q.ID
	if q.File != "" {
		key = a.fileKey(q, "file "+q.File)
	}
	verdict, err := a.take(ctx, q, key)
	o := outgoing{key: key, q: q}
	switch {
	case err != nil:
		a.d.Log.Error("a question was not taken", "error", err)
		o.parts = []render.Message{render.Say(sayTryAgain)}
	case verdict == desk.Accepted:
		// What says that it is worked on may be late or missing.
		_ = a.rest.do(ctx, call{name: "typing", method: "POST", path: "channels/" + q.Channel + "/typing", lane: "typing " + q.Channel}, nil)
		return
	case verdict == desk.Duplicate:
		return
	default:
		o.parts = []render.Message{render.Say(verdict.Text())}
	}
	if _, err := a.deliverMessage(ctx, o); err != nil {
		a.d.Log.Error("a person could not be told that a question was not taken", "error", err)
	}
}

// mute reports that a message is not answered aloud where it was written.
func (a *Adapter) mute(o outgoing) bool {
	q := o.q
	return q.Message && q.Guild != "" && (o.moved || a.dir.mode(q.Guild, q.Channel, q.Hint) == PrivateAlways)
}

// deliverMessage replies to a message where it was written. If it is not known
// who can read there, or the channel is set to private answers, the reply says
// how to ask in private, the same to everybody.
func (a *Adapter) deliverMessage(ctx context.Context, o outgoing) (posted, error) {
	q := o.q
	if a.mute(o) {
		o.parts = []render.Message{render.Say("I cannot answer aloud here. Ask with /ask and private: true, or in a direct message.")}
	}
	at, err := a.messages(ctx, o, q.Channel, o.parts, &render.Reference{Message: q.ID, Channel: q.Channel})
	if err != nil && len(o.parts) == 0 {
		err = errors.New("there is nothing to say")
	}
	return at, err
}
