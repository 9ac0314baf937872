// Package discordtest is a small local Discord: the REST API, the gateway, the
// interactions endpoint, the people and the rules, without an account
// anywhere. Tests of the Discord adapter run against it, and so does the sandbox.
//
// Its one idea: strict by default. An unknown route, a missing permission, an
// over-long text, a late callback or an unknown id gets the error code that
// Discord gives, never a quiet success. Where Discord's own behaviour is
// uncertain the fake takes the worst case: allowed_mentions without an explicit
// list pings everybody, lengths count UTF-16 units, whoever can view a channel reads it.
//
// Parts, one file each:
//
//	world.go          guilds, roles, members, channels, messages, ids
//	perms.go          the permission oracle
//	server.go         routing, tokens, rate limits
//	command.go        registration of commands
//	interact.go       interactions: callback, deferral, edits, follow-ups, expiry
//	channel.go        channels, messages, threads
//	guild.go          guilds, members, roles, users, the application
//	validate.go       messages, embeds, components: nested 50035 errors
//	mention.go        who would be pinged
//	gateway.go        sessions, heartbeats, resume, close codes
//	endpoint.go       interactions by signed HTTP
//	files.go          attachments, and their download
//	person.go         what people do: commands, clicks, modals, mentions
//	change.go         what administrators do: roles, overwrites, threads, bans
//	fault.go          faults by route and n-th call
//	record.go         what was asked, sent and shown
//	oracle.go         who could see what, the invariants
//
// All time rules (3 s for the first response, 15 min for a token, rate limits,
// auto-archive, the day of command creations) follow an injected Clock; only
// heartbeats follow real time, as the client's own timer does.
//
// Life cycle, timers, waiting and what hits a call are adapters/fakeserver.
//
// Formats: JSON as on the wire, API versions 9 and 10, plain or zlib gateway frames.
//
// Not here: files of the app, voice, polls, stages, webhooks of people, OAuth, ETF. Nothing
// here imports the adapter or a Discord library.
package discordtest
