package discordtest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
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
	*fakeserver.Server
	clock clocktest.Clock
	key   ed25519.PrivateKey

	mu     sync.Mutex
	rng    *rand.Rand
	world  *state
	seq    int
	dead   bool // the bot token was reset
	faults fakeserver.Faults[Fault]
	rules  Rules

	limits  map[string]limit
	calls   fakeserver.Window
	invalid []time.Time // 401, 403 and 429 of the last ten minutes
	banAt   int

	requests   []*Request
	frames     []Frame
	violations []string
	failures   map[string][]string
	filter     func(content string) int
	scatter    func(*rand.Rand, Delivery) Delivery
	questions  []Question
	nonces     map[string]*Message

	commandState
	interactionState
	gatewayState
	endpoint string
}

type limit struct {
	n   int
	per time.Duration
}

// Option changes a new Server.
type Option func(*Server)

// WithClock replaces the machine's clock.
func WithClock(c clocktest.Clock) Option { return func(s *Server) { s.clock = c } }

// WithSeed sets the seed of chance faults and of scattered deliveries.
func WithSeed(seed uint64) Option {
	return func(s *Server) { s.rng = rand.New(rand.NewPCG(seed, seed)) }
}

// WithRouteLimit allows n calls of the route in each span for one channel,
// guild or token, then answers 429. Without it no route is limited.
func WithRouteLimit(route string, n int, per time.Duration) Option {
	return func(s *Server) { s.limits[route] = limit{n, per} }
}

// WithInvalidLimit bans the client after n answers 401, 403 or 429 in ten
// minutes; 10,000 by default.
func WithInvalidLimit(n int) Option { return func(s *Server) { s.banAt = n } }

// WithHeartbeat sets the interval that HELLO asks for; 41.25 s by default.
func WithHeartbeat(d time.Duration) Option { return func(s *Server) { s.heartbeat = d } }

// WithZlib compresses the gateway frames of clients that ask for it.
func WithZlib() Option { return func(s *Server) { s.zlib = true } }

// WithShards makes gateway/bot recommend n shards; clients with fewer are closed with 4011.
func WithShards(n int) Option { return func(s *Server) { s.shards = n } }

// WithIdentifyLimit sets the sessions that may be started in 24 h; 1000 by
// default. One more resets the token.
func WithIdentifyLimit(n int) Option { return func(s *Server) { s.identifyLimit = n } }

// WithRules sets what CheckInvariants asks of the app.
func WithRules(r Rules) Option { return func(s *Server) { s.rules = r } }

// New starts a fake. With t it stops at the end of the test and failures end
// the test; without (nil) the caller calls Close, and misuse panics.
func New(t testing.TB, w World, opts ...Option) *Server {
	st, err := newState(w)
	s := &Server{
		clock: clocktest.RealClock(), world: st,
		rng: rand.New(rand.NewPCG(1, 1)), limits: map[string]limit{}, calls: fakeserver.Window{}, banAt: 10_000,
		failures: map[string][]string{}, nonces: map[string]*Message{},
		commandState: newCommandState(), interactionState: newInteractionState(), gatewayState: newGatewayState(),
	}
	for _, o := range opts {
		o(s)
	}
	s.Server = fakeserver.New(t, "discordtest", &s.mu, s.clock)
	s.T.Helper()
	if err != nil {
		s.Failf("%v", err)
	}
	if len(w.App.Seed) != ed25519.SeedSize {
		s.Failf("App.Seed has %d bytes, want %d; start from NewWorld", len(w.App.Seed), ed25519.SeedSize)
	}
	s.key = ed25519.NewKeyFromSeed(w.App.Seed)
	now := s.clock.Now()
	for _, c := range st.channels {
		c.active = now
		s.watchArchive(c)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/gw", s.serveGateway)
	mux.HandleFunc("/gw/", s.serveGateway)
	mux.HandleFunc("/attachments/", s.serveFile)
	mux.HandleFunc("/", s.serveAPI)
	s.Listen(mux, s.DropSockets)
	return s
}

// URL is the base address: the API is at URL()/api/v9 and URL()/api/v10.
func (s *Server) URL() string { return s.Base }

// GatewayURL is what GET /gateway answers.
func (s *Server) GatewayURL() string { return "ws" + strings.TrimPrefix(s.Base, "http") + "/gw" }

// App returns the app's ids and secrets.
func (s *Server) App() App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.app
}

// Clock is the clock that the server goes by.
func (s *Server) Clock() clocktest.Clock { return s.clock }

func (s *Server) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// call is one API request on its way to its handler.
type call struct {
	req   *Request
	route *route
	p     map[string]string // path parameters
	query url.Values
	body  []byte
}

// result is the answer to a call: a status and a JSON body, nil for none.
type result struct {
	status int
	body   any
	header http.Header
}

func ok(body any) result { return result{status: http.StatusOK, body: body} }

func created(body any) result { return result{status: http.StatusCreated, body: body} }

func none() result { return result{status: http.StatusNoContent} }

func failure(status, code int, message string) result {
	return result{status: status, body: object{"message": message, "code": code}}
}

func (r result) code() int {
	if o, isObject := r.body.(object); isObject && r.status >= 400 {
		c, _ := o["code"].(int)
		return c
	}
	return 0
}

// The errors that several routes give.
func unknown(what string, code int) result { return failure(404, code, "Unknown "+what) }
func noAccess() result                     { return failure(403, 50001, "Missing Access") }
func noPermission() result                 { return failure(403, 50013, "Missing Permissions") }

// route is one method and path.
type route struct {
	name  string // "POST /channels/{channel}/messages"
	verb  string
	parts []string
	open  bool // no bot token needed
	major string
	run   func(*Server, *call) result
}

func newRoute(name string, run func(*Server, *call) result) *route {
	verb, path, _ := strings.Cut(name, " ")
	r := &route{name: name, verb: verb, parts: strings.Split(strings.Trim(path, "/"), "/"), run: run}
	r.open = path == "/gateway" || strings.HasPrefix(path, "/interactions/") || strings.HasPrefix(path, "/webhooks/")
	for _, m := range []string{"{token}", "{channel}", "{guild}"} {
		if slices.Contains(r.parts, m) {
			r.major = strings.Trim(m, "{}")
			break
		}
	}
	return r
}

// match returns the path parameters if the path fits.
func (r *route) match(parts []string) (map[string]string, bool) {
	if len(parts) != len(r.parts) {
		return nil, false
	}
	p := map[string]string{}
	for i, want := range r.parts {
		if strings.HasPrefix(want, "{") {
			p[strings.Trim(want, "{}")] = parts[i]
		} else if want != parts[i] {
			return nil, false
		}
	}
	return p, true
}

// find looks the route up. wrongVerb: the path exists under another method.
func find(verb string, parts []string) (r *route, p map[string]string, wrongVerb bool) {
	for _, c := range routes {
		got, fits := c.match(parts)
		if !fits {
			continue
		}
		if c.verb == verb {
			return c, got, false
		}
		wrongVerb = true
	}
	return nil, nil, wrongVerb
}

// version splits /api/v9/rest; ok is false for a version that does not exist.
func version(path string) (rest string, known bool) {
	rest, api := strings.CutPrefix(path, "/api")
	for _, v := range []string{"/v9/", "/v10/"} {
		if r, has := strings.CutPrefix(rest, v); has {
			return r, true
		}
	}
	return rest, !api || !strings.HasPrefix(rest, "/v")
}

// serveAPI answers every route of the REST API.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	rest, known := version(r.URL.Path)
	c := &call{body: body, query: r.URL.Query(), req: &Request{
		At: s.clock.Now(), Verb: r.Method, Path: "/" + strings.Trim(rest, "/"), Header: r.Header.Clone(), Body: body, Route: r.Method + " " + r.URL.Path,
	}}
	var wrongVerb bool
	if known && strings.HasPrefix(r.URL.Path, "/api/v") {
		c.route, c.p, wrongVerb = find(r.Method, strings.Split(strings.Trim(rest, "/"), "/"))
	}
	if c.route != nil {
		c.req.Route, c.req.Params = c.route.name, c.p
	}
	s.mu.Lock()
	f := s.fault(c)
	s.mu.Unlock()
	if err != nil || !s.before(w, r, c, f) {
		return
	}
	s.mu.Lock()
	var out result
	switch {
	case !known:
		out = failure(400, 50041, "Invalid API version")
	case wrongVerb:
		out = failure(405, 0, "405: Method Not Allowed")
	case c.route == nil:
		out = failure(404, 0, "404: Not Found")
	default:
		out = s.dispatch(c)
	}
	h := s.headers(c, out)
	out.status = s.count(out, h)
	c.req.Status, c.req.Code = out.status, out.code()
	var b []byte
	if out.body != nil {
		b = raw(out.body) // under the lock: the answer holds parts of the world
	}
	s.record(c.req)
	s.mu.Unlock()
	maps.Copy(w.Header(), h)
	s.answer(w, f, out.status, b)
}

// dispatch authorises, limits and decodes the call, then runs it; the caller holds s.mu.
func (s *Server) dispatch(c *call) result {
	if !strings.HasPrefix(c.req.Header.Get("User-Agent"), "DiscordBot (") {
		return failure(403, 40333, "internal network error")
	}
	if s.banned() {
		return result{status: 429, body: html("You are being rate limited: Access denied, error 1015")}
	}
	if !c.route.open && (s.dead || c.req.Header.Get("Authorization") != "Bot "+s.world.app.Token) {
		return failure(401, 0, "401: Unauthorized")
	}
	if out, hit := s.limited(c); hit {
		return out
	}
	if bad := c.badID(); bad != nil {
		return *bad
	}
	if c.req.Verb != http.MethodGet && len(bytes.TrimSpace(c.body)) > 0 {
		if ct := c.req.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
			return failure(400, 50035, "Invalid Form Body: expected \"Content-Type\" header to be application/json")
		}
		if !json.Valid(c.body) {
			return failure(400, 50109, "The request body contains invalid JSON.")
		}
	}
	return c.route.run(s, c)
}

// html marks a body that is not JSON.
type html string

func (h html) MarshalJSON() ([]byte, error) { return json.Marshal(string(h)) }

// badID refuses path parameters that cannot be ids.
func (c *call) badID() *result {
	for name, v := range c.p {
		if name == "token" || name == "emoji" || strings.HasPrefix(v, "@") {
			continue
		}
		if _, err := strconv.ParseUint(v, 10, 64); err != nil {
			e := newForm()
			e.add(name+"_id", "NUMBER_TYPE_COERCE", fmt.Sprintf("Value %q is not snowflake.", v))
			out := e.result()
			return &out
		}
	}
	return nil
}

// bind decodes the body into v; a value of the wrong type is a form error.
func (c *call) bind(v any) *result {
	if len(c.body) == 0 {
		return nil
	}
	err := json.Unmarshal(c.body, v)
	if err == nil {
		return nil
	}
	e := newForm()
	field := "body"
	if te, isType := err.(*json.UnmarshalTypeError); isType && te.Field != "" {
		field = te.Field
	}
	e.add(field, "BASE_TYPE_BAD_TYPE", err.Error())
	out := e.result()
	return &out
}

// limited counts the call and answers 429 when there are too many.
func (s *Server) limited(c *call) (result, bool) {
	if l, has := s.limits[c.route.name]; has {
		if wait := s.calls.Take(s.clock.Now(), c.bucket(), l.n, l.per); wait > 0 {
			return tooMany(wait, "user"), true
		}
	}
	return result{}, false
}

func (c *call) bucket() string { return c.route.name + " " + c.p[c.route.major] }

func tooMany(wait time.Duration, scope string) result {
	h := http.Header{}
	h.Set("Retry-After", strconv.Itoa(int(wait.Seconds()+0.999)))
	h.Set("X-RateLimit-Scope", scope)
	if scope == "global" {
		h.Set("X-RateLimit-Global", "true")
	}
	return result{status: 429, header: h, body: object{
		"message": "You are being rate limited.", "retry_after": wait.Seconds(), "global": scope == "global",
	}}
}

// headers are the rate headers of every reply.
func (s *Server) headers(c *call, out result) http.Header {
	h := http.Header{}
	maps.Copy(h, out.header)
	h.Set("Via", "1.1 google")
	if out.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if _, isHTML := out.body.(html); isHTML {
		h.Set("Content-Type", "text/html; charset=UTF-8")
		h.Del("Via") // the edge answers, not the API
		h.Set("Retry-After", "3600")
		return h
	}
	if c.route == nil {
		return h
	}
	l, left, wait := limit{1000, time.Second}, 999, time.Second
	if own, has := s.limits[c.route.name]; has {
		recent := s.calls[c.bucket()]
		l, left, wait = own, max(0, own.n-len(recent)), own.per
		if len(recent) > 0 {
			wait = own.per - s.clock.Now().Sub(recent[0])
		}
	}
	reset := s.clock.Now().Add(wait)
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.n))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(reset.UnixMilli())/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(wait.Seconds(), 'f', 3, 64))
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%016x", hash(c.route.name)))
	return h
}

func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// count notes answers that lead to a ban; limits shared with others do not.
func (s *Server) count(out result, h http.Header) int {
	bad := out.status == 401 || out.status == 403 || out.status == 429 && h.Get("X-RateLimit-Scope") != "shared"
	if bad {
		s.invalid = append(s.invalid, s.clock.Now())
	}
	return out.status
}

func (s *Server) banned() bool {
	now := s.clock.Now()
	s.invalid = slices.DeleteFunc(s.invalid, func(t time.Time) bool { return now.Sub(t) >= 10*time.Minute })
	return len(s.invalid) >= s.banAt
}

// ResetToken makes the bot token useless, on REST and at the next identify;
// open sockets stay, as on Discord.
func (s *Server) ResetToken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// SetFilter lets f refuse message texts with a code: 240000 for harmful links,
// 200000 for AutoMod, 0 to let them pass.
func (s *Server) SetFilter(f func(content string) (code int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filter = f
}
