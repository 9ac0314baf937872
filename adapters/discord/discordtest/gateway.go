package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"footnote/adapters/fakeserver"
)

// Intent is a set of gateway intents.
type Intent int

// The intents that matter here. Members, Presences and Content are privileged.
const (
	GuildsIntent         Intent = 1 << 0
	MembersIntent        Intent = 1 << 1
	PresencesIntent      Intent = 1 << 8
	GuildMessagesIntent  Intent = 1 << 9
	DirectMessagesIntent Intent = 1 << 12
	ContentIntent        Intent = 1 << 15

	privileged   = MembersIntent | PresencesIntent | ContentIntent
	knownIntents = 1<<17 - 1 | 1<<20 | 1<<21 | 1<<24 | 1<<25
)

// Handshake spoils the start of one connection. The zero Handshake spoils nothing.
type Handshake struct {
	NoHello      bool // nothing is ever sent
	Silent       bool // HELLO, then nothing after IDENTIFY or RESUME
	Reconnect    bool // op 7 instead of READY or RESUMED
	Invalid      bool // op 9 instead of READY or RESUMED
	Resumable    bool // the d of that op 9
	Close        int  // close code instead of READY or RESUMED
	Drop         bool // TCP reset instead
	ReadyWithout []string
	First        []json.RawMessage // frames before READY, as they stand
}

type gatewayState struct {
	heartbeat     time.Duration
	zlib          bool
	shards        int
	identifyLimit int
	identifies    []time.Time
	acksOff       bool
	silent        bool
	sockets       map[int]*socket
	sessions      []*session
	socketIDs     int
	hands         []Handshake
}

func newGatewayState() gatewayState {
	return gatewayState{heartbeat: 41250 * time.Millisecond, identifyLimit: 1000, shards: 1, sockets: map[int]*socket{}}
}

// session outlives its sockets: what is missed in between is replayed.
type session struct {
	id      string
	intents Intent
	shard   [2]int
	seq     int
	log     []event
	sock    *socket // nil while nobody is connected
	dead    bool
}

type event struct {
	s    int
	name string
	d    json.RawMessage
}

type socket struct {
	id       int
	conn     *websocket.Conn
	sess     *session
	hand     Handshake
	compress bool
	closing  bool
	recent   []time.Time

	mu    sync.Mutex
	queue []outgoing
	more  chan struct{}
	gone  chan struct{}
	once  sync.Once
}

type outgoing struct {
	data  []byte
	kind  int // of the WebSocket message
	close int // > 0: a close frame with this code
}

func (k *socket) put(o outgoing) {
	k.mu.Lock()
	k.queue = append(k.queue, o)
	k.mu.Unlock()
	select {
	case k.more <- struct{}{}:
	default:
	}
}

func (k *socket) take() []outgoing {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.queue
	k.queue = nil
	return q
}

func (k *socket) end() { k.once.Do(func() { close(k.gone); _ = k.conn.Close() }) }

// write sends what is queued; after a close frame the peer gets time to answer it.
func (k *socket) write() {
	for {
		select {
		case <-k.more:
		case <-k.gone:
			return
		}
		for _, o := range k.take() {
			if o.close > 0 {
				_ = k.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(o.close, closeText[o.close]), time.Now().Add(time.Second))
				_ = k.conn.SetReadDeadline(time.Now().Add(2 * time.Second))
				continue
			}
			if k.conn.WriteMessage(o.kind, o.data) != nil {
				k.end()
				return
			}
		}
	}
}

var closeText = map[int]string{
	4000: "Unknown error.", 4001: "Unknown opcode.", 4002: "Error while decoding payload.", 4003: "Not authenticated.", 4004: "Authentication failed.",
	4005: "Already authenticated.", 4007: "Invalid seq.", 4008: "Rate limited.", 4009: "Session timed out.", 4010: "Invalid shard.",
	4011: "Sharding required.", 4012: "Invalid API version.", 4013: "Invalid intent(s).", 4014: "Disallowed intent(s).",
}

func (s *Server) getGateway(*call) result { return ok(object{"url": s.GatewayURL()}) }

func (s *Server) getGatewayBot(*call) result {
	used := len(s.recentIdentifies())
	return ok(object{"url": s.GatewayURL(), "shards": s.shards, "session_start_limit": object{
		"total": s.identifyLimit, "remaining": max(0, s.identifyLimit-used), "reset_after": 86_400_000, "max_concurrency": 1,
	}})
}

func (s *Server) recentIdentifies() []time.Time {
	now := s.clock.Now()
	s.identifies = slices.DeleteFunc(s.identifies, func(t time.Time) bool { return now.Sub(t) >= 24*time.Hour })
	return s.identifies
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// serveGateway is one WebSocket connection from HELLO to close.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	k := &socket{conn: conn, more: make(chan struct{}, 1), gone: make(chan struct{})}
	defer k.end()
	if !s.open(k, r) {
		return
	}
	for {
		_, data, err := conn.ReadMessage()
		s.mu.Lock()
		if err != nil {
			s.lost(k, err)
			s.mu.Unlock()
			return
		}
		s.received(k, data)
		s.mu.Unlock()
	}
}

// open registers the socket and greets.
func (s *Server) open(k *socket, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Closed {
		return false
	}
	s.socketIDs++
	k.id = s.socketIDs
	s.sockets[k.id] = k
	s.Spawn(k.write)
	if len(s.hands) > 0 {
		k.hand, s.hands = s.hands[0], s.hands[1:]
	}
	s.frame(Frame{Socket: k.id, Op: -1, Type: "open", Body: raw(r.URL.RequestURI())})
	v := r.URL.Query().Get("v")
	switch {
	case v != "9" && v != "10":
		s.shut(k, 4012)
	case r.URL.Query().Get("encoding") != "" && r.URL.Query().Get("encoding") != "json":
		s.shut(k, 4002)
	case !k.hand.NoHello:
		s.push(k, 10, "", 0, object{"heartbeat_interval": s.heartbeat.Milliseconds(), "_trace": []any{}})
	}
	return true
}

// lost detaches a socket whose connection ended. Codes 1000 and 1001 end the
// session, any other leaves it to be resumed.
func (s *Server) lost(k *socket, err error) {
	delete(s.sockets, k.id)
	code := websocket.CloseAbnormalClosure
	if ce, isClose := err.(*websocket.CloseError); isClose {
		code = ce.Code
	}
	s.frame(Frame{Socket: k.id, Op: -1, Type: "close", Body: raw(code)})
	if k.sess != nil && k.sess.sock == k {
		k.sess.sock = nil
		if (code == 1000 || code == 1001) && !k.closing {
			k.sess.dead = true
		}
	}
	s.Bump()
}

// push sends one frame; the caller holds s.mu.
func (s *Server) push(k *socket, op int, name string, seq int, d any) {
	o := object{"op": op, "d": d, "s": nil, "t": nil}
	if op == 0 {
		o["s"], o["t"] = seq, name
	}
	s.pushRaw(k, raw(o), op, name, seq)
}

func (s *Server) pushRaw(k *socket, data []byte, op int, name string, seq int) {
	if k.closing || s.silent {
		return
	}
	s.frame(Frame{Socket: k.id, Out: true, Op: op, Type: name, S: seq, Body: data})
	kind := websocket.TextMessage
	if k.compress {
		kind = websocket.BinaryMessage
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write(data)
		_ = z.Close()
		data = b.Bytes()
	}
	k.put(outgoing{data: data, kind: kind})
}

// shut closes the socket with the code; some codes end the session as well.
func (s *Server) shut(k *socket, code int) {
	if k.closing {
		return
	}
	s.frame(Frame{Socket: k.id, Out: true, Op: -1, Type: "close", Body: raw(code)})
	k.closing = true
	k.put(outgoing{close: code})
	if k.sess == nil {
		return
	}
	k.sess.dead = k.sess.dead || slices.Contains([]int{1000, 1001, 4003, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014}, code)
	if k.sess.sock == k {
		k.sess.sock = nil
	}
}

// received handles one frame of the client; the caller holds s.mu.
func (s *Server) received(k *socket, data []byte) {
	var f struct {
		Op *int            `json:"op"`
		D  json.RawMessage `json:"d"`
	}
	if k.closing {
		return
	}
	if json.Unmarshal(data, &f) != nil || f.Op == nil || len(data) > 4096 {
		s.shut(k, 4002)
		return
	}
	s.frame(Frame{Socket: k.id, Op: *f.Op, Body: data})
	if *f.Op != 1 && s.tooFast(k) {
		s.shut(k, 4008)
		return
	}
	switch *f.Op {
	case 1:
		if !s.acksOff && !k.hand.NoHello {
			s.push(k, 11, "", 0, nil)
		}
	case 2:
		s.identify(k, f.D)
	case 6:
		s.resume(k, f.D)
	case 3, 4, 8:
		if k.sess == nil {
			s.shut(k, 4003)
		}
	default:
		s.shut(k, 4001)
	}
}

// tooFast allows 120 frames a minute. Heartbeats are left out: tests make them
// fast, and by a clock that may stand still.
func (s *Server) tooFast(k *socket) bool {
	now := s.clock.Now()
	k.recent = slices.DeleteFunc(k.recent, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	k.recent = append(k.recent, now)
	return len(k.recent) > 120
}

// spoilt does what the handshake of this connection says, once. True: no READY.
func (s *Server) spoilt(k *socket) bool {
	h := k.hand
	k.hand = Handshake{ReadyWithout: h.ReadyWithout, Silent: h.Silent, NoHello: h.NoHello}
	for _, f := range h.First {
		s.pushRaw(k, f, -2, "raw", 0)
	}
	switch {
	case h.Silent || h.NoHello:
	case h.Reconnect:
		s.push(k, 7, "", 0, nil)
	case h.Invalid:
		s.push(k, 9, "", 0, h.Resumable)
	case h.Close > 0:
		s.shut(k, h.Close)
	case h.Drop:
		fakeserver.ResetConn(k.conn.NetConn())
	default:
		return false
	}
	return true
}

func (s *Server) wrongToken(token string) bool {
	return s.dead || strings.TrimPrefix(token, "Bot ") != s.world.app.Token
}

type identity struct {
	Token    string  `json:"token"`
	Intents  *Intent `json:"intents"`
	Compress bool    `json:"compress"`
	Shard    *[2]int `json:"shard"`
}

func (s *Server) identify(k *socket, d json.RawMessage) {
	var id identity
	if json.Unmarshal(d, &id) != nil {
		s.shut(k, 4002)
		return
	}
	if k.sess != nil {
		s.shut(k, 4005)
		return
	}
	s.identifies = append(s.recentIdentifies(), s.clock.Now())
	if len(s.identifies) > s.identifyLimit {
		s.dead = true
	}
	if code := s.refuse(id); code > 0 {
		s.shut(k, code)
		return
	}
	if s.spoilt(k) {
		return
	}
	k.compress = s.zlib && id.Compress
	sess := &session{id: strconv.FormatUint(hash(s.world.snowflake(s.clock.Now())), 16), intents: *id.Intents, shard: [2]int{0, 1}, sock: k}
	if id.Shard != nil {
		sess.shard = *id.Shard
	}
	k.sess = sess
	s.sessions = append(s.sessions, sess)
	s.ready(k, sess)
}

// refuse gives the close code of an identity that is not acceptable.
func (s *Server) refuse(id identity) int {
	switch {
	case s.wrongToken(id.Token):
		return 4004
	case id.Shard != nil && (id.Shard[1] < 1 || id.Shard[0] < 0 || id.Shard[0] >= id.Shard[1]):
		return 4010
	case s.shards > 1 && (id.Shard == nil || id.Shard[1] < s.shards):
		return 4011
	case id.Intents == nil || *id.Intents < 0 || *id.Intents&^knownIntents != 0:
		return 4013
	case *id.Intents&privileged&^s.world.app.Privileged != 0:
		return 4014
	}
	return 0
}

// onShard says whether the session is the one for the guild; direct messages are on shard 0.
func (x *session) onShard(guild string) bool {
	n, _ := strconv.ParseUint(guild, 10, 64)
	return int(n>>22)%x.shard[1] == x.shard[0]
}

func (s *Server) ready(k *socket, sess *session) {
	guilds := []object{}
	for _, g := range s.botGuilds(sess) {
		guilds = append(guilds, object{"id": g.ID, "unavailable": true})
	}
	d := object{
		"v": 9, "user": s.world.userWire(s.world.app.BotUser), "guilds": guilds, "session_id": sess.id, "session_type": "normal",
		"resume_gateway_url": s.GatewayURL() + "/resume", "shard": sess.shard, "private_channels": []any{}, "relationships": []any{},
		"application": object{"id": s.world.app.ID, "flags": s.appFlags()},
	}
	for _, f := range k.hand.ReadyWithout {
		delete(d, f)
	}
	s.deliver(sess, "READY", d)
	if sess.intents&GuildsIntent != 0 {
		for _, g := range s.botGuilds(sess) {
			s.deliver(sess, "GUILD_CREATE", s.guildCreate(g))
		}
	}
	s.Bump()
}

func (s *Server) botGuilds(sess *session) []*Guild {
	var out []*Guild
	for _, id := range slices.Sorted(maps.Keys(s.world.guilds)) {
		if g := s.world.guilds[id]; g.member(s.world.app.BotUser) != nil && sess.onShard(id) {
			out = append(out, g)
		}
	}
	return out
}

// guildCreate is the guild with all its channels and, without the privileged
// intent, no member but the bot.
func (s *Server) guildCreate(g *Guild) object {
	o := s.world.guildWire(g)
	maps.Copy(o, object{
		"joined_at": stamp(time.UnixMilli(epoch)), "large": false, "unavailable": false, "member_count": len(g.Members),
		"members": []object{s.world.memberWire(g.member(s.world.app.BotUser), true)}, "voice_states": []any{}, "presences": []any{},
		"channels": s.channelsOf(g, func(c *Channel) bool { return !c.Type.Thread() }), "threads": s.threadsOf(g),
		"stage_instances": []any{}, "guild_scheduled_events": []any{},
	})
	return o
}

func (s *Server) resume(k *socket, d json.RawMessage) {
	var r struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	if json.Unmarshal(d, &r) != nil {
		s.shut(k, 4002)
		return
	}
	if s.wrongToken(r.Token) {
		s.shut(k, 4004)
		return
	}
	i := slices.IndexFunc(s.sessions, func(x *session) bool { return x.id == r.Session && !x.dead })
	if i >= 0 && r.Seq > s.sessions[i].seq {
		s.shut(k, 4007)
		return
	}
	if s.spoilt(k) {
		return
	}
	if i < 0 {
		s.push(k, 9, "", 0, false)
		return
	}
	sess := s.sessions[i]
	if old := sess.sock; old != nil && old != k {
		sess.sock = nil
		s.shut(old, 4000)
	}
	sess.sock, k.sess = k, sess
	for _, e := range sess.log {
		if e.s > r.Seq {
			s.push(k, 0, e.name, e.s, e.d)
		}
	}
	s.deliver(sess, "RESUMED", object{"_trace": []any{}})
	s.Bump()
}

// deliver numbers an event, keeps it for replay and sends it if somebody listens.
func (s *Server) deliver(sess *session, name string, d any) {
	if sess.dead {
		return
	}
	sess.seq++
	e := event{sess.seq, name, raw(d)}
	sess.log = append(sess.log, e)
	if sess.sock != nil {
		s.push(sess.sock, 0, name, e.s, e.d)
	}
}

// announce sends an event to every session that has the intent and the shard.
func (s *Server) announce(name string, need Intent, guild string, d any) {
	for _, sess := range s.sessions {
		if (need == 0 || sess.intents&need != 0) && sess.onShard(guild) {
			s.deliver(sess, name, d)
		}
	}
}

func (s *Server) messageIntent(channel string) Intent {
	if ch := s.world.channels[channel]; ch != nil && ch.GuildID == "" {
		return DirectMessagesIntent
	}
	return GuildMessagesIntent
}

// emitMessage tells sessions of a message that the bot can see. Without the
// privileged intent the text is empty, unless it is addressed to the bot.
func (s *Server) emitMessage(name string, m *Message) {
	bot, ch := s.world.app.BotUser, s.world.channels[m.Channel]
	if m.EphemeralTo != "" || !s.world.canView(bot, ch, s.clock.Now()) {
		return
	}
	need := s.messageIntent(m.Channel)
	for _, sess := range s.sessions {
		if sess.intents&need == 0 || !sess.onShard(m.Guild) {
			continue
		}
		o := s.world.messageWire(m)
		if g := s.world.guilds[m.Guild]; g != nil {
			o["guild_id"] = g.ID
			if mem := g.member(m.Author); mem != nil {
				o["member"] = s.world.memberWire(mem, false)
			}
		}
		if !s.readable(m) && sess.intents&ContentIntent == 0 {
			blank(o)
		}
		s.deliver(sess, name, o)
	}
}

// readable messages carry their text to the bot whatever the intents are.
func (s *Server) readable(m *Message) bool {
	bot := s.world.app.BotUser
	mentioned := slices.ContainsFunc(userRE.FindAllStringSubmatch(m.Content, -1), func(g []string) bool { return g[1] == bot })
	return m.Author == bot || mentioned || s.world.channels[m.Channel].GuildID == ""
}

func blank(o object) {
	o["content"], o["embeds"], o["attachments"], o["components"] = "", []any{}, []any{}, []any{}
}

// forApp is a message as REST gives it, under the same rule.
func (s *Server) forApp(m *Message) object {
	o := s.world.messageWire(m)
	if !s.readable(m) && s.world.app.Privileged&ContentIntent == 0 {
		blank(o)
	}
	return o
}

// SetHandshakes spoils the next connections, one each.
func (s *Server) SetHandshakes(h ...Handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hands = append(s.hands, h...)
}

// SetAcks switches the acknowledgement of heartbeats on or off.
func (s *Server) SetAcks(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acksOff = !on
}

// SetSilent makes all open and new sockets mute: connected, but nothing comes.
// What is missed can be had by a resume after the silence.
func (s *Server) SetSilent(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = on
}

// CloseSockets closes all sockets with the code.
func (s *Server) CloseSockets(code int) {
	s.eachSocket(func(k *socket) { s.shut(k, code) })
}

// DropSockets resets all connections without a close frame.
func (s *Server) DropSockets() {
	s.mu.Lock()
	var all []*socket
	for _, k := range s.sockets {
		all = append(all, k)
	}
	s.mu.Unlock()
	for _, k := range all {
		fakeserver.ResetConn(k.conn.NetConn())
		k.end()
	}
}

func (s *Server) eachSocket(f func(*socket)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.sockets)) {
		f(s.sockets[id])
	}
	s.Bump()
}

// SendOp sends an opcode with data on all sockets: 1, 7, 9, or one that nobody knows.
func (s *Server) SendOp(op int, d any) {
	s.eachSocket(func(k *socket) { s.push(k, op, "", 0, d) })
}

// SendEvent dispatches any event to all sessions, known or not.
func (s *Server) SendEvent(name string, d any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		s.deliver(sess, name, d)
	}
}

// SendRaw sends text as it stands on all sockets: broken JSON, for example.
func (s *Server) SendRaw(text string) {
	s.eachSocket(func(k *socket) { s.pushRaw(k, []byte(text), -2, "raw", 0) })
}

// ExpireSessions makes every resume fail with op 9.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		sess.dead = true
	}
}

// DisableIntents switches privileged intents off in the portal: sockets that use
// them are closed with 4003, and a new identify gets 4014.
func (s *Server) DisableIntents(i Intent) {
	s.mu.Lock()
	s.world.app.Privileged &^= i
	s.mu.Unlock()
	s.eachSocket(func(k *socket) {
		if k.sess != nil && k.sess.intents&i != 0 {
			s.shut(k, 4003)
		}
	})
}

// Sockets is how many connections are open.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets)
}

// Sessions is how many sessions are ready and connected.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, x := range s.sessions {
		if x.sock != nil && !x.dead {
			n++
		}
	}
	return n
}

// Identifies is how many sessions were started in the last 24 h.
func (s *Server) Identifies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recentIdentifies())
}
