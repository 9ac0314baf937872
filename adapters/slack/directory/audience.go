package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"footnote/acl"
)

// membership is who is in a channel.
type membership struct {
	ids  []string
	more bool // beyond MaxMembers
}

// Audience implements acl.Directory. room is an id, or slack:T:channel/C.
func (d *Directory) Audience(ctx context.Context, room string) (acl.Audience, error) {
	f, err := d.Room(ctx, room)
	return f.Audience, err
}

// Channel returns what is known of a conversation.
func (d *Directory) Channel(ctx context.Context, id string) (Channel, time.Time, error) {
	k, err := d.rooms.get(ctx, id, func(ctx context.Context) (Channel, error) {
		c, err := d.api.Channel(ctx, id)
		if err == nil && c.ID != id {
			err = fmt.Errorf("asked for %s, got %q", id, c.ID)
		}
		return c, err
	})
	if err != nil {
		return Channel{}, time.Time{}, fmt.Errorf("reading a conversation: %w", err)
	}
	return k.value, k.at, nil
}

// Room is Audience with its facts.
//
// SECURITY: who will be able to read a reply. An error means that the reply
// must be private.
func (d *Directory) Room(ctx context.Context, room string) (Facts, error) {
	id, err := d.id(room, "channel")
	if err != nil {
		return Facts{}, err
	}
	c, at, err := d.Channel(ctx, id)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Channel: c, Fetched: at}
	switch {
	case c.IM:
		f.Audience = acl.AskerOnly()
		return f, nil
	case c.ExtShared || c.PendingExt:
		f.Audience, err = d.external()
		return f, err
	}
	f.Audience, at, err = d.viewers(ctx, c)
	f.Fetched = earlier(f.Fetched, at)
	return f, err
}

// external is the audience where people from outside read.
func (d *Directory) external() (acl.Audience, error) {
	if !d.o.Labelled {
		return acl.Audience{}, ErrExternal
	}
	return acl.Room([]acl.Principal{External}), nil
}

// viewers makes the audience of a conversation of internal people.
func (d *Directory) viewers(ctx context.Context, c Channel) (acl.Audience, time.Time, error) {
	m, err := d.members.get(ctx, c.ID, func(ctx context.Context) (membership, error) {
		ids, err := pages(ctx, func(cursor string) ([]string, string, error) { return d.api.Members(ctx, c.ID, cursor) }, d.o.MaxMembers)
		return membership{ids, len(ids) > d.o.MaxMembers}, err
	})
	if err != nil {
		return acl.Audience{}, time.Time{}, fmt.Errorf("reading who is in a conversation: %w", err)
	}
	people, at, err := d.people(ctx, m.value.ids)
	if err != nil {
		return acl.Audience{}, time.Time{}, err
	}
	at = earlier(at, m.at)
	each := c.MPIM || c.Private && len(m.value.ids) <= d.o.MaxPrivate
	var viewers [][]acl.Principal
	if !each {
		viewers = append(viewers, d.floor(c))
	}
	if m.value.more { // guests among those not looked at
		viewers = append(viewers, []acl.Principal{d.principal("guests"), d.principal("channel/" + c.ID)})
	}
	for _, u := range people {
		switch err := d.standing(u); {
		case errors.Is(err, ErrInactive):
			continue
		case err != nil:
			a, err := d.external()
			return a, at, err
		case !each && !u.Guest && !u.Invited:
			continue // within the floor
		}
		v, when, err := d.viewer(ctx, u, c)
		if err != nil {
			return acl.Audience{}, time.Time{}, err
		}
		at, viewers = earlier(at, when), append(viewers, v)
	}
	return acl.Room(viewers...), at, nil
}

// floor stands for every full member of the workspace, who can all join and
// read, and for those in a channel that is too large to enumerate.
func (d *Directory) floor(c Channel) []acl.Principal {
	f := []acl.Principal{acl.Everyone, d.principal("channel/" + c.ID)}
	if !c.OrgShared { // else members of other workspaces read it too
		f = append(f, d.principal("everyone"))
	}
	return f
}

// viewer is one person in a conversation, by what will stay.
func (d *Directory) viewer(ctx context.Context, u User, c Channel) ([]acl.Principal, time.Time, error) {
	if c.MPIM { // a fixed circle: nobody joins it later
		f, err := d.Person(ctx, u.ID)
		return append(f.Identity.Principals(), d.principal("channel/"+c.ID)), f.Fetched, err
	}
	holds, at, err := d.stable(ctx, u)
	return append(holds, d.principal("channel/"+c.ID)), at, err
}

// Numbers of unknown people: more than bulk are listed all at once, and where
// that fails up to single are looked up one by one.
const (
	bulk   = 12
	single = 60
)

// people looks the accounts up, with as few calls as it can.
func (d *Directory) people(ctx context.Context, ids []string) ([]User, time.Time, error) {
	unknown := 0
	for _, id := range ids {
		if _, ok := d.users.peek(id); !ok {
			unknown++
		}
	}
	if unknown > bulk {
		if err := d.list(ctx); err != nil && unknown > single {
			return nil, time.Time{}, fmt.Errorf("listing people: %w", err)
		}
	}
	oldest := d.o.Now()
	out := make([]User, 0, len(ids))
	for _, id := range ids {
		u, at, err := d.user(ctx, id)
		if err != nil {
			return nil, time.Time{}, err
		}
		out, oldest = append(out, u), earlier(oldest, at)
	}
	return out, oldest, nil
}

// list keeps everybody in the workspace.
func (d *Directory) list(ctx context.Context) error {
	_, err, _ := d.users.flight.Do("all people", func() (any, error) {
		epoch, at := d.users.current(), d.o.Now()
		var all []User
		_, err := pages(ctx, func(cursor string) ([]string, string, error) {
			users, next, err := d.api.Users(ctx, cursor)
			all = append(all, users...)
			return nil, next, err
		}, 0)
		if err != nil {
			return nil, err
		}
		for _, u := range all {
			d.users.put(u.ID, kept[User]{u, at}, epoch)
		}
		return nil, nil
	})
	return err
}

// Change is what an event says has changed. Empty fields say nothing.
type Change struct {
	User    string // an account
	Groups  bool   // user groups or who is in them
	Channel string // a conversation, or who is in it
	Member  string // who joined or left Channel
	All     bool
}

// Changed drops what an event made old.
func (d *Directory) Changed(c Change) {
	d.version.Add(1)
	if c.All {
		d.users.drop()
		d.groups.drop()
		d.rooms.drop()
		d.members.drop()
		d.in.drop()
		return
	}
	if c.User != "" {
		d.users.drop(c.User)
		d.in.drop(c.User)
	}
	if c.Groups {
		d.groups.drop()
	}
	if c.Channel != "" {
		d.rooms.drop(c.Channel)
		d.members.drop(c.Channel)
		if c.Member != "" {
			d.in.drop(c.Member)
		} else {
			d.in.drop()
		}
	}
}
