package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"footnote/adapters/fakeserver"
)

// Request is one HTTP request that the fake received, and what it answered.
type Request struct {
	Seq     int
	At      time.Time
	Route   string            // "POST /channels/{channel}/messages"; verb and path when unknown
	Verb    string            // GET, POST, …
	Path    string            // without /api/v9
	Params  map[string]string // of the path: channel, guild, token, …
	Header  http.Header
	Body    []byte
	Status  int  // 0: the connection was reset
	Code    int  // Discord's error code, 0 when ok
	Faulted bool // a Fault took part
}

// Field returns a field of the JSON body, nil if it is absent.
func (r Request) Field(name string) json.RawMessage {
	var o map[string]json.RawMessage
	_ = json.Unmarshal(r.Body, &o)
	return o[name]
}

// Frame is one gateway message or HTTP delivery, in either direction.
type Frame struct {
	Seq    int
	At     time.Time
	Socket int // 0 for HTTP deliveries
	Out    bool
	Op     int    // -1 for a close
	Type   string // event name; "close", "answer" for the rest
	S      int    // sequence number of a dispatch
	Body   json.RawMessage
}

// Requests returns what was received on the routes, or on all.
func (s *Server) Requests(routes ...string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if len(routes) == 0 || slices.Contains(routes, r.Route) {
			out = append(out, *r)
		}
	}
	return out
}

// Frames returns everything that went over the gateway or to the endpoint, in order.
func (s *Server) Frames() []Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.frames)
}

// Messages returns what everybody in the channel can see there now, oldest first.
func (s *Server) Messages(channel string) []Message {
	return s.collect(channel, func(m *Message) bool { return !m.Deleted && m.EphemeralTo == "" })
}

// Everything returns all that ever was in the channel: deleted and ephemeral messages too.
func (s *Server) Everything(channel string) []Message {
	return s.collect(channel, func(*Message) bool { return true })
}

// FromBot returns what the app has in the channel for everybody now.
func (s *Server) FromBot(channel string) []Message {
	return s.collect(channel, func(m *Message) bool {
		return !m.Deleted && m.EphemeralTo == "" && m.Author == s.world.app.BotUser
	})
}

// Ephemerals returns what the user alone can see now, in all channels.
func (s *Server) Ephemerals(user string) []Message {
	return s.collect("", func(m *Message) bool { return !m.Deleted && m.EphemeralTo == user && user != "" })
}

// Responses returns the live messages of the interaction: the original, then follow-ups.
func (s *Server) Responses(interaction string) []Message {
	return s.collect("", func(m *Message) bool { return !m.Deleted && m.Interaction == interaction && interaction != "" })
}

// Message returns the message as it is now, deleted or not.
func (s *Server) Message(id string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.world.byID[id]; m != nil {
		return m.clone(), true
	}
	return Message{}, false
}

// collect gathers messages of one channel, or of all, in the order of their ids.
func (s *Server) collect(channel string, keep func(*Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, id := range s.world.order {
		if channel != "" && id != channel {
			continue
		}
		for _, m := range s.world.messages[id] {
			if keep(m) {
				out = append(out, m.clone())
			}
		}
	}
	return out
}

// Threads returns the threads under the channel.
func (s *Server) Threads(channel string) []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Channel
	for _, id := range s.world.order {
		if c := s.world.channels[id]; c.Type.Thread() && c.Parent == channel && !c.Deleted {
			out = append(out, *c)
		}
	}
	return out
}

// Channel returns the channel as it is now.
func (s *Server) Channel(id string) (Channel, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.world.channels[id]; c != nil {
		return *c, true
	}
	return Channel{}, false
}

// Ping is one notification that a message of the app would cause.
type Ping struct{ Message, Channel, Who string }

// Pings returns everybody whom the app's messages would ping, in all their revisions.
func (s *Server) Pings() []Ping {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Ping
	for _, m := range s.byApp() {
		for _, r := range m.Revisions {
			for _, who := range r.Pings {
				out = append(out, Ping{m.ID, m.Channel, who})
			}
		}
	}
	return out
}

// Failures returns what Discord itself told the user, such as "The application did not respond".
func (s *Server) Failures(user string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures[user])
}

// record appends the request and wakes the waiters; the caller holds s.mu.
func (s *Server) record(r *Request) {
	s.seq++
	r.Seq = s.seq
	s.requests = append(s.requests, r)
	s.Bump()
}

func (s *Server) frame(f Frame) {
	s.seq++
	f.Seq, f.At = s.seq, s.clock.Now()
	s.frames = append(s.frames, f)
	s.Bump()
}

// WaitMessage returns the first message for everybody in the channel that match accepts.
func (s *Server) WaitMessage(channel string, match func(Message) bool) Message {
	s.T.Helper()
	return fakeserver.WaitFirst(s.Server, "a message in "+channel, func() []Message { return s.Messages(channel) }, match)
}

// WaitEphemeral returns the first message to the user alone that match accepts.
func (s *Server) WaitEphemeral(user string, match func(Message) bool) Message {
	s.T.Helper()
	return fakeserver.WaitFirst(s.Server, "an ephemeral message to "+user, func() []Message { return s.Ephemerals(user) }, match)
}

// WaitThread returns the first thread under the channel.
func (s *Server) WaitThread(channel string) Channel {
	s.T.Helper()
	return fakeserver.WaitFirst(s.Server, "a thread under "+channel, func() []Channel { return s.Threads(channel) }, nil)
}

// WaitRequests waits until the route was called n times, and returns all calls.
func (s *Server) WaitRequests(route string, n int) []Request {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("%d calls of %s", n, route), func() bool { return len(s.Requests(route)) >= n })
	return s.Requests(route)
}

// WaitSessions waits until n sessions are ready and connected.
func (s *Server) WaitSessions(n int) {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("%d sessions", n), func() bool { return s.Sessions() == n })
}

// Any matches everything, for the Wait helpers.
func Any[T any](T) bool { return true }

// Resolved matches messages that are not a deferral still thinking.
func Resolved(m Message) bool { return !m.Thinking }
