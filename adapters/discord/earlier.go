package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"footnote/adapters/discord/render"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// written is a message as Discord has it.
type written struct {
	posted
	Author     user         `json:"author"`
	Components []render.Row `json:"components"`
	Reference  struct {
		Message string `json:"message_id"`
	} `json:"message_reference"`
	Interaction struct {
		ID string `json:"id"`
	} `json:"interaction_metadata"`

	response bool // the first response to the interaction
}

// holds reports that a message ends the answer: its buttons name that.
func (m written) holds(answer string) bool {
	for _, r := range m.Components {
		for _, b := range r.Components {
			if id, _, ok := render.Pressed(b.ID); ok && id == answer {
				return true
			}
		}
	}
	return false
}

// begins reports that a message is the first of those that answer the question:
// a reply to it, one that quotes it, or the response of which the token is dead.
func (m written) begins(q question) bool {
	return m.Flags&render.Loading == 0 && (m.Reference.Message == q.ID || m.Interaction.ID == q.ID || strings.HasPrefix(m.Content, render.Quote(q.Text)))
}

// given is the answer of an earlier run, which may have been posted.
type given struct {
	ledger.Answer
	at posted // Parts and Reason always, the place if the run saw it posted
}

func (g given) result() desk.Result {
	if g.Refused {
		return desk.Result{State: ledger.Refused, Reason: g.at.Reason}
	}
	return desk.Result{State: ledger.Answered, Reason: "found"}
}

const sayAmbiguous = "I was interrupted while I posted an answer. If you do not see it, please ask again."

// earlier looks for what an earlier run has posted, wherever it may have ended.
// done says that the question has ended. Else begun is the first of several
// messages of which the last is missing, zero if there is none.
//
// What cannot be looked for, since only its reader sees it, is not posted again:
// the reader is told that it may be there.
func (a *Adapter) earlier(ctx context.Context, t *desk.Task, q question) (begun written, r desk.Result, done bool, err error) {
	answer, err := a.d.Ledger.AnswerTo(ctx, t.Key)
	if errors.Is(err, ledger.ErrNotFound) {
		return begun, r, false, nil
	}
	g := given{Answer: answer}
	_ = json.Unmarshal(answer.Message, &g.at)
	whole := g.at.ID != ""
	if err == nil && !whole {
		whole, begun, err = a.search(ctx, q, g)
	}
	switch hidden := g.hidden(q); {
	case err != nil:
		return begun, r, false, err
	case whole:
		a.tellShared(ctx, q)
		return begun, g.result(), true, nil
	case !t.Ambiguous: // it had not begun to post
		return written{}, r, false, nil
	case hidden && begun.ID != "":
		_, err = a.edit(ctx, q, render.Unsure(render.Again(begun.Content), q.language(true)))
	case hidden && !a.alive(q):
		_, err = a.outlive(ctx, outgoing{key: t.Key, q: q, private: true, parts: []render.Message{render.Say(q.language(true)(sayAmbiguous))}})
	default:
		return begun, r, false, nil
	}
	return begun, desk.Result{State: ledger.Failed, Reason: "ambiguous"}, true, gone(err)
}

// hidden reports that only the asker sees an answer, and no list of messages
// shows it.
func (g given) hidden(q question) bool { return g.Private && q.Guild != "" && !q.Message }

// alive reports that a question came by an interaction whose token is of use.
func (a *Adapter) alive(q question) bool {
	return !q.Message && a.d.Now().Sub(q.At) < a.c.pace.life
}

// search looks for an answer where deliver puts one.
func (a *Adapter) search(ctx context.Context, q question, g given) (whole bool, begun written, err error) {
	if a.alive(q) && q.Share == "" {
		var m written
		c := call{name: "looking for an answer", method: "GET", path: q.webhook() + "/messages/@original", lane: "response " + q.ID, hook: true, again: true, tries: stubborn}
		switch err := a.rest.do(ctx, c, &m); {
		case code(err) == codeUnknownMessage, err == nil && m.Flags&render.Loading != 0:
			return false, begun, nil
		case err == nil:
			return a.inResponse(ctx, q, g, m)
		case !deadToken(err):
			return false, begun, err
		}
	}
	channel := q.Channel
	if g.hidden(q) {
		if channel, err = a.direct(ctx, q); err != nil {
			return false, begun, err
		}
	}
	list, err := a.own(ctx, channel, q.ID)
	for _, m := range list {
		if m.holds(g.ID) {
			return true, m, nil
		}
		if begun.ID == "" && g.at.Parts > 1 && m.begins(q) {
			begun = m
		}
	}
	if err == nil && begun.ID != "" {
		whole, err = a.goesOn(ctx, begun, channel, g)
	}
	return whole, begun, err
}

// inResponse looks for an answer of which a response may be the first message.
func (a *Adapter) inResponse(ctx context.Context, q question, g given, m written) (whole bool, begun written, err error) {
	m.response = true
	if m.holds(g.ID) || g.at.Parts < 2 {
		return m.holds(g.ID), begun, nil
	}
	if g.hidden(q) {
		return false, m, nil
	}
	whole, err = a.goesOn(ctx, m, q.Channel, g)
	return whole, m, err
}

// goesOn reports that what goes on from m ends the answer.
func (a *Adapter) goesOn(ctx context.Context, m written, channel string, g given) (bool, error) {
	list, err := a.after(ctx, m, channel)
	return slices.ContainsFunc(list, func(m written) bool { return m.holds(g.ID) }), err
}

// after are the messages of ours that go on where m ends: replies to it, and
// what stands in its thread.
func (a *Adapter) after(ctx context.Context, m written, channel string) ([]written, error) {
	list, err := a.own(ctx, channel, m.ID)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(other written) bool { return other.Reference.Message != m.ID })
	inThread, err := a.own(ctx, m.ID, m.ID) // it has the id of its message
	return append(list, inThread...), err
}

// pages bounds how far own looks: a hundred messages each.
const pages = 5

// own are our messages in a channel after the one with the id, or after the time
// in that. Where the bot may not look there are none: nonces see to it then, for
// a few minutes, that nothing is posted twice.
func (a *Adapter) own(ctx context.Context, channel, id string) (out []written, err error) {
	for range pages {
		var list []written
		c := call{name: "looking for an answer", method: "GET", path: "channels/" + channel + "/messages?limit=100&after=" + id, lane: "read " + channel, again: true, tries: stubborn}
		if err := a.rest.do(ctx, c, &list); refusedCall(err) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		slices.SortFunc(list, func(a, b written) int { return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID)) })
		for _, m := range list {
			if m.Channel = channel; m.Author.ID == a.book.Me() {
				out = append(out, m)
			}
		}
		if len(list) < 100 {
			break
		}
		id = list[len(list)-1].ID
	}
	return out, nil
}

// complete makes the first message of an answer that was not posted whole all of
// it, and takes away what went on from there.
func (a *Adapter) complete(ctx context.Context, o outgoing) (posted, error) {
	at, m := o.begun, o.short
	var err error
	if at.response {
		_, err = a.edit(ctx, o.q, m)
	} else {
		if strings.HasPrefix(at.Content, render.Quote(o.q.Text)) {
			m = render.Quoting(o.q.Text, m)
		}
		c := call{name: "completing an answer", method: "PATCH", path: "channels/" + at.Channel + "/messages/" + at.ID, lane: "channel " + at.Channel, again: true, tries: stubborn}
		err = a.write(ctx, c, m, nil)
	}
	if err != nil {
		return posted{}, gone(err)
	}
	rest, err := a.after(ctx, at, at.Channel)
	for _, m := range rest {
		c := call{name: "taking half an answer away", method: "DELETE", path: "channels/" + m.Channel + "/messages/" + m.ID, lane: "channel " + m.Channel, again: true}
		err = errors.Join(err, a.rest.do(ctx, c, nil))
	}
	if err != nil {
		a.d.Log.Warn("half an answer could not be taken away", "error", err)
	}
	a.tellShared(ctx, o.q)
	return at.posted, nil
}
