package cite

import (
	"strings"
	"unicode"

	"footnote/retrieval/analysis"
)

// enough is the share of a claim's telling terms that a sentence must hold to
// support it.
const enough = 0.6

// support finds the sentence of content that best supports a claim in other
// words. It must hold most of the claim's telling terms and every one that
// has a digit: a wrong figure is never supported. There is no second, lower
// bar when nothing reaches the first.
func support(claim, content string) (from, to int, ok bool) {
	want := telling(analysis.Terms(claim))
	if len(want) == 0 {
		return 0, 0, false
	}
	best := 0.0
	for _, s := range analysis.Sentences(content) {
		have := map[string]bool{}
		for _, t := range analysis.Terms(content[s.From:s.To]) {
			have[t] = true
		}
		found, figures := 0, true
		for t := range want {
			switch {
			case have[t]:
				found++
			case strings.ContainsFunc(t, unicode.IsDigit):
				figures = false
			}
		}
		if share := float64(found) / float64(len(want)); figures && share >= enough && share > best {
			best, from, to = share, s.From, s.To
		}
	}
	return from, to, best > 0
}

// telling drops short words, which every sentence holds, unless there are no
// others. Terms of other scripts are bigrams and all count.
func telling(terms []string) map[string]bool {
	long, all := map[string]bool{}, map[string]bool{}
	for _, t := range terms {
		all[t] = true
		if len(t) >= 4 || strings.ContainsFunc(t, unicode.IsDigit) {
			long[t] = true
		}
	}
	if len(long) > 0 {
		return long
	}
	return all
}
