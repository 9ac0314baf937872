package slacktest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

const (
	triggerLife = 3 * time.Second
	maxStack    = 3
	maxViewSize = 250 << 10
)

var viewMethods = map[string]method{
	"views.open":    {kind: "bot", run: openView},
	"views.push":    {kind: "bot", run: pushView},
	"views.update":  {kind: "bot", run: updateView},
	"views.publish": {kind: "bot", run: publishView},
}

// View is a modal or a home tab as a person sees it.
type View struct {
	ID, Type, CallbackID, ExternalID, Hash, PrivateMetadata string
	User                                                    string
	Root, Previous                                          string
	Title, Submit, Close                                    string
	NotifyOnClose                                           bool
	Blocks                                                  json.RawMessage
	Opened                                                  time.Time
	raw                                                     json.RawMessage
}

// trigger is the short-lived right to open a modal.
type trigger struct {
	user string
	made time.Time
	used bool
}

// newTrigger makes a trigger_id; the caller holds s.mu.
func (s *Server) newTrigger(user string) string {
	id := s.id("13345224609.738474920.")
	s.triggers[id] = &trigger{user: user, made: s.clock.Now()}
	return id
}

// exchange uses up the trigger, or says why not.
func (s *Server) exchange(id string) (*trigger, string) {
	t := s.triggers[id]
	switch {
	case t == nil:
		return nil, "invalid_trigger_id"
	case t.used:
		return nil, "exchanged_trigger_id"
	case s.clock.Now().Sub(t.made) > triggerLife:
		return nil, "expired_trigger_id"
	}
	t.used = true
	return t, ""
}

// parseView validates a view and returns it, or the failure.
func (s *Server) parseView(rawView, surface string) (*View, reply) {
	if len(rawView) > maxViewSize {
		return nil, failure("view_too_large")
	}
	problems, err := ValidateView([]byte(rawView), surface)
	if err != nil {
		return nil, failureAt("invalid_arguments", "[ERROR] failed to match all allowed schemas [json-pointer:/view]")
	}
	if len(problems) > 0 {
		return nil, failureAt("invalid_arguments", problems...)
	}
	var o struct {
		Type            string          `json:"type"`
		CallbackID      string          `json:"callback_id"`
		ExternalID      string          `json:"external_id"`
		PrivateMetadata string          `json:"private_metadata"`
		NotifyOnClose   bool            `json:"notify_on_close"`
		Blocks          json.RawMessage `json:"blocks"`
		Title, Submit   struct{ Text string }
		Close           struct{ Text string }
	}
	if err := json.Unmarshal([]byte(rawView), &o); err != nil {
		return nil, failure("invalid_arguments")
	}
	for _, stack := range s.views {
		for _, v := range stack {
			if o.ExternalID != "" && v.ExternalID == o.ExternalID {
				return nil, failure("duplicate_external_id")
			}
		}
	}
	return &View{
		ID: s.id("V"), Type: o.Type, CallbackID: o.CallbackID, ExternalID: o.ExternalID, Hash: s.id("hash."),
		PrivateMetadata: o.PrivateMetadata, NotifyOnClose: o.NotifyOnClose, Blocks: o.Blocks, Title: o.Title.Text,
		Submit: o.Submit.Text, Close: o.Close.Text, Opened: s.clock.Now(), raw: json.RawMessage(rawView),
	}, nil
}

// wire is the view as answers and payloads carry it.
func (s *Server) viewWire(v *View) map[string]any {
	o := map[string]any{}
	_ = json.Unmarshal(v.raw, &o)
	o["id"], o["team_id"], o["app_id"], o["bot_id"] = v.ID, s.world.Team.ID, s.world.App.ID, s.world.App.BotID
	o["hash"], o["root_view_id"], o["app_installed_team_id"] = v.Hash, v.Root, s.world.Team.ID
	o["state"] = map[string]any{"values": map[string]any{}}
	if v.Previous != "" {
		o["previous_view_id"] = v.Previous
	}
	return o
}

func openView(s *Server, c *call) reply { return s.stack(c, false) }
func pushView(s *Server, c *call) reply { return s.stack(c, true) }

func (s *Server) stack(c *call, push bool) reply {
	v, bad := s.parseView(c.args["view"], SurfaceModal)
	if bad != nil {
		return bad
	}
	t, code := s.exchange(c.args["trigger_id"])
	if code != "" {
		return failure(code)
	}
	return s.show(v, t.user, push)
}

// show puts the view on the user's screen.
func (s *Server) show(v *View, user string, push bool) reply {
	old := s.views[user]
	v.User, v.Root = user, v.ID
	if push {
		if len(old) == 0 {
			return failure("not_found")
		}
		if len(old) >= maxStack {
			return failure("push_limit_reached")
		}
		v.Root, v.Previous = old[0].ID, old[len(old)-1].ID
		s.views[user] = append(old, v)
	} else {
		s.views[user] = []*View{v}
	}
	s.Bump()
	return reply{"ok": true, "view": s.viewWire(v)}
}

// view finds an open view by id or external id.
func (s *Server) view(id, external string) *View {
	for _, stack := range s.views {
		for _, v := range stack {
			if id != "" && v.ID == id || external != "" && v.ExternalID == external {
				return v
			}
		}
	}
	return nil
}

func updateView(s *Server, c *call) reply {
	old := s.view(c.args["view_id"], c.args["external_id"])
	if old == nil {
		return failure("not_found")
	}
	if h := c.args["hash"]; h != "" && h != old.Hash {
		return failure("hash_conflict")
	}
	return s.redraw(old, c.args["view"])
}

func (s *Server) redraw(old *View, rawView string) reply {
	ext := old.ExternalID
	old.ExternalID = ""
	v, bad := s.parseView(rawView, SurfaceModal)
	old.ExternalID = ext
	if bad != nil {
		return bad
	}
	v.ID, v.User, v.Root, v.Previous = old.ID, old.User, old.Root, old.Previous
	*old = *v
	s.Bump()
	return reply{"ok": true, "view": s.viewWire(old)}
}

func publishView(s *Server, c *call) reply {
	u := s.world.users[c.args["user_id"]]
	if u == nil || u.Deleted {
		return failure("user_not_found")
	}
	if h := s.homes[u.ID]; h != nil && c.args["hash"] != "" && c.args["hash"] != h.Hash {
		return failure("hash_conflict")
	}
	v, bad := s.parseView(c.args["view"], SurfaceHome)
	if bad != nil {
		return bad
	}
	v.User, v.Root = u.ID, v.ID
	s.homes[u.ID] = v
	s.Bump()
	return reply{"ok": true, "view": s.viewWire(v)}
}

// basicAuth reads client id and secret from the header.
func basicAuth(h http.Header) (user, secret string, ok bool) {
	r := http.Request{Header: h}
	if !strings.HasPrefix(h.Get("Authorization"), "Basic ") {
		return "", "", false
	}
	return r.BasicAuth()
}
