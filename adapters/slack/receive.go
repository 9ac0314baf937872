package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/render"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// question is what a delivery says, as it is kept until it is answered.
type question struct {
	Kind     string    `json:"kind"`
	Channel  string    `json:"channel"` // where it was asked
	TS       string    `json:"ts,omitempty"`
	Thread   string    `json:"thread,omitempty"` // where a reply belongs
	User     string    `json:"user"`
	UserTeam string    `json:"team,omitempty"`
	Bot      bool      `json:"bot,omitempty"`
	Text     string    `json:"text"`
	Files    bool      `json:"files,omitempty"`
	File     string    `json:"file,omitempty"`     // that is to be added
	Further  bool      `json:"further,omitempty"`  // not the first file of its message
	External bool      `json:"external,omitempty"` // Slack says that outsiders read there
	Respond  string    `json:"respond,omitempty"`  // response_url
	Answer   string    `json:"answer,omitempty"`   // that a share is of
	At       time.Time `json:"at"`

	key string // of its delivery, where that is known
}

// word is the id in the metadata of a word that there is no answer, "" for none.
func (q question) word() string {
	if q.key == "" {
		return ""
	}
	return digest("word|" + q.key)
}

// Kinds of questions.
const (
	kindRoom     = "room"     // asked in a channel or group
	kindDM       = "dm"       // written to the bot
	kindCommand  = "command"  // /ask
	kindShortcut = "shortcut" // on a message
	kindDirect   = "direct"   // "Ask in a direct message"
	kindShare    = "share"    // "Post to thread"
	kindFile     = "file"     // a file that is to be added
)

// private reports that only the asker sees the reply, whatever is set for the
// channel.
func (q question) private() bool { return q.Kind != kindRoom && q.Kind != kindShare }

// startTime is how long a delivery that comes early waits for the bot to know
// itself: Slack waits for three seconds.
const startTime = 2 * time.Second

// errLater says that a delivery must not be acknowledged.
var errLater = errors.New("not ready")

// take takes a delivery of either transport. It returns what the
// acknowledgement carries; an error means that it must not be acknowledged.
func (a *Adapter) take(ctx context.Context, kind string, payload json.RawMessage) (any, error) {
	select {
	case <-a.ready:
	case <-time.After(startTime):
		return nil, errLater
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch kind {
	case "events_api":
		return nil, a.onEvent(ctx, payload)
	case "slash_commands":
		c, err := event.ParseCommand(payload)
		if err != nil {
			a.log.Warn("a command could not be read")
			return nil, nil //nolint:nilerr // acknowledged: it would be as unreadable again
		}
		return a.onCommand(ctx, c), nil
	case "interactive":
		in, err := event.ParseInteraction(payload)
		if err != nil {
			a.log.Warn("an interaction could not be read")
			return nil, nil //nolint:nilerr // acknowledged: it would be as unreadable again
		}
		a.onInteraction(ctx, in)
	}
	return nil, nil
}

// onEvent handles an event. An error asks Slack to send it again.
func (a *Adapter) onEvent(ctx context.Context, payload []byte) error {
	c, err := event.Parse(payload)
	if err != nil {
		a.log.Warn("an event could not be read", "error", err)
		return nil
	}
	if c.Type == "app_rate_limited" {
		a.log.Warn("Slack cut deliveries short: there were more than 30,000 in an hour")
		return nil
	}
	if !a.mine(c.Team, c.Enterprise, c.Org) {
		return nil
	}
	switch c.Kind {
	case "app_mention", "message":
		return a.onMessage(ctx, c)
	case "app_uninstalled", "tokens_revoked":
		a.api.stop(&failure{code: "token_revoked"}, "the app was removed from the workspace")
	case "app_home_opened":
		a.onHome(c.Body)
	case "file_deleted":
		return a.fileDeleted(ctx, c.Body.String("file_id"))
	default:
		return a.onChange(ctx, c)
	}
	return nil
}

// mine reports that a delivery is for this installation.
func (a *Adapter) mine(team, enterprise string, org bool) bool {
	me := a.self.Load()
	if team == me.team || org && enterprise != "" && enterprise == me.enterprise {
		return true
	}
	if a.memory.hourly("installation "+team, a.now()) {
		a.log.Warn("a delivery for another installation was dropped")
	}
	return false
}

// onMessage takes what is a question.
func (a *Adapter) onMessage(ctx context.Context, c event.Callback) error {
	m := c.Message()
	me := a.self.Load()
	if err := a.heard(ctx, m); err != nil {
		return err
	}
	switch event.Classify(m, me.Self, event.Policy{Bots: a.c.Bots, Edits: a.c.Edits, EditWindow: 5 * time.Minute}) {
	case event.Question:
		if done, err := a.offered(ctx, c, m); done || err != nil {
			return err
		}
		m.Files = m.Files && !(a.takes() && m.Surface == "im") // they are spoken of apart
		return a.ask(ctx, c, m, "answer")
	case event.FollowUp:
		if !a.channel(m.Channel).FollowUps {
			return nil
		}
		if on, err := a.goesOn(ctx, m); !on || err != nil {
			return err
		}
		return a.ask(ctx, c, m, "answer")
	case event.Edit:
		return a.ask(ctx, c, *m.Changed, "edit "+m.TS)
	case event.Deletion:
		a.deleted(m)
		return a.withdraw(ctx, m.Channel, m.Deleted)
	}
	return nil
}

// ask hands a question to the desk.
func (a *Adapter) ask(ctx context.Context, c event.Callback, m event.Message, purpose string) error {
	me := a.self.Load()
	if m.Bot != "" && !a.memory.botTurn(m.Channel, m.Root()) {
		return nil // two bots must not talk for ever
	}
	q := question{
		Kind: kindRoom, Channel: m.Channel, TS: m.TS, Thread: m.Root(), User: m.User, UserTeam: m.UserTeam, Bot: m.Bot != "",
		Text: event.Clean(m.Raw(), me.User), Files: m.Files, External: c.ExtShared, At: a.now(),
	}
	if m.Surface == "im" {
		q.Kind = kindDM
		if a.c.FlatDM && m.Thread == "" {
			q.Thread = ""
		}
	}
	d := a.delivery(q, a.key(m.Channel, m.TS, purpose))
	d.Sent = m.Sent()
	if purpose != "answer" {
		d.Sent = time.Time{}
	}
	if c.ID != "" {
		d.Also = []string{a.key(m.Channel, m.TS, purpose, "event", c.ID)}
	}
	v, err := a.d.Desk.Receive(ctx, d)
	if err != nil {
		return err
	}
	a.welcomed(q, d.Key, v)
	return nil
}

// key names something that happened in a channel of this workspace.
func (a *Adapter) key(parts ...string) string {
	return strings.Join(append([]string{Platform, a.self.Load().team}, parts...), "|")
}

// delivery is a question as the ledger keeps it.
func (a *Adapter) delivery(q question, key string) ledger.Delivery {
	payload, err := json.Marshal(q)
	if err != nil {
		panic(err) // strings, flags and a time marshal
	}
	return ledger.Delivery{Key: key, Platform: Platform, Asker: a.key(q.User), Room: a.key(q.Channel), Payload: payload, Sent: q.At}
}

// welcomed shows that a question was taken, or says why not.
func (a *Adapter) welcomed(q question, key string, v desk.Verdict) {
	switch v {
	case desk.Accepted:
		if q.Kind != kindFile {
			a.marks.start(key, q, false)
		}
	case desk.Duplicate:
	default:
		q.key = key
		a.background(func(ctx context.Context) { a.tell(ctx, q, v.Text()) })
	}
}

// deleted notes that a message is gone: nothing is posted for it any more.
func (a *Adapter) deleted(m event.Message) {
	a.memory.forget(m.Channel, m.Deleted)
	if !a.c.DeleteAnswers {
		return
	}
	a.background(func(ctx context.Context) {
		answer, err := a.d.Ledger.AnswerTo(ctx, a.key(m.Channel, m.Deleted, "answer"))
		if err != nil {
			return
		}
		var ref posted
		if json.Unmarshal(answer.Message, &ref) == nil {
			for _, ts := range ref.TS {
				_ = a.takeAway(ctx, ref.Channel, ts)
			}
		}
	})
}

// onChange tells the directories what an event made old, that of this replica
// and those of the others: Slack sends it to one of them. An error asks Slack to
// send it again.
func (a *Adapter) onChange(ctx context.Context, c event.Callback) error {
	var all []directory.Change
	changed := func(made directory.Change) {
		a.dir.Load().Changed(made)
		all = append(all, made)
	}
	switch c.Kind {
	case "user_change", "team_join":
		changed(directory.Change{User: c.Body.Object("user").String("id")})
	case "subteam_created", "subteam_updated", "subteam_members_changed", "subteam_self_added", "subteam_self_removed":
		changed(directory.Change{Groups: true})
	case "member_joined_channel", "member_left_channel":
		changed(directory.Change{Channel: c.Body.String("channel"), Member: c.Body.String("user")})
	case "channel_shared", "channel_unshared", "channel_archive", "channel_unarchive", "group_archive", "group_unarchive",
		"channel_left", "group_left", "channel_deleted", "group_deleted":
		changed(directory.Change{Channel: c.Body.String("channel")})
		if f := a.follower(c.Body.String("channel")); f != nil {
			a.background(func(ctx context.Context) {
				if err := f.Changed(ctx, ""); err != nil {
					a.log.Warn("a change of a channel is noticed only by the next scan", "error", err)
				}
			})
		}
	case "channel_rename", "group_rename":
		changed(directory.Change{Channel: c.Body.Object("channel").String("id")})
	case "channel_id_changed":
		changed(directory.Change{Channel: c.Body.String("old_channel_id")})
		changed(directory.Change{Channel: c.Body.String("new_channel_id")})
	}
	return a.spread(ctx, all)
}

// spread tells the other replicas what is old.
func (a *Adapter) spread(ctx context.Context, all []directory.Change) error {
	if a.d.Share == nil {
		return nil
	}
	for _, made := range all {
		word, err := json.Marshal(made)
		if err == nil {
			err = a.d.Share(ctx, word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Changed takes what another replica shared. nil says that words may have been
// missed: then all that is known of people and rooms is old.
func (a *Adapter) Changed(word []byte) {
	d := a.dir.Load()
	if d == nil {
		return // nothing is known yet
	}
	var made directory.Change
	if json.Unmarshal(word, &made) != nil {
		made = directory.Change{All: true}
	}
	d.Changed(made)
}

// onHome shows the help in a person's home tab, once an hour.
func (a *Adapter) onHome(f event.Fields) {
	user := f.String("user")
	if tab := f.String("tab"); user == "" || tab != "" && tab != "home" || !a.memory.hourly("home "+user, a.now()) {
		return
	}
	a.background(func(ctx context.Context) {
		if err := a.api.publishHome(ctx, user, render.Home(a.c.Name)); err != nil {
			a.log.Warn("the home tab could not be shown", "error", err)
		}
	})
}

// memory is what is known only as long as the process lives.
type memory struct {
	mu     sync.Mutex
	hours  map[string]time.Time
	gone   map[string]bool
	asked  map[string]asked
	bots   map[string]int
	absent time.Time // histories are not read before
}

// asked is who was answered last in a thread.
type asked struct {
	user string
	at   time.Time
}

const maxMemory = 10_000

func (m *memory) init() {
	m.hours, m.gone, m.asked, m.bots = map[string]time.Time{}, map[string]bool{}, map[string]asked{}, map[string]int{}
}

func room[V any](m map[string]V) map[string]V {
	if len(m) >= maxMemory {
		clear(m)
	}
	return m
}

// hourly reports true for a key once an hour.
func (m *memory) hourly(key string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.hours[key]; ok && now.Sub(at) < time.Hour {
		return false
	}
	room(m.hours)[key] = now
	return true
}

func (m *memory) forget(channel, ts string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	room(m.gone)[channel+" "+ts] = true
}

func (m *memory) isGone(channel, ts string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[channel+" "+ts]
}

func (m *memory) answered(channel, thread, user string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	room(m.asked)[channel+" "+thread] = asked{user, now}
}

// goesOn reports that a person goes on in a thread where the bot answered that
// person, this replica or another. Of another's answers that to the thread's
// own question counts. An error says that it cannot be known now: Slack must
// send the message again.
func (a *Adapter) goesOn(ctx context.Context, m event.Message) (bool, error) {
	if a.memory.follows(m.Channel, m.Thread, m.User, a.now(), a.c.FollowFor) {
		return true, nil
	}
	first, err := a.d.Ledger.AnswerTo(ctx, a.key(m.Channel, m.Thread, "answer"))
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return err == nil && first.Asker == a.key(m.User) && a.now().Sub(first.At) <= a.c.FollowFor, err
}

// follows is that of this process.
func (m *memory) follows(channel, thread, user string, now time.Time, within time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.asked[channel+" "+thread]
	return ok && last.user == user && now.Sub(last.at) <= within
}

// botTurn reports true for a bot once a thread.
func (m *memory) botTurn(channel, thread string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	room(m.bots)[channel+" "+thread]++
	return m.bots[channel+" "+thread] == 1
}

// histories reports whether histories may be read now, and rests when told.
func (m *memory) histories(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.After(m.absent)
}

func (m *memory) restHistories(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.absent = until
}
