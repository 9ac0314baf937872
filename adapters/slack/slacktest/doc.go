// Package slacktest is a small local Slack: the Web API, Socket Mode, the HTTP
// deliveries, the people and the rules, without an account anywhere. Tests of
// the Slack adapter run against it, and so does the sandbox.
//
// Its one idea: strict by default. An unknown route, a wrong kind of token, a
// missing scope, an over-long text or an unknown id gets the error code that
// Slack gives, never a quiet success. What Slack does behind an app's back is done
// here too: a reply whose parent is gone lands at the channel root, the app's
// own posts come back as events, unanswered deliveries are sent again.
//
// Parts, one file each:
//
//	world.go          organisations, people, groups, channels, messages
//	server.go         HTTP, tokens, scopes, rate limits
//	chat.go           chat.*, reactions.*, status, streams, response_url
//	directory.go      conversations.*, users.*, usergroups.*, team, bots, tokens
//	files.go          files that people post, and their download
//	views.go          modals and the home tab
//	blocks.go         Block Kit validation
//	deliver.go        deliveries, retries, the ledger of what was acknowledged
//	socket.go         Socket Mode
//	webhook.go        signed HTTP deliveries
//	person.go         what people do: mention, click, edit, delete
//	change.go         what administrators do: join, leave, share, revoke
//	fault.go          faults by route and n-th call
//	record.go         what was asked, sent and shown
//	oracle.go         who could see what, who was pinged, the invariants
//
// All time rules (3 s for an acknowledgement, 30 min for a response_url, 3 s for
// a trigger, rate limits, tokens) follow an injected Clock; only WebSocket
// pings follow real time, as the client's own timer does.
//
// Life cycle, timers, waiting and what hits a call are adapters/fakeserver.
//
// Formats: requests as form or JSON, token in the form or the Authorization
// header; payloads as on the wire, samples in testdata.
//
// Not here: search, canvases, workflows, user tokens, RTM. Nothing here
// imports the adapter or a Slack library.
package slacktest
