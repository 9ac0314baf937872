// Command bench prints how fast footnote is beside its peers, each measured
// in the same run: embedding beside hugot, exact dense search beside
// faiss-cpu, BM25 beside bleve and tantivy; then what a filter and the work
// around the models cost, and the memory of a chunk.
//
// Its one idea: machines are noisy, so nothing is a time alone. Ours and the
// peer take turns over several rounds, and the ratio is that of each round's
// pair: its median, with the least and the greatest.
//
// It is a module of its own, so that no peer enters footnote's go.mod. `make
// bench` fetches the peers and runs it.
package main
