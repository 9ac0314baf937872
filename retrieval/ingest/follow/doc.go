// Package follow keeps the index up with its sources.
//
// Its one idea: a change that was noticed makes its path dirty; a pass of
// ingestion over the dirty paths cleans them; and because notices get lost, a
// full pass over each source comes at every interval. What a pass does is
// package ingest's; this package says when, over what, and how long it took.
//
// Order: dirty paths wait until they are at rest (Settle), a file that never
// rests at most ten times as long. Removals and changes of access are urgent:
// they interrupt a pass that is busy with content, which goes on afterwards; where
// others do the work and keep it (Options.Resumes), content does so, too. A
// pass has the longer in peace the more often it was interrupted.
//
// Failures that may pass are tried again after 30 seconds, then after twice as
// long each time, up to an hour; failures for good when the file changes, and
// once at each start.
//
// Mass removal: a pass that would remove more than MaxRemoved of a source
// removes nothing of it (ingest.How.MaxRemoved); the source is Held until its
// documents are back or Sync is told to remove them.
//
// Service levels: the time from the notice of a change, or for want of one from
// the full pass before, until it is in force in search and in source opening.
// What a first pass finds happened while nobody watched and is not counted. What
// is put in force ahead of a pass is counted at once (InForce).
//
// Format: sync.json in the data directory, a JSON array of Status, replaced
// whole after each pass.
//
// It does not know folders, chat or HTTP: a Feed is any ingest.Source with
// something that tells of its changes.
package follow
