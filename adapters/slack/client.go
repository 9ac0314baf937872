package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/render"
	"footnote/bot/desk"
	"footnote/bot/outbox"
)

// failure is why a call did not succeed.
type failure struct {
	code string // Slack's, or one of ours below
	// ambiguous: it is not known whether Slack did it. A call that makes
	// something must not be repeated then.
	ambiguous bool
	needed    string   // scopes of missing_scope
	where     []string // of invalid_blocks
	err       error
}

// Error names no address: that of a response is a secret.
func (f *failure) Error() string {
	var at *url.Error
	if f.code == codeNet && errors.As(f.err, &at) {
		return "no connection to Slack: " + at.Err.Error()
	}
	s := "Slack says " + f.code
	if f.needed != "" {
		s += " (needed: " + f.needed + ")"
	}
	return s
}
func (f *failure) Unwrap() error { return f.err }

// Codes of ours.
const (
	codeEmpty   = "failed_without_a_code"
	codeNet     = "connection_failed"
	codeStopped = "installation_stopped"
	codeTaken   = "taken_over"
)

// codeOf is the code of a failed call, "" if it did not fail.
func codeOf(err error) string {
	var f *failure
	var l *outbox.Limited
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &l):
		return "ratelimited"
	}
	return codeNet
}

func ambiguous(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.ambiguous
}

// unclear are codes after which Slack may have done what was asked.
var unclear = []string{"fatal_error", "internal_error", "service_unavailable", "request_timeout", codeEmpty}

// problem sorts an error of the library.
func problem(err error) error {
	if err == nil {
		return nil
	}
	var limited *slackgo.RateLimitedError
	var status slackgo.StatusCodeError
	var said slackgo.SlackErrorResponse
	var op *net.OpError
	switch {
	case errors.As(err, &limited):
		return &outbox.Limited{After: limited.RetryAfter, Err: errors.New("ratelimited")}
	case errors.As(err, &status) && status.Code == http.StatusTooManyRequests:
		return &outbox.Limited{Err: errors.New("ratelimited")}
	case errors.As(err, &status):
		return &failure{code: fmt.Sprintf("http_%d", status.Code), ambiguous: status.Code >= 500, err: err}
	case errors.As(err, &said):
		return &failure{code: said.Err, ambiguous: slices.Contains(unclear, said.Err), needed: said.Needed, where: said.ResponseMetadata.Messages}
	case errors.As(err, &op) && op.Op == "dial":
		return &failure{code: codeNet, err: err}
	}
	return &failure{code: codeNet, ambiguous: true, err: err}
}

// fatal are codes after which the installation cannot go on, and what to do.
var fatal = map[string]string{
	"invalid_auth":           "the token is not valid: copy it again from the app's settings",
	"not_authed":             "no token was sent: set it",
	"account_inactive":       "the app or its workspace is gone: install the app again",
	"token_revoked":          "the token was revoked: install the app again",
	"token_expired":          "the token has expired: switch token rotation off, or install the app again",
	"not_allowed_token_type": "this kind of token cannot do that: the bot token begins with xoxb-, the app token with xapp-",
	"missing_scope":          "a scope is missing: add it under OAuth & Permissions (for the app token: Basic Information, App-Level Tokens, connections:write) and install the app again",
	"forbidden_team":         "the workspace does not allow this app",
	"ekm_access_denied":      "an administrator has blocked access",
	"access_denied":          "an administrator has blocked access",
	"accesslimited":          "an administrator has limited access",
	"org_login_required":     "the workspace is being moved to an organisation: install the app again afterwards",
	"link_disabled":          "Socket Mode is switched off: switch it on under Socket Mode, or set slack.mode to http",
	"app_not_found":          "there is no such app",
	"no_permission":          "the token may not do that",
	"http_404":               "there is no such address: check slack.api_url",
}

// dead are the codes among them that end an installation whatever the call
// was; the others speak of one method.
var dead = []string{
	"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
	"ekm_access_denied", "access_denied", "accesslimited", "org_login_required",
}

// held is nil while the run of ctx holds its question: see desk.Held.
func held(ctx context.Context) error {
	if err := desk.Held(ctx); err != nil {
		return &failure{code: codeTaken, err: err}
	}
	return nil
}

// client calls the Web API. The library's client cannot change its token, so
// it is swapped as a whole.
type client struct {
	api     atomic.Pointer[slackgo.Client]
	remake  func(token string) *slackgo.Client
	below   func()                                // turns to api/ below the address that was set; nil: it is that
	renew   func(context.Context) (string, error) // nil: tokens do not expire
	renewal sync.Mutex
	dead    atomic.Pointer[failure]
	died    func(error)
	missing func(method string, f *failure) // told of missing scopes and methods
	now     atomic.Pointer[string]          // the bot token in use
}

// token is the bot token in use, for what the library does not ask for.
func (c *client) token() string { return *c.now.Load() }

// maxAnswer bounds what Slack may answer.
const maxAnswer = 16 << 20

func newClient(c Config, died func(error)) *client {
	base := &http.Client{Timeout: 30 * time.Second, Transport: careful{http.DefaultTransport}}
	if c.HTTP != nil {
		base = &http.Client{Timeout: c.HTTP.Timeout, Transport: careful{orDefault(c.HTTP.Transport)}}
	}
	out := &client{renew: c.Renew, died: died}
	at := func(address string) func(string) *slackgo.Client {
		o := []slackgo.Option{slackgo.OptionHTTPClient(base), slackgo.OptionAppLevelToken(c.AppToken)}
		if address != "" {
			o = append(o, slackgo.OptionAPIURL(address))
		}
		return func(token string) *slackgo.Client {
			out.now.Store(&token)
			return slackgo.New(token, o...)
		}
	}
	out.remake = at(c.APIURL)
	out.api.Store(out.remake(c.BotToken))
	if c.APIURL != "" && !strings.HasSuffix(c.APIURL, "/api/") {
		out.below = func() {
			out.remake = at(c.APIURL + "api/")
			out.api.Store(out.remake(c.BotToken))
		}
	}
	return out
}

func orDefault(t http.RoundTripper) http.RoundTripper {
	if t == nil {
		return http.DefaultTransport
	}
	return t
}

// careful reads answers before the library does, which takes {"ok":false}
// without a code for success, and a rate limit that comes with status 200 for
// any other error.
type careful struct{ next http.RoundTripper }

func (t careful) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var said struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	if resp.StatusCode == http.StatusOK && json.Unmarshal(body, &said) == nil && said.OK != nil && !*said.OK {
		switch strings.TrimSpace(said.Error) {
		case "":
			body = []byte(`{"ok":false,"error":"` + codeEmpty + `"}`)
		case "ratelimited", "rate_limited":
			resp.StatusCode, resp.Status = http.StatusTooManyRequests, "429 Too Many Requests"
		}
	}
	if resp.StatusCode == http.StatusTooManyRequests && !wholeSeconds(resp.Header.Get("Retry-After")) {
		resp.Header.Del("Retry-After")
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

func wholeSeconds(s string) bool {
	return s != "" && len(s) < 7 && strings.Trim(s, "0123456789") == ""
}

// do makes a call with the token of the moment.
func (c *client) do(ctx context.Context, f func(*slackgo.Client) error) error {
	if d := c.dead.Load(); d != nil {
		return &failure{code: codeStopped, err: d}
	}
	api := c.api.Load()
	err := problem(f(api))
	if codeOf(err) == "token_expired" && c.renew != nil {
		if again, renewErr := c.replace(ctx, api); renewErr == nil {
			err = problem(f(again))
		}
	}
	var said *failure
	if errors.As(err, &said) {
		if said.code == "missing_scope" {
			if c.missing != nil {
				c.missing("", said)
			}
		} else if slices.Contains(dead, said.code) {
			c.stop(said, fatal[said.code])
		}
	}
	return err
}

// replace swaps the client for one with a new token, once for all who found
// the old one expired.
func (c *client) replace(ctx context.Context, old *slackgo.Client) (*slackgo.Client, error) {
	c.renewal.Lock()
	defer c.renewal.Unlock()
	if now := c.api.Load(); now != old {
		return now, nil
	}
	token, err := c.renew(ctx)
	if err != nil {
		return nil, fmt.Errorf("renewing the bot token: %w", err)
	}
	now := c.remake(token)
	c.api.Store(now)
	return now, nil
}

// stop ends all calls: none is made with a token that is known to be dead.
func (c *client) stop(f *failure, what string) {
	if c.dead.CompareAndSwap(nil, f) && c.died != nil {
		c.died(fmt.Errorf("%w: %s", f, what))
	}
}

// read makes a call that may be repeated.
func (c *client) read(ctx context.Context, f func(*slackgo.Client) error) error {
	return repeat(ctx, func() error { return c.do(ctx, f) })
}

// repeat repeats what failed for a moment, as long as ctx allows.
func repeat(ctx context.Context, call func() error) error {
	backoff := 50 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := call()
		var limited *outbox.Limited
		pause := backoff
		switch {
		case err == nil || attempt == 6:
			return err
		case errors.As(err, &limited):
			if pause = limited.After; pause <= 0 {
				return err
			}
		case !ambiguous(err) && codeOf(err) != codeNet:
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return err
		}
		if outbox.Pause(ctx, pause) != nil {
			return err
		}
		backoff *= 2
	}
}

// withheld reports that Slack does not let the bot use a method, however often
// it is asked: a scope, the plan, the kind of token, or a platform without it.
//
// SECURITY: only for what gives rights. Who goes without is shown less.
func (c *client) withheld(method string, err error) bool {
	var f *failure
	switch {
	case !errors.As(err, &f), f.ambiguous, f.code == codeNet, f.code == codeStopped, slices.Contains(dead, f.code),
		strings.HasPrefix(f.code, "http_") && f.code != "http_404":
		return false
	}
	if c.missing != nil && f.code != "missing_scope" { // else it is told already
		c.missing(method, f)
	}
	return true
}

// block is a block made by package render.
type block struct{ render.Object }

func (b block) BlockType() slackgo.MessageBlockType {
	t, _ := b.Object["type"].(string)
	return slackgo.MessageBlockType(t)
}
func (b block) ID() string                   { id, _ := b.Object["block_id"].(string); return id }
func (b block) MarshalJSON() ([]byte, error) { return json.Marshal(b.Object) }

func blocks(list []render.Object) []slackgo.Block {
	out := make([]slackgo.Block, len(list))
	for i, o := range list {
		out[i] = block{o}
	}
	return out
}

// body are the options that every message has: nothing is unfurled, no name
// is linked.
func body(m render.Message) []slackgo.MsgOption {
	o := []slackgo.MsgOption{
		slackgo.MsgOptionText(m.Text, false), slackgo.MsgOptionParse(false),
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if len(m.Blocks) > 0 {
		o = append(o, slackgo.MsgOptionBlocks(blocks(m.Blocks)...))
	}
	return o
}

const metadataType = "footnote_answer"

// post posts a message, with opaque metadata if id is not "". It returns the
// ts and the thread that Slack put it in.
func (c *client) post(ctx context.Context, channel, thread string, m render.Message, id string, part int) (ts, in string, err error) {
	o := body(m)
	if thread != "" {
		o = append(o, slackgo.MsgOptionTS(thread))
	}
	if id != "" {
		o = append(o, slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: metadataType, EventPayload: map[string]any{"id": id, "part": part}}))
	}
	err = c.do(ctx, func(api *slackgo.Client) error {
		var posted slackgo.Message
		var err error
		_, ts, posted, err = api.PostMessageWithResponseContext(ctx, channel, o...)
		in = posted.ThreadTimestamp
		return err
	})
	if err == nil && ts == "" {
		err = &failure{code: codeEmpty, ambiguous: true}
	}
	return ts, in, err
}

// update replaces what a message of ours says; text and blocks both, always.
func (c *client) update(ctx context.Context, channel, ts string, m render.Message, id string) error {
	o := body(m)
	if len(m.Blocks) == 0 {
		o = append(o, slackgo.MsgOptionBlocks())
	}
	if id != "" {
		o = append(o, slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: metadataType, EventPayload: map[string]any{"id": id, "part": 0}}))
	}
	return c.do(ctx, func(api *slackgo.Client) error {
		_, got, _, err := api.UpdateMessageContext(ctx, channel, ts, o...)
		if err == nil && got == "" {
			err = slackgo.SlackErrorResponse{Err: codeEmpty}
		}
		return err
	})
}

func (c *client) remove(ctx context.Context, channel, ts string) error {
	return c.do(ctx, func(api *slackgo.Client) error {
		_, _, err := api.DeleteMessageContext(ctx, channel, ts)
		return err
	})
}

// whisper shows a message to one person in a channel.
func (c *client) whisper(ctx context.Context, channel, user, thread string, m render.Message) error {
	o := body(m)
	if thread != "" {
		o = append(o, slackgo.MsgOptionTS(thread))
	}
	return c.do(ctx, func(api *slackgo.Client) error {
		_, err := api.PostEphemeralContext(ctx, channel, user, o...)
		return err
	})
}

func (c *client) status(ctx context.Context, channel, thread, text string) error {
	return c.do(ctx, func(api *slackgo.Client) error {
		return api.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: thread, Status: text})
	})
}

func (c *client) react(ctx context.Context, channel, ts, name string, on bool) error {
	ref := slackgo.NewRefToMessage(channel, ts)
	return c.do(ctx, func(api *slackgo.Client) error {
		if on {
			return api.AddReactionContext(ctx, name, ref)
		}
		return api.RemoveReactionContext(ctx, name, ref)
	})
}

// dm is the direct conversation with a person.
func (c *client) dm(ctx context.Context, user string) (string, error) {
	var id string
	err := c.read(ctx, func(api *slackgo.Client) error {
		ch, _, _, err := api.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{user}})
		if err == nil && ch != nil {
			id = ch.ID
		}
		return err
	})
	if err == nil && id == "" {
		err = &failure{code: codeEmpty}
	}
	return id, err
}

func (c *client) openView(ctx context.Context, trigger string, v render.Object) error {
	title, _ := v["title"].(render.Object)
	label, _ := title["text"].(string)
	list, _ := v["blocks"].([]render.Object)
	view := slackgo.ModalViewRequest{
		Type: slackgo.VTModal, Title: slackgo.NewTextBlockObject("plain_text", label, false, false),
		Close: slackgo.NewTextBlockObject("plain_text", "Close", false, false), Blocks: slackgo.Blocks{BlockSet: blocks(list)},
	}
	return c.do(ctx, func(api *slackgo.Client) error {
		_, err := api.OpenViewContext(ctx, trigger, view)
		return err
	})
}

func (c *client) publishHome(ctx context.Context, user string, v render.Object) error {
	list, _ := v["blocks"].([]render.Object)
	return c.do(ctx, func(api *slackgo.Client) error {
		_, err := api.PublishViewContext(ctx, slackgo.PublishViewContextRequest{
			UserID: user, View: slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: blocks(list)}},
		})
		return err
	})
}

// said is a message of a thread.
type said struct {
	ts, user, bot, text string
	id                  string // of the answer, from its metadata
	part                int
}

// replies reads the newest of a thread, at most 100.
func (c *client) replies(ctx context.Context, channel, thread string, limit int) ([]said, error) {
	var out []said
	err := c.do(ctx, func(api *slackgo.Client) error {
		out = nil
		msgs, _, _, err := api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: channel, Timestamp: thread, Limit: limit, IncludeAllMetadata: true,
		})
		out = sayings(msgs)
		return err
	})
	return out, err
}

func (c *client) permalink(ctx context.Context, channel, ts string) string {
	var link string
	_ = c.read(ctx, func(api *slackgo.Client) error {
		var err error
		link, err = api.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: channel, Ts: ts})
		return err
	})
	return link
}

// whoami is what auth.test says.
type whoami struct {
	user, bot, team, enterprise, url string
	scopes                           []string // nil: Slack did not say
}

// whoami asks who the bot is. Where the address that was set is the platform's
// and not that of its API, the one below is tried.
func (c *client) whoami(ctx context.Context) (whoami, error) {
	w, err := c.identity(ctx)
	if code := codeOf(err); code != "http_404" && code != "unknown_method" {
		return w, err
	}
	c.renewal.Lock()
	below := c.below
	if c.below = nil; below != nil {
		below()
	}
	c.renewal.Unlock()
	if below == nil {
		return w, err
	}
	return c.identity(ctx)
}

func (c *client) identity(ctx context.Context) (whoami, error) {
	var w whoami
	err := c.read(ctx, func(api *slackgo.Client) error {
		r, err := api.AuthTestContext(ctx)
		if err != nil {
			return err
		}
		w = whoami{user: r.UserID, bot: r.BotID, team: r.TeamID, enterprise: r.EnterpriseID, url: r.URL}
		if h, ok := r.Header["X-Oauth-Scopes"]; ok {
			w.scopes = strings.FieldsFunc(strings.Join(h, ","), func(r rune) bool { return r == ',' || r == ' ' })
		}
		return nil
	})
	return w, err
}

// openSocket asks for the address of a socket; each is good for one dial.
func (c *client) openSocket(ctx context.Context) (string, error) {
	_, address, err := c.api.Load().StartSocketModeContext(ctx)
	if err == nil && address == "" {
		return "", &failure{code: codeEmpty}
	}
	return address, problem(err)
}

// facts reads the directory's facts through a client.
type facts struct {
	*client
	team string
	org  bool
}

var _ directory.API = facts{}

func (f facts) User(ctx context.Context, id string) (directory.User, error) {
	var u directory.User
	err := f.read(ctx, func(api *slackgo.Client) error {
		r, err := api.GetUserInfoContext(ctx, id)
		if err == nil {
			u = userOf(*r)
		}
		return err
	})
	if c := codeOf(err); c == "user_not_found" || c == "user_not_visible" || c == "users_not_found" {
		return u, directory.ErrNoUser
	}
	return u, err
}

func userOf(u slackgo.User) directory.User {
	return directory.User{
		ID: u.ID, Team: u.TeamID, Enterprise: u.Enterprise.EnterpriseID, Teams: u.Enterprise.Teams, Name: u.Name,
		Shown: cmp.Or(u.Profile.DisplayName, u.RealName),
		Email: u.Profile.Email, Locale: u.Locale, Confirmed: u.IsEmailConfirmed, Deleted: u.Deleted, Bot: u.IsBot,
		Stranger: u.IsStranger, Guest: u.IsRestricted || u.IsUltraRestricted, Invited: u.IsInvitedUser,
	}
}

func (f facts) Users(ctx context.Context, cursor string) ([]directory.User, string, error) {
	var out []directory.User
	var next string
	err := f.read(ctx, func(api *slackgo.Client) error {
		page, err := api.GetUsersPaginated(slackgo.GetUsersOptionLimit(999), slackgo.GetUsersOptionCursor(cursor)).Next(ctx)
		out, next = nil, page.Cursor
		for _, u := range page.Users {
			out = append(out, userOf(u))
		}
		return err
	})
	return out, next, err
}

func (f facts) Groups(ctx context.Context) ([]directory.Group, error) {
	o := []slackgo.GetUserGroupsOption{slackgo.GetUserGroupsOptionIncludeUsers(true), slackgo.GetUserGroupsOptionIncludeDisabled(false)}
	if f.org {
		o = append(o, slackgo.GetUserGroupsOptionTeamID(f.team))
	}
	var out []directory.Group
	err := f.read(ctx, func(api *slackgo.Client) error {
		groups, err := api.GetUserGroupsContext(ctx, o...)
		out = nil
		for _, g := range groups {
			if g.DateDelete == 0 {
				out = append(out, directory.Group{ID: g.ID, Users: g.Users, Count: g.UserCount})
			}
		}
		return err
	})
	if f.withheld("usergroups.list", err) {
		return nil, directory.ErrNoGroups
	}
	return out, err
}

func (f facts) Channel(ctx context.Context, id string) (directory.Channel, error) {
	var out directory.Channel
	err := f.read(ctx, func(api *slackgo.Client) error {
		c, err := api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: id})
		if err == nil {
			out = directory.Channel{
				ID: c.ID, Name: c.Name, Peer: c.User, IM: c.IsIM, MPIM: c.IsMpIM, Private: c.IsPrivate || c.IsGroup,
				ExtShared: c.IsExtShared || c.IsGlobalShared, PendingExt: c.IsPendingExtShared || len(c.PendingShared) > 0,
				OrgShared: c.IsOrgShared, Archived: c.IsArchived,
			}
		}
		return err
	})
	return out, err
}

func (f facts) Members(ctx context.Context, channel, cursor string) ([]string, string, error) {
	var ids []string
	var next string
	err := f.read(ctx, func(api *slackgo.Client) error {
		var err error
		ids, next, err = api.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: channel, Cursor: cursor, Limit: 200})
		return err
	})
	return ids, next, err
}

func (f facts) ChannelsOf(ctx context.Context, user, cursor string) ([]string, string, error) {
	var ids []string
	var next string
	p := slackgo.GetConversationsForUserParameters{UserID: user, Cursor: cursor, Limit: 200, Types: []string{"public_channel", "private_channel"}}
	if f.org {
		p.TeamID = f.team
	}
	err := f.read(ctx, func(api *slackgo.Client) error {
		list, after, err := api.GetConversationsForUserContext(ctx, &p)
		ids, next = nil, after
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return err
	})
	if f.withheld("users.conversations", err) { // it cannot be known: no channel is a right
		return nil, "", nil
	}
	return ids, next, err
}

// latest reads the newest messages of a conversation.
func (c *client) latest(ctx context.Context, channel string) ([]said, error) {
	var out []said
	err := c.do(ctx, func(api *slackgo.Client) error {
		out = nil
		h, err := api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: channel, Limit: 30, IncludeAllMetadata: true})
		if err != nil {
			return err
		}
		out = sayings(h.Messages)
		return nil
	})
	return out, err
}

func sayings(msgs []slackgo.Message) []said {
	var out []said
	for _, m := range msgs {
		s := said{ts: m.Timestamp, user: m.User, bot: m.BotID, text: m.Text}
		if m.Metadata.EventType == metadataType {
			s.id, _ = m.Metadata.EventPayload["id"].(string)
			part, _ := m.Metadata.EventPayload["part"].(float64)
			s.part = int(part)
		}
		out = append(out, s)
	}
	return out
}
