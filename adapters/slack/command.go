package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"footnote/acl"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// onCommand takes a slash command and returns what its acknowledgement says.
// Slack does not repeat commands.
func (a *Adapter) onCommand(ctx context.Context, c event.Command) any {
	me := a.self.Load()
	if c.User == "" || c.Team != "" && c.Team != me.team && me.enterprise == "" {
		return nil
	}
	switch strings.TrimPrefix(c.Name, "/") {
	case "ask":
		return a.onAsk(ctx, c)
	case "footnote":
		return onlyYou(a.onFootnote(ctx, c))
	}
	return onlyYou(render.HelpText(a.c.Name))
}

// aside is what an acknowledgement carries, for the person alone.
type aside struct {
	Type   string          `json:"response_type"`
	Text   string          `json:"text"`
	Blocks []render.Object `json:"blocks"`
	left   func()          // to be called once the acknowledgement has left; nil: nothing waits for that
}

func onlyYou(text string) any {
	m := render.Literal(text)
	return aside{Type: "ephemeral", Text: m.Text, Blocks: m.Blocks}
}

// acknowledged is called with what an acknowledgement carried, or was to
// carry, when nothing more will come of it.
func acknowledged(answer any) {
	if said, ok := answer.(aside); ok && said.left != nil {
		said.left()
	}
}

// unsaid says what an acknowledgement of a command could not carry, unless more
// will follow anyway: a command must not meet silence.
func (a *Adapter) unsaid(ctx context.Context, payload []byte, answer any) {
	said, ok := answer.(aside)
	c, err := event.ParseCommand(payload)
	if !ok || err != nil || said.left != nil || c.ResponseURL == "" {
		return
	}
	if err := a.respond(ctx, c.ResponseURL, render.Message{Text: said.Text, Blocks: said.Blocks}, false); err != nil {
		a.log.Warn("a command could not be answered", "error", err)
	}
}

// onAsk asks privately. A command says nothing of a thread, and the bot need
// not be in the channel: nobody but the asker can be meant.
func (a *Adapter) onAsk(ctx context.Context, c event.Command) any {
	q := question{
		Kind: kindCommand, Channel: c.Channel, User: c.User, Text: event.Clean(c.Text, a.self.Load().User), Respond: c.ResponseURL, At: a.now(),
	}
	if q.Text == "" {
		return onlyYou("Write your question after the command, for example: /ask how long do we keep logs?")
	}
	key := a.key("command", c.Trigger)
	if c.Trigger == "" {
		key = a.key("command", c.ResponseURL)
	}
	left := a.asides.begin(c.ResponseURL)
	v, err := a.d.Desk.Receive(ctx, a.delivery(q, key))
	if err != nil || v != desk.Accepted {
		left()
	}
	switch {
	case err != nil:
		a.log.Warn("a command could not be taken", "error", err)
		return onlyYou(sayTryAgain)
	case v == desk.Accepted:
		m := render.Literal("Looking in the documents… Only you will see the answer.")
		return aside{Type: "ephemeral", Text: m.Text, Blocks: m.Blocks, left: left}
	case v == desk.Duplicate:
		return nil
	}
	return onlyYou(v.Text())
}

func (a *Adapter) onFootnote(ctx context.Context, c event.Command) string {
	word, rest, _ := strings.Cut(event.Clean(c.Text, ""), " ")
	switch strings.ToLower(word) {
	case "status":
		return a.status(ctx, c.User, strings.TrimSpace(rest))
	case "why":
		return a.why(ctx, c.User)
	}
	return render.HelpText(a.c.Name)
}

// standingTime is what an acknowledgement leaves for looking at documents.
const standingTime = 2 * time.Second

// status says how the bot and the documents stand, or one document.
//
// SECURITY: by the rights that the person has now, for the person alone.
func (a *Adapter) status(ctx context.Context, user, document string) string {
	if a.d.Standing == nil {
		return a.statusLine()
	}
	ctx, cancel := context.WithTimeout(ctx, standingTime)
	defer cancel()
	var text string
	who, err := a.Directory().Identify(ctx, user)
	if err == nil || errors.Is(err, acl.ErrUnknown) { // an unknown person may read nothing
		text, err = a.d.Standing.Text(ctx, who, document)
	}
	if err != nil {
		a.log.Warn("how documents stand could not be said", "error", err)
		text = "How the documents stand cannot be said right now. Please try again in a moment."
	}
	if document != "" {
		return text
	}
	return a.statusLine() + "\n" + text
}

// statusLine says in a few words how the bot is doing.
func (a *Adapter) statusLine() string {
	h, d := a.Health(), a.d.Desk.Health()
	var b strings.Builder
	if a.c.Mode == Socket && h.Connected.IsZero() {
		b.WriteString("I am not connected to Slack.")
	} else {
		b.WriteString("I am connected to Slack.")
	}
	fmt.Fprintf(&b, " Questions waiting: %d, being answered: %d.", d.Waiting, d.Running)
	if d.Oldest > time.Second {
		fmt.Fprintf(&b, " The oldest waits for %s.", d.Oldest.Round(time.Second))
	}
	return b.String()
}

// why lists what became of a person's own questions. It says nothing of what
// they said.
func (a *Adapter) why(ctx context.Context, user string) string {
	list, err := a.d.Ledger.Of(ctx, a.key(user), 5)
	if err != nil {
		return "Your questions cannot be listed right now. Please try again in a moment."
	}
	if len(list) == 0 {
		return "I have received no question from you in the last days. In a channel I answer only when I am mentioned and am a member."
	}
	lines := []string{"Your latest questions:"}
	for _, d := range list {
		lines = append(lines, "- "+d.Received.UTC().Format("2006-01-02 15:04 UTC")+": "+fate(d))
	}
	return strings.Join(lines, "\n")
}

// fates say in words what a state or reason means.
var fates = map[string]string{
	string(ledger.Accepted): "it waits to be answered", string(ledger.Answering): "it is being answered", string(ledger.Posting): "its answer is being posted",
	string(ledger.Answered): "answered", string(ledger.Refused): "the documents did not answer it", string(ledger.Failed): "it could not be answered",
	"stale": "it reached me too late", "busy": "too many questions were waiting", "busy_room": "too many questions were waiting in that channel",
	"busy_asker": "you had several questions waiting", "external": "people from outside are not answered", "channel_off": "I do not answer in that channel",
	"shared_externally": "people from outside can read in that channel", "not_in_channel": "I am not a member of that channel", "channel_not_found": "I am not a member of that channel",
	"orphaned": "its thread was deleted", "deleted": "it was deleted", "timed_out": "it took too long", "ambiguous": "I was interrupted while posting the answer", "told": "it could not be answered",
	"not_shared": "not everyone there may read its sources", "restarting": "it waits for a restart", "help": "it held no question, and I posted the help",
	string(bot.NoMatch): "the documents did not answer it", string(bot.NotAnswered): "the documents did not answer it",
	string(bot.EmptyQuestion): "it held no question", string(bot.TooLong): "it was too long",
}

func fate(d ledger.Delivery) string {
	if s := fates[d.Reason]; s != "" {
		return s
	}
	s := fates[string(d.State)]
	if d.Reason != "" {
		s += " (" + d.Reason + ")"
	}
	return s
}
