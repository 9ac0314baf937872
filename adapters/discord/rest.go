package discord

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"footnote/bot/desk"
	"footnote/bot/outbox"
)

// Codes of Discord that are handled by name.
const (
	codeUnknownMessage     = 10008
	codeUnknownWebhook     = 10015
	codeUnknownInteraction = 10062
	codeTooManyCommands    = 30034
	codeAcknowledged       = 40060
	codeEmptyMessage       = 50006
	codeInvalidToken       = 50027
	codeInvalidBody        = 50035
	codeNoHistory          = 160002
	codeThreadExists       = 160004
	codeBlockedByAutoMod   = 200000
	codeHarmfulLink        = 240000
)

// APIError is what Discord answered. It holds no text of a message and no
// token.
type APIError struct {
	Status int // of HTTP
	Code   int // of Discord, 0 if none
	Call   string
}

func (e *APIError) Error() string {
	return fmt.Sprintf("%s: Discord answered %d (code %d)", e.Call, e.Status, e.Code)
}

// errNoReply says that a call left and no answer came: it may have worked.
var errNoReply = errors.New("Discord did not answer")

// code is the code of an error, 0 if it has none.
func code(err error) int {
	var e *APIError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func status(err error) int {
	var e *APIError
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// deadToken reports that an interaction's token is of no use any more.
func deadToken(err error) bool {
	switch code(err) {
	case codeInvalidToken, codeUnknownWebhook, codeUnknownInteraction:
		return true
	case codeUnknownMessage:
		return false
	}
	s := status(err)
	return s == http.StatusUnauthorized || s == http.StatusNotFound
}

// passing reports a failure that may be over in a moment.
func passing(err error) bool {
	return errors.Is(err, errNoReply) || status(err) >= 500
}

// refusedCall reports that the same call would be refused again.
func refusedCall(err error) bool {
	s := status(err)
	return s >= 400 && s < 500 && s != http.StatusTooManyRequests
}

// call is one call of the API.
type call struct {
	name   string // for logs: without ids of interactions and tokens
	method string
	path   string // below the base, escaped
	lane   string // calls of one lane go one after another; never holds a token
	body   any
	// hook says that the route belongs to an interaction: the limit of all
	// routes does not count for it.
	hook bool
	// again says that a repetition does no harm.
	again bool
	// tries bounds the attempts then: 4. What makes an answer visible has more.
	tries int
	// patience bounds one attempt: 10 s.
	patience time.Duration
}

// rest makes the calls. One serves the whole process, whatever happens to
// the gateway.
type rest struct {
	session *discordgo.Session
	bot     *outbox.Outbox // routes of the bot: 50 calls a second
	hooks   *outbox.Outbox

	mu       sync.Mutex
	holds    map[string]time.Time // lanes that are used up until then
	rejected rejections
}

func newREST(token string, transport http.RoundTripper) *rest {
	s := newSession(token, transport)
	return &rest{
		session: s,
		bot:     outbox.New(outbox.Options{Limit: outbox.Limit{Every: time.Second / 45, Burst: 45, Reserve: 15}}),
		hooks:   outbox.New(outbox.Options{}),
		holds:   map[string]time.Time{},
	}
}

// newSession makes a session that keeps no state and repeats nothing.
func newSession(token string, transport http.RoundTripper) *discordgo.Session {
	s, _ := discordgo.New("Bot " + token) // its error is always nil
	s.Client = &http.Client{Transport: transport, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect would take the token along
	}}
	s.StateEnabled = false
	s.ShouldReconnectOnError = false
	s.ShouldReconnectVoiceOnSessionError = false
	s.ShouldRetryOnRateLimit = false
	s.MaxRestRetries = 0
	s.SyncEvents = true
	s.Compress = false
	s.LogLevel = -1 // its logs hold tokens and texts
	return s
}

// attempts of a call that may be repeated, and of one that makes an answer
// visible: some 5 s.
const (
	attempts = 4
	stubborn = 8
)

// do makes a call and reads its answer into out, which may be nil.
func (r *rest) do(ctx context.Context, c call, out any) error {
	box := r.bot
	if c.hook {
		box = r.hooks
	}
	pause := outbox.Backoff{Least: 50 * time.Millisecond, Most: 2 * time.Second}
	for n := 1; ; n++ {
		var reply []byte
		err := box.Do(ctx, outbox.Call{Lane: c.lane, Priority: outbox.Final, Make: func(ctx context.Context) (err error) {
			reply, err = r.once(ctx, c)
			return err
		}})
		if err == nil && out != nil && len(reply) > 0 {
			err = json.Unmarshal(reply, out)
			if err != nil {
				err = fmt.Errorf("%s: the answer cannot be read: %w", c.name, errNoReply)
			}
		}
		if err == nil || !c.again || n == cmp.Or(c.tries, attempts) || !passing(err) || ctx.Err() != nil {
			return err
		}
		if outbox.Pause(ctx, pause.Next()) != nil {
			return err
		}
	}
}

// once makes one attempt.
func (r *rest) once(ctx context.Context, c call) ([]byte, error) {
	if wait := r.held(c.lane); wait > 0 {
		return nil, &outbox.Limited{After: wait, Err: errors.New("the limit of the route is used up")}
	}
	if c.method != http.MethodGet {
		if err := desk.Held(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if c.patience == 0 {
		c.patience = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	seen := &observed{}
	ctx = context.WithValue(ctx, observedKey{}, seen)
	var body []byte
	if c.body != nil {
		var err error
		if body, err = json.Marshal(c.body); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	// A rate limiter of its own for each call: the library's keeps a bucket
	// for every interaction for ever, sleeps without looking at the context,
	// and lets all edits wait for each other. Lanes are the outbox's.
	limiter := discordgo.NewRatelimiter()
	reply, err := r.session.RequestWithLockedBucket(c.method, discordgo.EndpointAPI+c.path, "application/json", body,
		limiter.LockBucket(c.lane), 0, discordgo.WithContext(ctx), discordgo.WithRetryOnRatelimit(false), discordgo.WithRestRetries(0))
	r.note(c.lane, seen)
	return reply, r.plain(ctx, c, seen, err)
}

// plain turns a failure into one of ours, which holds no address: the
// address of a webhook is its token.
func (r *rest) plain(ctx context.Context, c call, seen *observed, err error) error {
	var limited *discordgo.RateLimitError
	var failed *discordgo.RESTError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return &outbox.Limited{After: limited.RetryAfter, Everywhere: seen.global, Err: &APIError{http.StatusTooManyRequests, 0, c.name}}
	case errors.As(err, &failed):
		e := &APIError{Status: seen.status, Call: c.name}
		if failed.Message != nil {
			e.Code = failed.Message.Code
		}
		return e
	case seen.status >= 300:
		return &APIError{Status: seen.status, Call: c.name}
	case seen.status != 0:
		return fmt.Errorf("%s: the answer ended early: %w", c.name, errNoReply)
	}
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err
	}
	return fmt.Errorf("%s: %w: %w", c.name, errNoReply, err)
}

// note remembers what the headers say about the lane, and counts refusals.
func (r *rest) note(lane string, seen *observed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen.used > 0 {
		if len(r.holds) > 1000 {
			now := time.Now()
			for l, until := range r.holds {
				if until.Before(now) {
					delete(r.holds, l)
				}
			}
		}
		r.holds[lane] = time.Now().Add(seen.used)
	}
	if !seen.shared && (seen.status == 401 || seen.status == 403 || seen.status == 429) {
		r.rejected.add(time.Now())
	}
}

// held is how long the lane must wait because of earlier answers.
func (r *rest) held(lane string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := time.Until(r.holds[lane])
	if wait <= 0 {
		delete(r.holds, lane)
	}
	// Discord locks an address out that is refused 10,000 times in 10
	// minutes.
	return max(wait, r.rejected.wait(time.Now()))
}

// rejections counts refused calls by the minute.
type rejections struct {
	minute int64
	counts [10]int
}

const maxRejections = 5000

func (j *rejections) add(now time.Time) { j.turn(now); j.counts[j.minute%10]++ }

func (j *rejections) turn(now time.Time) {
	m := now.Unix() / 60
	for j.minute < m {
		j.minute = max(j.minute+1, m-9)
		j.counts[j.minute%10] = 0
	}
}

func (j *rejections) wait(now time.Time) time.Duration {
	j.turn(now)
	n := 0
	for _, c := range j.counts {
		n += c
	}
	if n < maxRejections {
		return 0
	}
	return time.Minute
}

// observed is what a call saw of the answer that the library does not tell.
type observed struct {
	status int
	global bool
	shared bool
	used   time.Duration // the limit of the route is used up for so long
}

type observedKey struct{}

// rewriter sends calls to another base address, and hides from the library
// what it would trip over.
type rewriter struct {
	base *url.URL
	next http.RoundTripper
}

// newRewriter reads the base address of the API. Without a version in its
// path, it is that of a server which has the API where Discord has it.
func newRewriter(base string, next http.RoundTripper) (*rewriter, error) {
	if base == "" {
		base = discordgo.EndpointAPI
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("discord.api_url: %q is no base address; write for example https://discord.com/api/v9", base)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	segments := strings.Split(u.Path, "/")
	last := segments[len(segments)-1]
	switch {
	case last == "api":
		u.Path += "/v" + discordgo.APIVersion
	case len(last) < 2 || last[0] != 'v' || strings.Trim(last[1:], "0123456789") != "":
		u.Path += "/api/v" + discordgo.APIVersion
	}
	return &rewriter{u, next}, nil
}

// RoundTrip implements http.RoundTripper.
func (w *rewriter) RoundTrip(req *http.Request) (*http.Response, error) {
	rest, ok := strings.CutPrefix(req.URL.String(), discordgo.EndpointAPI)
	if !ok {
		return nil, errors.New("a call goes elsewhere than to Discord's API")
	}
	u, err := url.Parse(w.base.String() + "/" + rest)
	if err != nil {
		return nil, errors.New("a call has no address")
	}
	req = req.Clone(req.Context())
	req.URL, req.Host = u, u.Host
	resp, err := w.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusNotFound && rest == "gateway" {
		// The library asks for the address here; a server may have the other
		// route alone.
		resp.Body.Close()
		req = req.Clone(req.Context())
		req.URL = u.JoinPath("bot")
		resp, err = w.next.RoundTrip(req)
	}
	if err != nil {
		return nil, err
	}
	return observe(req.Context(), resp)
}

// maxReply bounds an answer, in bytes.
const maxReply = 16 << 20

func observe(ctx context.Context, resp *http.Response) (*http.Response, error) {
	h := resp.Header
	seen, ok := ctx.Value(observedKey{}).(*observed)
	if !ok {
		seen = &observed{}
	}
	seen.status = resp.StatusCode
	seen.global = h.Get("X-RateLimit-Global") == "true"
	seen.shared = h.Get("X-RateLimit-Scope") == "shared"
	if h.Get("X-RateLimit-Remaining") == "0" && resp.StatusCode != http.StatusTooManyRequests {
		seen.used = seconds(h.Get("X-RateLimit-Reset-After"))
	}
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "X-Ratelimit-") {
			delete(h, name)
		}
	}
	body := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, maxReply), body}
	if resp.StatusCode == http.StatusTooManyRequests {
		return limited(resp, seen), nil
	}
	return resp, nil
}

// limited gives a refusal the one form that the library reads, whatever a
// proxy in between made of it.
func limited(resp *http.Response, seen *observed) *http.Response {
	var body struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if json.Unmarshal(raw, &body) != nil || body.RetryAfter <= 0 {
		body.RetryAfter = seconds(resp.Header.Get("Retry-After")).Seconds()
	}
	seen.global = seen.global || body.Global
	again, _ := json.Marshal(map[string]any{"message": "limited", "retry_after": min(body.RetryAfter, 3600)})
	resp.Body = io.NopCloser(bytes.NewReader(again))
	return resp
}

// seconds reads a header; what is no number is 0.
func seconds(s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != f || f < 0 || f > 86400 {
		return 0
	}
	return time.Duration(f * float64(time.Second))
}
