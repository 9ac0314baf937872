package discordtest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	userRE = regexp.MustCompile(`<@!?(\d{1,20})>`)
	roleRE = regexp.MustCompile(`<@&(\d{1,20})>`)
)

// mentionRules is allowed_mentions as sent.
type mentionRules struct {
	Parse       *[]string `json:"parse"`
	Users       []string  `json:"users"`
	Roles       []string  `json:"roles"`
	RepliedUser *bool     `json:"replied_user"`
}

// parseMentions reads allowed_mentions. explicit is false when the object or its
// parse list is absent or null: then Discord may parse everything, and so the
// fake does, on every route.
func parseMentions(rawRules json.RawMessage, path string, e *form) (m mentionRules, explicit bool) {
	if len(rawRules) == 0 || string(rawRules) == "null" {
		return m, false
	}
	if err := json.Unmarshal(rawRules, &m); err != nil {
		e.add(path+"allowed_mentions", "MODEL_TYPE_CONVERT", err.Error())
		return m, false
	}
	if m.Parse == nil {
		return m, len(m.Users)+len(m.Roles) > 0 // only the lists count then
	}
	for _, p := range *m.Parse {
		if !slices.Contains([]string{"users", "roles", "everyone"}, p) {
			e.add(path+"allowed_mentions.parse", "BASE_TYPE_CHOICES", "Value must be one of {'users', 'roles', 'everyone'}.")
		}
	}
	if slices.Contains(*m.Parse, "users") && len(m.Users) > 0 || slices.Contains(*m.Parse, "roles") && len(m.Roles) > 0 {
		e.add(path+"allowed_mentions.parse", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", "parse and a list of ids exclude each other.")
	}
	if len(m.Users) > 100 || len(m.Roles) > 100 {
		e.add(path+"allowed_mentions", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
	}
	return m, true
}

func (m mentionRules) allows(kind, id string, explicit bool) bool {
	if !explicit {
		return true
	}
	if m.Parse != nil && slices.Contains(*m.Parse, kind) {
		return true
	}
	return kind == "users" && slices.Contains(m.Users, id) || kind == "roles" && slices.Contains(m.Roles, id)
}

// pings is who the text would notify: user:ID, role:ID, everyone, here.
func pings(text string, rules mentionRules, explicit bool, repliedTo string) []string {
	found := map[string]bool{}
	for _, g := range userRE.FindAllStringSubmatch(text, -1) {
		if rules.allows("users", g[1], explicit) {
			found["user:"+g[1]] = true
		}
	}
	for _, g := range roleRE.FindAllStringSubmatch(text, -1) {
		if rules.allows("roles", g[1], explicit) {
			found["role:"+g[1]] = true
		}
	}
	for _, word := range []string{"everyone", "here"} {
		if strings.Contains(text, "@"+word) && rules.allows("everyone", "", explicit) {
			found[word] = true
		}
	}
	if repliedTo != "" && (!explicit && rules.RepliedUser == nil || rules.RepliedUser != nil && *rules.RepliedUser) {
		found["user:"+repliedTo] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// displays is the text of the text displays of components v2, which ping like content.
func displays(components json.RawMessage) string {
	var b strings.Builder
	walk(list(components), func(o object) {
		if t, _ := o["content"].(string); number(o["type"]) == 10 {
			b.WriteString("\n" + t)
		}
	})
	return b.String()
}

// walk visits every object in a decoded JSON value.
func walk(v any, f func(object)) {
	switch v := v.(type) {
	case object:
		f(v)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			walk(v[k], f)
		}
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	}
}

func number(v any) int {
	f, _ := v.(float64)
	return int(f)
}

func (s *state) mentionWire(pinged []string) (users, roles []any, everyone bool) {
	users, roles = []any{}, []any{}
	for _, p := range pinged {
		kind, id, _ := strings.Cut(p, ":")
		switch kind {
		case "user":
			users = append(users, s.userWire(id))
		case "role":
			roles = append(roles, id)
		default:
			everyone = true
		}
	}
	return users, roles, everyone
}
