package discordtest

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// VisibleTo reports whether the user can read the message now.
func (s *Server) VisibleTo(user string, m Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.canRead(user, &m, s.clock.Now())
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

// Rules are what CheckInvariants needs to know of the app. The zero Rules
// check everything that needs no knowledge.
type Rules struct {
	// IsAnswer tells final answers from notices and first parts. Default: HasButtons.
	IsAnswer func(Message) bool
	// QuestionOf names the question that an answer belongs to, "" for none. Default: its
	// interaction, else the message that it replies to. An app that answers
	// an interaction by a channel message names it itself.
	QuestionOf func(Message) string
	// CanRead says whether the user may read all that the message cites. It is asked
	// for every revision and everybody who could see it.
	CanRead func(user string, m Message) bool
	// Claimed says that some replica has taken the interaction and will not lose it.
	Claimed func(interaction string) bool
	// AckWithin is the time for the first response, three seconds by default.
	AckWithin time.Duration
	// DeadTokenCalls is how many calls with a dead token, or to a message that is
	// gone, are forgiven besides the one that finds out; one for each further replica.
	DeadTokenCalls int
	// MayPing allows a ping: by default none.
	MayPing func(m Message, who string) bool
	// Explicit demands an explicit allowed_mentions in every create and edit.
	Explicit bool
	// Lost allows interactions that nobody answered, for tests that kill the app.
	Lost bool
}

// SetRules replaces the rules.
func (s *Server) SetRules(r Rules) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = r
}

// HasButtons is the default IsAnswer.
func HasButtons(m Message) bool {
	found := false
	walk(list(m.Components), func(o object) { found = found || number(o["type"]) == button })
	return found
}

// CheckInvariants returns one line for each broken promise, none when all is
// well. Call it when the app is idle.
func (s *Server) CheckInvariants() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.violations)
	out = append(out, s.checkAcks()...)
	out = append(out, s.checkAnswers()...)
	for _, m := range s.byApp() {
		out = append(out, s.checkMessage(m)...)
	}
	slices.Sort(out)
	return out
}

// byApp is every message that the app ever showed, ephemeral and deleted ones too.
func (s *Server) byApp() []*Message {
	var out []*Message
	for _, id := range s.world.order {
		for _, m := range s.world.messages[id] {
			if m.Author == s.world.app.BotUser {
				out = append(out, m)
			}
		}
	}
	return out
}

// checkAcks finds interactions that reached the app in time and were not
// answered in time.
func (s *Server) checkAcks() []string {
	var out []string
	limit := s.rules.AckWithin
	if limit == 0 {
		limit = callbackTime
	}
	for _, x := range s.asked {
		if len(x.sentAt) == 0 || x.sentAt[0].Sub(x.at) >= callbackTime {
			continue // the app never had a chance
		}
		switch {
		case x.reply != 0 && x.ackedAt.Sub(x.at) > limit:
			out = append(out, fmt.Sprintf("interaction %s of %s was answered after %v", x.id, x.user, x.ackedAt.Sub(x.at)))
		case x.reply == 0 && s.clock.Now().Sub(x.at) >= limit && !s.rules.Lost && (s.rules.Claimed == nil || !s.rules.Claimed(x.id)):
			out = append(out, fmt.Sprintf("interaction %s of %s was never answered", x.id, x.user))
		}
	}
	return out
}

func (s *Server) checkMessage(m *Message) []string {
	var out []string
	if m.Thinking && !m.Deleted {
		out = append(out, fmt.Sprintf("deferral %s of interaction %s is left thinking", m.ID, m.Interaction))
	}
	for _, r := range m.Revisions {
		then := m.clone()
		then.Content, then.Embeds, then.Components = r.Content, r.Embeds, r.Components
		for _, who := range r.Pings {
			if s.rules.MayPing == nil || !s.rules.MayPing(then, who) {
				out = append(out, fmt.Sprintf("message %s in %s pings %s", m.ID, m.Channel, who))
			}
		}
		if s.rules.Explicit && !r.Explicit {
			out = append(out, fmt.Sprintf("message %s in %s was sent without an explicit allowed_mentions", m.ID, m.Channel))
		}
		out = append(out, s.checkReaders(then, r.Viewers)...)
	}
	return out
}

// checkReaders asks for every viewer but bots, which read on nobody's behalf.
func (s *Server) checkReaders(m Message, viewers []string) []string {
	var out []string
	if s.rules.CanRead == nil {
		return nil
	}
	for _, u := range viewers {
		if !s.world.users[u].Bot && !s.rules.CanRead(u, m) {
			out = append(out, fmt.Sprintf("%s could see message %s in %s with a citation that they may not read", u, m.ID, m.Channel))
		}
	}
	return out
}

// checkAnswers counts final answers by question.
func (s *Server) checkAnswers() []string {
	is, of := s.rules.IsAnswer, s.rules.QuestionOf
	if is == nil {
		is = HasButtons
	}
	if of == nil {
		of = questionOf
	}
	count := map[string]int{}
	for _, m := range s.byApp() {
		if !m.Deleted && !m.Thinking && is(m.clone()) {
			count[of(m.clone())]++
		}
	}
	var out []string
	for q, n := range count {
		if q != "" && n > 1 {
			out = append(out, fmt.Sprintf("%d final answers for %s", n, q))
		}
	}
	return out
}

func questionOf(m Message) string {
	switch {
	case m.Interaction != "":
		return "interaction " + m.Interaction
	case m.ReplyTo != "":
		return "message " + m.ReplyTo
	}
	return ""
}
