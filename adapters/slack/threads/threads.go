// Package threads turns the threads of a Slack channel into documents and keeps
// up with them.
//
// Its one idea: a thread is one document, made anew whenever anything in it
// changes. Events say that something has; because events get lost, a scan of the
// channel's history comes at every interval, and reads again those threads whose
// first message, number of replies or latest reply is another than before.
//
//	threads.go    Follower: scan, events, withdrawal
//	text.go       messages -> text
//
// Format of a document, plain text: the messages in order with a blank line
// between them, each begun by who wrote it and when. Its title is the first
// line of the first message, its link leads to that message, and its access
// list is the channel:
//
//	Ada Lim, 3 Feb 2026 10:12:
//	The VPN drops every hour. See https://wiki.example.org/vpn
//
// Left out: what bots write, the bot's own answers, messages that mention the
// bot, and notices of the platform. The mark of a document (shelf.Document) is
// what the scan compares: text and edit of the first message, hashed, the number
// of replies, and the latest.
//
// SECURITY: nothing is read where people from outside read, and what was read
// before is withdrawn then. Only channels that the configuration names are
// read.
//
// A reply that was edited while no event arrived is found at the first scan after
// a start if its thread was active in the last two days, else with the next
// change in the thread. It keeps no text of its own.
//
// Several processes follow one channel as one (Share): whoever hears of a change
// notes it for the one that reads. What that one knew of is all in its documents
// and the notes, so that the next one goes on from there.
package threads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"footnote/acl"
	"footnote/bot/outbox"
	"footnote/bot/shelf"
)

// Message is a message as a history gives it.
type Message struct {
	TS, Thread string // Thread is "" or the ts of the first message of its thread
	User       string
	Bot        bool // an app wrote it
	Subtype    string
	Text       string // as Slack stores it
	Edited     string // ts of the last edit
	Files      []string
	Replies    int
	Latest     string // ts of the latest reply
}

// Conversation is what is known of the channel.
type Conversation struct {
	Name     string
	External bool // people from outside read, or are invited to
}

// Lasting is an error that ends only when somebody does something.
type Lasting struct{ Text string }

func (l *Lasting) Error() string { return l.Text }

// ErrNoThread says that a thread is gone.
var ErrNoThread = errors.New("the thread is gone")

// API is what a follower needs of Slack. A page is followed by another while
// the cursor returned is not "". An error is *outbox.Limited, ErrNoThread,
// *Lasting, or passes.
type API interface {
	History(ctx context.Context, channel string, oldest time.Time, cursor string) ([]Message, string, error)
	Replies(ctx context.Context, channel, root, cursor string) ([]Message, string, error)
	Conversation(ctx context.Context, channel string) (Conversation, error)
	Name(ctx context.Context, user string) string
}

// Options of a follower. Zero values are the defaults, where there are any.
type Options struct {
	Team    string
	Address string // of the workspace, ends in /
	Bot     string // the bot's user
	Channel string
	History time.Duration // how far back: 90 days
	Every   time.Duration // between scans: 5 min
	Pace    time.Duration // between calls: 1.2 s, the 50 a minute of Slack's tier 3
	Now     func() time.Time
	Pause   func(ctx context.Context, d time.Duration) error
	Log     *slog.Logger
	Share   Share // nil: this process alone follows the channel
}

// Share is what followers of one channel have in common, in several processes, of
// which one reads at a time and each may hear of what is new.
type Share interface {
	// Lead runs work whenever this process is the one that reads, until ctx is done.
	Lead(ctx context.Context, work func(context.Context) error) error
	// Note keeps, durably, that something is new in a thread.
	Note(ctx context.Context, root string) error
	// Noted lists what is noted, each with what to settle it by.
	Noted(ctx context.Context) (map[string]string, error)
	// Settle forgets what was noted, unless it was noted again since.
	Settle(ctx context.Context, root, by string) error
}

func (o *Options) fill() {
	if o.History == 0 {
		o.History = 90 * 24 * time.Hour
	}
	if o.Every == 0 {
		o.Every = 5 * time.Minute
	}
	if o.Pace == 0 {
		o.Pace = 1200 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == nil {
		o.Pause = outbox.Pause
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
}

// Follower keeps up with one channel. It is safe for concurrent use.
type Follower struct {
	api    API
	keeper shelf.Keeper
	o      Options
	wake   chan struct{}

	mu      sync.Mutex
	dirty   map[string]bool // first messages of threads that events speak of
	scan    bool            // a scan is due whatever the time
	trouble string
	scanned bool // since the start

	empty map[string]string // marks of threads of which nothing is kept; of Run alone
}

// New makes a follower; Run does the work.
func New(api API, k shelf.Keeper, o Options) *Follower {
	o.fill()
	return &Follower{api: api, keeper: k, o: o, wake: make(chan struct{}, 1), dirty: map[string]bool{}, scan: true, empty: map[string]string{}}
}

// Channel is the one that is followed.
func (f *Follower) Channel() string { return f.o.Channel }

// Trouble says why the channel cannot be kept up with until somebody does
// something, "" if it can.
func (f *Follower) Trouble() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trouble
}

// Changed says that something is new in the thread; "" in the channel itself.
// When it returns without an error that is read, by whichever process.
func (f *Follower) Changed(ctx context.Context, root string) error {
	if f.o.Share != nil {
		if err := f.o.Share.Note(ctx, root); err != nil {
			return fmt.Errorf("noting that a thread has changed: %w", err)
		}
	} else {
		f.note(root)
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return nil
}

func (f *Follower) note(root string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if root == "" {
		f.scan = true
	} else {
		f.dirty[root] = true
	}
}

// Deleted says that a message is gone. A document that begins with it is
// withdrawn at once, and read anew without it.
func (f *Follower) Deleted(ctx context.Context, ts, thread string) error {
	root := ts
	if thread != "" {
		root = thread
	}
	// First noted: who is reading the thread now may put it back.
	err := f.Changed(ctx, root)
	if root != ts {
		return err
	}
	return errors.Join(err, f.keeper.Remove(ctx, true, ts))
}

// Run follows the channel until ctx is done. Trouble that passes is waited out.
func (f *Follower) Run(ctx context.Context) error {
	if f.o.Share == nil {
		return f.follow(ctx)
	}
	return f.o.Share.Lead(ctx, func(ctx context.Context) error {
		// What was heard since the last turn, others have read.
		f.mu.Lock()
		f.scan, f.scanned, f.dirty = true, false, map[string]bool{}
		f.mu.Unlock()
		return f.follow(ctx)
	})
}

// follow is Run while this process is the one that reads.
func (f *Follower) follow(ctx context.Context) error {
	next := f.o.Now()
	for ctx.Err() == nil {
		noted, err := f.noted(ctx)
		f.mu.Lock()
		scan := f.scan || !f.o.Now().Before(next)
		f.scan = false
		roots := f.dirty
		f.dirty = map[string]bool{}
		f.mu.Unlock()
		if scan {
			next = f.o.Now().Add(f.o.Every)
			err = errors.Join(err, f.settle(ctx, "", noted[""]), f.settled(f.look(ctx)))
		}
		if f.Trouble() == "" {
			for root := range roots {
				err = errors.Join(err, f.reread(ctx, root, noted[root]))
			}
		}
		ask := askEvery
		if err != nil && ctx.Err() == nil {
			ask = askLater
			f.o.Log.Warn("a channel could not be kept up with", "channel", f.o.Channel, "error", err)
		}
		f.rest(ctx, next, ask)
	}
	return nil
}

// How often the process that reads asks what others have heard: while all is well,
// and after trouble.
const askEvery, askLater = time.Second, 30 * time.Second

// rest waits until there may be something to do.
func (f *Follower) rest(ctx context.Context, next time.Time, ask time.Duration) {
	wait := max(time.Millisecond, next.Sub(f.o.Now()))
	if f.o.Share != nil {
		wait = min(wait, ask)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-f.wake:
	case <-timer.C:
	}
}

// noted takes what processes have heard.
func (f *Follower) noted(ctx context.Context) (map[string]string, error) {
	if f.o.Share == nil {
		return nil, nil
	}
	all, err := f.o.Share.Noted(ctx)
	for root := range all {
		f.note(root)
	}
	return all, err
}

// settle forgets what was noted and read.
func (f *Follower) settle(ctx context.Context, root, by string) error {
	if f.o.Share == nil || by == "" {
		return nil
	}
	return f.o.Share.Settle(ctx, root, by)
}

// reread reads a thread that an event speaks of; what fails is tried again with
// the next event or scan.
func (f *Follower) reread(ctx context.Context, root, by string) error {
	err := f.read(ctx, Message{TS: root}, "")
	if err != nil {
		f.note(root)
		return err
	}
	return f.settle(ctx, root, by)
}

// settled keeps the trouble that an error of a scan is.
func (f *Follower) settled(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lasting *Lasting
	f.trouble = ""
	if errors.As(err, &lasting) {
		f.trouble = lasting.Text
	}
	return err
}

const sayExternal = "people from outside the organisation can read this channel, so nothing of it is taken in, and what was is withdrawn: stop sharing it, or take it out of the configuration"

// look scans the channel.
//
// SECURITY: who can read there is asked before each scan.
func (f *Follower) look(ctx context.Context) error {
	c, err := f.api.Conversation(ctx, f.o.Channel)
	if err != nil {
		return err
	}
	if c.External {
		all, err := f.keeper.List(ctx, "")
		return errors.Join(&Lasting{sayExternal}, err, f.keeper.Remove(ctx, true, ids(all)...))
	}
	all, err := f.keeper.List(ctx, "")
	if err != nil {
		return err
	}
	oldest := f.o.Now().Add(-f.o.History)
	known := map[string]shelf.Document{}
	for _, d := range all {
		known[d.ID] = d
	}
	listed, err := f.history(ctx, oldest)
	if err != nil {
		return err
	}
	first := !f.scanned
	for _, m := range listed {
		d, have := known[m.TS]
		delete(known, m.TS)
		lately := first && m.Replies > 0 && f.o.Now().Sub(timeOf(m.Latest)) < 48*time.Hour
		if have && d.Mark == mark(m) && !lately || !have && (m.Replies == 0 && !f.counts(m) || f.empty[m.TS] == mark(m)) {
			continue
		}
		if err := f.read(ctx, m, mark(m)); err != nil {
			return err
		}
	}
	f.scanned = true
	var gone, old []string
	for id := range known {
		if timeOf(id).Before(oldest) {
			old = append(old, id)
		} else {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return errors.Join(f.keeper.Remove(ctx, true, old...), f.keeper.Remove(ctx, false, gone...))
}

func ids(docs []shelf.Document) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = d.ID
	}
	return out
}

// mark is what a scan sees of a thread without reading it.
func mark(m Message) string {
	sum := sha256.Sum256([]byte(m.Text + "\x00" + m.Edited + "\x00" + m.Subtype + "\x00" + strings.Join(m.Files, "\x00")))
	return hex.EncodeToString(sum[:6]) + " " + strconv.Itoa(m.Replies) + " " + m.Latest
}

// history lists the first messages of the threads of the channel.
func (f *Follower) history(ctx context.Context, oldest time.Time) ([]Message, error) {
	var all []Message
	return all, f.pages(ctx, func(cursor string) (string, error) {
		page, next, err := f.api.History(ctx, f.o.Channel, oldest, cursor)
		for _, m := range page {
			if m.Thread == "" || m.Thread == m.TS {
				all = append(all, m)
			}
		}
		return next, err
	}, &all)
}

// maxPages bounds a list.
const maxPages = 5000

// pages reads all pages, at the pace that is allowed. all is emptied where a
// page fails: half a list is no list.
func (f *Follower) pages(ctx context.Context, page func(cursor string) (string, error), all *[]Message) error {
	cursor := ""
	for n := 0; n < maxPages; {
		next, err := page(cursor)
		var limited *outbox.Limited
		switch {
		case errors.As(err, &limited):
			if err := f.o.Pause(ctx, max(time.Second, limited.After)); err != nil {
				return err
			}
			continue
		case err != nil:
			*all = nil
			return err
		}
		if err := f.o.Pause(ctx, f.o.Pace); err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		if next == cursor {
			break
		}
		n, cursor = n+1, next
	}
	*all = nil
	return errors.New("the list of messages does not end")
}

const maxEmpty = 100_000

// read reads a thread and puts it on the shelf, or takes it away where nothing
// is left of it. A mark of "" is made of what was read.
func (f *Follower) read(ctx context.Context, m Message, version string) error {
	all := []Message{m}
	if m.Replies > 0 || version == "" {
		all = nil
		err := f.pages(ctx, func(cursor string) (string, error) {
			page, next, err := f.api.Replies(ctx, f.o.Channel, m.TS, cursor)
			all = append(all, page...)
			return next, err
		}, &all)
		if errors.Is(err, ErrNoThread) {
			return f.keeper.Remove(ctx, true, m.TS)
		}
		if err != nil {
			return fmt.Errorf("reading a thread: %w", err)
		}
	}
	slices.SortStableFunc(all, func(a, b Message) int { return strings.Compare(a.TS, b.TS) })
	all = slices.CompactFunc(all, func(a, b Message) bool { return a.TS == b.TS })
	if len(all) > 0 && timeOf(m.TS).Before(f.o.Now().Add(-f.o.History)) {
		all = nil
	}
	if version == "" && len(all) > 0 {
		version = mark(all[0])
	}
	title, text := f.text(ctx, all)
	delete(f.empty, m.TS)
	if text == "" {
		if len(f.empty) > maxEmpty {
			clear(f.empty)
		}
		f.empty[m.TS] = version
		return f.keeper.Remove(ctx, true, m.TS)
	}
	d := shelf.Document{
		ID: m.TS, Name: "thread.txt", Title: title, Link: f.o.Address + "archives/" + f.o.Channel + "/p" + strings.ReplaceAll(m.TS, ".", ""), Mark: version,
		Modified: timeOf(all[len(all)-1].TS), Access: []acl.Principal{acl.Principal("slack:" + f.o.Team + ":channel/" + f.o.Channel)},
	}
	if err := f.keeper.Put(ctx, d, strings.NewReader(text)); err != nil {
		return fmt.Errorf("keeping a thread: %w", err)
	}
	return nil
}

// timeOf reads a ts, zero if it is none.
func timeOf(ts string) time.Time {
	sec, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}
