package discord

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"footnote/acl"
	"footnote/adapters/discord/guild"
	"footnote/adapters/discord/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// posted refers to a message on Discord.
type posted struct {
	ID      string `json:"id"`
	Channel string `json:"channel_id"`
	Content string `json:"content,omitempty"`
	Flags   int    `json:"flags,omitempty"`
	Parts   int    `json:"parts,omitempty"`  // messages of the answer that it begins
	Reason  string `json:"reason,omitempty"` // of a refusal
}

// Answer implements desk.Handler.
func (a *Adapter) Answer(ctx context.Context, t *desk.Task) (desk.Result, error) {
	var q question
	if err := json.Unmarshal(t.Payload, &q); err != nil {
		return desk.Result{}, fmt.Errorf("reading a question: %w", err)
	}
	if !q.Message {
		defer a.release(q.ID)
		err := a.responded(ctx, q.ID)
		switch {
		case code(err) == codeAcknowledged:
			return desk.Result{State: ledger.Failed, Reason: "elsewhere"}, nil
		case code(err) == codeUnknownInteraction:
			return desk.Result{State: ledger.Failed, Reason: "too_late"}, nil
		case ctx.Err() != nil:
			return desk.Result{}, err
		}
	}
	// What an earlier process left is taken up before the connection stands.
	a.facts(ctx, 3*a.c.pace.open)
	if q.File != "" {
		return a.takeFile(ctx, t, q)
	}
	var begun written
	if t.Attempt > 1 {
		var r desk.Result
		var done bool
		var err error
		if begun, r, done, err = a.earlier(ctx, t, q); done || err != nil {
			return r, err
		}
	}
	if q.Share != "" {
		return a.share(ctx, t, q, begun)
	}
	w, err := a.work(ctx, q)
	if err != nil {
		return desk.Result{}, err
	}
	return a.post(ctx, t, q, w, begun)
}

// worked is a reply with those it was made for.
type worked struct {
	bot.Reply
	private bool // for the asker alone
	moved   bool // private though the first response is public
}

// rounds bound how often a question is worked on anew because rights changed.
const rounds = 3

// work has the question answered, and looks at the rights again if that took
// long or anything changed meanwhile.
//
// SECURITY: the audience is that of the moment of posting, and whoever may
// read the place then. If that is not known any more, only the asker gets an
// answer.
func (a *Adapter) work(ctx context.Context, q question) (worked, error) {
	for range rounds {
		start, version := a.d.Now(), a.book.Version()
		asker, audience, moved, err := a.rights(ctx, q, start)
		if err != nil {
			return worked{}, err
		}
		r, err := a.d.Handle(ctx, bot.Message{ID: q.ID, Text: q.Text, Asker: asker, Audience: audience})
		if err != nil {
			return worked{}, err
		}
		w := worked{Reply: r, private: audience.Private(), moved: moved}
		if a.d.Now().Sub(start) <= a.c.Recheck && a.book.Version() == version {
			return w, nil
		}
		again, now, movedNow, err := a.rights(ctx, q, a.d.Now())
		if err != nil {
			return worked{}, err
		}
		if moved == movedNow && acl.NewGrant(asker, audience).Digest() == acl.NewGrant(again, now).Digest() {
			return w, nil
		}
	}
	return worked{}, &bot.UserError{Text: "Who may read here is changing right now. Please ask again in a moment."}
}

// rights are the asker's and the audience's. moved says that the place can no
// longer be answered in aloud.
func (a *Adapter) rights(ctx context.Context, q question, now time.Time) (asker acl.Identity, audience acl.Audience, moved bool, err error) {
	switch {
	case q.Guild == "":
		asker, err = a.dir.identify(ctx, direct, q.User, a.c.Recheck)
	case now.Sub(q.At) <= a.c.Recheck && a.dir.tenant(q.Guild) && !a.dir.changedSince(q.Guild, q.At):
		// The roles of an interaction are those of its moment.
		asker = a.dir.identity(q.Guild, q.User, q.Roles, !q.Pending)
	default:
		asker, err = a.dir.identify(ctx, q.Guild, q.User, a.c.Recheck)
	}
	if err != nil {
		return acl.Identity{}, acl.Audience{}, false, err
	}
	if err = a.renew(ctx, q); err == nil {
		audience, err = a.audienceOf(q)
	}
	if err != nil {
		return asker, acl.AskerOnly(), true, nil //nolint:nilerr // moved says it: the answer goes to the asker alone
	}
	return asker, audience, false, nil
}

// post records the answer, then makes it visible. begun is the first message of
// an earlier run's, if that was not whole.
func (a *Adapter) post(ctx context.Context, t *desk.Task, q question, w worked, begun written) (desk.Result, error) {
	id := ledger.NewID()
	refused := w.Outcome != bot.Answered
	options := render.Options{Answer: id, Private: w.private, Share: !w.moved && a.sharable(q), Link: a.c.Link, Say: q.language(w.private)}
	o := outgoing{key: t.Key, q: q, moved: w.moved, private: w.private, begun: begun, parts: render.Reply(w.Reply, options)}
	options.Parts = 1
	o.short = render.Reply(w.Reply, options)[0]
	ref := posted{Parts: len(o.parts), Reason: string(w.Reason)}
	switch {
	case a.mute(o):
		ref.Parts = 1
	case w.moved:
		ref.Parts++ // the word that it is private comes first
	}
	err := a.d.Ledger.PutAnswer(ctx, ledger.Answer{
		ID: id, Delivery: t.Key, Asker: t.Asker, Room: t.Room, Refused: refused, Private: w.private,
		Question: q.Text, Sources: ledger.Sources(w.Sources), Message: ref.raw(),
	})
	if err != nil {
		return desk.Result{}, fmt.Errorf("recording an answer: %w", err)
	}
	end := desk.Result{State: ledger.Answered}
	if refused {
		end = desk.Result{State: ledger.Refused, Reason: string(w.Reason)}
		if err := a.d.Ledger.NoteGap(ctx, id, q.Text); err != nil {
			a.d.Log.Error("a gap was not noted", "error", err)
		}
	}
	if err := t.Posting(ctx, nil); err != nil {
		return desk.Result{}, err
	}
	at, err := a.deliver(ctx, o)
	if errors.Is(err, errGone) {
		return desk.Result{State: ledger.Failed, Reason: "dismissed"}, nil
	}
	if err != nil {
		return desk.Result{}, err
	}
	ref.ID, ref.Channel = at.ID, at.Channel
	if err := a.d.Ledger.Posted(ctx, id, ref.raw()); err != nil {
		a.d.Log.Error("the place of an answer was not noted", "error", err)
	}
	return end, nil
}

func (p posted) raw() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers marshal
	}
	return b
}

// outgoing is an answer on its way.
type outgoing struct {
	key     string // of the delivery; nonces are made of it
	q       question
	private bool
	moved   bool
	parts   []render.Message
	short   render.Message // all of it in one message
	begun   written        // by an earlier run, and not whole; zero: nothing
}

// errGone says that the place of the answer was removed by a person.
var errGone = errors.New("the response was dismissed")

// apart reports that an answer must not stand where an earlier run began one:
// that was for all, or said where to ask.
//
// SECURITY: who can read a place may have changed since.
func (a *Adapter) apart(o outgoing) bool { return o.private && o.q.Guild != "" || a.mute(o) }

// deliver puts the answer where it belongs: in the deferred response while its
// token lives, else in a message of the bot.
func (a *Adapter) deliver(ctx context.Context, o outgoing) (posted, error) {
	switch {
	case o.begun.ID != "" && !a.apart(o):
		return a.complete(ctx, o)
	case o.q.Share != "":
		return a.deliverShared(ctx, o)
	case o.q.Message:
		return a.deliverMessage(ctx, o)
	}
	if a.alive(o.q) {
		at, err := a.deliverResponse(ctx, o)
		if err == nil || !deadToken(err) {
			return at, err
		}
	}
	return a.outlive(ctx, o)
}

func (a *Adapter) deliverResponse(ctx context.Context, o outgoing) (posted, error) {
	if o.moved {
		// SECURITY: nothing private is ever written into a public response.
		if _, err := a.edit(ctx, o.q, render.Say(o.q.language(false)(sayPrivately))); err != nil {
			return posted{}, gone(err)
		}
		return a.followUps(ctx, o, o.parts)
	}
	at, err := a.edit(ctx, o.q, o.parts[0])
	if err != nil {
		return posted{}, gone(err)
	}
	if thread, ok := a.thread(ctx, o, at); ok {
		if err = a.inThread(ctx, o, thread); err == nil {
			return at, nil
		}
	} else if len(o.parts) > 1 {
		_, err = a.followUps(ctx, o, o.parts[1:])
	}
	if err != nil {
		a.d.Log.Warn("the parts of an answer could not be posted", "error", err)
		rest := o.short // the rest found no place: all that fits, with the sources
		if passing(err) {
			rest = render.Unsure(o.parts[0], o.q.language(o.private)) // it may be there: nothing is said twice
		}
		_, err = a.edit(ctx, o.q, rest)
	}
	return at, gone(err)
}

func gone(err error) error {
	if code(err) == codeUnknownMessage {
		return errGone
	}
	return err
}

// webhook is the path of an interaction's own messages.
func (q question) webhook() string {
	return "webhooks/" + q.App + "/" + url.PathEscape(q.Token)
}

// edit writes the first response. It may be repeated: the result is the same.
func (a *Adapter) edit(ctx context.Context, q question, m render.Message) (posted, error) {
	var at posted
	m.Flags &= render.SuppressEmbeds // nothing else can be changed
	c := call{name: "answering", method: "PATCH", path: q.webhook() + "/messages/@original", lane: "response " + q.ID, hook: true, again: true, tries: stubborn}
	err := a.write(ctx, c, m, &at)
	return at, err
}

// write makes a call with a message for its body. What Discord refuses is sent
// again without its links, and then as text alone.
func (a *Adapter) write(ctx context.Context, c call, m render.Message, at *posted) error {
	c.body = m
	err := a.rest.do(ctx, c, at)
	if code(err) == codeHarmfulLink || code(err) == codeBlockedByAutoMod {
		c.body = render.Unlinked(m)
		err = a.rest.do(ctx, c, at)
	}
	if code(err) == codeNoHistory {
		m.Reference = nil // only who may read what was written may reply to it
		c.body = m
		err = a.rest.do(ctx, c, at)
	}
	switch code(err) {
	case codeInvalidBody, codeEmptyMessage, codeHarmfulLink, codeBlockedByAutoMod:
		c.body = render.Plainest(m)
		err = a.rest.do(ctx, c, at)
	}
	return err
}

// followUps posts further messages of the interaction. They are not repeated
// when no answer comes: they may be there. The next ones follow all the same.
func (a *Adapter) followUps(ctx context.Context, o outgoing, parts []render.Message) (posted, error) {
	var at posted
	var unsure error
	for _, m := range parts {
		if o.private {
			m.Flags |= render.Ephemeral
		}
		c := call{name: "posting a part", method: "POST", path: o.q.webhook() + "?wait=true", lane: "response " + o.q.ID, hook: true}
		err := a.write(ctx, c, m, &at)
		switch {
		case passing(err) && ctx.Err() == nil:
			unsure = err
		case err != nil:
			return posted{}, err
		}
	}
	return at, unsure
}

// outlive answers though the interaction's token is dead: in the channel what
// was public, in a direct message what was private, or may not be written there.
func (a *Adapter) outlive(ctx context.Context, o outgoing) (posted, error) {
	channel := o.q.Channel
	if o.private && o.q.Guild != "" {
		var err error
		if channel, err = a.direct(ctx, o.q); err != nil {
			return posted{}, err
		}
	}
	o.parts[0] = render.Quoting(o.q.Text, o.parts[0])
	at, err := a.messages(ctx, o, channel, o.parts, nil)
	if status(err) != http.StatusForbidden || o.q.Guild == "" || o.private || at.ID != "" {
		return at, err
	}
	if channel, err = a.direct(ctx, o.q); err != nil {
		return posted{}, err
	}
	return a.messages(ctx, o, channel, o.parts, nil)
}

// direct is the direct conversation with the asker.
func (a *Adapter) direct(ctx context.Context, q question) (string, error) {
	var dm posted
	c := call{name: "opening a direct message", method: "POST", path: "users/@me/channels", lane: "direct", again: true, body: map[string]string{"recipient_id": q.User}}
	err := a.rest.do(ctx, c, &dm)
	if err == nil && !isID(dm.ID) {
		err = errors.New("there is no direct conversation")
	}
	return dm.ID, err
}

// messages posts parts as messages of the bot. They may be repeated, since
// Discord returns the message that has the same nonce already.
func (a *Adapter) messages(ctx context.Context, o outgoing, channel string, parts []render.Message, to *render.Reference) (posted, error) {
	var first posted
	if !isID(channel) {
		return first, errors.New("there is no channel to answer in")
	}
	for i, m := range parts {
		m.Nonce, m.Enforce = nonce(o.key, i, len(parts)), true
		if m.Reference = to; i > 0 { // so that earlier finds it
			m.Reference = &render.Reference{Message: first.ID, Channel: channel}
		}
		var at posted
		c := call{name: "posting", method: "POST", path: "channels/" + channel + "/messages", lane: "channel " + channel, again: true, tries: stubborn}
		if err := a.write(ctx, c, m, &at); err != nil {
			return first, err
		}
		if i == 0 {
			first = at
		}
	}
	return first, nil
}

// nonce names a part of an answer: 24 characters of at most 25.
func nonce(key string, part, of int) string {
	sum := sha256.Sum256([]byte(key + "|" + strconv.Itoa(part) + "|" + strconv.Itoa(of)))
	return base32.StdEncoding.EncodeToString(sum[:15])
}

// thread opens a thread at the response for what does not fit in it. ok is
// false where that is not possible or not wanted.
func (a *Adapter) thread(ctx context.Context, o outgoing, at posted) (id string, ok bool) {
	q := o.q
	wanted := len(o.parts) > 1 || a.c.Threads
	if !wanted || o.private || q.Guild == "" || !isID(at.ID) || !q.Perms.Has(guild.CreatePublicThreads|guild.SendInThreads) || !a.book.Has(q.Guild) {
		return "", false
	}
	channel, _, err := a.book.Channel(q.Guild, q.Channel, q.Hint)
	if err != nil || channel.Thread() || !threadable(channel.Type) {
		return "", false
	}
	var t posted
	c := call{name: "opening a thread", method: "POST", path: "channels/" + q.Channel + "/messages/" + at.ID + "/threads", lane: "threads " + q.Channel,
		body: map[string]any{"name": render.ThreadName(q.Text), "auto_archive_duration": 1440}}
	err = a.rest.do(ctx, c, &t)
	switch {
	case code(err) == codeThreadExists || errors.Is(err, errNoReply) || status(err) >= 500:
		return at.ID, true // it has the id of its message
	case err != nil || !isID(t.ID):
		return "", false
	}
	return t.ID, true
}

func threadable(kind int) bool {
	return kind == 0 || kind == 5 // text and announcements
}

// inThread posts the rest in the thread, or, if the thread is not usable,
// after the response.
func (a *Adapter) inThread(ctx context.Context, o outgoing, thread string) error {
	rest := o.parts[1:]
	if len(rest) == 0 {
		return nil
	}
	at, err := a.messages(ctx, o, thread, rest, nil)
	if err != nil && at.ID == "" && !passing(err) {
		_, err = a.followUps(ctx, o, rest)
	}
	return err
}

// Interrupted implements desk.Handler.
func (a *Adapter) Interrupted(ctx context.Context, d ledger.Delivery, trouble desk.Trouble) {
	var q question
	if err := json.Unmarshal(d.Payload, &q); err != nil {
		a.d.Log.Error("the person of an interrupted question is unknown", "key", d.Key)
		return
	}
	defer a.release(q.ID)
	m := render.Say(q.language(q.Private)(trouble.Text()))
	private := q.Private
	if _, err := a.audienceOf(q); err != nil {
		private = true
	}
	o := outgoing{key: d.Key + "|" + string(trouble.Cause), q: q, private: private, parts: []render.Message{m}, short: m}
	var err error
	switch {
	case q.Message:
		_, err = a.deliverMessage(ctx, o)
	case a.alive(q):
		_, err = a.edit(ctx, q, m)
	case trouble.Cause != desk.Restarting:
		_, err = a.outlive(ctx, o)
	}
	if deadToken(err) && !q.Message && trouble.Cause != desk.Restarting {
		_, err = a.outlive(ctx, o)
	}
	if err != nil && code(err) != codeUnknownMessage {
		a.d.Log.Error("a person could not be told that a question was not answered", "key", d.Key, "error", err)
	}
}
