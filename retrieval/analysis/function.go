package analysis

import "strings"

// functionWords are English words without a meaning of their own, with the
// short forms and the fillers of chat. Korean has none here: its question words
// and endings are pairs of characters that nouns hold too, and without them
// ko_react got worse (tickets, MRR .65 to .62). Package generate has a list of
// its own, measured for how much of a question a sentence answers.
const functionWords = `
a about after again all also am an and any anyone anything are arent as ask at b4 be because been before being
but by can cant could couldnt d did didnt do does doesnt doing done dont down during even ever for from get
gets getting go goes going gonna got gotta had has have having he her here hey hi him his how hows i id if ill
im in into is isnt it its ive just keep keeps kinda know let lets like ll m made make makes may me might mine
must my need no nor not of off ok okay on once one only or our out over own please pls ppl put re really s
said same say shall she should shouldnt smth so some somebody someone something still stuff such supposed t
take takes tell than thanks that thats the their them then there theres these they theyre thing things this
tho those to too u under up ur us ve very w wanna want was wasnt we were werent weve what whats when where
wheres which while who whom whos whose why will with without wont would wouldnt you your youre yours`

var function = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(functionWords) {
		m[w] = true
	}
	return m
}()

var withoutApostrophes = strings.NewReplacer("'", "", "’", "")

// Function reports a term that says nothing by itself: "how", "don't", "pls".
// Terms keeps them. A question that is searched for without them does better
// (words alone, tickets of en_docs: R@4 .24 to .37); a document that lost them
// could not be found by a question of nothing else.
func Function(term string) bool { return function[withoutApostrophes.Replace(term)] }
