package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"footnote/acl"
	"footnote/adapters/discord/render"
	"footnote/bot"
	"footnote/bot/ledger"
)

// pressed handles a button. Who pressed it need not be who asked.
//
// SECURITY: the id names an answer, nothing else. What is absent and what may
// not be seen give the same text.
func (a *Adapter) pressed(ctx context.Context, in *interaction, id, what string) error {
	answer, err := a.d.Ledger.Answer(ctx, id)
	presser := asker(in.Guild, in.account())
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		a.d.Log.Error("an answer could not be read", "error", err)
		return a.say(ctx, in, sayFailed)
	}
	if err != nil || !strings.HasPrefix(answer.Delivery, Platform+"|") || answer.Private && answer.Asker != presser || guildOf(answer.Asker) != orDirect(in.Guild) {
		return a.say(ctx, in, sayNoSource)
	}
	reason, unhelpful := strings.CutPrefix(what, "no-")
	say := func(text string) string { return translate(in.Locale, text) }
	switch n, isSource := strings.CutPrefix(what, "s"); {
	case isSource:
		return a.open(ctx, in, answer, n)
	case what == "yes":
		return a.rate(ctx, in, ledger.Feedback{Answer: id, User: presser, Helpful: true}, render.Say(say(sayThanks)))
	case what == "no":
		return a.rate(ctx, in, ledger.Feedback{Answer: id, User: presser}, render.Why(id, say))
	case unhelpful && slices.ContainsFunc(render.Reasons, func(r [2]string) bool { return r[0] == reason }):
		return a.rate(ctx, in, ledger.Feedback{Answer: id, User: presser, Reason: reason}, render.Say(say(sayHelpful)))
	case what == "human":
		return a.human(ctx, in, id, presser)
	case what == "post":
		return a.askShare(ctx, in, answer)
	case what == "private" && answer.Question != "":
		return a.ask(ctx, in, answer.Question, true)
	}
	return a.say(ctx, in, sayNoSource)
}

// sayNoSource is bot.Open's own text for what is absent or forbidden.
const sayNoSource = "This document is not available to you here."

func guildOf(asker string) string {
	parts := strings.Split(asker, "|")
	if len(parts) != 3 {
		return ""
	}
	return parts[1]
}

// open shows a source to the presser.
//
// SECURITY: the presser's own right, now, by the roles that came with the
// press; only the presser sees the passage.
func (a *Adapter) open(ctx context.Context, in *interaction, answer ledger.Answer, number string) error {
	n, err := strconv.Atoi(number)
	source, ok := answer.Source(n)
	if err != nil || !ok {
		return a.say(ctx, in, sayNoSource)
	}
	who, err := a.who(ctx, in)
	if err != nil {
		a.d.Log.Warn("a person could not be identified", "error", err)
		return a.say(ctx, in, sayNoSource)
	}
	opened, err := a.d.Open(ctx, who, acl.AskerOnly(), source)
	a.audit(ctx, in, source, err)
	var said *bot.UserError
	switch {
	case errors.As(err, &said):
		return a.say(ctx, in, said.Text)
	case err != nil:
		a.d.Log.Error("a source could not be opened", "error", err)
		return a.say(ctx, in, sayFailed)
	}
	m := render.Passage(opened, func(text string) string { return translate(in.Locale, text) })
	if a.c.Personal != nil {
		m.Embeds[0].URL = a.c.Personal(answer.ID, n, asker(in.Guild, in.account()))
	}
	return a.show(ctx, in, m)
}

func (a *Adapter) audit(ctx context.Context, in *interaction, s ledger.Source, err error) {
	entry := ledger.Audit{At: a.d.Now(), Actor: asker(in.Guild, in.account()), Action: "open_source", Subject: string(s.Document), Result: "shown"}
	if err != nil {
		entry.Result = "denied"
	}
	if err := a.d.Ledger.NoteAudit(ctx, entry); err != nil {
		a.d.Log.Error("an action was not noted", "error", err)
	}
}

func (a *Adapter) rate(ctx context.Context, in *interaction, f ledger.Feedback, thanks render.Message) error {
	f.At = a.d.Now()
	if err := a.d.Ledger.Rate(ctx, f); err != nil {
		a.d.Log.Error("feedback was not noted", "error", err)
		return a.say(ctx, in, sayFailed)
	}
	return a.show(ctx, in, thanks)
}

func (a *Adapter) human(ctx context.Context, in *interaction, id, presser string) error {
	fresh, err := a.d.Ledger.AskHuman(ctx, id, presser)
	switch {
	case err != nil:
		a.d.Log.Error("a request for a human was not noted", "error", err)
		return a.say(ctx, in, sayFailed)
	case !fresh:
		return a.say(ctx, in, sayAskedBefore)
	}
	return a.say(ctx, in, sayAskedHuman)
}

// about answers /footnote. Only the person sees it.
func (a *Adapter) about(ctx context.Context, in *interaction, what option) error {
	switch what.Name {
	case "help":
		return a.say(ctx, in, help)
	case "status":
		return a.say(ctx, in, a.status(ctx, in, strings.TrimSpace(text(what.Options, "document"))))
	case "why":
		return a.why(ctx, in)
	}
	return a.say(ctx, in, sayNotAvailable)
}

const help = `I answer questions from your organisation's documents, with numbered sources, or say that they do not answer.
- /ask question: everybody here sees the answer, made only from documents that everybody here may read.
- /ask with private: true, or a direct message: only you see it, and it may use everything that you may read.
- Apps > Ask footnote on a message: a private answer about that message.
- /footnote status: how I and the documents are doing; with a document, how that one stands.
- /footnote why: what became of your latest questions.
- The buttons under an answer show its sources, if you may read them.`

// who is the person of an interaction, by the roles that came with it.
func (a *Adapter) who(ctx context.Context, in *interaction) (acl.Identity, error) {
	if in.inGuild() {
		return a.dir.identity(in.Guild, in.account(), in.Member.Roles, !in.Member.Pending), nil
	}
	return a.dir.identify(ctx, direct, in.account(), a.c.Recheck)
}

// status says how the bot and the documents stand, or one document.
//
// SECURITY: by the rights that the person has now, for the person alone.
func (a *Adapter) status(ctx context.Context, in *interaction, document string) string {
	if a.d.Standing == nil {
		return a.statusText(in.Locale)
	}
	var said string
	who, err := a.who(ctx, in)
	if err == nil || errors.Is(err, acl.ErrUnknown) { // an unknown person may read nothing
		said, err = a.d.Standing.Text(ctx, who, document)
	}
	if err != nil {
		a.d.Log.Warn("how documents stand could not be said", "error", err)
		said = "How the documents stand cannot be said right now. Please try again in a moment."
	}
	if document != "" {
		return said
	}
	return a.statusText(in.Locale) + "\n" + said
}

func (a *Adapter) statusText(locale string) string {
	h := a.d.Desk.Health()
	text := fmt.Sprintf(translate(locale, sayHere), h.Waiting, h.Running)
	if since := a.Health().Connected; !since.IsZero() {
		text += " " + fmt.Sprintf(translate(locale, sayConnected), a.d.Now().Sub(since).Round(time.Second))
	}
	if a.unclear(a.book.Guilds()) != "" {
		text += " I am in several servers and not told which of them are of one organisation, so I show documents for everyone to nobody: the person who runs me can set discord.guilds."
	}
	return text
}

// why lists a person's own latest questions: when, and how they ended. Texts
// are not kept.
func (a *Adapter) why(ctx context.Context, in *interaction) error {
	list, err := a.d.Ledger.Of(ctx, asker(in.Guild, in.account()), 8)
	if err != nil {
		a.d.Log.Error("deliveries could not be read", "error", err)
		return a.say(ctx, in, sayFailed)
	}
	if len(list) == 0 {
		return a.say(ctx, in, sayNoQuestions)
	}
	lines := []string{translate(in.Locale, sayLatest)}
	for _, d := range list {
		l := "- " + d.Received.UTC().Format("2006-01-02 15:04:05 UTC") + ": " + string(d.State)
		if d.Reason != "" {
			l += " (" + d.Reason + ")"
		}
		lines = append(lines, l)
	}
	return a.say(ctx, in, strings.Join(lines, "\n"))
}
