package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/adapters/fakeserver"
	"footnote/bot/clocktest"
)

// Server is the fake. All methods are safe for concurrent use.
type Server struct {
	retries []time.Duration // waits before the retries of an event
	*fakeserver.Server
	clock clocktest.Clock

	mu      sync.Mutex
	rng     *rand.Rand
	world   *state
	seq     int
	ids     map[string]int
	tokens  map[string]*token
	faults  fakeserver.Faults[Fault]
	limits  map[string]int // calls a minute, by route
	perChan bool           // about one message a second per channel
	calls   fakeserver.Window

	requests      []*Request
	frames        []Frame
	ephemerals    []*Message
	responsePosts []ResponsePost
	responseURLs  map[string]*responseURL
	triggers      map[string]*trigger
	views         map[string][]*View
	homes         map[string]*View
	statuses      map[place]statusLine
	userErrors    map[string][]string
	violations    []string
	deadCalls     map[string]int
	questions     []Question
	rules         Rules

	socketState
	deliveryState
	webhook *Webhook
}

type place struct{ channel, thread string }

type token struct {
	kind    string // bot, app
	team    string
	scopes  []string
	expires time.Time
	dead    string // error code of a token that no longer works
}

// Option changes a new Server.
type Option func(*Server)

// WithClock replaces the machine's clock.
func WithClock(c clocktest.Clock) Option { return func(s *Server) { s.clock = c } }

// WithSeed sets the seed of chance faults and of scattered deliveries.
func WithSeed(seed uint64) Option {
	return func(s *Server) { s.rng = rand.New(rand.NewPCG(seed, seed)) }
}

// WithRateLimit allows so many calls of the route a minute, then answers 429.
func WithRateLimit(route string, perMinute int) Option {
	return func(s *Server) { s.limits[route] = perMinute }
}

// WithChannelLimit allows one message a second in a channel, in bursts of three.
func WithChannelLimit() Option { return func(s *Server) { s.perChan = true } }

// WithRetries sets the waits before the retries of an event: Slack's are none, a
// minute, five minutes.
func WithRetries(waits ...time.Duration) Option { return func(s *Server) { s.retries = waits } }

// WithPingEvery sets how often sockets are pinged, in real time; one second by default.
func WithPingEvery(d time.Duration) Option { return func(s *Server) { s.pingEvery = d } }

// WithRules sets what CheckInvariants asks of the app.
func WithRules(r Rules) Option { return func(s *Server) { s.rules = r } }

// New starts a fake. With t it stops at the end of the test and failures end
// the test; without (nil) the caller calls Close, and misuse panics.
func New(t testing.TB, w World, opts ...Option) *Server {
	st, err := newState(w)
	s := &Server{
		clock: clocktest.RealClock(), world: st, retries: retryDelays,
		rng: rand.New(rand.NewPCG(1, 1)), ids: map[string]int{}, tokens: map[string]*token{}, limits: map[string]int{},
		calls: fakeserver.Window{}, responseURLs: map[string]*responseURL{}, triggers: map[string]*trigger{},
		views: map[string][]*View{}, homes: map[string]*View{}, statuses: map[place]statusLine{},
		userErrors: map[string][]string{}, deadCalls: map[string]int{}, socketState: newSocketState(), deliveryState: newDeliveryState(),
	}
	for _, o := range opts {
		o(s)
	}
	s.Server = fakeserver.New(t, "slacktest", &s.mu, s.clock)
	s.T.Helper()
	if err != nil {
		s.Failf("%v", err)
	}
	s.Client.CheckRedirect = redirects
	a := st.App
	s.tokens[a.BotToken] = &token{kind: "bot", team: st.Team.ID, scopes: a.Scopes}
	s.tokens[a.AppToken] = &token{kind: "app", team: st.Team.ID, scopes: []string{"connections:write"}}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", s.serveAPI)
	mux.HandleFunc("/socket/", s.serveSocket)
	mux.HandleFunc("/respond/", s.serveResponseURL)
	mux.HandleFunc("/files-pri/", s.serveFile)
	mux.HandleFunc("/signin", s.serveSignIn)
	s.Listen(mux, s.CloseSockets)
	return s
}

// APIURL is the base of the Web API; it ends in /api/.
func (s *Server) APIURL() string { return s.Base + "/api/" }

// App returns the app's ids and secrets as they are now.
func (s *Server) App() App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.App
}

// Clock is the clock that the server goes by.
func (s *Server) Clock() clocktest.Clock { return s.clock }

// id makes the next id with the prefix; the caller holds s.mu.
func (s *Server) id(prefix string) string {
	s.ids[prefix]++
	return fmt.Sprintf("%s%06d", prefix, s.ids[prefix])
}

func (s *Server) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// call is one API request on its way to its handler.
type call struct {
	route string
	req   *Request
	tok   *token
	args  map[string]string
}

// reply is the JSON body of an answer.
type reply map[string]any

func failure(code string) reply { return reply{"ok": false, "error": code} }

func failureAt(code string, messages ...string) reply {
	return reply{"ok": false, "error": code, "response_metadata": map[string]any{"messages": messages}}
}

// method is one route: what token and scopes it wants, and what it does. The
// handler runs with s.mu held.
type method struct {
	kind   string   // bot, app, none
	get    bool     // GET is allowed too
	scopes []string // any of these is enough; none: no scope
	run    func(*Server, *call) reply
}

// serveAPI answers /api/METHOD.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	route := strings.TrimPrefix(r.URL.Path, "/api/")
	args, tok, err := decode(r)
	c := &call{route: route, args: args, req: &Request{
		At: s.clock.Now(), Route: route, Verb: r.Method, Token: tok, Header: r.Header.Clone(), Args: args, Status: 200,
	}}
	m, known := methods[route]
	s.mu.Lock()
	f := s.fault(route, args)
	s.mu.Unlock()
	if !s.before(w, r, c, f) {
		return
	}
	s.mu.Lock()
	var out reply
	switch {
	case err != nil:
		out = failure("invalid_json")
	case !known:
		out = failure("unknown_method")
	case r.Method != http.MethodPost && (!m.get || r.Method != http.MethodGet):
		out, c.req.Status = failure("invalid_request_method"), http.StatusMethodNotAllowed
	default:
		out = s.dispatch(c, m)
	}
	c.req.Error, _ = out["error"].(string)
	h := s.scopeHeaders(c, m)
	if after, ok := out["_retry_after"]; ok {
		delete(out, "_retry_after")
		h.Set("Retry-After", fmt.Sprint(after))
		c.req.Status = http.StatusTooManyRequests
	}
	status, body := c.req.Status, raw(out) // under the lock: the answer holds parts of the world
	s.record(c.req)
	s.mu.Unlock()
	maps.Copy(w.Header(), h)
	s.answer(w, f, status, body)
}

func (s *Server) scopeHeaders(c *call, m method) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json; charset=utf-8")
	if c.tok != nil && c.tok.kind == "bot" {
		h.Set("X-OAuth-Scopes", strings.Join(c.tok.scopes, ","))
	}
	if len(m.scopes) > 0 {
		h.Set("X-Accepted-OAuth-Scopes", strings.Join(m.scopes, ","))
	}
	return h
}

// dispatch authorises the call and runs it; the caller holds s.mu.
func (s *Server) dispatch(c *call, m method) reply {
	if m.kind != "none" {
		if code := s.authorise(c, m); code != "" {
			return failure(code)
		}
		if len(m.scopes) > 0 && !overlap(c.tok.scopes, m.scopes) {
			return missingScope(c, m.scopes...)
		}
	}
	if wait := s.limited(c); wait > 0 {
		r := failure("ratelimited")
		r["_retry_after"] = int(wait.Seconds() + 0.999)
		return r
	}
	return m.run(s, c)
}

func overlap(have, want []string) bool {
	return slices.ContainsFunc(want, func(w string) bool { return slices.Contains(have, w) })
}

func missingScope(c *call, needed ...string) reply {
	r := failure("missing_scope")
	r["needed"], r["provided"] = strings.Join(needed, ","), strings.Join(c.tok.scopes, ",")
	return r
}

// authorise finds the token and says what is wrong with it.
func (s *Server) authorise(c *call, m method) string {
	header := strings.HasPrefix(c.req.Header.Get("Authorization"), "Bearer ")
	if c.req.Token == "" || m.kind == "app" && !header {
		return "not_authed"
	}
	t := s.tokens[c.req.Token]
	if t == nil {
		return "invalid_auth"
	}
	if t.dead == "" && !t.expires.IsZero() && !s.clock.Now().Before(t.expires) {
		t.dead = "token_expired"
	}
	if t.dead != "" {
		// One late call learns that the token is dead; a second is a fault of the app.
		if s.deadCalls[c.req.Token]++; s.deadCalls[c.req.Token] > 1+s.rules.DeadTokenCalls {
			s.violate("%s called with a token that is dead (%s)", c.route, t.dead)
		}
		return t.dead
	}
	if t.kind != m.kind {
		return "not_allowed_token_type"
	}
	c.tok = t
	return ""
}

// limited counts the call and says how long the caller must wait, if at all.
func (s *Server) limited(c *call) time.Duration {
	if n := s.limits[c.route]; n > 0 {
		if d := s.calls.Take(s.clock.Now(), c.route, n, time.Minute); d > 0 {
			return d
		}
	}
	if s.perChan && slices.Contains([]string{"chat.postMessage", "chat.postEphemeral", "chat.startStream"}, c.route) {
		return s.calls.Take(s.clock.Now(), "channel "+c.args["channel"], 3, 3*time.Second)
	}
	return 0
}

// decode reads the fields of a form or JSON body and the token. A token in
// JSON or in the URL does not count, as on Slack.
func decode(r *http.Request) (args map[string]string, tok string, err error) {
	args = map[string]string{}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return args, "", err
	}
	tok = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	ct, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case ct == "application/json":
		return args, tok, decodeJSON(body, args)
	case r.Method == http.MethodGet:
		fill(args, r.URL.Query())
	default:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return args, tok, err
		}
		fill(args, form)
		if t := args["token"]; t != "" {
			tok = t
		}
	}
	delete(args, "token")
	return args, tok, nil
}

func fill(args map[string]string, form url.Values) {
	for k, v := range form {
		args[k] = v[len(v)-1]
	}
}

// decodeJSON flattens an object: strings as they are, the rest as JSON.
func decodeJSON(body []byte, args map[string]string) error {
	var o map[string]json.RawMessage
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return err
	}
	for k, v := range o {
		var str string
		if json.Unmarshal(v, &str) == nil {
			args[k] = str
		} else {
			args[k] = string(v)
		}
	}
	delete(args, "token")
	return nil
}

// truth reads a boolean argument; absent gives def.
func (c *call) truth(key string, def bool) bool {
	switch c.args[key] {
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	return def
}

// page cuts one page out of n rows: offset, end and the next cursor. Slack's
// pages may be short, so every page but the last holds one row less than asked.
func (c *call) page(n, def, most int) (from, to int, next string, bad string) {
	limit := def
	if l := c.args["limit"]; l != "" {
		v, err := strconv.Atoi(l)
		if err != nil || v < 1 || v > most {
			return 0, 0, "", "invalid_limit"
		}
		limit = v
	}
	if cur := c.args["cursor"]; cur != "" {
		v, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(cur, "dGVhbTp"), "="))
		if err != nil || v < 0 || v > n {
			return 0, 0, "", "invalid_cursor"
		}
		from = v
	}
	to = n
	if n-from > limit {
		to = from + max(1, limit-1)
		next = fmt.Sprintf("dGVhbTp%d=", to)
	}
	return from, to, next, ""
}

// ExpireToken makes the token answer token_expired from now on.
func (s *Server) ExpireToken(tok string) { s.KillToken(tok, "token_expired") }

// KillToken makes the token answer the code from now on: token_revoked,
// account_inactive, invalid_auth. An empty code revives it.
func (s *Server) KillToken(tok, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tokens[tok]; t != nil {
		t.dead, t.expires = code, time.Time{}
	}
	s.Bump()
}

// SetScopes replaces the scopes of the bot token.
func (s *Server) SetScopes(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if t.kind == "bot" {
			t.scopes = scopes
		}
	}
	s.world.App.Scopes = scopes
}
