// Package ingest takes documents from a source into the index.
//
//	listing -> read -> extract -> chunk (-> note) -> embed -> publish
//
// Its one idea: the index is the truth and every step can be repeated. A run
// compares what the source holds with what the index holds and does only what
// is missing; a run that was killed is finished by the next one. Nothing is
// published before it is whole, and one bad document never stops the others.
//
// Stages: one reader, in the listing's order, decides what each document
// needs; several workers extract and chunk; one stage embeds, fed by a bounded
// queue so that it need not wait for extraction; one publishes. Source bytes in
// flight are bounded. Vectors are kept by model and text (Cache), so that the
// same text is embedded once, whatever document it is in.
//
// With notes (package notes) a stage before embedding has a chat model say what
// each chunk is about. It may fail or run out of its budget: the document is then
// published without, its record is stale, and the next run completes it.
//
// Changes:
//
//	new or changed bytes     a new revision is published, which replaces the old in one step
//	same bytes               nothing; the access list is brought up to date without embedding
//	moved                    same bytes, and nothing lies at the old path: the same document
//	failed, may pass         the last good revision stays; the next run tries again
//	failed for good, refused the document is withdrawn: its source no longer says what was published
//	no longer listed         withdrawn if the run prunes, otherwise reported
//
// SECURITY: an access list that becomes narrower is in force before anything
// is extracted or embedded; one that becomes wider only together with the
// content that it was given for. The front matter of a document goes before
// the rules of its source; what cannot be understood refuses the document.
//
// Generations: a run works on the current generation if the same models and
// versions made it. Otherwise it builds a shadow, which takes over every
// document of the current one, and promotes it when none is left behind. The
// first generation is promoted with its first document.
//
// Hands: others may do what takes long, in other processes (package jobs). The
// run then hands out the documents that need work, and waits; whatever it decides
// by itself, in between, ends work on a document that was handed out.
//
// It does not watch sources and does not run by itself.
package ingest
