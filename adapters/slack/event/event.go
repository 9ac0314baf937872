// Package event reads what Slack delivers and says which of it is a question.
//
// Its one idea: nothing that Slack may send one day makes a delivery
// unreadable. Payloads are read field by field; a field of another type counts
// as absent, unknown kinds are no questions, and both transports are read by
// the same code. Senders and text are taken only from where the platform
// vouches for them.
//
//	Parse         the envelope of an event: installation, kind, body
//	Message       a message or mention in it
//	Classify      whether that is a question
//	Clean         its text as a person wrote it
//	Interaction   a button, shortcut, modal
//	Command       a slash command
//
// It does no I/O and keeps no state.
package event

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Fields is a JSON object of which any field may be missing or of another
// type than expected.
type Fields map[string]json.RawMessage

// Read reads an object. An error means that it is none.
func Read(data []byte) (Fields, error) {
	var f Fields
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errors.New("not a JSON object")
	}
	return f, nil
}

// String returns a text, "" if it is absent or none.
func (f Fields) String(key string) string {
	var s string
	if json.Unmarshal(f[key], &s) != nil {
		return ""
	}
	return s
}

// Bool reads true, "true" and 1; all else is false.
func (f Fields) Bool(key string) bool {
	switch strings.Trim(string(f[key]), `"`) {
	case "true", "1":
		return true
	}
	return false
}

// Object returns an object, nil if it is absent or none.
func (f Fields) Object(key string) Fields {
	o, err := Read(f[key])
	if err != nil {
		return nil
	}
	return o
}

// Objects returns the objects of a list.
func (f Fields) Objects(key string) []Fields {
	var rows []json.RawMessage
	if json.Unmarshal(f[key], &rows) != nil {
		return nil
	}
	var out []Fields
	for _, r := range rows {
		if o, err := Read(r); err == nil {
			out = append(out, o)
		}
	}
	return out
}

// Callback is the envelope of an event.
type Callback struct {
	Type       string // event_callback, url_verification, app_rate_limited
	ID         string // of the event
	App        string
	Team       string // of the installation
	Enterprise string
	Org        bool   // installed for the whole organisation
	ExtShared  bool   // Slack says that people from outside read there
	Challenge  string // of url_verification
	Kind       string // of the event
	Body       Fields // of the event
}

// Parse reads an envelope. The installation is the one that the delivery is
// for: in shared channels team_id may be the other organisation's.
func Parse(payload []byte) (Callback, error) {
	f, err := Read(payload)
	if err != nil {
		return Callback{}, err
	}
	c := Callback{
		Type: f.String("type"), ID: f.String("event_id"), App: f.String("api_app_id"), Team: f.String("team_id"),
		Enterprise: f.String("enterprise_id"), ExtShared: f.Bool("is_ext_shared_channel"), Challenge: f.String("challenge"),
		Body: f.Object("event"),
	}
	if a := f.Objects("authorizations"); len(a) > 0 {
		c.Team, c.Enterprise, c.Org = a[0].String("team_id"), a[0].String("enterprise_id"), a[0].Bool("is_enterprise_install")
	}
	c.Kind = c.Body.String("type")
	return c, nil
}

// Message is a message or a mention.
type Message struct {
	Kind      string // message, app_mention
	Subtype   string
	Channel   string
	Surface   string // channel, group, im, mpim; "" for a mention
	User      string
	UserTeam  string // "" if the event does not say
	Bot       string // any sign that an app wrote it
	App       string
	Text      string // as Slack stores it
	TS        string
	Thread    string
	Hidden    bool
	Edited    bool
	EditedBy  string
	Files     bool
	FileIDs   []string // of those that it carries
	Locale    string
	ExtShared bool

	Changed *Message // of message_changed: the message as it is now
	Before  string   // and its text before
	Deleted string   // of message_deleted: its ts
	Within  string   // of message_deleted: the thread that it was in, "" none
	rich    string   // text of its blocks, raw
}

// Message reads a message or mention out of an envelope.
func (c Callback) Message() Message {
	m := message(c.Body)
	m.ExtShared = c.ExtShared
	return m
}

func message(f Fields) Message {
	m := Message{
		Kind: f.String("type"), Subtype: f.String("subtype"), Channel: f.String("channel"), Surface: f.String("channel_type"),
		User: f.String("user"), UserTeam: f.String("user_team"), App: f.String("app_id"), Text: f.String("text"),
		TS: f.String("ts"), Thread: f.String("thread_ts"), Hidden: f.Bool("hidden"), Deleted: f.String("deleted_ts"),
		Files: len(f.Objects("files")) > 0,
	}
	for _, file := range f.Objects("files") {
		if id := file.String("id"); id != "" {
			m.FileIDs = append(m.FileIDs, id)
		}
	}
	if m.Deleted != "" {
		m.Within = f.Object("previous_message").String("thread_ts")
	}
	if m.UserTeam == "" {
		m.UserTeam = f.String("source_team")
	}
	m.Bot = f.String("bot_id")
	if b := f.Object("bot_profile"); m.Bot == "" && b != nil {
		m.Bot = "profile"
	}
	if e := f.Object("edited"); e != nil {
		m.Edited, m.EditedBy = true, e.String("user")
	}
	if strings.TrimSpace(m.Text) == "" {
		m.rich = richText(f.Objects("blocks"))
	}
	if in := f.Object("message"); in != nil && m.Subtype == "message_changed" {
		now := message(in)
		now.Channel, now.Surface = m.Channel, m.Surface
		m.Changed, m.Before = &now, f.Object("previous_message").String("text")
	}
	return m
}

// Raw is the text, taken from the blocks where Slack sends none.
func (m Message) Raw() string {
	if strings.TrimSpace(m.Text) == "" {
		return m.rich
	}
	return m.Text
}

// Root is the thread in which a reply belongs: never the ts of a reply.
func (m Message) Root() string {
	if m.Thread != "" {
		return m.Thread
	}
	return m.TS
}

// Sent is when the message was written, zero if its ts says nothing.
func (m Message) Sent() time.Time { return Time(m.TS) }

// Time reads a ts, zero if it is none.
func Time(ts string) time.Time {
	sec, frac, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || s <= 0 {
		return time.Time{}
	}
	us, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	return time.Unix(s, us*1000)
}

// richText is the text of rich_text blocks, escaped as in a text field.
func richText(blocks []Fields) string {
	var b strings.Builder
	for _, block := range blocks {
		if block.String("type") == "rich_text" {
			richElements(&b, block.Objects("elements"), 0)
		}
	}
	return strings.TrimSpace(b.String())
}

func richElements(b *strings.Builder, elements []Fields, depth int) {
	if depth > 6 {
		return
	}
	for _, e := range elements {
		switch e.String("type") {
		case "text":
			b.WriteString(Escape(e.String("text")))
		case "link":
			b.WriteString(Escape(e.String("url")))
		case "user":
			b.WriteString("<@" + e.String("user_id") + ">")
		case "channel":
			b.WriteString("<#" + e.String("channel_id") + ">")
		case "emoji":
			b.WriteString(":" + e.String("name") + ":")
		default:
			richElements(b, e.Objects("elements"), depth+1)
			b.WriteString("\n")
		}
	}
}
