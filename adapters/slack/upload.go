package slack

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

	slackgo "github.com/slack-go/slack"

	"footnote/acl"
	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/render"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
	"footnote/bot/shelf"
)

// Texts about files.
const (
	sayMayNotAdd   = "You may not add documents here, so I have not taken the file. The operator of this bot decides who may."
	sayNoFile      = "There is no file in your message. Post the file together with a mention of me and “add this”, or send it to me in a direct message."
	sayFileShared  = "People from outside the organisation can read here, so I take no files from this channel. Send it to me in a direct message instead."
	sayFileGroup   = "I take no files from group conversations. Send it to me in a direct message, or post it in a channel."
	sayFileUnknown = "I cannot check right now who can read here, so I have not taken the file. Please post it again in a minute."
	sayTooMany     = "At most %d files of one message are taken; I left out the others."
)

// offered hands the files of a message to the desk, where it is about them. done
// means that it is no question besides.
func (a *Adapter) offered(ctx context.Context, c event.Callback, m event.Message) (done bool, err error) {
	said := event.Clean(m.Raw(), a.self.Load().User)
	asks := shelf.Asks(said)
	if !a.takes() || m.Bot != "" || !asks && (m.Surface != "im" || len(m.FileIDs) == 0) {
		return false, nil
	}
	q := question{
		Kind: kindFile, Channel: m.Channel, TS: m.TS, Thread: m.Root(), User: m.User, UserTeam: m.UserTeam,
		External: c.ExtShared, Answer: m.Surface, At: a.now(),
	}
	if len(m.FileIDs) == 0 {
		a.remark(q, sayNoFile)
		return true, nil
	}
	ids := m.FileIDs
	if most := a.c.Uploads.MaxFiles; len(ids) > most {
		ids = ids[:most]
		a.remark(q, fmt.Sprintf(sayTooMany, most))
	}
	for i, id := range ids {
		q.File, q.Further = id, i > 0
		d := a.delivery(q, a.key(m.Channel, m.TS, "file "+id))
		d.Sent = m.Sent()
		v, err := a.d.Desk.Receive(ctx, d)
		if err != nil {
			return true, err
		}
		a.welcomed(q, d.Key, v)
	}
	return said == "" || asks, nil
}

// remark tells the person of a message something about its files, once however
// often the message is delivered.
func (a *Adapter) remark(q question, text string) {
	if a.memory.hourly("files "+q.Channel+" "+q.TS, a.now()) {
		a.background(func(ctx context.Context) { a.tellApart(ctx, q, text) })
	}
}

// takes reports that somebody may add files.
func (a *Adapter) takes() bool { return a.c.Uploads.On() && a.d.Files != nil && a.d.Notices != nil }

// tellApart tells the person of a file something privately, beside it.
func (a *Adapter) tellApart(ctx context.Context, q question, text string) {
	if q.Answer == "im" {
		q.Kind = kindDM
	}
	a.tell(ctx, q, text)
}

// takeFile takes a file in: who may, where it was posted, what it is, its
// bytes; then a message in the thread says how it stands.
//
// SECURITY: rights and room are decided before the file is asked for, and the
// access list is that of the room, never of what the file or its name says.
func (a *Adapter) takeFile(ctx context.Context, t *desk.Task, q question) (desk.Result, error) {
	if a.memory.isGone(q.Channel, q.TS) {
		return desk.Result{State: ledger.Ignored, Reason: "deleted"}, nil
	}
	if !a.takes() {
		return desk.Result{State: ledger.Ignored, Reason: "uploads_off"}, nil
	}
	who, r, err := a.asker(ctx, q)
	if err != nil || r.State != "" {
		return r, err
	}
	access, no := acl.Principal(""), sayMayNotAdd
	reason := "may_not_add"
	if a.c.Uploads.May(who) {
		access, no, reason = a.roomOf(ctx, q, who)
	}
	if err := context.Cause(ctx); err != nil {
		return desk.Result{}, err // what was found since is no answer: the next run asks again
	}
	if no != "" {
		if !q.Further {
			a.tellApart(ctx, q, no)
		}
		return desk.Result{State: ledger.Refused, Reason: reason}, nil
	}
	ref, err := a.announce(ctx, t, q)
	if err != nil {
		return a.unannounced(ctx, q, err)
	}
	name, err := a.fetchFile(ctx, q, access)
	var user *bot.UserError
	switch {
	case context.Cause(ctx) != nil:
		return desk.Result{}, context.Cause(ctx)
	case errors.Is(err, errWithdrawn):
		a.showState(ctx, ref, shelf.State{Settled: true, Gone: true}.Text(name))
		return desk.Result{State: ledger.Ignored, Reason: "deleted"}, nil
	case errors.As(err, &user):
		a.showState(ctx, ref, shelf.Failing(name, user.Text))
		return desk.Result{State: ledger.Failed, Reason: "not_taken"}, nil
	case err != nil:
		return desk.Result{}, err
	}
	if ref.Placeholder != "" {
		err = a.d.Notices.Await(shelf.Notice{Platform: Platform, Document: a.fileID(q.Channel, q.File), Name: name, Message: ref.raw()})
	}
	return desk.Result{State: ledger.Answered, Reason: "taken"}, err
}

// roomOf is who may read a file that was posted there, or why it is not taken.
//
// SECURITY: where people from outside read, nothing is taken; what is not known
// counts as that.
func (a *Adapter) roomOf(ctx context.Context, q question, who acl.Identity) (access acl.Principal, no, reason string) {
	c, _, err := a.dir.Load().Channel(ctx, q.Channel)
	switch {
	case err != nil:
		return "", sayFileUnknown, "unknown_room"
	case c.IM && c.Peer == q.User:
		return who.ID(), "", ""
	case c.IM || c.MPIM:
		return "", sayFileGroup, "group_conversation"
	case q.External || c.ExtShared || c.PendingExt:
		return "", sayFileShared, "shared_externally"
	case a.channel(q.Channel).Answer == Off:
		return "", sayOff, "channel_off"
	}
	if _, err := a.dir.Load().Audience(ctx, q.Channel); errors.Is(err, directory.ErrExternal) {
		return "", sayFileShared, "shared_externally"
	} else if err != nil {
		return "", sayFileUnknown, "unknown_room"
	}
	return acl.Principal("slack:" + a.self.Load().team + ":channel/" + q.Channel), "", ""
}

// fileID names the document of a file. It is the same wherever in the channel
// the file is posted again.
func (a *Adapter) fileID(channel, file string) string {
	return strings.Join([]string{Platform, a.self.Load().team, channel, file}, "/")
}

// linkTo opens a message.
func (a *Adapter) linkTo(channel, ts string) string {
	return a.address() + "archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
}

// address is that of the workspace, with a slash behind.
func (a *Adapter) address() string {
	if at := a.self.Load().address; at != "" {
		return strings.TrimSuffix(at, "/") + "/"
	}
	return "https://slack.com/"
}

// announce says in the thread that the file is being taken in, once, whatever
// ended an earlier run. The reference has no message where it is not known
// whether that is there.
func (a *Adapter) announce(ctx context.Context, t *desk.Task, q question) (posted, error) {
	var ref posted
	if json.Unmarshal(t.Posted, &ref) == nil && ref.Placeholder != "" {
		return ref, nil
	}
	if ref.Answer != "" && t.Ambiguous {
		found, err := a.find(ctx, ref.Channel, ref.Thread, ref.Answer)
		if err == nil && len(found) == 0 && outbox.Pause(ctx, a.c.Arrival) == nil {
			found, err = a.find(ctx, ref.Channel, ref.Thread, ref.Answer)
		}
		if err != nil {
			return ref, nil //nolint:nilerr // a second message would be worse than none
		}
		if len(found) > 0 {
			ref.Placeholder = found[0].ts
			return ref, t.Posting(ctx, ref.raw())
		}
	}
	ref = posted{Answer: ledger.NewID(), Channel: q.Channel, Thread: q.Thread}
	if q.Answer != "im" && a.channel(q.Channel).Answer == PrivateAlways {
		dm, err := a.api.dm(ctx, q.User)
		if err != nil {
			return ref, err
		}
		ref.Channel, ref.Thread = dm, ""
	}
	if err := t.Posting(ctx, ref.raw()); err != nil {
		return ref, err
	}
	ts, err := a.postOnce(ctx, ref.Channel, ref.Thread, render.Literal(shelf.Taking("the file")), ref.Answer, 0)
	if err != nil {
		return ref, err
	}
	ref.Placeholder = ts
	return ref, t.Posting(ctx, ref.raw())
}

// unannounced ends a file whose message could not be posted: where nobody can
// be told, nothing is taken.
func (a *Adapter) unannounced(ctx context.Context, q question, err error) (desk.Result, error) {
	switch {
	case errors.Is(err, errOrphan), slices.Contains(lostThread, codeOf(err)):
		return desk.Result{State: ledger.Failed, Reason: "orphaned"}, nil
	case ctx.Err() != nil:
		return desk.Result{}, err
	case absent(err):
		a.direct(ctx, q, a.sayInvite())
		return desk.Result{State: ledger.Failed, Reason: reasonCode(codeOf(err))}, nil
	}
	return desk.Result{}, &bot.UserError{Text: "I could not say in the thread that I take the file in, so I have not taken it. Please post it again.", Err: err}
}

// showState changes the message of a file.
func (a *Adapter) showState(ctx context.Context, ref posted, text string) {
	if err := a.tellState(ctx, ref.raw(), text); err != nil && !errors.Is(err, shelf.ErrGone) {
		a.log.Warn("what became of a file could not be told", "error", err)
	}
}

// tellState changes the message of a file, for shelf.Notices.
func (a *Adapter) tellState(ctx context.Context, message json.RawMessage, text string) error {
	var ref posted
	if json.Unmarshal(message, &ref) != nil || ref.Placeholder == "" {
		return shelf.ErrGone
	}
	select {
	case <-a.ready:
	default:
		return errLater
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := a.update(ctx, ref.Channel, ref.Placeholder, render.Literal(text), ref.Answer)
	if slices.Contains(lostMessage, codeOf(err)) || absent(err) || codeOf(err) == "is_archived" {
		return shelf.ErrGone
	}
	return err
}

var errWithdrawn = errors.New("the message of the file was deleted")

// fetchFile downloads a file and puts it on the shelf. The error is a
// *bot.UserError where the file is at fault.
func (a *Adapter) fetchFile(ctx context.Context, q question, access acl.Principal) (name string, err error) {
	f, err := a.api.fileInfo(ctx, q.File)
	if err != nil {
		return "the file", fileTrouble(err)
	}
	name = shelf.FileName(f.Name)
	switch {
	case f.IsExternal || f.Mode == "external":
		return name, &bot.UserError{Text: "it lies outside Slack, and I fetch files from Slack alone. Upload the file itself."}
	case f.Mode == "tombstone" || f.Mode == "hidden_by_limit":
		return name, &bot.UserError{Text: "Slack no longer has it. Post it again."}
	}
	if no := a.c.Uploads.Objection(name, int64(f.Size)); no != "" {
		return name, &bot.UserError{Text: no}
	}
	body, err := a.download(ctx, f)
	if err != nil {
		return name, err
	}
	defer body.Close()
	d := shelf.Document{
		ID: a.fileID(q.Channel, q.File), Name: name, Link: a.linkTo(q.Channel, q.TS), Author: "slack:" + a.self.Load().team + ":user/" + q.User,
		Modified: event.Time(q.TS), Access: []acl.Principal{access},
	}
	if a.memory.isGone(q.Channel, q.TS) {
		return name, errWithdrawn
	}
	if err := a.d.Files.Put(ctx, d, body); err != nil {
		return name, err
	}
	// Deleted while it was written; where another replica may have heard of that,
	// Slack knows.
	if a.memory.isGone(q.Channel, q.TS) || a.c.Replicas && a.fileGone(ctx, q.File) {
		return name, errors.Join(errWithdrawn, a.d.Files.Remove(ctx, true, d.ID))
	}
	return name, nil
}

// fileTrouble says why a file cannot be had, in words for the person.
func fileTrouble(err error) error {
	text := "Slack did not hand it over. Post it again in a few minutes."
	switch codeOf(err) {
	case "missing_scope":
		text = "I may not read files here: the operator has to add the bot scope files:read and install the app again."
	case "file_not_found", "file_deleted", "access_denied", "file_not_shared":
		text = "Slack no longer shows it to me. Post it again."
	}
	return &bot.UserError{Text: text, Err: err}
}

// fileInfo asks for what is known of a file now.
func (c *client) fileInfo(ctx context.Context, id string) (slackgo.File, error) {
	var out slackgo.File
	err := c.read(ctx, func(api *slackgo.Client) error {
		f, _, _, err := api.GetFileInfoContext(ctx, id, 1, 1)
		if err == nil {
			out = *f
		}
		return err
	})
	if err == nil && out.ID != id {
		err = &failure{code: codeEmpty}
	}
	return out, err
}

// fileHost reports that a download may be asked for with the token.
//
// SECURITY: the token goes to Slack's own file host alone, files.slack.com, or
// to that of the API where another address is set. A name that only ends alike
// is another host.
func (a *Adapter) fileHost(u *url.URL) bool {
	api := &url.URL{Scheme: "https", Host: "slack.com"}
	if a.c.APIURL != "" {
		set, err := url.Parse(a.c.APIURL)
		if err != nil {
			return false
		}
		api = set
	}
	own := a.c.APIURL != "" && u.Scheme == api.Scheme && strings.EqualFold(u.Host, api.Host)
	return u.User == nil && (own || u.Scheme == "https" && strings.EqualFold(u.Host, "files."+strings.TrimPrefix(strings.ToLower(api.Host), "www.")))
}

// downloadTime bounds one download.
const downloadTime = 90 * time.Second

// bounded is a body whose request ends with it.
type bounded struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b bounded) Close() error { b.cancel(); return b.ReadCloser.Close() }

// download begins to download a file.
//
// SECURITY: no redirect is followed, for it would take the token along; the
// page where people sign in, which Slack shows in the place of a file, is no
// file.
func (a *Adapter) download(ctx context.Context, f slackgo.File) (io.ReadCloser, error) {
	address := f.URLPrivateDownload
	if address == "" {
		address = f.URLPrivate
	}
	u, err := url.Parse(address)
	if err != nil || !a.fileHost(u) {
		a.log.Warn("a file was not asked for: it does not lie on Slack's file host")
		return nil, &bot.UserError{Text: "it does not lie on Slack's own file host. Upload the file itself."}
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	resp, err := a.askFor(ctx, u.String())
	if err != nil {
		cancel()
		return nil, fileTrouble(problem(err))
	}
	if no := unlikeFile(resp, f); no != "" {
		cancel()
		_ = resp.Body.Close()
		return nil, &bot.UserError{Text: no}
	}
	return bounded{shelf.Exactly(resp.Body, int64(f.Size)), cancel}, nil
}

func (a *Adapter) askFor(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.api.token())
	c := a.web()
	c.Timeout = downloadTime
	return c.Do(req)
}

// unlikeFile says why an answer is not the file, "" if it may be.
func unlikeFile(resp *http.Response, f slackgo.File) string {
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	isPage := strings.HasPrefix(kind, "text/html") && !strings.HasPrefix(f.Mimetype, "text/html") && f.Filetype != "html"
	switch {
	case resp.StatusCode/100 == 3 || resp.StatusCode == http.StatusOK && isPage, resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return "Slack asked me to sign in instead of handing it over: the operator has to check that the bot has the scope files:read."
	case resp.StatusCode == http.StatusNotFound:
		return "Slack no longer has it. Post it again."
	case resp.StatusCode != http.StatusOK:
		return "Slack did not hand it over. Post it again in a few minutes."
	case resp.ContentLength >= 0 && f.Size > 0 && resp.ContentLength != int64(f.Size):
		return shelf.ErrOther.Text
	}
	return ""
}

// withdraw removes the files of a message that was deleted.
//
// SECURITY: before the deletion is acknowledged, so that it is not lost.
func (a *Adapter) withdraw(ctx context.Context, channel, ts string) error {
	if a.d.Files == nil {
		return nil
	}
	link := a.linkTo(channel, ts)
	return a.unshelve(ctx, strings.Join([]string{Platform, a.self.Load().team, channel}, "/")+"/", func(d shelf.Document) bool { return d.Link == link })
}

// fileDeleted removes a file wherever it was posted.
func (a *Adapter) fileDeleted(ctx context.Context, id string) error {
	if a.d.Files == nil || id == "" {
		return nil
	}
	return a.unshelve(ctx, strings.Join([]string{Platform, a.self.Load().team}, "/")+"/", func(d shelf.Document) bool { return strings.HasSuffix(d.ID, "/"+id) })
}

func (a *Adapter) unshelve(ctx context.Context, prefix string, which func(shelf.Document) bool) error {
	found, err := a.d.Files.List(ctx, prefix)
	if err != nil {
		return err
	}
	var ids []string
	for _, d := range found {
		if which(d) {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return a.d.Files.Remove(ctx, true, ids...)
}

// fileGone reports that Slack has the file no more. Doubt is false.
func (a *Adapter) fileGone(ctx context.Context, file string) bool {
	_, err := a.api.fileInfo(ctx, file)
	return codeOf(err) == "file_deleted" || codeOf(err) == "file_not_found"
}

// revisit removes files that were deleted while nobody listened.
func (a *Adapter) revisit(ctx context.Context) {
	if a.d.Files == nil {
		return
	}
	found, err := a.d.Files.List(ctx, strings.Join([]string{Platform, a.self.Load().team}, "/")+"/")
	if err != nil {
		a.log.Warn("which files are kept is not known, so that deleted ones may stay until the next start", "error", err)
	}
	for _, d := range found {
		if ctx.Err() != nil {
			return
		}
		if !a.fileGone(ctx, d.ID[strings.LastIndexByte(d.ID, '/')+1:]) {
			continue
		}
		if err := a.d.Files.Remove(ctx, true, d.ID); err != nil {
			a.log.Warn("a file that was deleted could not be removed", "error", err)
		}
	}
}
