// Package sandbox lets a newcomer try the product in a minute, without an
// account anywhere: a local Slack or Discord with four people and three
// channels, the demo documents, the real adapter, and a page in which one types
// as any of the four.
//
// Its one idea: only the platform is made up. The adapter is the one of
// footnote serve, connected by api_url and tokens alone, and what a person sees
// on the page is what the platform's own rule of visibility lets them see.
//
//	sandbox.go    life cycle: documents, ingestion, service, page
//	demo.go       the demo documents with access lists of the platform
//	stage.go      what the page needs of a platform
//	slack.go      the workspace; blocks.go its blocks as HTML
//	discord.go    the server; markdown.go its markup as HTML
//	page.go       the page: HTML, two fragments, one verb
//
// Formats: GET / is the page for ?as=PERSON&in=PLACE, GET /room the messages as
// a fragment, as soon as they differ from ?seen=; POST /do does what the person
// does. Nothing is loaded from elsewhere.
//
// It checks no passwords: whoever reaches the page is anybody. It listens on
// the loopback interface unless told otherwise.
package sandbox
