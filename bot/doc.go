// Package bot answers a message from the organisation's documents, or refuses.
// It is the centre of footnote, and this comment is the tour of the program.
//
// # Two flows
//
//	document -> extract -> tree -> chunks -> vectors -> generation (shadow) -> alias        ingest
//	message -> question -> identity -> grant -> authorised search -> gate -> answer -> citations -> reply   ask
//
// Ingest: adapters/files reads a folder and says who may read each file.
// retrieval/extract turns a file into one tree over one canonical text
// (retrieval/doctree); retrieval/chunk cuts the tree; a models.Embedder makes
// vectors; retrieval/ingest publishes all of a revision in one step into a
// generation of retrieval/memindex, or of retrieval/redisindex.
//
// Ask: an adapter knows who asks and who will read the reply. Handle makes the
// grant from both, joins a follow-up with what it follows, and has
// retrieval.Searcher rank what the grant admits. The gate lets through what is
// near enough; package generate picks what answers; package cite turns its
// numbers into sources. If nothing passes, no generator is called and the
// reply is a refusal that says what is missing and where to look.
//
// # One idea
//
// A reply holds nothing that the server did not resolve itself: numbers,
// places and quotes come from passages that were loaded inside the grant, and
// access is checked three times (in the search, before the generator, before
// the reply), each time against the lists of that moment. A document that may
// not be read changes no word, number or order of the reply.
//
// # What it does not do
//
// It knows no platform: there is no chat interface here, an adapter renders
// what Handle returns. It keeps no state between messages: history comes with
// the message. It writes no logs.
//
// # Glossary
//
//	asker       who asks: an acl.Identity
//	audience    everyone who will be able to read the reply: an acl.Audience
//	grant       the authority of one question, made from both: an acl.Grant
//	admit       a grant admits a document, or it does not
//	document    one text of the organisation; it has one current revision
//	revision    one content of a document
//	canonical text  the readable text of a revision; places count its code points
//	chunk       a piece of a revision as it is indexed
//	generation  one index, named by everything that made it
//	alias       the name of the current generation
//	publish     make a revision searchable, in one step
//	promote     point the alias at a generation
//	leg         one of the two searches: lexical (BM25) or dense (vectors)
//	fuse        bring what both legs found into one order
//	token states  the embedder's vectors of a text's tokens, before pooling
//	late interaction  comparing question and passage token by token (MaxSim)
//	hit         a chunk as it was ranked
//	passage     a chunk with what a reply says of its document
//	gate        what decides whether a hit is evidence
//	evidence    a passage that passed the gate, with the number it is given
//	draft       what a generator made of the evidence; it is never shown
//	claim       one statement of a draft
//	source      a numbered footnote: place, quote and document, resolved here
//	refuse      reply that the documents do not answer; no error
//	nearest     up to three documents that a refusal names
//	missing     words of the question that no admitted chunk holds
//	follow-up   a question that cannot be understood without the one before
//	trace       the id under which a reply can be found again
//	delivery    one question as a platform delivered it, however often
//	claim (of a delivery)  the durable note that this process answers it
//	lease       how long a claim holds without being renewed
package bot
