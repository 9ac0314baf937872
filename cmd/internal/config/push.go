package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"footnote/acl"
)

// PushToken is what a token of the push API is bound to.
type PushToken struct {
	Prefix   string   // of all ids that it may use; "" any
	MayGrant acl.List // whom it may give access to; zero: anybody
	Secret   Secret   // from the environment
}

// pushToken is the variable of the token that may do everything; those of
// push.tokens have _NAME behind, in capital letters.
const pushToken = "FOOTNOTE_PUSH_TOKEN"

// leastToken is the length below which a token could be guessed.
const leastToken = 20

// isPushToken reports that a variable is one of theirs.
func isPushToken(name string) bool {
	return name == pushToken || strings.HasPrefix(name, pushToken+"_")
}

var pushName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`).MatchString

func (c *Config) pushSettings() []setting {
	return []setting{
		{path: "push.tokens.*.prefix", accepts: "the beginning of ids, for example wiki/", setAt: func(key, v string) error {
			return c.pushed(key, func(t *PushToken) error { t.Prefix = v; return nil })
		}},
		{path: "push.tokens.*.may_grant", accepts: "principals with commas between them, for example group:staff, group:hr", setAt: func(key, v string) error {
			return c.pushed(key, func(t *PushToken) (err error) {
				t.MayGrant, err = acl.ParseList(strings.Split(v, ","))
				return err
			})
		}},
	}
}

// pushed changes what is set for a token.
func (c *Config) pushed(key string, change func(*PushToken) error) error {
	if !pushName(key) {
		return fmt.Errorf("%q is not the name of a token: use small letters, digits and _", key)
	}
	t := c.Push[key]
	if err := change(&t); err != nil {
		return err
	}
	if c.Push == nil {
		c.Push = map[string]PushToken{}
	}
	c.Push[key] = t
	return nil
}

// pushTokens are the tokens of the push API; none: it is not served. A blank
// variable is as none, for the API is closed then.
func (c Config) pushTokens(env Lookup, p *Problems) []PushToken {
	look := func(name string) Secret {
		s, err := LookupSecret(name, func(n string) (string, bool) {
			v, ok := env(n)
			return v, ok && (n != name || strings.TrimSpace(v) != "")
		})
		if err != nil {
			p.add(name, err.Error(), "a secret, or "+name+"_FILE with the path of a file that holds one")
		}
		return s
	}
	var out []PushToken
	add := func(name string, t PushToken) {
		// SECURITY: a token that can be guessed or is two senders' is none.
		s := t.Secret.Reveal()
		switch {
		case len(s) < leastToken || strings.TrimSpace(s) != s:
			p.add(name, fmt.Sprintf("is shorter than %d characters, or has a space around it", leastToken), "what openssl rand -hex 32 prints, for example")
		case slices.ContainsFunc(out, func(o PushToken) bool { return o.Secret.Reveal() == s }):
			p.add(name, "is the token of two senders", "a token of its own")
		}
		out = append(out, t)
	}
	before := len(p.All)
	if t := (PushToken{Secret: look(pushToken)}); !t.Secret.IsZero() {
		add(pushToken, t)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Push)) {
		name := pushToken + "_" + strings.ToUpper(key)
		t := c.Push[key]
		if t.Secret = look(name); t.Secret.IsZero() {
			p.add(name, "is not set, and push.tokens."+key+" is", "a secret, or "+name+"_FILE with the path of a file that holds one; or no push.tokens."+key)
			continue
		}
		add(name, t)
	}
	if len(out) > 0 && len(p.All) == before && c.Web.Listen == "" {
		p.add("web.listen", "is not set, and there is a token of the push API, which listens there", "host:port")
	}
	return out
}
