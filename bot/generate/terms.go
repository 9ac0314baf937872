package generate

import (
	"math"
	"strings"
	"unicode"
)

func readable(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// terms weighs the stems of a question's words by how rare they are in the evidence:
// ln(1 + units / units that hold it). Words without meaning of their own weigh
// nothing, whatever their rarity.
type terms struct {
	weight map[string]float64
	total  float64
}

// stem takes English endings off, for comparing only: partners, partner. Two
// words that it makes equal by mistake cost little, as a share counts many.
func stem(word string) string {
	for _, r := range []struct{ ending, instead string }{{"ies", "y"}, {"sses", "ss"}, {"ing", ""}, {"ed", ""}, {"es", ""}, {"s", ""}} {
		if t, ok := strings.CutSuffix(word, r.ending); ok && len(t) >= 3 && !strings.HasSuffix(word, "ss") {
			return strings.TrimSuffix(t+r.instead, "e")
		}
	}
	if len(word) > 4 {
		return strings.TrimSuffix(word, "e")
	}
	return word
}

// stems is the set of the words' stems.
func stems(words []string) map[string]bool {
	s := make(map[string]bool, len(words))
	for _, w := range words {
		s[stem(w)] = true
	}
	return s
}

func weigh(question []string, units []map[string]bool) terms {
	t := terms{weight: map[string]float64{}}
	for _, q := range Content(question) {
		q = stem(q)
		if _, done := t.weight[q]; done {
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
// of English, and pairs of question words and endings of Korean.
func Content(words []string) []string {
	var out []string
	for _, w := range words {
		if !function[w] {
			out = append(out, w)
		}
	}
	return out
}

// function words; of the Korean ones the pairs that package analysis makes.
//
// They are not those of analysis.Function on purpose: these decide how much of a
// question a sentence answers, those what is searched for, and each list was
// measured for its use alone. Korean pairs weigh nothing here and are searched
// for there. A word that is added to one does not belong to the other by that.
var function = set(append([]string{
	"a", "about", "above", "actually", "after", "again", "all", "also", "am", "an", "and", "any", "anybody", "anyone", "anything", "are", "as", "at",
	"be", "because", "been", "before", "being", "but", "by", "can", "cannot", "could", "did", "do", "does", "doing", "done", "during", "each", "ever",
	"for", "from", "get", "gets", "give", "go", "got", "had", "has", "have", "having", "he", "hello", "help", "her", "here", "hey", "hi", "him", "his", "how", "i", "if",
	"im", "in", "into", "is", "it", "its", "just", "know", "let", "like", "many", "may", "me", "might", "mine", "more", "most", "much", "must", "my", "need",
	"no", "not", "now", "of", "off", "on", "one", "only", "or", "other", "our", "ours", "out", "over", "please", "really", "s", "shall", "she", "should",
	"so", "some", "somebody", "someone", "something", "such", "t", "tell", "than", "thanks", "that", "the", "their", "theirs", "them", "then", "there", "these", "they",
	"thing", "things", "this", "those", "to", "too", "under", "up", "ur", "us", "use", "used", "using", "very", "want", "was", "we", "were", "what", "whats", "when", "where",
	"which", "while", "who", "whom", "whose", "why", "will", "with", "without", "would", "yes", "you", "your", "yours",
	"don't", "doesn't", "didn't", "can't", "isn't", "aren't", "won't", "i'm", "what's", "it's", "i've", "we're", "who's", "how's", "that's", "there's", "dont", "doesnt", "cant", "isnt", "wont", "d", "ll", "m", "re", "ve",
}, strings.Fields(koreanPairs)...))

const koreanPairs = `
	나요 하나 되나 인가 가요 까요 어요 아요 해요 에요 예요 거예 세요 네요 데요 는데 은데 인데 던데 려면 하려 으려 면서 지만 니까 아서 어서
	습니 입니 합니 됩니 니다 있나 없나 할까 있는 있어 있을 없는 없어 하는 하면 하게 하고 해야 해서 했는 되는 되면 되고 돼요 된다 한다 이다 에서 에게 으로 부터 까지 에는 에도 이나 라고 라는
	무엇 무슨 어떻 떻게 어떤 얼마 마나 언제 어디 디에 디서 어느 누가 누구 왜 뭐 뭘 것 거 수 때 좀 제 저 이 그 및 등 더 안 못 위해 대한 대해 경우 사용 용하`
