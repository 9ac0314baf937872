// Package memindex is the embedded index: retrieval.Store in this process,
// over a directory, with no server. It is the default.
//
// Its one idea: memory holds what ranking needs (vectors, postings, access
// lists, where each text lies), the disk holds the texts and the token states,
// and one log holds both, so that a document becomes visible and durable in the same step.
//
// Data directory:
//
//	lock                             held by the process that has it open; its pid
//	current                          alias: the promoted generation's name and a checksum
//	by-hand                          alias: what a person promoted last, if nothing else promoted since
//	generations/NAME/unfinished      empty: the build has begun and not ended
//	generations/NAME/manifest.json   {"sha256": of the manifest, "manifest": {…}}
//	generations/NAME/index.log       retrieval/journal; records in record.go
//
// Aliases and manifests are written aside, synced, renamed, and the directory
// synced. A generation appears under its name only when it is whole.
//
// The access filter: the grant decides once per distinct access list (lists
// are interned as classes), the classes give the admitted ranges of chunks,
// and both legs see only those. The lexical statistics (number of chunks,
// document frequencies, average length) count admitted chunks alone, and sums
// run in the order of the question's terms, so that scores are the same to the
// last bit whether or not a forbidden document exists. The decisions are kept
// for recent grants; a decision is a pure function of grant and list, so that
// it can never outlive a change: changing a document's list changes its class.
//
// BM25: k1 1.2, b 0.75, idf ln(1 + (N − n + 0.5)/(n + 0.5)), a term counted as
// often as the question holds it (Robertson and Zaragoza 2009, with the idf
// that Lucene uses). Lengths and frequencies saturate at 65,535. The dense leg
// is an exact inner product over every admitted vector.
//
// Replaced and removed chunks stay in memory, never admitted, until a quarter
// of all chunks is dead; on disk they stay until compaction (Compact, or
// opening when more than half of at least 64 MB is dead), which keeps the text
// of the last 5 superseded revisions of each document. A removed document is
// gone from every read at once, its bytes from the disk at compaction.
//
// Measured on 50,000 chunks of 384 dimensions and 150 distinct terms (go test
// -run xxx -bench . in this directory): opening 0.5 s, 2.0 kB of memory a chunk
// beyond its vector, BM25 top 100 0.14 ms for six words and 0.24 ms for eight
// common ones, dense top 100 10 ms. A filter of 50 groups costs nothing for a
// grant seen before, a quarter of the lexical leg for a new one.
//
// What leaks: time. A term's list is walked with the forbidden chunks in it, so
// that a question's duration moves by microseconds with what lies hidden.
//
// It does not share a directory between processes, and it does not judge
// whether a query vector came from the right model beyond its length and norm:
// callers compare Manifest().Embedder.
package memindex
