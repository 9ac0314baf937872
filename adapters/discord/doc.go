// Package discord answers questions on Discord: /ask, the message command
// "Ask footnote", buttons, and, if that is switched on, mentions and direct
// messages.
//
// Its one idea: who will be able to read the answer is decided before anything
// else, from roles and overwrites that are already known, because Discord
// fixes with the very first response whether an answer is public. What is in
// doubt is private. A question is claimed in the ledger, deferred within a
// second, answered by editing the deferred response, and, once the
// interaction's token is dead, by a message of the bot.
//
//	discord.go      Config, New, Run
//	gateway.go      the connection: supervisor, watchdog, back-off, close codes
//	tap.go          sees what the library hides: close codes, orders to reconnect
//	endpoint.go     the same interactions by signed HTTP
//	interaction.go  Discord's JSON, read leniently
//	receive.go      visibility, claim, first response
//	answer.go       the answer, its parts, threads, and what outlives the token
//	mention.go      questions in messages
//	upload.go       files in direct messages -> bot/shelf
//	button.go       sources, feedback, a human
//	share.go        a private answer posted to its channel
//	earlier.go      what an earlier run of a question left there
//	language.go     our own texts in the reader's language
//	directory.go    members as identities, channels as audiences
//	command.go      the commands and their registration
//	rest.go         every call: lanes, limits, retries, no token in any error
//	check.go        what doctor looks at
//	operator.go     the facts, read at once for an operator's commands
//	guild/          who can see a channel: pure
//	render/         replies as messages: pure
//
// Interactions need no privileged intent and no intent at all; GUILDS brings
// the facts from which audiences are computed.
//
// Whose organisation a server is of is known if discord.guilds names it, or if
// the bot is in no other and not everybody can find that one. Else nobody
// there holds "everyone", and serve, doctor and /footnote status say so.
//
// It knows nothing of the index and keeps nothing itself: deliveries, answers
// and feedback are in the ledger.
//
// What it does not do: it has one shard, so at most 2,500 servers; it answers
// only where a server installed it, not apps of single users and their group
// conversations; it suggests nothing while somebody types, opens no modal and
// uses no second kind of components; it does not take back what it posted when
// a right ends, since buttons check the right of that moment; earlier
// questions are no context for later ones; it takes no files in channels, for
// they have no principal that an access list could name; its texts are in English and Korean.
package discord
