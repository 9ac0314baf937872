// Package fakeserver is what the strict fakes of the platforms have in common:
// an HTTP server with a life cycle, timers, waiting, faults and rate limits.
// adapters/slack/slacktest and adapters/discord/discordtest are built on it.
//
// Its one idea: it knows no platform. A fake embeds Server and guards its own
// state by the lock that it gave; what a request means, what a fault answers
// and what is recorded stays with the fake.
//
// Not here: routes, tokens, records, invariants. Only packages of tests may
// import it.
package fakeserver
