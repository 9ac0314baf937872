package generate

import (
	"math"
	"unicode"
)

func readable(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// terms weighs the words of a question by how rare they are in the evidence:
// ln(1 + units / units that hold it). Words without meaning of their own weigh
// nothing, whatever their rarity.
type terms struct {
	weight map[string]float64
	total  float64
}

func weigh(question []string, units []map[string]bool) terms {
	t := terms{weight: map[string]float64{}}
	for _, q := range question {
		if _, done := t.weight[q]; done || function[q] {
			continue
		}
		n := 0
		for _, u := range units {
			if u[q] {
				n++
			}
		}
		t.weight[q] = math.Log(1 + float64(len(units)+1)/float64(n+1))
		t.total += t.weight[q]
	}
	return t
}

// share is the part of the question's weight that the words hold, 0 to 1.
func (t terms) share(words map[string]bool) float64 {
	if t.total == 0 {
		return 0
	}
	sum := 0.0
	for q, w := range t.weight {
		if words[q] {
			sum += w
		}
	}
	return sum / t.total
}

func set(words []string) map[string]bool {
	s := make(map[string]bool, len(words))
	for _, w := range words {
		s[w] = true
	}
	return s
}

// Content drops the words that have no meaning of their own: function words
// of English. Korean needs no list: its particles and endings are parts of
// bigrams and weigh little where they are common.
func Content(words []string) []string {
	var out []string
	for _, w := range words {
		if !function[w] {
			out = append(out, w)
		}
	}
	return out
}

var function = set([]string{
	"a", "about", "above", "actually", "after", "again", "all", "also", "am", "an", "and", "any", "anybody", "anyone", "anything", "are", "as", "at",
	"be", "because", "been", "before", "being", "but", "by", "can", "cannot", "could", "did", "do", "does", "doing", "done", "during", "each", "ever",
	"for", "from", "get", "gets", "give", "go", "got", "had", "has", "have", "having", "he", "hello", "help", "her", "here", "hey", "hi", "him", "his", "how", "i", "if",
	"im", "in", "into", "is", "it", "its", "just", "know", "let", "like", "many", "may", "me", "might", "mine", "more", "most", "much", "must", "my", "need",
	"no", "not", "now", "of", "off", "on", "one", "only", "or", "other", "our", "ours", "out", "over", "please", "really", "s", "shall", "she", "should",
	"so", "some", "somebody", "someone", "something", "such", "t", "tell", "than", "thanks", "that", "the", "their", "theirs", "them", "then", "there", "these", "they",
	"thing", "things", "this", "those", "to", "too", "under", "up", "ur", "us", "use", "used", "using", "very", "want", "was", "we", "were", "what", "whats", "when", "where",
	"which", "while", "who", "whom", "whose", "why", "will", "with", "without", "would", "yes", "you", "your", "yours",
	"don't", "doesn't", "didn't", "can't", "isn't", "aren't", "won't", "i'm", "what's", "it's", "i've", "we're", "who's", "how's", "that's", "there's", "dont", "doesnt", "cant", "isnt", "wont", "d", "ll", "m", "re", "ve",
})
