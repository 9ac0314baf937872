// Package eval grades the retriever on question sets whose answers are known
// by their place in the source files.
//
// Its one idea: a result is right when a returned chunk holds the answer's
// bytes of the source file, whatever the chunk's size or the title of its
// document. One search per question grades every stage: both legs, the fused
// order and the final one.
//
// What something is worth (Compare) is asked of the same questions with and
// without it, and said together with how likely chance alone would do as much.
//
// A set is a folder with docs/ and queries.jsonl. Each line has id, text,
// answerable and either doc with from_byte and to_byte (a needle or an answer
// span), evidence (spans of doc, one of which must be held) or gold (passages
// of several documents, one of which must be half covered); style, turn and
// label are optional.
//
// It ingests nothing and prints nothing: cmd does.
package eval
