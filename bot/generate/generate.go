// Package generate makes a draft from evidence.
//
// Its one idea: a generator gets numbered evidence and says which number each
// statement stands on. It is given no ids, links or names that it could
// repeat, and what it returns is resolved by package cite, never shown as it
// is.
//
// Extractive needs no language model. It cuts the evidence into units
// (sentences, list items, table rows, pieces of code), judges how well each
// answers, and returns the best ones verbatim, or nothing: passages that are
// near and do not answer give no draft.
//
// Content is Markdown, or plain text with the same marks for tables, lists and
// code, as the extractors write it. The package opens no document and knows no
// access list: what it is given may be shown.
package generate

import "footnote/bot/cite"

// Evidence is one passage that passed the gate.
type Evidence struct {
	N         int     // number to cite it by
	Header    string  // title and sections, for judging only
	Language  string  // ISO 639-1, "" unknown
	Content   string  // quoted from
	TableHead string  // head row of a table that Content is in the middle of, for judging only, "" none
	Relevance float64 // probability of the reranker for the whole passage, 0 to 1; 0: none
}

// Request is one question with its evidence.
type Request struct {
	Question string // complete: a follow-up is joined with what it follows
	Language string // of the question
	// Own are the words of a follow-up without what it was joined with, ""
	// otherwise. An answer must be about them.
	Own      string
	Evidence []Evidence
}

// Draft is an answer before its numbers are resolved. No claims: the evidence
// does not answer.
type Draft struct {
	Claims []cite.Claim
	Why    string   // with no claims: what was wanting, for the operator
	Judged []Judged // the units that were judged, best first, for the operator
}

// Judged is a unit with how well it answers.
type Judged struct {
	N       int
	Text    string
	Score   float64 // probability of the reranker, else cosine similarity
	Share   float64 // of the question's terms, weighted by rarity
	Support float64 // of all three with the passage's own, 0 to 1
}
