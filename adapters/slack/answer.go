package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"footnote/acl"
	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

var _ desk.Handler = (*Adapter)(nil)

// place is where a reply goes and who will read it.
type place struct {
	channel, thread string // "" channel: the asker's direct conversation
	respond         string // response_url, before all else
	audience        acl.Audience
	room            bool   // others read it
	pointer         bool   // tell the asker in the channel where the reply is
	note            string // said above the reply
	beside          bool   // what is said replaces nothing
}

// Texts that people get instead of an answer.
const (
	sayExternal  = "I answer only members of the organisation that I belong to."
	sayShared    = "People from outside the organisation can read here, so I do not answer in this channel. Write me a direct message instead."
	sayOff       = "I do not answer in this channel. Write me a direct message instead."
	sayUnsure    = "I cannot check right now what you may read. Please ask again in a minute."
	sayPointer   = "I have answered you in a direct message."
	sayOnlyYou   = "Only you see this answer."
	sayHidden    = "I cannot check right now who can read here, so only you see this answer."
	sayNotShared = "I have not posted it: not everyone there may read these sources."
	sayFiles     = "I read the text of your message, not the files."
	sayAmbiguous = "I was interrupted while I posted an answer. If you do not see it, please ask again."
)

// Answer implements desk.Handler.
func (a *Adapter) Answer(ctx context.Context, t *desk.Task) (desk.Result, error) {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return desk.Result{}, context.Cause(ctx)
	}
	var q question
	if err := json.Unmarshal(t.Payload, &q); err != nil {
		return desk.Result{}, fmt.Errorf("reading a kept question: %w", err)
	}
	if q.Kind == kindFile {
		return a.takeFile(ctx, t, q)
	}
	q.key = t.Key
	if t.Ambiguous {
		if r, done := a.resume(ctx, t, q); done {
			return r, nil
		}
	}
	if t.Attempt > 1 && a.told(ctx, q) {
		a.unmark(t.Key, q, true)
		return desk.Result{State: ledger.Failed, Reason: "told"}, nil
	}
	shown := a.marks.run(ctx, t.Key, q)
	r, spoke, err := a.answer(ctx, t, q, shown)
	if err == nil {
		a.marks.end(t.Key, spoke)
	}
	return r, err
}

// answer answers a question. It reports whether something was posted where it
// was asked.
func (a *Adapter) answer(ctx context.Context, t *desk.Task, q question, shown bool) (desk.Result, bool, error) {
	if a.memory.isGone(q.Channel, q.TS) {
		return desk.Result{State: ledger.Ignored, Reason: "deleted"}, false, nil
	}
	if q.Kind == kindShare {
		return a.share(ctx, t, q)
	}
	who, r, err := a.asker(ctx, q)
	if err != nil || r.State != "" {
		return r, false, err
	}
	p, r, err := a.place(ctx, q)
	if err != nil || r.State != "" {
		return r, false, err
	}
	if q.Text == "" && q.Kind != kindShortcut {
		return a.help(ctx, t, q, p)
	}
	if !shown && p.room && a.placeholder(ctx, t, q) != nil {
		return desk.Result{State: ledger.Failed, Reason: "orphaned"}, true, nil //nolint:nilerr // nobody is left to tell
	}
	reply, p, err := a.reply(ctx, q, who, p)
	if err != nil {
		return desk.Result{}, false, err
	}
	if a.memory.isGone(q.Channel, q.TS) {
		return desk.Result{State: ledger.Ignored, Reason: "deleted"}, false, nil
	}
	return a.deliver(ctx, t, q, p, reply)
}

// asker says who asks, or ends the question.
//
// SECURITY: the identity of a question.
func (a *Adapter) asker(ctx context.Context, q question) (acl.Identity, desk.Result, error) {
	d := a.dir.Load()
	if q.Bot { // allowed by the operator: it holds what every member does, no more
		me := a.self.Load()
		return acl.NewIdentity(acl.Principal("slack:"+me.team+":user/"+q.User), acl.Everyone, acl.Principal("slack:"+me.team+":everyone")), desk.Result{}, nil
	}
	id, err := acl.Identity{}, directory.ErrExternal
	if d.Internal(q.UserTeam) {
		id, err = d.Identify(ctx, q.User)
	}
	switch {
	case err == nil:
		return id, desk.Result{}, nil
	case errors.Is(err, directory.ErrExternal):
		if !a.c.ExternalSilent {
			a.tell(ctx, q, sayExternal)
		}
		return id, desk.Result{State: ledger.Refused, Reason: "external"}, nil
	case errors.Is(err, directory.ErrInactive):
		return id, desk.Result{State: ledger.Ignored, Reason: "inactive"}, nil
	}
	return id, desk.Result{}, &bot.UserError{Text: sayUnsure, Err: err}
}

// place says where the reply goes, or ends the question.
//
// SECURITY: visibility is decided here, before anything is searched. What is
// not known makes the reply private.
func (a *Adapter) place(ctx context.Context, q question) (place, desk.Result, error) {
	own := place{audience: acl.AskerOnly()}
	switch {
	case q.Kind == kindDM:
		own.channel, own.thread = q.Channel, q.Thread
		return own, desk.Result{}, nil
	case q.Kind == kindCommand || q.Kind == kindShortcut:
		own.respond, own.note = q.Respond, sayOnlyYou
		return own, desk.Result{}, nil
	case q.private():
		own.pointer = true
		return own, desk.Result{}, nil
	}
	switch a.channel(q.Channel).Answer {
	case Off:
		a.tell(ctx, q, sayOff)
		return own, desk.Result{State: ledger.Ignored, Reason: "channel_off"}, nil
	case PrivateAlways:
		own.pointer = true
		return own, desk.Result{}, nil
	}
	audience, err := a.audience(ctx, q)
	switch {
	case errors.Is(err, directory.ErrExternal):
		a.tell(ctx, q, sayShared)
		return own, desk.Result{State: ledger.Refused, Reason: "shared_externally"}, nil
	case absent(err):
		own.note = a.sayInvite() + " Until then only you see this answer."
		return own, desk.Result{}, nil
	case err != nil:
		a.log.Warn("who reads in a channel is not known: the reply is private", "error", err)
		own.pointer, own.note = true, sayHidden
		return own, desk.Result{}, nil
	}
	return place{channel: q.Channel, thread: q.Thread, audience: audience, room: !audience.Private()}, desk.Result{}, nil
}

// absent reports that the bot is not in a channel. A private one it cannot even
// see.
func absent(err error) bool {
	c := codeOf(err)
	return c == "not_in_channel" || c == "channel_not_found"
}

func (a *Adapter) sayInvite() string {
	return "I cannot answer in that channel: I am not a member of it. Write /invite @" + a.c.Name + " there, then ask again."
}

// audience says who will read a reply in the channel of the question. The
// event's word that outsiders read there counts more than what is cached.
func (a *Adapter) audience(ctx context.Context, q question) (acl.Audience, error) {
	if q.External && !a.c.ExternalLabelled {
		return acl.Audience{}, directory.ErrExternal
	}
	if q.External {
		return acl.Room([]acl.Principal{directory.External}), nil
	}
	return a.dir.Load().Audience(ctx, q.Channel)
}

// tries bounds how often a reply is made anew because rights changed.
const tries = 3

// reply makes the reply, and makes it anew while rights change under it.
//
// SECURITY: asker and audience are looked at again just before the reply is
// posted; what an event has changed meanwhile counts.
func (a *Adapter) reply(ctx context.Context, q question, who acl.Identity, p place) (bot.Reply, place, error) {
	history := a.history(ctx, q, p)
	for range tries {
		r, err := a.d.Bot.Handle(ctx, bot.Message{ID: q.TS, Text: q.Text, Asker: who, Audience: p.audience, History: history})
		if err != nil {
			return r, p, err
		}
		before := acl.NewGrant(who, p.audience).Digest()
		var ended desk.Result
		if who, ended, err = a.asker(ctx, q); err != nil || ended.State != "" {
			return r, p, &bot.UserError{Text: sayUnsure, Err: errors.Join(err, errRights)}
		}
		if p.room {
			if p.audience, err = a.audience(ctx, q); err != nil {
				p = place{audience: acl.AskerOnly(), pointer: true, note: sayHidden}
			}
		}
		if acl.NewGrant(who, p.audience).Digest() == before {
			return r, p, nil
		}
	}
	return bot.Reply{}, p, &bot.UserError{Text: "Who may read here is changing right now. Please ask again in a minute.", Err: errRights}
}

var errRights = errors.New("rights changed while the question was answered")

// historyTime bounds the look at what was said before.
const historyTime = 1500 * time.Millisecond

// history is what was said before in the thread between the asker and the bot.
// It is a help, not a need: where it cannot be read at once it is left out.
// What was said in a thread is visible to everybody who can read the reply.
func (a *Adapter) history(ctx context.Context, q question, p place) []bot.Turn {
	if q.Thread == "" || q.Thread == q.TS || p.channel == "" || !a.canLook(q) || !a.memory.histories(a.now()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	list, err := a.api.replies(ctx, p.channel, q.Thread, 15)
	if err != nil {
		a.memory.restHistories(a.now().Add(time.Minute))
		return nil
	}
	me := a.self.Load()
	var turns []bot.Turn
	for _, m := range list {
		switch {
		case m.ts >= q.TS:
		case m.user == me.User || m.bot != "" && m.bot == me.Bot:
			turns = append(turns, bot.Turn{Speaker: bot.Agent, Text: event.Clean(m.text, me.User)})
		case m.user == q.User && m.bot == "" && (q.Kind == kindDM || event.Names(m.text, me.User)):
			turns = append(turns, bot.Turn{Speaker: bot.User, Text: event.Clean(m.text, me.User)})
		}
	}
	return turns
}

// canLook reports whether the history of the question's channel may be read.
func (a *Adapter) canLook(q question) bool {
	me := a.self.Load()
	if q.Kind == kindDM || q.private() {
		return a.can("im:history")
	}
	return me.scopes != nil && a.can("channels:history") && a.can("groups:history")
}

// help answers a mention that asks nothing.
func (a *Adapter) help(ctx context.Context, t *desk.Task, q question, p place) (desk.Result, bool, error) {
	text := render.HelpText(a.c.Name)
	if q.Files {
		text = sayFiles + "\n" + text
	}
	if err := t.Posting(ctx, nil); err != nil {
		return desk.Result{}, false, err
	}
	a.marks.settle(ctx, t.Key)
	err := a.notice(ctx, q, p, render.Literal(text))
	if err != nil {
		a.log.Warn("the help could not be posted", "error", err)
	}
	return desk.Result{State: ledger.Answered, Reason: "help"}, err == nil, nil
}

// Interrupted implements desk.Handler.
func (a *Adapter) Interrupted(ctx context.Context, d ledger.Delivery, trouble desk.Trouble) {
	var q question
	if json.Unmarshal(d.Payload, &q) != nil {
		return
	}
	select {
	case <-a.ready:
	default: // Slack has not been reached since the start: the person is told when it is
		go a.interruptedLater(d, trouble)
		return
	}
	q.key = d.Key
	a.marks.settle(ctx, d.Key)
	spoke := false
	var ref posted
	_ = json.Unmarshal(d.Posted, &ref)
	switch {
	case ref.Placeholder != "":
		_ = a.update(ctx, ref.Channel, ref.Placeholder, render.Literal(trouble.Text()), "")
	case trouble.Cause == desk.Restarting: // it will be answered
	default:
		spoke = a.notice(ctx, q, a.home(q), render.Literal(trouble.Text())) == nil
	}
	a.unmark(d.Key, q, spoke) // the sign may be of an earlier process
}

// interruptedLater is Interrupted once Slack can be reached.
func (a *Adapter) interruptedLater(d ledger.Delivery, trouble desk.Trouble) {
	patience := time.NewTimer(30 * time.Minute)
	defer patience.Stop()
	select {
	case <-a.ready:
	case <-patience.C:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	defer a.recovered("telling of a failure")
	a.Interrupted(ctx, d, trouble)
}

// home is where the person of a question is told of trouble.
func (a *Adapter) home(q question) place {
	switch {
	case q.Kind == kindDM || q.Kind == kindRoom && a.channel(q.Channel).Answer == PublicSafe:
		return place{channel: q.Channel, thread: q.Thread, audience: acl.AskerOnly()}
	case q.Respond != "":
		return place{respond: q.Respond, audience: acl.AskerOnly()}
	}
	return place{audience: acl.AskerOnly()}
}
