package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// Limits of messages, in UTF-16 units, the stricter of the two ways to count.
const (
	maxPostText   = 40000 // longer text is cut without an error
	maxUpdateText = 4000
	maxMarkdown   = 12000
	maxBlockTotal = 13200
	statusLife    = 2 * time.Minute
	responseLife  = 30 * time.Minute
	responseUses  = 5
)

var write = []string{"chat:write"}

// methods are the routes of the Web API that exist here.
var methods map[string]method

func init() {
	methods = map[string]method{
		"chat.postMessage":   {kind: "bot", scopes: write, run: postMessage},
		"chat.postEphemeral": {kind: "bot", scopes: write, run: postEphemeral},
		"chat.update":        {kind: "bot", scopes: write, run: updateMessage},
		"chat.delete":        {kind: "bot", scopes: write, run: deleteMessage},
		"chat.getPermalink":  {kind: "bot", get: true, run: permalink},
		"chat.startStream":   {kind: "bot", scopes: write, run: startStream},
		"chat.appendStream":  {kind: "bot", scopes: write, run: appendStream},
		"chat.stopStream":    {kind: "bot", scopes: write, run: stopStream},

		"assistant.threads.setStatus":           {kind: "bot", scopes: []string{"chat:write", "assistant:write"}, run: setStatus},
		"assistant.threads.setSuggestedPrompts": {kind: "bot", scopes: []string{"assistant:write"}, run: setPrompts},
		"assistant.threads.setTitle":            {kind: "bot", scopes: []string{"assistant:write"}, run: setPrompts},

		"reactions.add":    {kind: "bot", scopes: []string{"reactions:write"}, run: addReaction},
		"reactions.remove": {kind: "bot", scopes: []string{"reactions:write"}, run: removeReaction},
	}
	for _, more := range []map[string]method{directoryMethods, viewMethods, fileMethods} {
		for route, m := range more {
			methods[route] = m
		}
	}
}

// units counts the stricter of runes and UTF-16 units.
func units(s string) int { return len(utf16.Encode([]rune(s))) }

// visible returns the channel if the bot can know of it.
func (s *Server) visible(id string) *Channel {
	c := s.world.channels[id]
	if c == nil || c.Kind != Public && !c.has(s.world.App.BotUser) {
		return nil
	}
	return c
}

// postable returns the channel that a post goes to, or the error code.
func (s *Server) postable(id string) (*Channel, string) {
	if u := s.world.users[id]; u != nil {
		if u.Deleted || u.Stranger {
			return nil, "channel_not_found"
		}
		id = s.world.im(id).ID
	}
	c := s.visible(id)
	switch {
	case c == nil:
		return nil, "channel_not_found"
	case c.Kind == IM && s.world.App.MessagesTabOff:
		return nil, "messages_tab_disabled"
	case c.Archived:
		return nil, "is_archived"
	case c.Restrict != "":
		return nil, c.Restrict
	case !c.has(s.world.App.BotUser):
		return nil, "not_in_channel"
	}
	return c, ""
}

// body reads and validates text, blocks and metadata into a message.
func (s *Server) body(c *call, maxText int, cut bool) (*Message, reply) {
	m := &Message{
		User: s.world.App.BotUser, BotID: s.world.App.BotID, AppID: s.world.App.ID, Text: c.args["text"],
		Parse: c.args["parse"], LinkNames: c.truth("link_names", false), At: s.clock.Now(),
	}
	if md := c.args["markdown_text"]; md != "" {
		if c.args["text"] != "" || c.args["blocks"] != "" {
			return nil, failure("markdown_text_conflict")
		}
		if units(md) > maxMarkdown {
			return nil, failure("msg_too_long")
		}
		m.Text = md
	}
	if units(m.Text) > maxText {
		if !cut {
			return nil, failure("msg_too_long")
		}
		m.Text = string(utf16.Decode(utf16.Encode([]rune(m.Text))[:maxText]))
	}
	if bad := s.blocks(m, c.args["blocks"]); bad != nil {
		return nil, bad
	}
	if bad := metadata(m, c.args["metadata"]); bad != "" {
		return nil, failure(bad)
	}
	if m.Text == "" && len(m.Blocks) == 0 && c.args["attachments"] == "" {
		return nil, failure("no_text")
	}
	return m, nil
}

func (s *Server) blocks(m *Message, list string) reply {
	if list == "" || list == "[]" || list == "null" {
		return nil
	}
	problems, err := ValidateBlocks([]byte(list), SurfaceMessage)
	if err != nil {
		return failure("invalid_blocks_format")
	}
	if len(problems) > 0 {
		return failureAt("invalid_blocks", problems...)
	}
	if blockTotal([]byte(list)) > maxBlockTotal {
		return failure("msg_blocks_too_long")
	}
	m.Blocks = json.RawMessage(list)
	return nil
}

func metadata(m *Message, data string) string {
	if data == "" {
		return ""
	}
	var o struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	}
	if json.Unmarshal([]byte(data), &o) != nil || o.Type == "" || len(o.Payload) == 0 || o.Payload[0] != '{' {
		return "invalid_metadata_format"
	}
	if len(data) > 16<<10 {
		return "metadata_too_large"
	}
	m.Metadata = json.RawMessage(data)
	return ""
}

func postMessage(s *Server, c *call) reply {
	ch, bad := s.postable(c.args["channel"])
	if bad != "" {
		return failure(bad)
	}
	m, failed := s.body(c, maxPostText, true)
	if failed != nil {
		return failed
	}
	if bad := s.intoThread(m, ch, c.args["thread_ts"]); bad != "" {
		return failure(bad)
	}
	m.Broadcast = c.truth("reply_broadcast", false) && m.ThreadTS != ""
	if m.Broadcast {
		s.violate("reply_broadcast sent to %s", ch.ID)
		m.Subtype = "thread_broadcast"
	}
	s.publish(ch, m, c.truth("unfurl_links", true) || c.truth("unfurl_media", true))
	return reply{"ok": true, "channel": ch.ID, "ts": m.TS, "message": m.wire()}
}

// intoThread puts the message under its parent. A parent that is gone is no
// error: the message lands at the channel root, as on Slack.
func (s *Server) intoThread(m *Message, ch *Channel, parent string) string {
	if parent == "" {
		return ""
	}
	p := s.world.live(ch.ID, parent)
	switch {
	case p == nil:
		return ""
	case p.Locked:
		return "restricted_action_thread_locked"
	case p.ThreadTS != "":
		s.violate("thread_ts %s in %s is the ts of a reply", parent, ch.ID)
		return "cannot_reply_to_message"
	}
	m.ThreadTS = parent
	return ""
}

// publish stores a message of the app and sends its echo.
func (s *Server) publish(ch *Channel, m *Message, unfurl bool) {
	s.store(ch, m)
	delete(s.statuses, place{ch.ID, m.ThreadTS})
	s.emitMessage(ch, m, Delivery{})
	if unfurl && linkRE.MatchString(m.Text+string(m.Blocks)) {
		s.emitChanged(ch, m, m.Text, map[string]any{"attachments": []any{map[string]any{"from_url": "https://example.com", "id": 1}}})
	}
	s.Bump()
}

var linkRE = regexp.MustCompile(`https?://`)

func (s *Server) store(ch *Channel, m *Message) {
	m.Channel, m.At = ch.ID, s.clock.Now()
	m.TS = s.world.nextTS(ch.ID, m.At)
	s.revise(m)
	s.world.messages[ch.ID] = append(s.world.messages[ch.ID], m)
}

// revise notes what the message shows now and who can see it.
func (s *Server) revise(m *Message) {
	m.Revisions = append(m.Revisions, Revision{Text: m.Text, Blocks: m.Blocks, At: s.clock.Now(), Viewers: s.world.viewers(m)})
}

func postEphemeral(s *Server, c *call) reply {
	ch, bad := s.postable(c.args["channel"])
	if bad != "" {
		return failure(bad)
	}
	u := s.world.users[c.args["user"]]
	if u == nil || u.Deleted || !ch.has(u.ID) {
		return failure("user_not_in_channel")
	}
	m, failed := s.body(c, maxPostText, true)
	if failed != nil {
		return failed
	}
	m.To, m.Channel, m.ThreadTS = u.ID, ch.ID, c.args["thread_ts"]
	m.Shown = m.ThreadTS == "" || s.world.replied(ch.ID, m.ThreadTS)
	s.whisper(m)
	return reply{"ok": true, "message_ts": m.TS}
}

// whisper shows an ephemeral message; it is not in the channel's history.
func (s *Server) whisper(m *Message) {
	m.At = s.clock.Now()
	m.TS = s.world.nextTS("ephemeral "+m.Channel, m.At)
	s.revise(m)
	s.ephemerals = append(s.ephemerals, m)
	s.Bump()
}

// own returns the app's live message, or the error code for calling it.
func (s *Server) own(c *call, notOwn string) (*Channel, *Message, string) {
	ch := s.visible(c.args["channel"])
	if ch == nil {
		return nil, nil, "channel_not_found"
	}
	m := s.world.live(ch.ID, c.args["ts"])
	switch {
	case m == nil:
		return nil, nil, "message_not_found"
	case m.AppID != s.world.App.ID:
		return nil, nil, notOwn
	case ch.Archived:
		return nil, nil, "is_inactive"
	}
	return ch, m, ""
}

func updateMessage(s *Server, c *call) reply {
	ch, m, bad := s.own(c, "cant_update_message")
	if bad != "" {
		return failure(bad)
	}
	if m.Streaming {
		return failure("streaming_state_conflict")
	}
	n, failed := s.body(c, maxUpdateText, false)
	if failed != nil {
		return failed
	}
	if n.Parse == "" {
		n.Parse = "client" // differs from chat.postMessage: names are linked
	}
	old := m.Text
	m.Text, m.Parse, m.LinkNames = n.Text, n.Parse, n.LinkNames
	if c.args["blocks"] != "" {
		m.Blocks = n.Blocks
	}
	m.EditedBy, m.EditedTS = s.world.App.BotUser, stamp(s.clock.Now())
	s.revise(m)
	s.emitChanged(ch, m, old, nil)
	s.Bump()
	return reply{"ok": true, "channel": ch.ID, "ts": m.TS, "text": m.Text, "message": m.wire()}
}

func deleteMessage(s *Server, c *call) reply {
	ch, m, bad := s.own(c, "cant_delete_message")
	if bad != "" {
		return failure(bad)
	}
	m.Deleted = true
	s.emitDeleted(ch, m)
	s.Bump()
	return reply{"ok": true, "channel": ch.ID, "ts": m.TS}
}

func permalink(s *Server, c *call) reply {
	ch := s.visible(c.args["channel"])
	if ch == nil {
		return failure("channel_not_found")
	}
	m := s.world.live(ch.ID, c.args["message_ts"])
	if m == nil {
		return failure("message_not_found")
	}
	link := fmt.Sprintf("https://%s.slack.com/archives/%s/p%s", s.world.Team.Domain, ch.ID, strings.ReplaceAll(m.TS, ".", ""))
	if m.ThreadTS != "" {
		link += "?thread_ts=" + m.ThreadTS + "&cid=" + ch.ID
	}
	return reply{"ok": true, "channel": ch.ID, "permalink": link}
}

func startStream(s *Server, c *call) reply {
	ch, bad := s.postable(c.args["channel"])
	if bad != "" {
		return failure(bad)
	}
	if p := s.world.live(ch.ID, c.args["thread_ts"]); p == nil || p.ThreadTS != "" {
		return failure("invalid_thread_ts")
	}
	if ch.Kind != IM {
		if c.args["recipient_user_id"] == "" {
			return failure("missing_recipient_user_id")
		}
		if c.args["recipient_team_id"] == "" {
			return failure("missing_recipient_team_id")
		}
	}
	if units(c.args["markdown_text"]) > maxMarkdown {
		return failure("msg_too_long")
	}
	m := &Message{
		User: s.world.App.BotUser, BotID: s.world.App.BotID, AppID: s.world.App.ID, Text: c.args["markdown_text"],
		ThreadTS: c.args["thread_ts"], Streaming: true,
	}
	s.store(ch, m)
	delete(s.statuses, place{ch.ID, m.ThreadTS})
	s.Bump()
	return reply{"ok": true, "channel": ch.ID, "ts": m.TS}
}

func (s *Server) stream(c *call) (*Channel, *Message, string) {
	ch, m, bad := s.own(c, "message_not_owned_by_app")
	if bad == "" && !m.Streaming {
		bad = "message_not_in_streaming_state"
	}
	if bad == "" && units(c.args["markdown_text"]) > maxMarkdown {
		bad = "msg_too_long"
	}
	if bad == "" && m.Locked {
		bad, m.Streaming = "stopped_by_user", false
	}
	return ch, m, bad
}

func appendStream(s *Server, c *call) reply {
	ch, m, bad := s.stream(c)
	if bad != "" {
		return failure(bad)
	}
	m.Text += c.args["markdown_text"]
	s.revise(m)
	s.Bump()
	return reply{"ok": true, "channel": ch.ID, "ts": m.TS}
}

func stopStream(s *Server, c *call) reply {
	ch, m, bad := s.stream(c)
	if bad != "" {
		return failure(bad)
	}
	if failed := s.blocks(m, c.args["blocks"]); failed != nil {
		return failed
	}
	if bad := metadata(m, c.args["metadata"]); bad != "" {
		return failure(bad)
	}
	m.Text += c.args["markdown_text"]
	m.Streaming = false
	s.revise(m)
	s.emitMessage(ch, m, Delivery{})
	s.Bump()
	return reply{"ok": true, "channel": ch.ID, "ts": m.TS, "message": m.wire()}
}

// StopStream is the person pressing "stop": the next append says stopped_by_user.
func (s *Server) StopStream(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.world.live(m.Channel, m.TS); p != nil {
		p.Locked = true
	}
}

type statusLine struct {
	text string
	at   time.Time
}

func (s *Server) status(p place) string {
	if l := s.statuses[p]; s.clock.Now().Sub(l.at) < statusLife {
		return l.text
	}
	return ""
}

func setStatus(s *Server, c *call) reply {
	ch, bad := s.postable(c.args["channel_id"])
	if bad != "" {
		return failure(bad)
	}
	p := place{ch.ID, c.args["thread_ts"]}
	if parent := s.world.live(ch.ID, p.thread); parent == nil || parent.ThreadTS != "" {
		return failure("invalid_thread_ts")
	}
	if lm := c.args["loading_messages"]; lm != "" && strings.Count(lm, ",") >= 10 {
		return failureAt("invalid_arguments", "[ERROR] no more than 10 loading_messages")
	}
	if c.args["status"] == "" {
		delete(s.statuses, p)
	} else {
		s.statuses[p] = statusLine{c.args["status"], s.clock.Now()}
	}
	s.Bump()
	return reply{"ok": true}
}

func setPrompts(s *Server, c *call) reply {
	ch := s.visible(c.args["channel_id"])
	if ch == nil || ch.Kind != IM {
		return failure("channel_not_found")
	}
	return reply{"ok": true}
}

var emojiRE = regexp.MustCompile(`^[a-z0-9_+'-]+(::skin-tone-[2-6])?$`)

func (s *Server) reactable(c *call) (*Message, string) {
	if !emojiRE.MatchString(c.args["name"]) {
		return nil, "invalid_name"
	}
	ch := s.visible(c.args["channel"])
	if ch == nil {
		return nil, "channel_not_found"
	}
	m := s.world.live(ch.ID, c.args["timestamp"])
	switch {
	case m == nil:
		return nil, "message_not_found"
	case ch.Archived:
		return nil, "is_archived"
	case !ch.has(s.world.App.BotUser):
		return nil, "not_in_channel"
	}
	return m, ""
}

func addReaction(s *Server, c *call) reply {
	m, bad := s.reactable(c)
	if bad != "" {
		return failure(bad)
	}
	name, bot := c.args["name"], s.world.App.BotUser
	if slices.Contains(m.Reactions[name], bot) {
		return failure("already_reacted")
	}
	if m.Reactions == nil {
		m.Reactions = map[string][]string{}
	}
	m.Reactions[name] = append(m.Reactions[name], bot)
	s.Bump()
	return reply{"ok": true}
}

func removeReaction(s *Server, c *call) reply {
	m, bad := s.reactable(c)
	if bad != "" {
		return failure(bad)
	}
	name, bot := c.args["name"], s.world.App.BotUser
	if !slices.Contains(m.Reactions[name], bot) {
		return failure("no_reaction")
	}
	m.Reactions[name] = slices.DeleteFunc(m.Reactions[name], func(u string) bool { return u == bot })
	if len(m.Reactions[name]) == 0 {
		delete(m.Reactions, name)
	}
	s.Bump()
	return reply{"ok": true}
}

// responseURL is one address that an interaction may be answered at.
type responseURL struct {
	id, user, channel string
	thread            string
	original          *Message // the message with the button
	made              time.Time
	uses              int
}

// newResponseURL makes an address for the interaction; the caller holds s.mu.
func (s *Server) newResponseURL(user, channel, thread string, original *Message) string {
	r := &responseURL{id: s.id("R"), user: user, channel: channel, thread: thread, original: original, made: s.clock.Now()}
	s.responseURLs[r.id] = r
	return s.Base + "/respond/" + r.id
}

// ResponseURL returns the address with the id, for tests that misuse it.
func (s *Server) ResponseURL(id string) string { return s.Base + "/respond/" + id }

type responseBody struct {
	Text     string          `json:"text"`
	Blocks   json.RawMessage `json:"blocks"`
	Type     string          `json:"response_type"`
	ThreadTS string          `json:"thread_ts"`
	Replace  bool            `json:"replace_original"`
	Delete   bool            `json:"delete_original"`
	Metadata json.RawMessage `json:"metadata"`
}

// serveResponseURL takes a post to a response_url. Content errors are told in the
// body with status 200, so that a client that looks only at the status is caught.
func (s *Server) serveResponseURL(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/respond/")
	data, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var b responseBody
	badJSON := json.Unmarshal(data, &b) != nil
	c := &call{route: "response_url", args: map[string]string{"id": id}, req: &Request{
		At: s.clock.Now(), Route: "response_url", Verb: r.Method, Header: r.Header.Clone(),
		Args: map[string]string{"id": id, "body": string(data)}, Status: 200,
	}}
	s.mu.Lock()
	f := s.fault("response_url", nil)
	s.mu.Unlock()
	if !s.before(w, r, c, f) {
		return
	}
	s.mu.Lock()
	out := failure("invalid_payload")
	if u := s.responseURLs[id]; r.Method != http.MethodPost {
		out, c.req.Status = failure("method_not_allowed"), http.StatusMethodNotAllowed
	} else if u == nil {
		out, c.req.Status = failure("invalid_url"), http.StatusNotFound
	} else if !badJSON {
		out, c.req.Status = s.respond(u, b)
	}
	c.req.Error, _ = out["error"].(string)
	status := c.req.Status
	s.record(c.req)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	s.answer(w, f, status, raw(out))
}

// respond applies one use of the address; the caller holds s.mu.
func (s *Server) respond(u *responseURL, b responseBody) (reply, int) {
	post := ResponsePost{
		At: s.clock.Now(), ID: u.id, User: u.user, Text: b.Text, ReplaceOriginal: b.Replace, DeleteOriginal: b.Delete,
	}
	var out reply
	status := http.StatusOK
	switch {
	case s.clock.Now().Sub(u.made) > responseLife:
		out, status = failure("expired_url"), http.StatusNotFound
		s.violate("response_url %s used after it expired", u.id)
	case u.uses >= responseUses:
		out, status = failure("used_url"), http.StatusNotFound
		s.violate("response_url %s used more than %d times", u.id, responseUses)
	default:
		u.uses++
		out = s.applyResponse(u, b)
	}
	post.Error, _ = out["error"].(string)
	s.responsePosts = append(s.responsePosts, post)
	return out, status
}

func (s *Server) applyResponse(u *responseURL, b responseBody) reply {
	if b.Delete && u.original != nil {
		u.original.Deleted = true
		return reply{"ok": true}
	}
	c := &call{args: map[string]string{"text": b.Text, "blocks": string(b.Blocks), "metadata": string(b.Metadata)}}
	if string(b.Metadata) == "null" || string(b.Metadata) == `{"event_type":"","event_payload":null}` {
		c.args["metadata"] = ""
	}
	m, failed := s.body(c, maxPostText, true)
	if failed != nil {
		return failed
	}
	if b.Replace && u.original != nil {
		o := u.original
		o.Text, o.Blocks = m.Text, m.Blocks
		s.revise(o)
		return reply{"ok": true}
	}
	m.Channel, m.ResponseURL, m.ThreadTS = u.channel, u.id, b.ThreadTS
	if b.Type == "in_channel" {
		if ch := s.world.channels[u.channel]; ch != nil {
			s.publish(ch, m, false)
		}
		return reply{"ok": true}
	}
	m.To = u.user
	m.Shown = m.ThreadTS == "" || s.world.replied(u.channel, m.ThreadTS)
	s.whisper(m)
	if u.original == nil { // of a command: what was said first can be replaced
		u.original = m
	}
	return reply{"ok": true}
}
