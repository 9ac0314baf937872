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
//	gateway.go      the connection: supervisor, watchdog, back-off, close codes
//	tap.go          sees what the library hides: close codes, orders to reconnect
//	endpoint.go     the same interactions by signed HTTP
//	interaction.go  Discord's JSON, read leniently
//	receive.go      visibility, claim, first response
//	answer.go       the answer, its parts, threads, and what outlives the token
//	mention.go      questions in messages
//	button.go       sources, feedback, a human
//	directory.go    members as identities, channels as audiences
//	command.go      the commands and their registration
//	rest.go         every call: lanes, limits, retries, no token in any error
//	check.go        what doctor looks at
//	guild/          who can see a channel: pure
//	render/         replies as messages: pure
//
// Interactions need no privileged intent and no intent at all; GUILDS brings
// the facts from which audiences are computed.
//
// It knows nothing of the index and keeps nothing itself: deliveries, answers
// and feedback are in the ledger.
package discord
