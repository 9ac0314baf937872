package discord

import (
	"context"
	"errors"
	"net/http"

	"footnote/adapters/discord/guild"
	"footnote/adapters/discord/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// sharable reports that a private answer to the question may be offered for
// its channel: the bot can write there, and answers there aloud.
func (a *Adapter) sharable(q question) bool {
	write := guild.SendMessages
	if q.Hint.Thread() {
		write = guild.SendInThreads
	}
	return q.Private && q.Guild != "" && q.Share == "" && q.Perms.Has(guild.ViewChannel|write) &&
		a.dir.mode(q.Guild, q.Channel, q.Hint) == PublicSafe
}

// askShare takes the wish to post a private answer to the channel in which it
// was asked for.
//
// SECURITY: only its asker may wish that, and only for that channel.
func (a *Adapter) askShare(ctx context.Context, in *interaction, answer ledger.Answer) error {
	room := Platform + "|" + in.Guild + "|" + in.ChannelID
	if !in.inGuild() || !answer.Private || answer.Asker != asker(in.Guild, in.account()) || answer.Room != room {
		return a.say(ctx, in, sayNoSource)
	}
	if answer.Question == "" {
		return a.say(ctx, in, sayOld)
	}
	q := question{
		App: in.Application, ID: in.ID, Token: in.Token, Guild: in.Guild, Channel: in.ChannelID, Hint: in.hint(), User: in.account(),
		Roles: in.Member.Roles, Pending: in.Member.Pending, Text: answer.Question, Private: true, Share: answer.ID, At: a.d.Now(),
	}
	if in.AppPerms != nil {
		q.Perms = *in.AppPerms
	}
	return a.accept(ctx, in, q, Platform+"|share|"+answer.ID)
}

// share answers a private question again for the channel.
//
// SECURITY: every source of the private answer must be open to everybody who
// can read there, and what is posted is made anew within their rights.
func (a *Adapter) share(ctx context.Context, t *desk.Task, q question, begun written) (desk.Result, error) {
	refuse := func(reason, text string) (desk.Result, error) {
		_, err := a.edit(ctx, q, render.Say(q.language(true)(text)))
		if deadToken(err) || errors.Is(gone(err), errGone) {
			err = nil // the presser looks elsewhere
		}
		return desk.Result{State: ledger.Refused, Reason: reason}, err
	}
	if a.dir.mode(q.Guild, q.Channel, q.Hint) != PublicSafe {
		return refuse("channel_off", sayOff)
	}
	answer, err := a.d.Ledger.Answer(ctx, q.Share)
	if errors.Is(err, ledger.ErrNotFound) {
		return refuse("not_found", sayOld)
	}
	if err != nil {
		return desk.Result{}, err
	}
	aloud := q
	aloud.Private = false
	who, audience, moved, err := a.rights(ctx, aloud, a.d.Now())
	if err != nil {
		return desk.Result{}, err
	}
	if moved {
		return refuse("not_shared", sayNotShared)
	}
	for _, s := range answer.Sources {
		_, err := a.d.Open(ctx, who, audience, s)
		var said *bot.UserError
		if errors.As(err, &said) {
			return refuse("not_shared", sayNotShared)
		}
		if err != nil {
			return desk.Result{}, err
		}
	}
	w, err := a.work(ctx, aloud)
	if err != nil {
		return desk.Result{}, err
	}
	if w.moved || w.Outcome != bot.Answered {
		return refuse("not_shared", sayNotShared)
	}
	return a.post(ctx, t, q, w, begun)
}

// deliverShared posts an answer as a message of the channel, never as an edit
// of what was private, and tells the presser.
func (a *Adapter) deliverShared(ctx context.Context, o outgoing) (posted, error) {
	o.parts[0] = render.Quoting(o.q.Text, o.parts[0])
	at, err := a.messages(ctx, o, o.q.Channel, o.parts, nil)
	if status(err) == http.StatusForbidden {
		return at, &bot.UserError{Text: sayMayNotWrite, Err: err}
	}
	if err != nil {
		return at, err
	}
	a.tellShared(ctx, o.q)
	return at, nil
}

// tellShared tells the presser of a share that it was posted, while that is
// possible. The message in the channel says it too.
func (a *Adapter) tellShared(ctx context.Context, q question) {
	if q.Share == "" || !a.alive(q) {
		return
	}
	if _, err := a.edit(ctx, q, render.Say(q.language(true)(sayPosted))); err != nil {
		a.d.Log.Warn("a person could not be told that an answer was posted", "error", err)
	}
}
