package slack

import "slices"

// need is a scope or an event with its reason.
type need struct {
	Name     string
	Why      string
	Optional bool // the bot starts without it
	Extra    bool // not in the manifest: for operators who want more
}

// scopes are the bot's. The manifest is made from this table.
var scopes = []need{
	{Name: "app_mentions:read", Why: "see messages that mention the bot"},
	{Name: "chat:write", Why: "answer, and show that it is looking"},
	{Name: "im:history", Why: "see what people write to the bot directly"},
	{Name: "im:read", Why: "know that a conversation is direct"},
	{Name: "im:write", Why: "answer privately by direct message"},
	{Name: "users:read", Why: "tell members from guests and from people of other organisations"},
	{Name: "channels:read", Why: "know who can read in a public channel"},
	{Name: "groups:read", Why: "know who can read in a private channel"},
	{Name: "mpim:read", Why: "know who can read in a group conversation"},
	{Name: "usergroups:read", Why: "access lists that name user groups", Optional: true},
	{Name: "users:read.email", Why: "access lists that name people by e-mail address", Optional: true},
	{Name: "commands", Why: "/ask, /footnote and the message shortcut", Optional: true},
	{Name: "reactions:write", Why: "mark a question that is being worked on where no status can be shown", Optional: true},
	{Name: channelsHistory, Why: "follow-ups in public channels, threads of channels that are sources, and to look for an answer when Slack does not say whether it took it", Optional: true, Extra: true},
	{Name: groupsHistory, Why: "the same in private channels", Optional: true, Extra: true},
	{Name: "mpim:history", Why: "the same in group conversations", Optional: true, Extra: true},
	{Name: filesRead, Why: "files that people add to the documents (uploads.by), and notice that they are deleted", Optional: true, Extra: true},
}

// Extra scopes and events that settings need.
const (
	filesRead       = "files:read"
	channelsHistory = "channels:history"
	groupsHistory   = "groups:history"
)

// wanted are the extra scopes and events that the configuration makes use of.
func (a *Adapter) wanted() (scopes, events []string) {
	if a.c.Uploads.On() {
		scopes, events = append(scopes, filesRead), append(events, "file_deleted")
	}
	if len(a.d.Sources) > 0 {
		scopes, events = append(scopes, channelsHistory, groupsHistory), append(events, "message.channels", "message.groups")
	}
	return scopes, events
}

// events are the subscriptions.
var events = []need{
	{Name: "app_mention", Why: "questions in channels"},
	{Name: "message.im", Why: "questions in direct messages"},
	{Name: "app_home_opened", Why: "show the help in the home tab"},
	{Name: "user_change", Why: "notice that an account was closed or became a guest"},
	{Name: "team_join", Why: "know new members"},
	{Name: "subteam_created", Why: "know new user groups"},
	{Name: "subteam_updated", Why: "notice changes of user groups"},
	{Name: "subteam_members_changed", Why: "notice who joins and leaves user groups"},
	{Name: "member_joined_channel", Why: "notice who can read in a channel"},
	{Name: "member_left_channel", Why: "the same"},
	{Name: "channel_shared", Why: "notice that people from outside can read"},
	{Name: "channel_unshared", Why: "notice that they no longer can"},
	{Name: "channel_archive", Why: "know where nothing can be posted"},
	{Name: "channel_unarchive", Why: "the same"},
	{Name: "channel_rename", Why: "keep what is known of channels up to date"},
	{Name: "channel_id_changed", Why: "follow a channel that gets another id"},
	{Name: "channel_left", Why: "notice that the bot was removed"},
	{Name: "group_left", Why: "the same in private channels"},
	{Name: "app_uninstalled", Why: "stop at once"},
	{Name: "tokens_revoked", Why: "stop at once"},
	{Name: "message.channels", Why: "follow-ups, and public channels that are sources (needs channels:history)", Optional: true, Extra: true},
	{Name: "message.groups", Why: "the same in private channels (needs groups:history)", Optional: true, Extra: true},
	{Name: "file_deleted", Why: "notice that a file that was added is deleted (needs files:read)", Optional: true, Extra: true},
}

// missing lists scopes of the manifest that are not granted: those that are
// required, or the optional ones.
func missing(granted []string, required bool) []string {
	if granted == nil {
		return nil
	}
	var out []string
	for _, s := range scopes {
		if s.Optional != required && !s.Extra && !slices.Contains(granted, s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

func reasonOf(scope string) string {
	for _, s := range scopes {
		if s.Name == scope {
			return "no " + s.Why
		}
	}
	return ""
}
