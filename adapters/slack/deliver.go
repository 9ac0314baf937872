package slack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"footnote/adapters/slack/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
)

// posted is the reference to what was posted for a question.
type posted struct {
	Answer      string   `json:"answer,omitempty"` // opaque id
	Channel     string   `json:"channel,omitempty"`
	Thread      string   `json:"thread,omitempty"`
	TS          []string `json:"ts,omitempty"`
	Parts       int      `json:"parts,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Refused     bool     `json:"refused,omitempty"`
	Reason      string   `json:"reason,omitempty"` // of a refusal
	// Target is where a private answer may be posted later.
	Target *target `json:"target,omitempty"`
}

type target struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread"`
}

func (p posted) raw() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers marshal
	}
	return b
}

// errOrphan says that the parent of a thread is gone.
var errOrphan = errors.New("the thread is gone")

// deliver records the answer, posts it once, and says how that ended.
func (a *Adapter) deliver(ctx context.Context, t *desk.Task, q question, p place, r bot.Reply) (desk.Result, bool, error) {
	ref := posted{Answer: ledger.NewID(), Channel: p.channel, Thread: p.thread, Refused: r.Outcome != bot.Answered, Reason: string(r.Reason)}
	var before posted
	if json.Unmarshal(t.Posted, &before) == nil && p.room {
		ref.Placeholder = before.Placeholder
	}
	if q.Kind == kindShortcut && q.Thread != "" {
		ref.Target = &target{q.Channel, q.Thread}
	}
	if p.respond == "" && p.channel == "" {
		dm, err := a.api.dm(ctx, q.User)
		if err != nil {
			return a.cannotPost(ctx, q, p, err)
		}
		ref.Channel, p.channel = dm, dm
	}
	messages := render.Reply(r, render.Options{
		ID: ref.Answer, Viewer: a.c.Viewer, Room: p.room, Share: ref.Target != nil && r.Outcome == bot.Answered, Note: a.noteFor(q, p),
	})
	ref.Parts = len(messages)
	if err := a.record(ctx, t, q, p, r, ref); err != nil {
		return desk.Result{}, false, err
	}
	if err := t.Posting(ctx, ref.raw()); err != nil {
		return desk.Result{}, false, err
	}
	a.marks.settle(ctx, t.Key)
	if err := a.send(ctx, q, p, &ref, messages, r); err != nil {
		return a.cannotPost(ctx, q, p, err)
	}
	// Only a new message takes a status with it; a changed one does not.
	return a.delivered(ctx, t, q, p, ref), p.channel == q.Channel && ref.Placeholder == "", nil
}

func (a *Adapter) noteFor(q question, p place) string {
	switch {
	case p.note != "":
		return p.note
	case q.Files:
		return sayFiles
	}
	return ""
}

// record keeps the answer before it is posted, so that no button refers to
// nothing.
func (a *Adapter) record(ctx context.Context, t *desk.Task, q question, p place, r bot.Reply, ref posted) error {
	err := a.d.Ledger.PutAnswer(ctx, ledger.Answer{
		ID: ref.Answer, Delivery: t.Key, Asker: t.Asker, Room: t.Room, Refused: ref.Refused, Private: !p.room,
		Question: q.Text, Sources: ledger.Sources(r.Sources), Message: ref.raw(),
	})
	if err != nil {
		return fmt.Errorf("recording an answer: %w", err)
	}
	if ref.Refused {
		if err := a.d.Ledger.NoteGap(ctx, ref.Answer, q.Text); err != nil {
			return fmt.Errorf("recording a gap: %w", err)
		}
	}
	return nil
}

// delivered notes where the answer is.
func (a *Adapter) delivered(ctx context.Context, t *desk.Task, q question, p place, ref posted) desk.Result {
	if err := a.d.Ledger.Posted(ctx, ref.Answer, ref.raw()); err != nil {
		a.log.Warn("where an answer was posted could not be noted", "error", err)
	}
	if p.room || q.Kind == kindDM {
		a.memory.answered(p.channel, p.thread, q.User, a.now())
	}
	if p.pointer {
		_ = a.whisper(ctx, q, render.Literal(sayPointer)) // beside the answer it would be noise
	}
	if ref.Refused {
		return desk.Result{State: ledger.Refused, Reason: ref.Reason}
	}
	return desk.Result{State: ledger.Answered}
}

// send posts the messages in order.
func (a *Adapter) send(ctx context.Context, q question, p place, ref *posted, messages []render.Message, r bot.Reply) error {
	if p.respond != "" {
		return a.sendPrivately(ctx, q, p, ref, messages, r)
	}
	for i, m := range messages {
		plain := render.Message{Text: m.Text}
		if len(messages) == 1 {
			plain.Text = render.Plain(r)
		}
		ts, err := a.sendPart(ctx, p, ref, i, m, plain)
		if err != nil {
			return err
		}
		ref.TS = append(ref.TS, ts)
	}
	return nil
}

// sendPart posts one message, as plain text if Slack refuses its blocks.
func (a *Adapter) sendPart(ctx context.Context, p place, ref *posted, i int, m, plain render.Message) (string, error) {
	if i == 0 && ref.Placeholder != "" {
		err := a.update(ctx, p.channel, ref.Placeholder, m, ref.Answer)
		if refusedBlocks(err) {
			err = a.update(ctx, p.channel, ref.Placeholder, plain, ref.Answer)
		}
		if err == nil {
			return ref.Placeholder, nil
		}
		if !slices.Contains(lostMessage, codeOf(err)) {
			return "", err
		}
	}
	ts, err := a.postOnce(ctx, p.channel, p.thread, m, ref.Answer, i)
	if refusedBlocks(err) {
		var f *failure
		errors.As(err, &f)
		a.log.Error("Slack refused the blocks of an answer: it is posted as plain text", "where", strings.Join(f.where, "; "), "code", f.code)
		ts, err = a.postOnce(ctx, p.channel, p.thread, plain, ref.Answer, i)
	}
	return ts, err
}

// lostMessage are codes of an update after which a new message is posted.
var lostMessage = []string{"message_not_found", "cant_update_message", "edit_window_closed", "streaming_state_conflict", "is_inactive"}

// lostThread are codes of a post whose thread is gone: nobody is left to tell.
var lostThread = []string{"thread_not_found", "cannot_reply_to_message", "invalid_thread_ts"}

func refusedBlocks(err error) bool {
	switch codeOf(err) {
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long":
		return true
	}
	return false
}

// postOnce posts a message in its thread. If it is not known whether Slack took
// it, the thread is looked through; only if it is not there is it posted
// again, and never blindly.
func (a *Adapter) postOnce(ctx context.Context, channel, thread string, m render.Message, id string, part int) (string, error) {
	for attempt := 1; ; attempt++ {
		ts, err := a.post(ctx, channel, thread, m, id, part)
		if err == nil || attempt == 6 {
			return ts, err
		}
		if !ambiguous(err) {
			if codeOf(err) == codeNet && outbox.Pause(ctx, time.Duration(attempt)*100*time.Millisecond) == nil {
				continue // nothing reached Slack
			}
			return "", err
		}
		found, lookErr := a.find(ctx, channel, thread, id)
		if errors.Is(lookErr, errOrphan) {
			return "", errOrphan
		}
		if lookErr != nil {
			return "", err
		}
		for _, f := range found {
			if f.part == part {
				return f.ts, nil
			}
		}
	}
}

// post posts a message in its turn. A message that landed outside its thread
// is taken away again.
func (a *Adapter) post(ctx context.Context, channel, thread string, m render.Message, id string, part int) (string, error) {
	var ts, in string
	err := a.out.Do(ctx, outbox.Call{Lane: "post " + channel, Limit: a.c.Pace, Priority: outbox.Final, Make: func(ctx context.Context) error {
		err := held(ctx)
		if err == nil {
			ts, in, err = a.api.post(ctx, channel, thread, m, id, part)
		}
		return err
	}})
	if err == nil && thread != "" && in != thread {
		if err := a.takeAway(ctx, channel, ts); err != nil {
			a.log.Error("a message that landed outside its thread could not be taken away", "error", err)
		}
		return "", errOrphan
	}
	return ts, err
}

// awayTime bounds the attempts to take a message away.
const awayTime = 30 * time.Second

// takeAway removes a message of ours, and tries again where that fails for a
// moment, also while the bot is being stopped.
func (a *Adapter) takeAway(ctx context.Context, channel, ts string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), awayTime)
	defer cancel()
	err := repeat(ctx, func() error { return a.api.remove(ctx, channel, ts) })
	if codeOf(err) == "message_not_found" {
		return nil
	}
	return err
}

// update replaces a message, and repeats that if need be: it says the same
// each time.
func (a *Adapter) update(ctx context.Context, channel, ts string, m render.Message, id string) error {
	for attempt := 1; ; attempt++ {
		err := a.out.Do(ctx, outbox.Call{Lane: "update " + channel, Priority: outbox.Final, Make: func(ctx context.Context) error {
			if err := held(ctx); err != nil {
				return err
			}
			return a.api.update(ctx, channel, ts, m, id)
		}})
		if err == nil || attempt == 4 || !ambiguous(err) && codeOf(err) != codeNet {
			return err
		}
		if outbox.Pause(ctx, time.Duration(attempt)*100*time.Millisecond) != nil {
			return err
		}
	}
}

// errBlind says that the history may not be read.
var errBlind = errors.New("the history of the channel may not be read")

// findTime bounds the look at a history: some apps may read one a minute only,
// and then the person is told rather than kept waiting.
const findTime = 10 * time.Second

// find looks for the messages of an answer.
func (a *Adapter) find(ctx context.Context, channel, thread, id string) ([]said, error) {
	if me := a.self.Load(); me.scopes != nil && !a.can("im:history") && !a.can("channels:history") || id == "" {
		return nil, errBlind
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	var list []said
	err := repeat(ctx, func() error {
		var err error
		if thread == "" {
			list, err = a.api.latest(ctx, channel)
		} else {
			list, err = a.api.replies(ctx, channel, thread, 100)
		}
		return err
	})
	if codeOf(err) == "thread_not_found" {
		a.takeStrays(ctx, channel, id)
		return nil, errOrphan
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(s said) bool { return s.id != id }), nil
}

// takeStrays takes away what of an answer landed in the channel because its
// thread is gone.
func (a *Adapter) takeStrays(ctx context.Context, channel, id string) {
	found, err := a.find(ctx, channel, "", id)
	for _, s := range found {
		err = errors.Join(err, a.takeAway(ctx, channel, s.ts))
	}
	if err != nil {
		a.log.Error("it is not known whether an answer is left outside its thread", "error", err)
	}
}

// resume looks for the answer of a run that ended while it was posting. It
// reports whether the question is done with.
func (a *Adapter) resume(ctx context.Context, t *desk.Task, q question) (desk.Result, bool) {
	var ref posted
	if json.Unmarshal(t.Posted, &ref) != nil || ref.Answer == "" {
		return desk.Result{}, false // nothing that could be there is an answer
	}
	found, err := a.find(ctx, ref.Channel, ref.Thread, ref.Answer)
	if err == nil && len(found) < max(1, ref.Parts) && outbox.Pause(ctx, a.c.Arrival) == nil {
		found, err = a.find(ctx, ref.Channel, ref.Thread, ref.Answer)
	}
	switch {
	case errors.Is(err, errOrphan):
		a.unmark(t.Key, q, true)
		return desk.Result{State: ledger.Failed, Reason: "orphaned"}, true
	case err != nil && ref.Placeholder != "" && ref.Parts < 2:
		return desk.Result{}, false // the answer replaces it, once or twice
	case err != nil || ref.Channel == "":
		a.unsure(ctx, q)
		a.unmark(t.Key, q, a.home(q).channel == q.Channel)
		return desk.Result{State: ledger.Failed, Reason: "ambiguous"}, true
	case len(found) >= max(1, ref.Parts):
		a.unmark(t.Key, q, ref.Channel == q.Channel && ref.Placeholder == "")
		if ref.Refused {
			return desk.Result{State: ledger.Refused, Reason: ref.Reason}, true
		}
		return desk.Result{State: ledger.Answered}, true
	}
	for _, f := range found { // half an answer has no sources
		if f.ts != ref.Placeholder {
			_ = a.takeAway(ctx, ref.Channel, f.ts)
		}
	}
	return desk.Result{}, false
}

// unmark takes away the sign that an earlier process showed.
func (a *Adapter) unmark(key string, q question, spoke bool) {
	a.marks.adopt(key, q)
	a.marks.end(key, spoke)
}

// placeholder says that the bot is looking where neither a status nor a
// reaction can. It becomes the answer. The error is errOrphan or nil: without
// it the answer is new.
func (a *Adapter) placeholder(ctx context.Context, t *desk.Task, q question) error {
	var ref posted
	if json.Unmarshal(t.Posted, &ref) == nil && ref.Placeholder != "" {
		return nil
	}
	ts, err := a.looking(ctx, t, q)
	if errors.Is(err, errOrphan) {
		return errOrphan
	}
	if err != nil {
		return nil //nolint:nilerr // it was a courtesy
	}
	if err := t.Keep(ctx, posted{Channel: q.Channel, Thread: q.Thread, Placeholder: ts}.raw()); err != nil {
		_ = a.takeAway(ctx, q.Channel, ts)
	}
	return nil
}

// looking posts the placeholder, unless that of an earlier run is there, which
// ended before it could note that. Its metadata names the question.
func (a *Adapter) looking(ctx context.Context, t *desk.Task, q question) (string, error) {
	id := digest(t.Key)
	if t.Attempt > 1 {
		if found, err := a.find(ctx, q.Channel, q.Thread, id); err == nil && len(found) > 0 {
			return found[0].ts, nil
		}
	}
	return a.postOnce(ctx, q.Channel, q.Thread, render.Literal("Looking in the documents…"), id, 0)
}

// digest is an opaque id made of a key.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// cannotPost says what becomes of a question whose answer could not be posted.
func (a *Adapter) cannotPost(ctx context.Context, q question, p place, err error) (desk.Result, bool, error) {
	code := codeOf(err)
	failed := desk.Result{State: ledger.Failed, Reason: reasonCode(code)}
	switch {
	case errors.Is(err, errOrphan), slices.Contains(lostThread, code):
		return desk.Result{State: ledger.Failed, Reason: "orphaned"}, errors.Is(err, errOrphan), nil
	case code == codeTaken:
		return desk.Result{}, false, err
	case errors.Is(err, outbox.ErrFull), errors.Is(err, outbox.ErrLate):
		return desk.Result{}, false, &bot.UserError{Text: "Slack lets me post only so much right now. Please ask again in a few minutes.", Err: err}
	case ctx.Err() != nil: // at a shutdown the next start looks whether it is there
		return desk.Result{}, false, err
	case ambiguous(err):
		a.log.Error("it is not known whether an answer was posted", "error", err)
		a.unsure(ctx, q)
		return desk.Result{State: ledger.Failed, Reason: "ambiguous"}, true, nil
	case absent(err):
		a.direct(ctx, q, a.sayInvite()+" Or ask me here.")
		return failed, false, nil
	case code == "messages_tab_disabled":
		_ = a.whisper(ctx, q, render.Literal("I cannot write to you directly: an administrator must switch on the Messages Tab in the app's settings, under App Home."))
		return failed, false, nil
	case code == codeStopped:
		return failed, false, nil
	}
	a.log.Error("an answer could not be posted", "error", err)
	a.direct(ctx, q, "I could not post an answer there (Slack says "+code+"). You can ask me here instead.")
	return failed, false, nil
}

// unsure tells a person that an answer may be there. It comes beside what may be
// that answer.
func (a *Adapter) unsure(ctx context.Context, q question) {
	p := a.home(q)
	p.beside = true
	_ = a.notice(ctx, q, p, render.Literal(sayAmbiguous))
}

// reasonCode makes a code that the ledger takes.
func reasonCode(code string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToLower(code[:min(len(code), 48)]))
}

// notice posts a message that is no answer. To a command it comes in place of
// the word that the bot is looking. Unlike an answer it is posted again if Slack
// may or may not have taken it: twice is better than never, and what came twice is
// taken away where that can be seen.
func (a *Adapter) notice(ctx context.Context, q question, p place, m render.Message) error {
	if p.respond != "" {
		if err := a.respond(ctx, p.respond, m, q.Kind == kindCommand && !p.beside); err == nil {
			return nil
		}
		p.channel, p.thread = "", ""
	}
	if p.channel == "" {
		dm, err := a.api.dm(ctx, q.User)
		if err != nil {
			return err
		}
		p.channel = dm
	}
	for try := 0; ; try++ {
		_, err := a.post(ctx, p.channel, p.thread, m, q.word(), 0)
		if ambiguous(err) && try < noticeTries {
			continue
		}
		if err == nil || ambiguous(err) {
			a.onlyOne(ctx, q, p)
		}
		return err
	}
}

const noticeTries = 2 // besides the first

// onlyOne takes all words about a question away but the first: replicas that all
// find the ledger away cannot agree who says it, but see what has been said.
func (a *Adapter) onlyOne(ctx context.Context, q question, p place) {
	found, err := a.find(ctx, p.channel, p.thread, q.word())
	if err != nil || len(found) < 2 {
		return
	}
	slices.SortFunc(found, func(a, b said) int { return strings.Compare(a.ts, b.ts) })
	for _, s := range found[1:] {
		_ = a.takeAway(ctx, p.channel, s.ts)
	}
}

// told reports that an earlier run, which could not note its end, told the person
// that there is no answer.
func (a *Adapter) told(ctx context.Context, q question) bool {
	p := a.home(q)
	if p.channel == "" {
		return false
	}
	found, err := a.find(ctx, p.channel, p.thread, q.word())
	return err == nil && len(found) > 0
}

// tell tells a person something that nobody else needs to see, as near to the
// question as it can be.
func (a *Adapter) tell(ctx context.Context, q question, text string) {
	switch {
	case text == "":
	case q.Kind == kindDM:
		_ = a.notice(ctx, q, place{channel: q.Channel, thread: q.Thread}, render.Literal(text))
	case q.Respond != "" && a.respond(ctx, q.Respond, render.Literal(text), q.Kind == kindCommand) == nil:
	case a.whisper(ctx, q, render.Literal(text)) != nil:
		a.direct(ctx, q, text)
	}
}

// direct writes to a person in the direct conversation.
func (a *Adapter) direct(ctx context.Context, q question, text string) {
	if err := a.notice(ctx, q, place{}, render.Literal(text)); err != nil {
		a.log.Warn("a person could not be told", "error", err)
	}
}

// whisper shows a person a note in the channel. Slack shows it in a thread
// only if that has replies, so a first message's is beside it.
func (a *Adapter) whisper(ctx context.Context, q question, m render.Message) error {
	thread := q.Thread
	if thread == q.TS {
		thread = ""
	}
	return a.out.Do(ctx, outbox.Call{Lane: "whisper " + q.Channel, Make: func(ctx context.Context) error {
		if err := held(ctx); err != nil {
			return err
		}
		return a.api.whisper(ctx, q.Channel, q.User, thread, m)
	}})
}

// A response_url is good for so long, and for so many posts. One post is kept
// back for a word about a failure.
const (
	respondTime = 28 * time.Minute // Slack's 30 less the way there
	respondUses = 4                // of 5
)

// sendPrivately answers through a response_url. What that no longer takes is
// shown to the person in the channel, and where that cannot be, sent directly.
func (a *Adapter) sendPrivately(ctx context.Context, q question, p place, ref *posted, messages []render.Message, r bot.Reply) error {
	whole := len(messages)
	for uses := 0; uses < respondUses && a.now().Sub(q.At) < respondTime && len(messages) > 0; uses++ {
		err := a.respond(ctx, p.respond, messages[0], q.Kind == kindCommand && uses == 0)
		switch {
		case err == nil:
			messages = messages[1:]
			continue
		case ambiguous(err):
			return err
		case refusedBlocks(err) && len(messages[0].Blocks) > 0:
			plain := render.Message{Text: messages[0].Text}
			if len(messages) == 1 && whole == 1 {
				plain.Text = render.Plain(r)
			}
			messages = append([]render.Message{plain}, messages[1:]...)
			continue
		}
		break
	}
	if len(messages) == 0 {
		return nil
	}
	dm, err := a.api.dm(ctx, q.User)
	if err != nil {
		return err
	}
	if dm != q.Channel { // where both are alone nothing is ephemeral
		if messages, err = a.whisperAll(ctx, q, messages); err != nil || len(messages) == 0 {
			return err
		}
	}
	ref.Channel = dm
	return a.send(ctx, q, place{channel: dm, audience: p.audience}, ref, messages, r)
}

// whisperAll shows messages to a person in the channel of the question, and
// returns those that Slack did not take there.
func (a *Adapter) whisperAll(ctx context.Context, q question, messages []render.Message) ([]render.Message, error) {
	for i, m := range messages {
		if err := a.whisper(ctx, q, m); ambiguous(err) {
			return nil, err
		} else if err != nil {
			return messages[i:], nil //nolint:nilerr // they are sent directly
		}
	}
	return nil, nil
}

// trusted reports that an address may be posted to.
//
// SECURITY: what is posted there is for one person; the address comes with a
// delivery, so only Slack's own host is good, or that of the API.
func (a *Adapter) trusted(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if api, err := url.Parse(a.c.APIURL); err == nil && a.c.APIURL != "" && u.Scheme == api.Scheme && sameHost(u.Hostname(), api.Hostname()) {
		return true
	}
	return u.Scheme == "https" && u.Host == "hooks.slack.com"
}

// sameHost compares hosts, whatever the port. All names of this machine are one.
func sameHost(a, b string) bool { return strings.EqualFold(a, b) || loopback(a) && loopback(b) }

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// respond posts to a response_url, for the person alone.
func (a *Adapter) respond(ctx context.Context, address string, m render.Message, replace bool) error {
	a.asides.wait(ctx, address)
	if !a.trusted(address) {
		return &failure{code: "untrusted_url"}
	}
	if err := held(ctx); err != nil {
		return err
	}
	out := map[string]any{"response_type": "ephemeral", "replace_original": replace, "text": m.Text}
	if len(m.Blocks) > 0 {
		out["blocks"] = m.Blocks
	}
	b, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("making a response: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b))
	if err != nil {
		return &failure{code: "untrusted_url", err: err}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := a.web().Do(req)
	if err != nil {
		return problem(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return &failure{code: codeNet, ambiguous: true, err: err}
	}
	if resp.StatusCode != http.StatusOK {
		return &failure{code: fmt.Sprintf("http_%d", resp.StatusCode), ambiguous: resp.StatusCode >= 500}
	}
	var said struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	if json.Unmarshal(data, &said) == nil && said.OK != nil && !*said.OK {
		return &failure{code: said.Error}
	}
	return nil
}

// web is the client for addresses that come with deliveries: it follows no
// redirect away from them.
func (a *Adapter) web() *http.Client {
	c := http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if a.c.HTTP != nil {
		c.Transport = a.c.HTTP.Transport
	}
	return &c
}
