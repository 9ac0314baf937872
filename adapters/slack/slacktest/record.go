package slacktest

import (
	"encoding/json"
	"errors"
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
	Route   string // method name, "response_url" or "socket"
	Verb    string // GET, POST
	Token   string
	Header  http.Header
	Args    map[string]string // form or JSON fields; nested JSON stays JSON
	Status  int               // 0: the connection was reset
	Error   string            // Slack's error code, "" when ok
	Faulted bool              // a Fault took part
}

// Frame is one WebSocket message or HTTP delivery, in either direction.
type Frame struct {
	Seq      int
	At       time.Time
	Socket   int // 0 for HTTP deliveries
	Out      bool
	Type     string // hello, disconnect, events_api, interactive, slash_commands, ack, refused
	Envelope string
	Retry    int
	Body     json.RawMessage
}

// ResponsePost is one use of a response_url, successful or not.
type ResponsePost struct {
	At              time.Time
	ID, User        string
	Error           string
	Text            string
	ReplaceOriginal bool
	DeleteOriginal  bool
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

// Frames returns everything that went over sockets and webhooks, in order.
func (s *Server) Frames() []Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.frames)
}

// Messages returns what is in the channel now, oldest first.
func (s *Server) Messages(channel string) []Message {
	return s.collect(channel, func(m *Message) bool { return !m.Deleted })
}

// Everything returns all that ever was in the channel, deleted messages too.
func (s *Server) Everything(channel string) []Message {
	return s.collect(channel, func(*Message) bool { return true })
}

// Thread returns the parent (if it still exists) and its replies.
func (s *Server) Thread(channel, parent string) []Message {
	return s.collect(channel, func(m *Message) bool {
		return !m.Deleted && (m.TS == parent || m.ThreadTS == parent)
	})
}

// FromBot returns what the app has in the channel now.
func (s *Server) FromBot(channel string) []Message {
	return s.collect(channel, func(m *Message) bool { return !m.Deleted && m.AppID == s.world.App.ID })
}

func (s *Server) collect(channel string, keep func(*Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.world.messages[channel] {
		if keep(m) {
			out = append(out, m.clone())
		}
	}
	return out
}

// Ephemerals returns what was shown to the user alone and not removed since,
// by chat.postEphemeral, a response_url or a slash command's acknowledgement.
func (s *Server) Ephemerals(user string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.ephemerals {
		if m.To == user && !m.Deleted {
			out = append(out, m.clone())
		}
	}
	return out
}

// Views returns the stack of modals that the user has open, the top one last.
func (s *Server) Views(user string) []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []View
	for _, v := range s.views[user] {
		out = append(out, *v)
	}
	return out
}

// Home returns what is published in the user's home tab.
func (s *Server) Home(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.homes[user]; v != nil {
		return *v, true
	}
	return View{}, false
}

// ResponseURLPosts returns all uses of response_urls.
func (s *Server) ResponseURLPosts() []ResponsePost {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.responsePosts)
}

// Status returns the assistant status that is shown in the thread, "" for none.
func (s *Server) Status(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status(place{channel, thread})
}

// UserErrors returns what Slack itself told the user, such as operation_timeout.
func (s *Server) UserErrors(user string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.userErrors[user])
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

// WaitMessage returns the first live message in the channel that match accepts.
func (s *Server) WaitMessage(channel string, match func(Message) bool) Message {
	s.T.Helper()
	return fakeserver.WaitFirst(s.Server, "a message in "+channel, func() []Message { return s.Messages(channel) }, match)
}

// WaitEphemeral returns the first ephemeral message to the user that match accepts.
func (s *Server) WaitEphemeral(user string, match func(Message) bool) Message {
	s.T.Helper()
	return fakeserver.WaitFirst(s.Server, "an ephemeral message to "+user, func() []Message { return s.Ephemerals(user) }, match)
}

// WaitView returns the first open modal of the user that match accepts.
func (s *Server) WaitView(user string, match func(View) bool) View {
	s.T.Helper()
	return fakeserver.WaitFirst(s.Server, "a modal for "+user, func() []View { return s.Views(user) }, match)
}

// WaitRequests waits until the route was called n times, and returns all calls.
func (s *Server) WaitRequests(route string, n int) []Request {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("%d calls of %s", n, route), func() bool { return len(s.Requests(route)) >= n })
	return s.Requests(route)
}

// WaitSockets waits until n sockets have been greeted and are open.
func (s *Server) WaitSockets(n int) {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("%d sockets", n), func() bool { return s.Sockets() == n })
}

// WaitSettled waits until every delivery was acknowledged or given up.
func (s *Server) WaitSettled() {
	s.T.Helper()
	s.Eventually("all deliveries to be acknowledged", func() bool { return s.Unsettled() == 0 })
}

// Any matches everything, for the Wait helpers.
func Any[T any](T) bool { return true }

var errReset = errors.New("connection reset by fault")
