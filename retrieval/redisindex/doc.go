// Package redisindex is the shared index: retrieval.Store on a Redis with its
// Query Engine, for several processes at once.
//
// Its one idea: the server finds, this package judges. The engine filters by
// the grant and says which chunks hold a term how often and which vectors are
// nearest; scores, distances and order are computed here from that, so that
// they are those of the embedded index, to the last bit.
//
// Keys, under the store's prefix (default "footnote"):
//
//	PREFIX:generations           hash   name -> manifest, JSON
//	PREFIX:retired               hash   name -> when it was no longer current, Unix ms
//	PREFIX:live                  alias  of the Query Engine: the promoted generation's index
//	PREFIX:{NAME}                index  of the Query Engine, over PREFIX:{NAME}:c:
//	PREFIX:{NAME}:v              string version, counts the changes that readers see
//	PREFIX:{NAME}:d              hash   document id -> publication and record, JSON
//	PREFIX:{NAME}:k              hash   statistics of each access list: chunks, length, documents
//	PREFIX:{NAME}:o              hash   overlay: publication -> hidden, or its access list
//	PREFIX:{NAME}:u              hash   publication -> document id and revision
//	PREFIX:{NAME}:c:PUB:N:LEN    hash   chunk N of LEN terms: t v acl pub state, all indexed
//	PREFIX:{NAME}:p:PUB          hash   N -> passage, JSON
//	PREFIX:{NAME}:s:PUB          hash   N -> token states
//	PREFIX:{NAME}:t:PUB          string canonical text
//	PREFIX:{NAME}:n:PUB          string lengths of the chunks
//
// A publication (PUB) is one call of Publish, 16 random characters. Its chunks
// are written hidden, in batches; one script then makes it the document's
// visible one and hides the one before, whatever their sizes. Changing an
// access list takes one script too: the overlay says the new list until the
// tags of the chunks have followed.
//
// A search asks with the overlay and the statistics that it knows, in one
// transaction with the version. If that has moved the answer is thrown away
// and asked anew, so that all of a search, over several round trips, lies
// within one version. Usually: one round trip for both legs, one for the
// vectors of what only the lexical leg found.
//
// The query language sees only [a-z0-9]: principals as hashes, publications as
// they are, terms as they are where they are such, else as base32 or, where
// they are long, as hashes. The filter is made by newFilter alone, from a
// grant; every query takes a filter; a grant that admits nobody has none.
//
// BM25: k1 1.2, b 0.75, statistics of the admitted chunks. The engine's own
// scorer is of no use for it (b is 0.5, its statistics are those of all
// chunks and drift after deletions, filters add to it); its DISMAX gives the
// number of occurrences, which is all that is needed. Lists of common words
// are not fetched whole where the best hits can be proved without (lexical.go).
//
// Durable means: acknowledged by the server. With appendfsync everysec the loss
// of power, not the end of the process, may take the last second.
//
// It does not start a server, does not fuse or rerank, and does not judge a
// vector beyond its length and norm.
package redisindex
