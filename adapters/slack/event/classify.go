package event

import (
	"slices"
	"time"
)

// Self is the bot as the platform knows it. Empty ids match nothing.
type Self struct{ User, Bot, App string }

// Policy is what an operator may allow.
type Policy struct {
	Bots       []string // ids of bots whose mentions are answered
	Edits      bool     // answer a question again when its author changes it
	EditWindow time.Duration
}

// Verdict says what a message is.
type Verdict string

// Verdicts.
const (
	Question Verdict = "question"
	FollowUp Verdict = "follow_up" // in a thread, without the bot's name: a question if the channel wants it
	Edit     Verdict = "edit"      // a question whose text changed
	Deletion Verdict = "deletion"  // a message that may have been a question
	Ignore   Verdict = "ignore"
)

// asked are the subtypes under which people ask. Whatever else there is, or
// will be, is no question.
var asked = []string{"", "file_share", "thread_broadcast", "me_message"}

// Classify says what a message is. It decides from the event alone.
func Classify(m Message, self Self, p Policy) Verdict {
	switch {
	case m.Channel == "" || m.TS == "":
		return Ignore
	case m.Subtype == "message_deleted" && m.Deleted != "":
		return Deletion
	case m.Subtype == "message_changed" && m.Changed != nil:
		return edit(m, self, p)
	case m.Hidden || !slices.Contains(asked, m.Subtype) || !fromPerson(m, self, p.Bots):
		return Ignore
	case m.Kind == "app_mention", m.Surface == "im", Names(m.Raw(), self.User):
		return Question
	case m.Thread != "":
		return FollowUp
	}
	return Ignore
}

// fromPerson reports that a person, or a bot that is allowed, wrote it.
func fromPerson(m Message, self Self, bots []string) bool {
	own := same(m.User, self.User) || same(m.Bot, self.Bot) || same(m.App, self.App)
	switch {
	case own || m.User == "" || m.User == "USLACKBOT":
		return false
	case m.Bot != "":
		return slices.Contains(bots, m.Bot) || slices.Contains(bots, m.User)
	}
	return true
}

func same(a, b string) bool { return a != "" && a == b }

// edit is a question only if its author changed what it says, soon after:
// previews, reply counts and our own edits change other things.
func edit(m Message, self Self, p Policy) Verdict {
	now := *m.Changed
	switch {
	case !p.Edits || !now.Edited || now.EditedBy != now.User,
		Clean(now.Raw(), self.User) == Clean(m.Before, self.User),
		now.Subtype != "" && !slices.Contains(asked, now.Subtype),
		!fromPerson(now, self, p.Bots),
		m.Surface != "im" && !Names(now.Raw(), self.User):
		return Ignore
	}
	if age := m.Sent().Sub(now.Sent()); p.EditWindow > 0 && age > p.EditWindow {
		return Ignore
	}
	return Edit
}
