package acl

import (
	"context"
	"errors"
)

// ErrUnknown says that a directory does not know an account or a room. The
// caller treats it as no access, never as the public floor.
var ErrUnknown = errors.New("unknown to the directory")

// Directory turns an account into an identity and a room into an audience.
// Implementations belong to a platform (people file, Slack, Discord), cache
// with a maximum age, and fail closed: an error means nobody. They are safe
// for concurrent use and honour cancellation.
type Directory interface {
	// Identify returns what the account holds now, or ErrUnknown.
	Identify(ctx context.Context, account string) (Identity, error)
	// Audience returns who can read in the room now, or ErrUnknown.
	Audience(ctx context.Context, room string) (Audience, error)
}
