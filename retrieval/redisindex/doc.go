// Package redisindex is the shared index: retrieval.Store on a Redis with its
// Query Engine, for several processes at once.
//
// Its one idea: what takes part in a search is kept where it is cheapest to ask
// exactly. The engine filters by the grant and finds near vectors; the lists of
// terms are plain hashes, scored here as the embedded index does. Scores,
// distances and order are those of the embedded index.
//
// Keys, under the store's prefix (default "footnote"):
//
//	PREFIX:generations        hash   name -> manifest, JSON
//	PREFIX:retired            hash   name -> when it was no longer current, Unix ms
//	PREFIX:unfinished         hash   name -> "", of those whose build has begun and not ended
//	PREFIX:by-hand            string name of what a person promoted last, if nothing else promoted since
//	PREFIX:live               alias  of the Query Engine: the promoted generation's index
//	PREFIX:{NAME}             index  of the Query Engine, over PREFIX:{NAME}:c:
//	PREFIX:{NAME}:v           string version, another with each change that readers see
//	PREFIX:{NAME}:l           stream log: what each version changed, the last 1,000
//	PREFIX:{NAME}:d           hash   document id -> publication and record, JSON
//	PREFIX:{NAME}:a           hash   directory: visible publication -> chunks, terms, access list
//	PREFIX:{NAME}:o           hash   overlay: publication -> hidden, or its access list
//	PREFIX:{NAME}:u           hash   publication -> document id and revision
//	PREFIX:{NAME}:f           hash   document id -> fence: who alone may change it, see Store.Fence
//	PREFIX:{NAME}:w:TOKEN     hash   publication -> its chunks that hold the term
//	PREFIX:{NAME}:c:PUB:N     hash   chunk N: v acl pub state, all indexed
//	PREFIX:{NAME}:p:PUB       hash   N -> passage, JSON
//	PREFIX:{NAME}:s:PUB       hash   N -> token states
//	PREFIX:{NAME}:t:PUB       string canonical text
//	PREFIX:{NAME}:r           string nothing: it is written to wait for a replica
//	PREFIX:{NAME}:x:PUB       string number of chunks and tokens, for deleting it
//
// A publication (PUB) is one call of Publish, 16 random characters. It is
// written hidden, in batches; one script then makes it the document's visible
// one and hides the one before, whatever their sizes. Changing an access list
// takes one script too: the overlay says the new list until the tags of the
// chunks have followed.
//
// A process reads overlay and directory once and follows them: with a version
// it reads what the log says since the one that it knows, and makes the next
// state of the last by that. Where the log does not lead to the version, since
// it was cut, the server went back or another program wrote, it reads all.
//
// A search asks with the state that it knows, in one transaction with the
// version and the log. If that has moved, so that more could be seen, the answer
// is thrown away and asked anew: all of a search, over several round trips, lies
// within one version. Before it asks for vectors, which are dear, it looks
// whether the version has moved. Usually: one light round trip, one for both
// legs, one for the vectors of what only the lexical leg found. Lists of terms
// are kept, and brought up by what was published since.
//
// The query language sees only [a-z0-9]: principals as hashes, publications as
// they are. The filter is made by newFilter alone, from a grant; every query
// takes a filter; a grant that admits nobody has none. Words of a question
// become keys, never queries: TOKEN is the term where it is of [a-z0-9], else
// its base32 or, where it is long, its hash.
//
// BM25 is memindex's: k1 1.2, b 0.75, statistics of the admitted chunks. The
// engine's text index is not used for it. Its scorer cannot be (b is 0.5, its
// statistics are those of all chunks and drift after deletions, filters add to
// its scores); its 20 best have 12 to 14 of ours, and it takes 2 to 5 times as
// long. Measured with make bench-redis, 50,000 chunks of which 25,000 may be read
// by a person of 500 principals, p50: lists 1 ms, vectors 12 ms, a whole search
// with its texts 15 ms, also after a change; terms add 7 to 20 % to a search. The
// price is memory in the server, about 50 bytes for each distinct term of a
// document (6 kB a chunk where documents have 10 chunks of 150 words by Zipf's
// law; the vector, its hash and index take 4 kB), and 8 bytes in this process for
// each chunk in a list that was asked for.
//
// Durable means: acknowledged by the server, and by a replica, where one follows
// and keeps up. With appendfsync everysec the loss of power, not the end of the
// process, may take the last second.
//
// It does not start a server, does not fuse or rerank, and does not judge a
// vector beyond its length and norm.
package redisindex
