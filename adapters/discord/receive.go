package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"footnote/acl"
	"footnote/adapters/discord/guild"
	"footnote/adapters/discord/render"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
)

// question is the payload of a delivery: all that is needed to answer it, also
// after a restart.
type question struct {
	App         string        `json:"app,omitempty"`
	ID          string        `json:"id"` // of the interaction or message
	Token       string        `json:"token,omitempty"`
	Guild       string        `json:"guild,omitempty"` // "": a direct conversation
	Channel     string        `json:"channel"`
	Hint        guild.Channel `json:"hint"`
	User        string        `json:"user"`
	Roles       []string      `json:"roles,omitempty"`
	Pending     bool          `json:"pending,omitempty"`
	Text        string        `json:"text"`
	Private     bool          `json:"private,omitempty"` // decided with the first response
	Locale      string        `json:"locale,omitempty"`  // of the asker
	GuildLocale string        `json:"guild_locale,omitempty"`
	Message     bool          `json:"message,omitempty"` // asked in a message, not an interaction
	File        string        `json:"file,omitempty"`    // an attachment of the message that is to be added
	FileName    string        `json:"file_name,omitempty"`
	Further     bool          `json:"further,omitempty"` // not the first file of its message
	Share       string        `json:"share,omitempty"`   // the private answer that is to be posted to the channel
	Perms       guild.Perm    `json:"perms,omitempty"`   // the bot's in the channel, 0 unknown
	At          time.Time     `json:"at"`                // received
}

// Texts of our own, the same for everybody.
const (
	sayNotAvailable = "This is not available here."
	sayNotServed    = "This server is not set up for footnote. Ask the person who runs it to add the server to its configuration."
	sayStarting     = "I am just starting. Please ask again in a moment."
	sayTimedOut     = "You are timed out in this server, so I do not answer you now."
	sayOff          = "I do not answer in this channel. You can ask me in another one, or in a direct message."
	sayTryAgain     = "I could not take your question. Please ask again in a moment."
	sayFailed       = "Something went wrong. Please try again."
	sayPrivately    = "I answer this question privately."
	sayPressed      = "You have pressed this already."
	sayPosted       = "I posted it to the channel."
	sayNotShared    = "Not everybody who can read here may read the sources of this answer, so I do not post it."
	sayOld          = "I no longer have that answer. Please ask again."
	sayMayNotWrite  = "I may not write in this channel."
	sayThanks       = "Thank you."
	sayHelpful      = "Thank you. That helps."
	sayAskedBefore  = "You have asked for a human already; that is noted."
	sayAskedHuman   = "I have noted that you would like a human to look at this."
	sayNoQuestions  = "I have received no question from you here."
	sayLatest       = "Your latest questions:"
	sayHere         = "I am here. %d questions wait, %d are worked on."
	sayConnected    = "Connected for %s."
	sayNothing      = "There is no question. Write what you want to know, in a sentence."
)

// budget of everything before the first response has left. Discord waits 3 s,
// of which the way here already took some.
const budget = 2500 * time.Millisecond

// dispatch handles an interaction and lets nothing out: no panic, and no
// silence where a word is possible.
func (a *Adapter) dispatch(ctx context.Context, in *interaction) (err error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	start := time.Now()
	defer func() { a.timed(time.Since(start)) }()
	defer func() {
		if v := recover(); v != nil {
			a.count(func(h *Health) { h.Panics++ })
			ref := ledger.NewID()[:10]
			a.d.Log.Error("an interaction panicked", "reference", ref, "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			err = a.say(ctx, in, sayFailed+" (Reference: "+ref+")")
		}
	}()
	a.learn(in.Application)
	err = a.route(ctx, in)
	switch code(err) {
	case codeAcknowledged:
		a.count(func(h *Health) { h.Foreign++ })
		return nil
	case codeUnknownInteraction:
		a.count(func(h *Health) { h.Late++ })
		a.d.Log.Warn("a first response came too late")
		return nil
	}
	if err != nil {
		a.d.Log.Error("an interaction could not be responded to", "error", err)
	}
	return err
}

// route sends an interaction to what handles its type.
func (a *Adapter) route(ctx context.Context, in *interaction) error {
	if in.Type == typeAutocomplete {
		return a.respond(ctx, in, respondChoices, map[string]any{"choices": []string{}})
	}
	if refusal := a.refused(ctx, in); refusal != "" {
		return a.say(ctx, in, refusal)
	}
	switch {
	case in.Type == typeCommand && in.data.Name == askCommand:
		return a.ask(ctx, in, text(in.data.Options, "question"), flag(in.data.Options, "private"))
	case in.Type == typeCommand && in.data.Name == askMessage:
		// The message is what its reader asks about: the answer is private.
		return a.ask(ctx, in, in.data.Resolved.Messages[in.data.Target].Content, true)
	case in.Type == typeCommand && in.data.Name == footnoteCommand && len(in.data.Options) == 1:
		return a.about(ctx, in, in.data.Options[0])
	case in.Type == typeComponent:
		if answer, what, ok := render.Pressed(in.data.CustomID); ok {
			return a.pressed(ctx, in, answer, what)
		}
	}
	return a.say(ctx, in, sayNotAvailable)
}

// refused says why nothing is done for this person in this place, "" if
// something is.
//
// SECURITY: who asks and where is taken from the authenticated fields alone.
func (a *Adapter) refused(ctx context.Context, in *interaction) string {
	switch {
	case in.direct():
		return ""
	case !in.inGuild() || in.userInstalled() || !isID(in.account()) || !isID(in.Guild) || !isID(in.ChannelID):
		return sayNotAvailable
	}
	if !a.dir.tenant(in.Guild) {
		if len(a.c.Guilds) == 0 && !a.warm(ctx) {
			return sayStarting
		}
		if !a.dir.tenant(in.Guild) {
			return sayNotServed
		}
	}
	if in.Member.timedOut(a.d.Now()) {
		return sayTimedOut
	}
	return ""
}

// ask takes a question: visibility, then claim, then first response.
func (a *Adapter) ask(ctx context.Context, in *interaction, asked string, private bool) error {
	if strings.TrimSpace(asked) == "" {
		return a.say(ctx, in, sayNothing)
	}
	q := question{
		App: in.Application, ID: in.ID, Token: in.Token, Channel: in.ChannelID, Hint: in.hint(),
		User: in.account(), Text: asked, Private: private, At: a.d.Now(),
	}
	if in.inGuild() {
		q.Guild, q.Roles, q.Pending = in.Guild, in.Member.Roles, in.Member.Pending
		if in.AppPerms != nil {
			q.Perms = *in.AppPerms
		}
		switch a.dir.mode(q.Guild, q.Channel, q.Hint) {
		case Off:
			return a.say(ctx, in, sayOff)
		case PrivateAlways:
			q.Private = true
		}
		// SECURITY: whoever could read along must be known now.
		if !a.audienceKnown(ctx, q) {
			q.Private = true
		}
	}
	return a.accept(ctx, in, q, Platform+"|"+q.App+"|"+q.ID)
}

// accept claims a question under the key, and defers it.
func (a *Adapter) accept(ctx context.Context, in *interaction, q question, key string) error {
	q.Locale, q.GuildLocale = in.Locale, in.GuildLocale
	o, first := a.expect(q.ID)
	if !first {
		return nil // a copy of what is being taken, or worked on, right here
	}
	verdict, err := a.take(ctx, q, key)
	if err != nil || verdict != desk.Accepted {
		a.release(q.ID)
	}
	switch {
	case err != nil:
		a.d.Log.Error("a question was not taken", "error", err)
		return a.say(ctx, in, sayTryAgain)
	case verdict == desk.Duplicate:
		a.count(func(h *Health) { h.Copies++ })
		if q.Share != "" {
			return a.say(ctx, in, sayPressed)
		}
		return nil
	case verdict != desk.Accepted:
		return a.say(ctx, in, verdict.Text())
	}
	flags := 0
	if q.Private {
		flags = render.Ephemeral
	}
	err = a.respond(ctx, in, respondDeferred, map[string]any{"flags": flags})
	o.settle(err)
	return err
}

// audienceKnown waits a moment for the first facts after a start.
func (a *Adapter) audienceKnown(ctx context.Context, q question) bool {
	if q.Private {
		return true
	}
	_, _, err := a.dir.room(q.Guild, q.Channel, q.Hint)
	if err == nil {
		return true
	}
	if !a.book.Complete() && a.warm(ctx) {
		_, _, err = a.dir.room(q.Guild, q.Channel, q.Hint)
	}
	return err == nil
}

// take claims a question.
func (a *Adapter) take(ctx context.Context, q question, key string) (desk.Verdict, error) {
	payload, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	return a.d.Desk.Receive(ctx, ledger.Delivery{
		Key: key, Platform: Platform, Payload: payload,
		Asker: asker(q.Guild, q.User), Room: Platform + "|" + orDirect(q.Guild) + "|" + q.Channel,
	})
}

// asker names a person in the ledger.
func asker(g, u string) string { return Platform + "|" + orDirect(g) + "|" + u }

func orDirect(g string) string {
	if g == "" {
		return direct
	}
	return g
}

// say responds with a text that only the person sees.
func (a *Adapter) say(ctx context.Context, in *interaction, text string) error {
	return a.show(ctx, in, render.Say(translate(in.Locale, text)))
}

// show responds with a message that only the person sees.
func (a *Adapter) show(ctx context.Context, in *interaction, m render.Message) error {
	m.Flags |= render.Ephemeral
	return a.respond(ctx, in, respondMessage, m)
}

// respond makes the first response. It is repeated while Discord cannot be
// reached; that it was made already is success then.
func (a *Adapter) respond(ctx context.Context, in *interaction, kind int, data any) error {
	c := call{
		name: "responding", method: "POST", path: "interactions/" + in.ID + "/" + url.PathEscape(in.Token) + "/callback",
		lane: "callback " + in.ID, hook: true, patience: time.Second, body: map[string]any{"type": kind, "data": data},
	}
	pause := outbox.Backoff{Least: 20 * time.Millisecond, Most: 200 * time.Millisecond}
	for sent := false; ; sent = true {
		err := a.rest.do(ctx, c, nil)
		switch {
		case err == nil, sent && code(err) == codeAcknowledged:
			return nil
		case !passing(err) || ctx.Err() != nil || outbox.Pause(ctx, pause.Next()) != nil:
			return err
		}
	}
}

// outcome is how a first response went; done is closed when that is known.
type outcome struct {
	done chan struct{}
	err  error
}

func (o *outcome) settle(err error) { o.err = err; close(o.done) }

// expect says that a first response may be on its way. first is false if
// one is already.
func (a *Adapter) expect(id string) (o *outcome, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.deferred[id]; o != nil {
		return o, false
	}
	o = &outcome{done: make(chan struct{})}
	a.deferred[id] = o
	return o, true
}

// release forgets the outcome: the question has ended, or is not taken.
func (a *Adapter) release(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.deferred, id)
}

// responded waits for the first response to be made. It is nil, too, if an
// earlier process made it, or the attempt to.
func (a *Adapter) responded(ctx context.Context, id string) error {
	a.mu.Lock()
	o := a.deferred[id]
	a.mu.Unlock()
	if o == nil {
		return nil
	}
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *Adapter) learn(app string) {
	if !isID(app) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.app = app
}

// application is the id of the application, "" if it is not known yet.
func (a *Adapter) application() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.app
}

// audienceOf is who reads the answer to a question now.
func (a *Adapter) audienceOf(q question) (acl.Audience, error) {
	if q.Private || q.Guild == "" {
		return acl.AskerOnly(), nil
	}
	audience, _, err := a.dir.room(q.Guild, q.Channel, q.Hint)
	return audience, err
}
