// Package jobs gives the work on documents to workers, any number of processes
// that share a Redis.
//
// Its one idea: one process decides, many work. The process that follows the
// sources lists them, removes, changes access and writes the catalog, all at
// once and by itself; what takes long, to extract, embed and publish a document,
// is a job of its bytes that any worker does. So workers need no source, jobs
// need no priorities, and a document has one author.
//
// Keys, under {PREFIX:jobs}:RECIPE, where RECIPE names what makes a publication,
// so that workers of another version leave the jobs alone:
//
//	:q        stream  jobs that wait or are worked on, read by the group "workers": d, the document
//	:open     set     documents that have a job
//	:j:ID     hash    a job: task and same JSON, token, parts, entry in the stream, tries,
//	                  holder and until (Unix ms by the server's clock), state, done JSON
//	:b:TOKEN  hash    the bytes: 0, 1, … of 1 MiB each
//
// A document has one job, and a job one entry in the stream. Asking for the same
// work again joins the job; asking for other work replaces what the job is to
// do, so that the last state wins, and who works on the old one is told so at
// the next renewal.
//
// Leases: a worker holds a job for Lease and renews that while it works; who
// finds one that has run out takes the job over. Each taking is a try; a worker
// that gives a job back, because it is being stopped or Redis does not answer,
// has not tried. After Tries the document fails and says so; from the second on
// it is alone in its process, so that others do not fail with it. A job stays until
// the catalog says how its document stands.
//
// A lease alone does not keep a worker that was stopped for a while from
// publishing: changes are made under the fence of job and try (redisindex), in
// the script that makes the change.
//
// Loss: the server's process may die at any time. Should it lose its last
// writes, with its power, a job that is gone is found so by who waits for it,
// and the document is looked at again. Keys go after a day of nobody touching
// them.
//
// It does not decide what is to be done, and knows nothing of sources.
package jobs
