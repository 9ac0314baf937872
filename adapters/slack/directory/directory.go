// Package directory says who a Slack account is and who can read in a Slack
// conversation, as an acl.Directory.
//
// Its one idea: what is not known counts as nobody. Facts come from the Web
// API, are kept for a maximum age and dropped by events; one that cannot be
// fetched is an error, never an old value, and an error means no access for an
// asker and a private reply for a room.
//
// Identities hold slack:T:user/U, the user groups they are in
// (slack:T:usergroup/S), the channels they are in (slack:T:channel/C), and
// either everyone and slack:T:everyone (full members) or slack:T:guests. A
// confirmed e-mail address is a principal too. People of other organisations
// hold nothing.
//
// Audiences are classes where Slack has classes. A public channel can be read
// by every full member, so its viewer is {everyone, slack:T:everyone,
// slack:T:channel/C}; guests in it add a viewer each. A private channel of up
// to MaxPrivate members has a viewer for each member, with the principals that
// stay (groups, the channel, everyone), not the person's own: a reply outlives
// coincidences. A larger one has the viewer of a public one. A group direct
// message has a viewer for each person, a direct message none. A conversation
// with people from outside is ErrExternal, or shows what is labelled
// "external", if Labelled.
//
// It makes no calls of its own beyond API, and knows nothing of events but
// what Changed is told.
package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"footnote/acl"
)

var (
	// ErrExternal says that the account, or somebody in the room, belongs to
	// another organisation. It is an acl.ErrUnknown.
	ErrExternal = fmt.Errorf("people from outside the organisation: %w", acl.ErrUnknown)
	// ErrInactive says that the account is deactivated or a bot. It is an
	// acl.ErrUnknown.
	ErrInactive = fmt.Errorf("not an active person: %w", acl.ErrUnknown)
	// ErrNoUser is what an API returns for an account that Slack does not show.
	ErrNoUser = errors.New("no such user")
	// ErrNoGroups is what an API returns where user groups do not exist or may
	// not be read.
	ErrNoGroups = errors.New("user groups are not available")
)

// External is the label of documents that may be shown where people from
// outside read.
const External = acl.Principal("group:external")

// User is what users.info says of an account.
type User struct {
	ID, Team, Enterprise   string
	Teams                  []string // of the enterprise account
	Name, Email, Locale    string
	Shown                  string // the name that others see, "" Name
	Confirmed              bool   // the e-mail address
	Deleted, Bot, Stranger bool
	Guest, Invited         bool
}

// Group is an active user group.
type Group struct {
	ID    string
	Users []string
	Count int
}

// Channel is what conversations.info says of a conversation.
type Channel struct {
	ID, Name, Peer        string // Peer: the person of a direct message
	IM, MPIM, Private     bool
	ExtShared, PendingExt bool
	OrgShared, Archived   bool
}

// API is the part of the Web API that a Directory reads. A page is followed by
// another while the cursor returned is not "".
type API interface {
	User(ctx context.Context, id string) (User, error)
	Users(ctx context.Context, cursor string) ([]User, string, error)
	Groups(ctx context.Context) ([]Group, error)
	Channel(ctx context.Context, id string) (Channel, error)
	Members(ctx context.Context, channel, cursor string) ([]string, string, error)
	ChannelsOf(ctx context.Context, user, cursor string) ([]string, string, error)
}

// Options of a directory; Team is required, zero values mean the defaults.
type Options struct {
	Team       string // of the installation
	Enterprise string // of the installation, "" without
	MaxAge     time.Duration
	MaxPrivate int  // members up to which a private channel is enumerated: 500
	MaxMembers int  // members that are looked at for guests: 5,000
	Labelled   bool // show documents labelled external where outsiders read
	Now        func() time.Time
}

// fetchTime bounds one fetch, with all its pages.
const fetchTime = 20 * time.Second

// Directory implements acl.Directory for one installation.
type Directory struct {
	o       Options
	api     API
	users   *cache[User]
	groups  *cache[[]Group]
	rooms   *cache[Channel]
	members *cache[membership]
	in      *cache[[]string] // channels of a person
	version atomic.Uint64
}

var _ acl.Directory = (*Directory)(nil)

// New makes a directory.
func New(api API, o Options) *Directory {
	o.MaxAge = cmp.Or(o.MaxAge, 5*time.Minute)
	o.MaxPrivate, o.MaxMembers = cmp.Or(o.MaxPrivate, 500), cmp.Or(o.MaxMembers, 5000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Directory{
		o: o, api: api, users: newCache[User](o.MaxAge, o.Now), groups: newCache[[]Group](o.MaxAge, o.Now),
		rooms: newCache[Channel](o.MaxAge, o.Now), members: newCache[membership](o.MaxAge, o.Now), in: newCache[[]string](o.MaxAge, o.Now),
	}
}

// Version changes whenever an event changed what is known.
func (d *Directory) Version() uint64 { return d.version.Load() }

// Facts are an identity or audience with what it was made of.
type Facts struct {
	Identity acl.Identity
	Audience acl.Audience
	User     User
	Channel  Channel
	Fetched  time.Time // of the oldest part
}

// Age is how old the oldest part is.
func (d *Directory) Age(f Facts) time.Duration { return d.o.Now().Sub(f.Fetched) }

// Identify implements acl.Directory. account is an id, or slack:T:user/U.
func (d *Directory) Identify(ctx context.Context, account string) (acl.Identity, error) {
	f, err := d.Person(ctx, account)
	return f.Identity, err
}

// Person is Identify with its facts.
func (d *Directory) Person(ctx context.Context, account string) (Facts, error) {
	id, err := d.id(account, "user")
	if err != nil {
		return Facts{}, err
	}
	u, at, err := d.user(ctx, id)
	if err != nil {
		return Facts{User: u}, err
	}
	f := Facts{User: u, Fetched: at}
	if err := d.standing(u); err != nil {
		return f, err
	}
	holds, at, err := d.stable(ctx, u)
	if err != nil {
		return f, err
	}
	f.Fetched = earlier(f.Fetched, at)
	in, err := d.in.get(ctx, id, func(ctx context.Context) ([]string, error) {
		return pages(ctx, func(cursor string) ([]string, string, error) { return d.api.ChannelsOf(ctx, id, cursor) }, 10_000)
	})
	if err != nil {
		return f, fmt.Errorf("reading the channels of a person: %w", err)
	}
	f.Fetched = earlier(f.Fetched, in.at)
	for _, c := range in.value {
		holds = append(holds, d.principal("channel/"+c))
	}
	if u.Email != "" && u.Confirmed {
		if p, err := acl.ParsePrincipal(u.Email); err == nil && strings.Contains(u.Email, "@") {
			holds = append(holds, p)
		}
	}
	f.Identity = acl.NewIdentity(d.principal("user/"+id), holds...)
	return f, nil
}

// Name is what others call an account, also one that is closed; "somebody" if
// that is not known.
func (d *Directory) Name(ctx context.Context, user string) string {
	u, _, err := d.user(ctx, user)
	if err != nil {
		return "somebody"
	}
	return cmp.Or(u.Shown, u.Name, "somebody")
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (d *Directory) principal(what string) acl.Principal {
	return acl.Principal("slack:" + d.o.Team + ":" + what)
}

// id takes an id out of its forms.
func (d *Directory) id(s, kind string) (string, error) {
	rest, is := strings.CutPrefix(s, "slack:")
	if is {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, d.o.Team+":"+kind+"/"); !ok {
			return "", fmt.Errorf("%q is not a %s of workspace %s: %w", s, kind, d.o.Team, acl.ErrUnknown)
		}
	}
	if rest == "" || strings.ContainsAny(rest, ":/| ") {
		return "", fmt.Errorf("%q is not the id of a %s: %w", s, kind, acl.ErrUnknown)
	}
	return rest, nil
}

func (d *Directory) user(ctx context.Context, id string) (User, time.Time, error) {
	k, err := d.users.get(ctx, id, func(ctx context.Context) (User, error) {
		u, err := d.api.User(ctx, id)
		if errors.Is(err, ErrNoUser) {
			return User{ID: id, Stranger: true}, nil
		}
		if err == nil && u.ID != id {
			err = fmt.Errorf("asked for %s, got %q", id, u.ID)
		}
		return u, err
	})
	if err != nil {
		return User{}, time.Time{}, fmt.Errorf("reading a person: %w", err)
	}
	return k.value, k.at, nil
}

// standing says whether the account is an active person of the organisation.
//
// SECURITY: that an account is no stranger does not make it internal; only the
// home of the account does.
func (d *Directory) standing(u User) error {
	internal := u.Team == d.o.Team
	if d.o.Enterprise != "" && u.Enterprise != "" {
		internal = u.Enterprise == d.o.Enterprise
	}
	switch {
	case u.Stranger || !internal:
		return ErrExternal
	case u.Deleted || u.Bot:
		return ErrInactive
	}
	return nil
}

// Internal reports whether a team id that came with an event may belong to
// this organisation: with an enterprise, other workspaces may.
func (d *Directory) Internal(team string) bool {
	return team == "" || team == d.o.Team || d.o.Enterprise != ""
}

// stable are the principals of an active member that do not hang on a person.
func (d *Directory) stable(ctx context.Context, u User) ([]acl.Principal, time.Time, error) {
	var holds []acl.Principal
	switch {
	case u.Guest:
		holds = append(holds, d.principal("guests"))
	case !u.Invited:
		holds = append(holds, acl.Everyone)
		if u.Team == d.o.Team || slices.Contains(u.Teams, d.o.Team) {
			holds = append(holds, d.principal("everyone"))
		}
	}
	groups, err := d.groups.get(ctx, "all", func(ctx context.Context) ([]Group, error) {
		g, err := d.api.Groups(ctx)
		if errors.Is(err, ErrNoGroups) {
			return nil, nil
		}
		return g, err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the user groups: %w", err)
	}
	for _, g := range groups.value {
		// A group whose list is cut short grants nothing: what it would say of
		// a room cannot be known.
		if g.Count <= len(g.Users) && slices.Contains(g.Users, u.ID) {
			holds = append(holds, d.principal("usergroup/"+g.ID))
		}
	}
	return holds, groups.at, nil
}

// pages reads all pages, and more than most rows only in part: the caller sees
// that by their number. A cursor that repeats is an error, and so is any page
// that fails: half a list is never a list.
func pages(ctx context.Context, page func(cursor string) ([]string, string, error), most int) ([]string, error) {
	var all []string
	seen := map[string]bool{}
	for cursor := ""; ; {
		rows, next, err := page(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if next == "" || len(all) > most {
			return all, ctx.Err()
		}
		if seen[next] {
			return nil, errors.New("the list repeats itself")
		}
		seen[next], cursor = true, next
	}
}
