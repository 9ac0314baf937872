package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// viewers is everybody who can read the message now, by looking at each
// account in turn: nothing is cached and nothing is shared with an adapter.
func (s *state) viewers(m *Message) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.users)) {
		if s.canRead(s.users[id], m) {
			out = append(out, id)
		}
	}
	return out
}

// canRead is the rule for one account and one message.
func (s *state) canRead(u *User, m *Message) bool {
	if u == nil || u.Deleted {
		return false
	}
	if m.To != "" {
		return m.To == u.ID
	}
	c := s.channels[m.Channel]
	if c == nil {
		return false
	}
	if c.has(u.ID) {
		return true
	}
	if c.Kind != Public || u.Guest || u.SingleGuest || u.Bot || u.Stranger {
		return false
	}
	// A public channel is open to every full member of each workspace in it,
	// joined or not.
	for _, team := range append([]string{c.TeamID}, c.Connected...) {
		if u.TeamID == team || slices.Contains(u.Teams, team) {
			return true
		}
		if c.OrgShared && u.Enterprise != "" && u.Enterprise == s.teams[team].Enterprise {
			return true
		}
	}
	return false
}

// VisibleTo reports whether the user can read the message now.
func (s *Server) VisibleTo(user string, m Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.canRead(s.world.users[user], &m)
}

// SeenBy is everybody who could read the message, or what it once said, at the
// time that it was sent or edited.
func (s *Server) SeenBy(m Message) []string {
	seen := map[string]bool{}
	for _, r := range m.Revisions {
		for _, u := range r.Viewers {
			seen[u] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

var (
	tokenRE = regexp.MustCompile(`<(?:@([UW][A-Z0-9]+)|!(here|channel|everyone|group)|!subteam\^(S[A-Z0-9]+))(?:\|[^<>]*)?>`)
	nameRE  = regexp.MustCompile(`(?:^|[^\w&;])@([a-z0-9][a-z0-9._-]*)`)
)

// Pings lists who and what the message would notify, over all that it ever
// said: user ids, user group ids, here, channel, everyone, and @names that
// Slack would link.
func Pings(m Message) []string {
	found := map[string]bool{}
	revisions := m.Revisions
	if len(revisions) == 0 {
		revisions = []Revision{{Text: m.Text, Blocks: m.Blocks}}
	}
	for _, r := range revisions {
		linked := m.LinkNames || m.Parse == "full" || m.Parse == "client"
		tokens(r.Text, linked, found)
		blockPings(r.Blocks, found)
	}
	return slices.Sorted(maps.Keys(found))
}

func tokens(text string, names bool, found map[string]bool) {
	for _, g := range tokenRE.FindAllStringSubmatch(text, -1) {
		found[g[1]+g[2]+g[3]] = true
	}
	if names {
		for _, g := range nameRE.FindAllStringSubmatch(text, -1) {
			found["@"+g[1]] = true
		}
	}
}

// blockPings looks at mrkdwn text objects, markdown blocks and the explicit
// elements of rich_text. Mrkdwn that is not verbatim links names.
func blockPings(blocks json.RawMessage, found map[string]bool) {
	var v any
	if len(blocks) == 0 || json.Unmarshal(blocks, &v) != nil {
		return
	}
	walk(v, func(o object) {
		switch str(o, "type") {
		case "mrkdwn":
			verbatim, _ := o["verbatim"].(bool)
			tokens(str(o, "text"), !verbatim, found)
		case "markdown":
			tokens(str(o, "text"), false, found)
		case "user":
			found[str(o, "user_id")] = true
		case "usergroup":
			found[str(o, "usergroup_id")] = true
		case "broadcast":
			found[str(o, "range")] = true
		}
	})
	delete(found, "")
}

// Question is something that a person asked through one of the verbs.
type Question struct {
	User, Channel, Thread, TS string
	Interaction               string // response_url id of a command or shortcut
}

// Questions lists what has been asked so far.
func (s *Server) Questions() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.questions)
}

// Rules are what CheckInvariants needs to know of the app. The zero Rules
// check everything that needs no knowledge.
type Rules struct {
	// IsAnswer tells final answers from placeholders, notices and first parts.
	// Default: a message of the app with an actions or context_actions block.
	IsAnswer func(Message) bool
	// QuestionOf names the question that an answer belongs to. Default: its
	// thread or response_url, in which so many answers are allowed as
	// questions were asked. An app that shares answers elsewhere names them itself.
	QuestionOf func(Message) string
	// IsPlaceholder finds "looking…" messages that must not be left.
	IsPlaceholder func(Message) bool
	// CanRead says whether the user may read all that the message cites. It is asked
	// for every revision (as Text and Blocks) and everybody who could see it.
	CanRead func(user string, m Message) bool
	// CanReadView is CanRead for modals and home tabs that are open at the end.
	CanReadView func(user string, v View) bool
	// AckWithin is the time for an acknowledgement, three seconds by default.
	AckWithin time.Duration
	// DeadTokenCalls is how many calls with a dead token are forgiven besides
	// the one that finds out.
	DeadTokenCalls int
	// MayPing allows a ping: by default none.
	MayPing func(m Message, who string) bool
	// Lost allows deliveries that were never acknowledged, for tests that kill the app.
	Lost bool
}

// SetRules replaces the rules.
func (s *Server) SetRules(r Rules) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = r
}

// CheckInvariants returns one line for each broken promise, none when all is
// well. Call it when the app is idle.
func (s *Server) CheckInvariants() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.violations)
	out = append(out, s.checkAcks()...)
	out = append(out, s.checkAnswers()...)
	for p := range s.statuses {
		if t := s.status(p); t != "" {
			out = append(out, fmt.Sprintf("status %q is left in %s thread %s", t, p.channel, p.thread))
		}
	}
	for _, m := range s.byApp() {
		out = append(out, s.checkMessage(m)...)
	}
	if can := s.rules.CanReadView; can != nil {
		for user, stack := range s.views {
			for _, v := range append(slices.Clone(stack), s.homes[user]) {
				if v != nil && !can(user, *v) {
					out = append(out, fmt.Sprintf("%s sees view %s with a citation that they may not read", user, v.ID))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// byApp is every message that the app ever showed, ephemeral and deleted ones too.
func (s *Server) byApp() []*Message {
	var out []*Message
	for _, list := range s.world.messages {
		for _, m := range list {
			if m.AppID == s.world.App.ID {
				out = append(out, m)
			}
		}
	}
	return append(out, s.ephemerals...)
}

func (s *Server) checkMessage(m *Message) []string {
	var out []string
	for _, who := range Pings(m.clone()) {
		if s.rules.MayPing == nil || !s.rules.MayPing(m.clone(), who) {
			out = append(out, fmt.Sprintf("message %s in %s pings %s", m.TS, m.Channel, who))
		}
	}
	if p := s.rules.IsPlaceholder; p != nil && !m.Deleted && p(m.clone()) {
		out = append(out, fmt.Sprintf("placeholder %s is left in %s", m.TS, m.Channel))
	}
	if m.Streaming {
		out = append(out, fmt.Sprintf("stream %s in %s was never stopped", m.TS, m.Channel))
	}
	if s.rules.CanRead == nil {
		return out
	}
	for _, r := range m.Revisions {
		then := m.clone()
		then.Text, then.Blocks = r.Text, r.Blocks
		for _, u := range r.Viewers {
			// The home organisation's own bots read nothing on anybody's behalf.
			if acc := s.world.users[u]; acc.Bot && acc.TeamID == s.world.Team.ID {
				continue
			}
			if !s.rules.CanRead(u, then) {
				out = append(out, fmt.Sprintf("%s could see message %s in %s with a citation that they may not read", u, m.TS, m.Channel))
			}
		}
	}
	return out
}

// HasButtons is the default IsAnswer.
func HasButtons(m Message) bool {
	var list []object
	_ = json.Unmarshal(m.Blocks, &list)
	return slices.ContainsFunc(list, func(b object) bool { return strings.HasSuffix(str(b, "type"), "actions") })
}

// checkAnswers counts final answers by question.
func (s *Server) checkAnswers() []string {
	is, of := s.rules.IsAnswer, s.rules.QuestionOf
	if is == nil {
		is = HasButtons
	}
	allowed := func(string) int { return 1 }
	if of == nil {
		of, allowed = placeOf, s.asked
	}
	count := map[string]int{}
	for _, m := range s.byApp() {
		if !m.Deleted && is(m.clone()) {
			count[of(m.clone())]++
		}
	}
	var out []string
	for q, n := range count {
		if most := allowed(q); q != "" && n > most {
			out = append(out, fmt.Sprintf("%d final answers for %s, at most %d expected", n, q, most))
		}
	}
	return out
}

func placeOf(m Message) string {
	switch {
	case m.ResponseURL != "":
		return "interaction " + m.ResponseURL
	case m.To != "":
		return "" // a notice or a private answer: the count is the caller's business
	case m.ThreadTS != "":
		return "thread " + m.Channel + " " + m.ThreadTS
	}
	return "channel " + m.Channel
}

// asked is how many answers the place may hold: one for each interaction and
// each question asked there; a direct channel also takes the private answers to
// what its person asked elsewhere.
func (s *Server) asked(where string) int {
	kind, rest, _ := strings.Cut(where, " ")
	if kind == "interaction" {
		return 1
	}
	channel, thread, _ := strings.Cut(rest, " ")
	c := s.world.channels[channel]
	n := 0
	for _, q := range s.questions {
		here := q.Channel == channel && (kind == "channel" || q.Thread == thread)
		if here || c != nil && c.Kind == IM && q.Channel != channel && c.has(q.User) {
			n++
		}
	}
	return n
}
