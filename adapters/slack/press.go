package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"footnote/acl"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/render"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
)

// ShortcutID is the callback id of the message shortcut.
const ShortcutID = "triage_message"

// onInteraction handles a press or a shortcut. Slack does not repeat these, so
// there is no error: what goes wrong is told to the person.
func (a *Adapter) onInteraction(ctx context.Context, in event.Interaction) {
	if in.User == "" || in.Team != "" && in.Team != a.self.Load().team && a.self.Load().enterprise == "" {
		return
	}
	switch in.Type {
	case "message_action":
		if in.Callback == ShortcutID {
			a.onShortcut(ctx, in)
		}
	case "block_actions":
		for _, act := range in.Actions {
			a.background(func(ctx context.Context) { a.press(ctx, in, act) })
		}
	}
}

// onShortcut asks about a message, for the person alone.
func (a *Adapter) onShortcut(ctx context.Context, in event.Interaction) {
	m := in.Message
	q := question{
		Kind: kindShortcut, Channel: in.Channel, TS: in.MessageTS, Thread: m.Thread, User: in.User, UserTeam: in.UserTeam,
		Text: event.Clean(m.Raw(), a.self.Load().User), Respond: in.ResponseURL, At: a.now(),
	}
	if q.Thread == "" {
		q.Thread = in.MessageTS
	}
	a.receive(ctx, q, a.key("shortcut", in.Trigger))
}

// receive hands a question to the desk that came from a press, and tells the
// person if it was not taken.
func (a *Adapter) receive(ctx context.Context, q question, key string) {
	v, err := a.d.Desk.Receive(ctx, a.delivery(q, key))
	switch {
	case err != nil:
		a.log.Warn("a question could not be taken", "error", err)
		a.background(func(ctx context.Context) { a.tell(ctx, q, sayTryAgain) })
	case v != desk.Accepted && v != desk.Duplicate:
		a.background(func(ctx context.Context) { a.tell(ctx, q, v.Text()) })
	}
}

const (
	sayTryAgain   = "I could not take your question. Please try again in a moment."
	sayPressAgain = "That did not work. Please try again in a moment."
)

// missed reports that an answer cannot be read now, and says so: that is not to
// be taken for one that is gone.
func (a *Adapter) missed(ctx context.Context, in event.Interaction, err error) bool {
	if err == nil || errors.Is(err, ledger.ErrNotFound) {
		return false
	}
	a.log.Warn("an answer could not be read", "error", err)
	a.say(ctx, in, render.Literal(sayPressAgain), false)
	return true
}

// press does what a button says, once however often it is delivered.
func (a *Adapter) press(ctx context.Context, in event.Interaction, act event.Action) {
	if act.ID == render.OpenLink || !a.first(ctx, in, act) {
		return
	}
	n, isSource := strings.CutPrefix(act.ID, render.SourceAction)
	reason, isReason := strings.CutPrefix(act.ID, render.ReasonAction)
	switch {
	case isSource:
		a.openSource(ctx, in, act.Value, n)
	case act.ID == render.Helpful:
		a.rate(ctx, in, act.Value, true, "")
	case act.ID == render.NotHelpful:
		if a.rate(ctx, in, act.Value, false, "") {
			a.say(ctx, in, render.ReasonsFor(act.Value), false)
		}
	case isReason:
		a.rate(ctx, in, act.Value, false, reason)
	case act.ID == render.Human:
		a.human(ctx, in, act.Value)
	case act.ID == render.Direct:
		a.askDirect(ctx, in, act)
	case act.ID == render.Share:
		a.askShare(ctx, in, act)
	}
}

// Times of a press, which together leave some of the 3 s for which its trigger
// is good: a ledger that does not answer must not keep the word of that away.
const (
	noteTime = 400 * time.Millisecond
	lookTime = 1200 * time.Millisecond
)

// first claims a press.
func (a *Adapter) first(ctx context.Context, in event.Interaction, act event.Action) bool {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	key := a.key("press", in.Channel, in.MessageTS, in.View, act.ID, in.User, act.TS)
	if act.TS == "" {
		key += in.Trigger
	}
	_, won, err := a.d.Ledger.Claim(ctx, ledger.Delivery{Key: key, Platform: Platform, Asker: a.key("press", in.User), State: ledger.Answered, Reason: "press"}, 0)
	if err != nil {
		a.log.Warn("a press could not be noted", "error", err)
	}
	return won || err != nil // to press twice does no harm that to press never would not
}

// say tells a person who pressed something, and nobody else.
func (a *Adapter) say(ctx context.Context, in event.Interaction, m render.Message, replace bool) {
	if a.respond(ctx, in.ResponseURL, m, replace) == nil || in.Channel == "" {
		return
	}
	err := a.out.Do(ctx, outbox.Call{Lane: "whisper " + in.Channel, Make: func(ctx context.Context) error {
		return a.api.whisper(ctx, in.Channel, in.User, in.Thread, m)
	}})
	if err != nil {
		a.log.Warn("a person could not be told what a button did", "error", err)
	}
}

// openSource shows a passage to the person who asked for it.
//
// SECURITY: the presser's own right counts, now; what is absent, forbidden or
// unknown looks the same.
func (a *Adapter) openSource(ctx context.Context, in event.Interaction, id, number string) {
	ctx, cancel := context.WithTimeout(ctx, 2800*time.Millisecond) // as long as the trigger is good
	defer cancel()
	view, result := render.NoticeView("Source", "This document is not available to you here."), "denied"
	looking, found := context.WithTimeout(ctx, lookTime)
	opened, n, link, err := a.source(looking, in, id, number)
	found()
	switch {
	case err == nil:
		view, result = render.SourceView(n, opened, link), "shown"
	case !errors.Is(err, errNotAvailable):
		a.log.Warn("a source could not be opened", "error", err)
		view, result = render.NoticeView("Source", "The document cannot be opened right now. Please try again in a minute."), "failed"
	}
	if err := a.api.openView(ctx, in.Trigger, view); err != nil {
		a.log.Warn("a source could not be shown", "error", err)
	}
	if id == "" {
		id = "none"
	}
	if err := a.d.Ledger.NoteAudit(ctx, ledger.Audit{Actor: a.key(in.User), Action: "open_source", Subject: id, Result: result}); err != nil {
		a.log.Warn("an audit could not be noted", "error", err)
	}
}

var errNotAvailable = errors.New("not available")

func (a *Adapter) source(ctx context.Context, in event.Interaction, id, number string) (bot.Opened, int, string, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return bot.Opened{}, 0, "", errNotAvailable
	}
	answer, err := a.d.Ledger.Answer(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return bot.Opened{}, 0, "", errNotAvailable
	}
	if err != nil {
		return bot.Opened{}, 0, "", err
	}
	s, ok := answer.Source(n)
	if !ok {
		return bot.Opened{}, 0, "", errNotAvailable
	}
	who, err := a.dir.Load().Identify(ctx, in.User)
	if errors.Is(err, acl.ErrUnknown) {
		return bot.Opened{}, 0, "", errNotAvailable
	}
	if err != nil {
		return bot.Opened{}, 0, "", err
	}
	opened, err := a.d.Bot.Open(ctx, who, acl.AskerOnly(), s.Document, s.Revision, s.From, s.To)
	var user *bot.UserError
	if errors.As(err, &user) {
		return bot.Opened{}, 0, "", errNotAvailable
	}
	link := ""
	switch {
	case err != nil:
	case a.c.Personal != nil:
		link = a.c.Personal(id, n, a.key(in.User))
	case a.c.Viewer != nil:
		link = a.c.Viewer(cite.Source{N: n, Document: s.Document, Revision: s.Revision, From: s.From, To: s.To})
	}
	return opened, n, link, err
}

// rate keeps what a person says of an answer; the last word counts. It reports
// whether there is such an answer.
func (a *Adapter) rate(ctx context.Context, in event.Interaction, id string, helpful bool, reason string) bool {
	looking, noted := context.WithTimeout(ctx, lookTime)
	err := a.d.Ledger.Rate(looking, ledger.Feedback{Answer: id, User: a.key(in.User), Helpful: helpful, Reason: reason})
	noted()
	if err != nil {
		if !errors.Is(err, ledger.ErrNotFound) {
			a.log.Warn("feedback could not be kept", "error", err)
			a.say(ctx, in, render.Literal(sayPressAgain), false)
		}
		return false
	}
	if helpful || reason != "" {
		a.say(ctx, in, render.Literal("Thank you. I have noted that."), reason != "")
	}
	return true
}

// human notes that a person wants a human to look.
func (a *Adapter) human(ctx context.Context, in event.Interaction, id string) {
	looking, noted := context.WithTimeout(ctx, lookTime)
	fresh, err := a.d.Ledger.AskHuman(looking, id, a.key(in.User))
	noted()
	if errors.Is(err, ledger.ErrNotFound) {
		return
	}
	if err != nil {
		a.log.Warn("a request for a human could not be kept", "error", err)
		a.say(ctx, in, render.Literal(sayPressAgain), false)
		return
	}
	if fresh && a.c.HumanChannel != "" {
		link := ""
		if !in.Ephemeral {
			link = a.api.permalink(ctx, in.Channel, in.MessageTS)
		}
		m := render.WithLink("Somebody asks for a human to look at an answer.", "Open it", link)
		if _, err := a.post(ctx, a.c.HumanChannel, "", m, "", 0); err != nil {
			a.log.Error("the channel for humans could not be told: check slack.human_channel", "error", err)
		}
	}
	a.say(ctx, in, render.Literal("I have noted that you would like a human to look at this."), false)
}

// askDirect asks the question of a refusal again, for the presser alone.
func (a *Adapter) askDirect(ctx context.Context, in event.Interaction, act event.Action) {
	answer, err := a.d.Ledger.Answer(ctx, act.Value)
	if a.missed(ctx, in, err) {
		return
	}
	if err != nil || answer.Question == "" {
		a.say(ctx, in, render.Literal("I no longer have that question. Please write it to me in a direct message."), false)
		return
	}
	// SECURITY: the question was seen by everybody there; one that was asked
	// privately is its asker's.
	if answer.Private && answer.Asker != a.key(in.User) {
		return
	}
	q := question{Kind: kindDirect, Channel: in.Channel, Thread: in.Thread, User: in.User, UserTeam: in.UserTeam, Text: answer.Question, At: a.now()}
	a.receive(ctx, q, a.key("direct", act.Value, in.User))
}

// askShare posts a private answer to its thread, if everybody there may read
// its sources.
func (a *Adapter) askShare(ctx context.Context, in event.Interaction, act event.Action) {
	answer, err := a.d.Ledger.Answer(ctx, act.Value)
	if a.missed(ctx, in, err) {
		return
	}
	var ref posted
	if err != nil || json.Unmarshal(answer.Message, &ref) != nil || ref.Target == nil || answer.Asker != a.key(in.User) {
		return
	}
	q := question{
		Kind: kindShare, Channel: ref.Target.Channel, Thread: ref.Target.Thread, User: in.User, UserTeam: in.UserTeam,
		Text: answer.Question, Respond: in.ResponseURL, Answer: act.Value, At: a.now(),
	}
	a.receive(ctx, q, a.key("share", act.Value))
}

// share answers a private question again for the room that it is posted to.
//
// SECURITY: every source of the private answer must be open to everybody
// there, and what is posted is made anew within the room's rights.
func (a *Adapter) share(ctx context.Context, t *desk.Task, q question) (desk.Result, bool, error) {
	refuse := func(reason, text string) (desk.Result, bool, error) {
		a.tell(ctx, q, text)
		return desk.Result{State: ledger.Refused, Reason: reason}, false, nil
	}
	who, r, err := a.asker(ctx, q)
	if err != nil || r.State != "" {
		return r, false, err
	}
	if a.channel(q.Channel).Answer != PublicSafe {
		return refuse("channel_off", sayOff)
	}
	audience, err := a.audience(ctx, q)
	if err != nil || audience.Private() {
		return refuse("not_shared", sayNotShared)
	}
	answer, err := a.d.Ledger.Answer(ctx, q.Answer)
	if errors.Is(err, ledger.ErrNotFound) {
		return refuse("not_found", "I no longer have that answer. Please ask again.")
	}
	if err != nil {
		return desk.Result{}, false, err
	}
	for _, s := range answer.Sources {
		_, err := a.d.Bot.Open(ctx, who, audience, s.Document, s.Revision, s.From, s.To)
		var said *bot.UserError
		if errors.As(err, &said) {
			return refuse("not_shared", sayNotShared)
		}
		if err != nil {
			return desk.Result{}, false, err
		}
	}
	p := place{channel: q.Channel, thread: q.Thread, audience: audience, room: true}
	reply, p, err := a.reply(ctx, q, who, p)
	if err != nil {
		return desk.Result{}, false, err
	}
	if reply.Outcome != bot.Answered || !p.room {
		return refuse("not_shared", sayNotShared)
	}
	return a.deliver(ctx, t, q, p, reply)
}
