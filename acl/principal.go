// Package acl decides who may read what. It is pure: identities, access
// lists, audiences and grants go in, decisions come out; it does no I/O and
// holds no state.
//
// Its one idea: a grant is a conjunction of clauses. The asker is one clause,
// the set of principals that the asker holds; everyone who will see the reply
// adds another. A document is admitted when its access list meets every
// clause. A grant without clauses, and a clause without principals, admits
// nothing, so a lookup that fails or a list that comes back empty can only
// ever show less.
//
// Principals are plain text in one canonical form, documented at Principal.
// Fetching identities is a Directory's work and lives with the platforms;
// storing access lists is the index's.
package acl

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Principal names somebody to whom access can be given. Its forms:
//
//	everyone                      every full member of the organisation
//	user:ada                      a person of the people file
//	group:security                a group of the people file
//	ada@example.org               a person by e-mail, on every platform
//	slack:T1:user/U1              slack:T1:usergroup/S1    slack:T1:channel/C1
//	slack:T1:everyone             slack:T1:guests
//	discord:G1:user/1             discord:G1:role/2        discord:G1:everyone
//
// Values come from ParsePrincipal or the constructors below; ids are compared
// byte for byte, names of users and groups in NFC, e-mail addresses in lower
// case.
type Principal string

// Everyone is held by every full member of the organisation, never by guests,
// people from outside, or people whose standing is unknown.
const Everyone Principal = "everyone"

// User and Group name a person and a group of the people file.
func User(name string) Principal  { return Principal("user:" + norm.NFC.String(name)) }
func Group(name string) Principal { return Principal("group:" + norm.NFC.String(name)) }

// Email names a person by address on every platform.
func Email(address string) Principal { return Principal(strings.ToLower(address)) }

// ParsePrincipal reads one entry of an access list. A bare word is a group:
// "security" means "group:security". The error says which forms there are.
func ParsePrincipal(s string) (Principal, error) {
	t := strings.TrimSpace(s)
	for _, r := range t {
		// Whatever does not show could make two names look like one.
		if !unicode.IsPrint(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar || strings.ContainsRune(`,|"`, r) {
			return "", fmt.Errorf("%q is not a principal: it holds %q", s, r)
		}
	}
	kind, rest, _ := strings.Cut(t, ":")
	switch {
	case t == string(Everyone):
		return Everyone, nil
	case strings.EqualFold(t, string(Everyone)) || strings.EqualFold(rest, string(Everyone)) && kind == "group":
		return "", fmt.Errorf("%q is not a principal: for every member write everyone, in lower case; no group can have that name", s)
	case kind == "user" || kind == "group":
		if rest != "" && !strings.ContainsAny(rest, ":/") {
			return Principal(norm.NFC.String(t)), nil
		}
	case kind == "slack" || kind == "discord":
		if platformPrincipal(kind, rest) {
			return Principal(t), nil
		}
	case strings.Contains(t, "@"):
		if a, err := mail.ParseAddress(t); err == nil && a.Address == t {
			return Email(t), nil
		}
	case t != "" && !strings.ContainsAny(t, ":/@*"):
		return Group(t), nil
	}
	return "", fmt.Errorf("%q is not a principal: use everyone, user:NAME, group:NAME, an e-mail address, slack:TEAM:usergroup/ID, slack:TEAM:channel/ID, slack:TEAM:user/ID, discord:GUILD:role/ID or discord:GUILD:user/ID", s)
}

// platformPrincipal reports whether rest is TENANT:KIND/ID or TENANT:CLASS.
func platformPrincipal(platform, rest string) bool {
	tenant, what, ok := strings.Cut(rest, ":")
	if !ok || tenant == "" || strings.Contains(tenant, "/") {
		return false
	}
	if what == "everyone" || platform == "slack" && what == "guests" {
		return true
	}
	kind, id, ok := strings.Cut(what, "/")
	if !ok || id == "" || strings.ContainsAny(id, ":/") {
		return false
	}
	switch platform + " " + kind {
	case "slack user", "slack usergroup", "slack channel", "discord user", "discord role", "discord channel":
		return true
	}
	return false
}
