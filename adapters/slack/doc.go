// Package slack answers questions in Slack: mentions, direct messages, slash
// commands and message shortcuts, over Socket Mode or signed HTTP deliveries.
//
// Its one idea: whatever the transport, a delivery becomes one question with
// one key, the workspace, the channel and the message's own timestamp. It is in
// the ledger before it is acknowledged, and from then on bot/desk sees to it
// that it is answered once or that its person is told.
//
//	slack.go     Config, New, Run
//	socket.go    Socket Mode: dial, hello, acknowledge, watch, dial again
//	web.go       HTTP: signature, time window, forms
//	receive.go   deliveries of both kinds -> questions, presses, changes
//	answer.go    a question -> identity, audience, reply
//	deliver.go   a reply -> messages, once, where they belong
//	ack.go       what may only follow an acknowledgement
//	progress.go  the sign that a question is worked on
//	press.go     buttons and shortcuts
//	command.go   /ask and /footnote
//	upload.go    files that people post -> bot/shelf
//	channel.go   channels whose threads are documents -> package threads
//	client.go    the Web API, and what its errors mean
//	scopes.go    scopes and events with their reasons
//	check.go     what footnote doctor asks
//	operator.go  who the bot is, for an operator's commands
//
// Package event reads deliveries, package directory knows people and rooms,
// package render lays replies out, package threads turns threads into documents.
//
// SECURITY: identities come from ids that Slack vouches for, never from names
// or from what a button carries. Where a reply may be read is decided before
// anything is searched, checked again before it is posted, and where it cannot
// be decided the reply is private.
//
// It keeps no questions and no answers of its own: bot/ledger does. It logs no
// text, no names and no tokens.
//
// What it does not do:
//
//   - Stream answers: text would be shown before its support is checked.
//   - Change what was posted when a document's access list narrows. A source's
//     button checks anew each time; the quote in an old answer stays.
//   - Say hello where it is invited, or offer prompts in the assistant's pane:
//     that could name documents. agents.sessions is not used.
//   - Serve several organisations: authorizations names the one it is for.
//   - Keep answers to give them again: each is made within its asker's rights.
//   - Send the part of an answer that a room may not read by itself: a refusal
//     there offers "Ask in a direct message", always.
//   - Read the files of a question, or a mention in a forwarded file's comment
//     that Slack sends as a message only: that needs message.channels.
//   - Take files from group conversations, or those of an earlier message that
//     somebody else says "add this" to.
//   - Judge other apps in a channel: they read replies too, and whoever
//     installs them decides that.
package slack
