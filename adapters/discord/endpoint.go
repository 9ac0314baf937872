package discord

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"footnote/bot/outbox"
)

const (
	maxBody = 1 << 20
	window  = 5 * time.Minute
)

// serve takes interactions by HTTP. The first response goes by a call of its
// own, as with the gateway; the request is answered with 202.
//
// SECURITY: nothing is read of a request before its signature holds. A
// request is good for the window, once.
func (a *Adapter) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !a.signed(r.Header, body) {
		http.Error(w, "the signature is not valid", http.StatusUnauthorized)
		return
	}
	a.count(func(h *Health) { h.LastInbound = a.d.Now() })
	in, ok := readInteraction(body)
	switch {
	case !ok:
		http.Error(w, "this is no interaction", http.StatusBadRequest)
	case in.Type == typePing:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]int{"type": respondPong})
	case !a.seen.first(in.ID, a.d.Now()):
		w.WriteHeader(http.StatusAccepted)
	default:
		a.inflight.RLock()
		defer a.inflight.RUnlock()
		if err := a.dispatch(context.WithoutCancel(r.Context()), &in); err != nil {
			http.Error(w, "the interaction could not be responded to", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// signed checks the signature over the time and the raw body.
func (a *Adapter) signed(h http.Header, body []byte) bool {
	stamp := h.Get("X-Signature-Timestamp")
	signature, err := hex.DecodeString(h.Get("X-Signature-Ed25519"))
	at, bad := strconv.ParseInt(stamp, 10, 64)
	if err != nil || bad != nil || len(signature) != ed25519.SignatureSize || len(a.key) != ed25519.PublicKeySize {
		return false
	}
	now := a.d.Now().Unix()
	if at < now-int64(window/time.Second) || at > now+int64(window/time.Second) {
		return false
	}
	return ed25519.Verify(a.key, append([]byte(stamp), body...), signature)
}

// replays remembers ids for as long as a signature holds.
type replays struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

const maxReplays = 100_000

// first reports that the id is new.
func (r *replays) first(id string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.seen[id]; ok && now.Sub(at) <= 2*window {
		return false
	}
	if r.seen == nil || len(r.seen) >= maxReplays {
		kept := map[string]time.Time{}
		for id, at := range r.seen {
			if now.Sub(at) <= 2*window {
				kept[id] = at
			}
		}
		r.seen = kept
	}
	r.seen[id] = now
	return true
}

// refresh keeps the facts up to date where no gateway brings them.
func (a *Adapter) refresh(ctx context.Context) error {
	var once sync.Once
	for {
		err := outbox.Retry(ctx, outbox.Retrying{Permanent: func(err error) bool { return status(err) == http.StatusUnauthorized }}, a.load)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // a shutdown is no fault
		}
		if err != nil {
			a.count(func(h *Health) { h.Fatal = err.Error() })
			return fmt.Errorf("FOOTNOTE_DISCORD_TOKEN is not valid: %w", err)
		}
		once.Do(func() {
			close(a.loaded)
			a.fly(func() { a.registerSoon(ctx) })
		})
		if outbox.Pause(ctx, a.c.MaxAge/3) != nil {
			return nil //nolint:nilerr // a shutdown is no fault
		}
	}
}

// load reads all facts from the API.
func (a *Adapter) load(ctx context.Context) error {
	if err := a.introduce(ctx); err != nil {
		return err
	}
	var guilds []struct{ ID string }
	var ids []string
	err := a.get(ctx, "users/@me/guilds", &guilds)
	switch {
	case status(err) == http.StatusNotFound && len(a.c.Guilds) > 0:
		ids = a.c.Guilds // a server without the list: each is asked for below
	case err != nil:
		return err
	}
	for _, g := range guilds {
		if isID(g.ID) {
			ids = append(ids, g.ID)
		}
	}
	a.book.Join(ids...)
	a.warn()
	var errs []error
	for _, id := range ids {
		if a.dir.tenant(id) {
			errs = append(errs, a.loadGuild(ctx, id))
		}
	}
	return errors.Join(errs...)
}

// renewed is when the latest reading of each guild's facts began, in the mode
// HTTP. The one who holds turn reads.
type renewed struct {
	turn chan struct{}
	at   map[string]time.Time
}

// renew reads the guild of a question whose answer is for all in its place.
//
// SECURITY: where no gateway tells of changes, what refresh read may be minutes
// old, and a channel open to more people by now. A reading that began after
// this call serves it too.
func (a *Adapter) renew(ctx context.Context, q question) error {
	if a.gate != nil || q.Private || q.Guild == "" {
		return nil
	}
	called := a.d.Now()
	select {
	case a.renewed.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.renewed.turn }()
	if a.renewed.at[q.Guild].After(called) {
		return nil // a reading that began after this call serves it too
	}
	began := a.d.Now()
	if err := a.loadGuild(ctx, q.Guild); err != nil {
		return err
	}
	a.renewed.at[q.Guild] = began
	return nil
}

// introduce learns who the bot is.
func (a *Adapter) introduce(ctx context.Context) error {
	for _, path := range []string{"applications/@me", "oauth2/applications/@me"} { // the second is the older one
		var app struct{ ID string }
		err := a.get(ctx, path, &app)
		if err != nil && status(err) != http.StatusNotFound {
			return err
		}
		a.learn(app.ID)
		if err == nil {
			break
		}
	}
	var me user
	if err := a.get(ctx, "users/@me", &me); err != nil {
		return err
	}
	a.book.Self(me.ID)
	if a.application() == "" {
		a.learn(me.ID) // they are the same but for very old applications
	}
	return nil
}

func (a *Adapter) loadGuild(ctx context.Context, id string) error {
	var guild, channels, threads json.RawMessage
	if err := a.get(ctx, "guilds/"+id, &guild); err != nil {
		return err
	}
	if err := a.get(ctx, "guilds/"+id+"/channels", &channels); err != nil {
		return err
	}
	// A thread that is not known is known by its interactions.
	_ = a.get(ctx, "guilds/"+id+"/threads/active", &threads)
	return a.book.Put(guild, channels, threads)
}

func (a *Adapter) get(ctx context.Context, path string, out any) error {
	return a.rest.do(ctx, call{name: "reading facts", method: "GET", path: path, lane: "facts", again: true}, out)
}
