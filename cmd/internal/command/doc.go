// Package command is the command line of footnote: one file a command, each
// turning flags into one call of a part and its result into text or JSON.
//
// Its one idea: a command returns an error or nothing, and one place turns
// that into the message on standard error and the exit code. Standard output
// holds results only.
//
// Exit codes: 0 done or answered, 1 failure, 2 usage or configuration,
// 3 some documents failed, 5 no index yet, 6 refused (ask).
//
// Formats: the JSON that --json prints is a contract, held by tests; its
// fields are described in README.md. Every text that came from a document, a
// question or a file name passes console.Safe on its way to a terminal, and
// JSON escapes what a terminal would obey.
//
// It does not decide anything about documents, access or answers.
package command
