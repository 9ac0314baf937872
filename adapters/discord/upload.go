package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"footnote/acl"
	"footnote/adapters/discord/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	uploads "footnote/bot/shelf"
)

// Texts about files.
const (
	sayMayNotAdd   = "You may not add documents, so I have not taken the file. The operator of this bot decides who may."
	sayDirectFiles = "I take files in direct messages only: send it to me there, and it is a document for you alone."
	sayNoFile      = "There is no file in your message. Send me the file in a direct message."
	sayTooMany     = "At most %d files of one message are taken; I left out the others."
)

// attachment is a file of a message.
type attachment struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	Kind string `json:"content_type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

// takes reports that somebody may add files.
func (a *Adapter) takes() bool {
	return a.c.Uploads.On() && a.d.Files != nil && a.d.Notices != nil
}

// offered hands the files of a message to the desk, where it is about them. done
// means that it is no question besides.
//
// SECURITY: a channel has no principal that an access list could name, and who
// can see it today is no list of who may tomorrow. So only direct messages are
// taken.
func (a *Adapter) offered(ctx context.Context, m chat, q question) (done bool) {
	asks := uploads.Asks(q.Text)
	if !a.takes() || !asks && (q.Guild != "" || len(m.Attachments) == 0) {
		return false
	}
	say := func(text string) {
		o := outgoing{key: a.fileKey(q, "word"), q: q, parts: []render.Message{render.Say(text)}}
		if _, err := a.deliverMessage(ctx, o); err != nil {
			a.d.Log.Warn("a person could not be told about a file", "error", err)
		}
	}
	switch files := m.Attachments; {
	case q.Guild != "":
		say(sayDirectFiles)
		return true
	case len(files) == 0:
		say(sayNoFile)
		return true
	case len(files) > a.c.Uploads.MaxFiles:
		m.Attachments = files[:a.c.Uploads.MaxFiles]
		say(fmt.Sprintf(sayTooMany, a.c.Uploads.MaxFiles))
	}
	for i, f := range m.Attachments {
		if isID(f.ID) {
			q.File, q.FileName, q.Further = f.ID, f.Name, i > 0
			a.takeMessage(ctx, q)
		}
	}
	return asks || q.Text == ""
}

func (a *Adapter) fileKey(q question, what string) string {
	return Platform + "|" + q.Channel + "|" + q.ID + "|" + what
}

// fileID names the document of a file.
func fileID(q question) string {
	return strings.Join([]string{Platform, orDirect(q.Guild), q.Channel, q.File}, "/")
}

// messageLink opens a message of a direct conversation.
func messageLink(channel, id string) string {
	return "https://discord.com/channels/@me/" + channel + "/" + id
}

// takeFile takes a file in: who may, what it is, its bytes; then a reply says
// how it stands.
//
// SECURITY: rights are decided before the file is asked for, and the access list
// is its sender.
func (a *Adapter) takeFile(ctx context.Context, t *desk.Task, q question) (desk.Result, error) {
	if !a.takes() || q.Guild != "" {
		return desk.Result{State: ledger.Ignored, Reason: "uploads_off"}, nil
	}
	who, err := a.dir.identify(ctx, direct, q.User, a.c.Recheck)
	if err != nil {
		return desk.Result{}, err
	}
	if !a.c.Uploads.May(who) {
		if !q.Further {
			_, err = a.deliverMessage(ctx, outgoing{key: t.Key, q: q, parts: []render.Message{render.Say(translate(q.Locale, sayMayNotAdd))}})
		}
		return desk.Result{State: ledger.Refused, Reason: "may_not_add"}, err
	}
	at, err := a.announce(ctx, t, q)
	if err != nil {
		return desk.Result{}, err
	}
	name := uploads.FileName(q.FileName)
	var user *bot.UserError
	switch err := a.fetchFile(ctx, q, name, who.ID()); {
	case errors.Is(err, errGone):
		a.showState(ctx, at, uploads.State{Settled: true, Gone: true}.Text(name))
		return desk.Result{State: ledger.Ignored, Reason: "deleted"}, nil
	case errors.As(err, &user):
		a.showState(ctx, at, uploads.Failing(name, user.Text))
		return desk.Result{State: ledger.Failed, Reason: "not_taken"}, nil
	case err != nil:
		return desk.Result{}, err
	}
	ref, err := json.Marshal(at)
	if err != nil {
		return desk.Result{}, err
	}
	err = a.d.Notices.Await(uploads.Notice{Platform: Platform, Document: fileID(q), Name: name, Message: ref})
	return desk.Result{State: ledger.Answered, Reason: "taken"}, err
}

// announce says that the file is being taken in, once, whatever ended an earlier
// run: what that posted is in the ledger as soon as it is known, and looked for
// else.
func (a *Adapter) announce(ctx context.Context, t *desk.Task, q question) (posted, error) {
	var at posted
	if json.Unmarshal(t.Posted, &at) == nil && isID(at.ID) {
		return at, nil
	}
	if err := t.Posting(ctx, nil); err != nil {
		return at, err
	}
	m := render.Say(uploads.Taking(uploads.FileName(q.FileName)))
	at, err := a.announced(ctx, t, q, m.Content)
	if err == nil && at.ID == "" {
		at, err = a.deliverMessage(ctx, outgoing{key: t.Key, q: q, parts: []render.Message{m}})
	}
	if err != nil {
		return at, err
	}
	at.Content, at.Flags = "", 0
	ref, err := json.Marshal(at)
	if err != nil {
		return at, err
	}
	return at, t.Posting(ctx, ref)
}

// announced is what an earlier run said about a file, zero if that is not there.
func (a *Adapter) announced(ctx context.Context, t *desk.Task, q question, text string) (posted, error) {
	if !t.Ambiguous {
		return posted{}, nil
	}
	list, err := a.own(ctx, q.Channel, q.ID)
	for _, m := range list {
		if m.Reference.Message == q.ID && m.Content == text {
			return m.posted, nil
		}
	}
	return posted{}, err
}

func (a *Adapter) showState(ctx context.Context, at posted, text string) {
	ref, err := json.Marshal(at)
	if err == nil {
		err = a.tellState(ctx, ref, text)
	}
	if err != nil && !errors.Is(err, uploads.ErrGone) {
		a.d.Log.Warn("what became of a file could not be told", "error", err)
	}
}

// tellState changes the message of a file, for shelf.Notices.
func (a *Adapter) tellState(ctx context.Context, message json.RawMessage, text string) error {
	var at posted
	if json.Unmarshal(message, &at) != nil || !isID(at.ID) || !isID(at.Channel) {
		return uploads.ErrGone
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c := call{name: "telling of a file", method: "PATCH", path: "channels/" + at.Channel + "/messages/" + at.ID, lane: "channel " + at.Channel, again: true}
	err := a.write(ctx, c, render.Say(text), nil)
	if refusedCall(err) {
		return uploads.ErrGone
	}
	return err
}

// fetchFile downloads a file and puts it on the shelf. The error is errGone if
// the message was deleted, and a *bot.UserError where the file is at fault.
func (a *Adapter) fetchFile(ctx context.Context, q question, name string, access acl.Principal) error {
	f, err := a.attached(ctx, q)
	if err != nil {
		return err
	}
	if no := a.c.Uploads.Objection(name, f.Size); no != "" {
		return &bot.UserError{Text: no}
	}
	body, err := a.download(ctx, f)
	if err != nil {
		return err
	}
	defer body.Close()
	d := uploads.Document{
		ID: fileID(q), Name: name, Link: messageLink(q.Channel, q.ID), Author: "discord:" + direct + ":user/" + q.User, Modified: q.At, Access: []acl.Principal{access},
	}
	if err := a.d.Files.Put(ctx, d, body); err != nil {
		return err
	}
	if _, err := a.attached(ctx, q); errors.Is(err, errGone) { // deleted while it was written
		return errors.Join(err, a.d.Files.Remove(ctx, true, d.ID))
	}
	return nil
}

// attached asks for the file of a message as it is now: its address is good for
// a day.
func (a *Adapter) attached(ctx context.Context, q question) (attachment, error) {
	var m chat
	c := call{name: "reading a message", method: "GET", path: "channels/" + q.Channel + "/messages/" + q.ID, lane: "read " + q.Channel, again: true}
	err := a.rest.do(ctx, c, &m)
	switch {
	case code(err) == codeUnknownMessage:
		return attachment{}, errGone
	case err != nil:
		return attachment{}, &bot.UserError{Text: "Discord did not hand it over. Post it again in a few minutes.", Err: err}
	}
	i := slices.IndexFunc(m.Attachments, func(f attachment) bool { return f.ID == q.File })
	if i < 0 {
		return attachment{}, errGone
	}
	return m.Attachments[i], nil
}

// fileHosts are where Discord keeps files.
var fileHosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

// fileHost reports that a file may be fetched from there.
//
// SECURITY: Discord's own hosts alone, or that of the API where another is set.
func (a *Adapter) fileHost(u *url.URL) bool {
	api, err := url.Parse(a.c.APIURL)
	own := err == nil && a.c.APIURL != "" && u.Scheme == api.Scheme && strings.EqualFold(u.Host, api.Host)
	return u.User == nil && (own || u.Scheme == "https" && slices.Contains(fileHosts, strings.ToLower(u.Host)))
}

// downloadTime bounds one download.
const downloadTime = 90 * time.Second

// download begins to download a file.
//
// SECURITY: the address holds its own signature; no token is sent, and no
// redirect is followed.
func (a *Adapter) download(ctx context.Context, f attachment) (io.ReadCloser, error) {
	u, err := url.Parse(f.URL)
	if err != nil || !a.fileHost(u) {
		a.d.Log.Warn("a file was not asked for: it does not lie on Discord's file host")
		return nil, &bot.UserError{Text: "it does not lie on Discord's own file host. Upload the file itself."}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: downloadTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &bot.UserError{Text: "Discord did not hand it over. Post it again in a few minutes.", Err: err}
	}
	isPage := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.HasPrefix(f.Kind, "text/html")
	if resp.StatusCode != http.StatusOK || isPage || resp.ContentLength >= 0 && resp.ContentLength != f.Size {
		_ = resp.Body.Close()
		return nil, &bot.UserError{Text: "Discord handed over something else in its place. Post it again."}
	}
	return uploads.Exactly(resp.Body, f.Size), nil
}

// deleted removes the files of messages that are gone.
func (a *Adapter) deleted(raw []byte) {
	if a.d.Files == nil {
		return
	}
	var of struct {
		ID      string   `json:"id"`
		IDs     []string `json:"ids"`
		Channel string   `json:"channel_id"`
		Guild   string   `json:"guild_id"`
	}
	if json.Unmarshal(raw, &of) != nil || of.Guild != "" || !isID(of.Channel) {
		return
	}
	links := map[string]bool{}
	for _, id := range append(of.IDs, of.ID) {
		links[messageLink(of.Channel, id)] = true
	}
	for _, d := range a.shelved(strings.Join([]string{Platform, direct, of.Channel}, "/") + "/") {
		if links[d.Link] {
			a.unshelve(d.ID)
		}
	}
}

// shelved lists the files whose ids begin so.
func (a *Adapter) shelved(prefix string) []uploads.Document {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	found, err := a.d.Files.List(ctx, prefix)
	if err != nil {
		a.d.Log.Error("which files are kept is not known, so that deleted ones may stay until the next start", "error", err)
	}
	return found
}

func (a *Adapter) unshelve(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := a.d.Files.Remove(ctx, true, id); err != nil {
		a.d.Log.Error("a file that was deleted could not be removed", "error", err)
	}
}

// revisit removes files that were deleted while nobody listened.
func (a *Adapter) revisit(ctx context.Context) {
	if a.d.Files == nil {
		return
	}
	for _, d := range a.shelved(Platform + "/" + direct + "/") {
		parts := strings.Split(d.ID, "/")
		q := question{Channel: parts[2], File: parts[len(parts)-1], ID: d.Link[strings.LastIndexByte(d.Link, '/')+1:]}
		if ctx.Err() != nil {
			return
		}
		if _, err := a.attached(ctx, q); errors.Is(err, errGone) {
			a.unshelve(d.ID)
		}
	}
}
