package bot

import (
	"fmt"
	"strings"

	"footnote/retrieval/analysis"
)

// maxEcho bounds how much of a question a refusal repeats, in characters.
const maxEcho = 200

// refuse turns the reply into a refusal and writes its text.
//
// SECURITY: the text is made from the question, from what the grant admits and
// from the kind of audience, never from what exists beyond it. In a room it
// always offers a direct message, whether that would help or not.
func (r *Reply) refuse(reason Reason, m Message) {
	r.Outcome, r.Reason = Refused, reason
	r.Sentences, r.Sources = nil, nil
	if r.Language == "" {
		r.Language = analysis.Language(r.Question)
	}
	w := wordingOf(r.Language)
	if reason == EmptyQuestion {
		r.Text = w.empty
		return
	}
	lines := []string{fmt.Sprintf(w.looked, echo(r.Question)), w.why[reason]}
	if len(r.Missing) > 0 {
		lines = append(lines, fmt.Sprintf(w.missing, strings.Join(r.Missing, ", ")))
	}
	if len(r.Nearest) > 0 {
		lines = append(lines, w.nearest)
		for _, n := range r.Nearest {
			lines = append(lines, "- "+strings.Join(append([]string{n.Title}, n.Section...), " > "))
		}
	}
	lines = append(lines, w.next)
	if !m.Audience.Private() {
		lines = append(lines, w.direct)
	}
	r.Text = strings.Join(lines, "\n")
}

func tooLong(language string, n, limit int) string {
	return fmt.Sprintf(wordingOf(language).long, n, limit)
}

func echo(q string) string {
	if r := []rune(q); len(r) > maxEcho {
		return string(r[:maxEcho]) + "…"
	}
	return q
}

// wording is the text of refusals in one language.
type wording struct {
	looked, missing, nearest, next, direct, empty, long string
	why                                                 map[Reason]string
}

// wordingOf is English for languages without a wording of their own.
func wordingOf(language string) wording {
	if language == "ko" {
		return korean
	}
	return english
}

var english = wording{
	looked: "I looked for “%s” in the documents that may be shown here, and cannot answer it from them.",
	why: map[Reason]string{
		NoMatch:     "Nothing I found is near enough to the question.",
		NotAnswered: "Some passages are near the question, but none of them answers it.",
	},
	missing: "Found nowhere in them: %s.",
	nearest: "The nearest documents:",
	next:    "You can name the thing in the documents' own words, ask about one thing at a time, or check with the owner of the nearest document.",
	direct:  "You can also ask me in a direct message: there I can use everything that you yourself may read.",
	empty:   "There is no question in the message. Write what you want to know, in a sentence.",
	long:    "The question has %d characters; I read up to %d. Ask it in a few sentences.",
}

var korean = wording{
	looked: "여기에 보여 드릴 수 있는 문서에서 “%s”을(를) 찾아보았지만, 그 문서들로는 답할 수 없습니다.",
	why: map[Reason]string{
		NoMatch:     "질문에 충분히 가까운 내용이 없습니다.",
		NotAnswered: "질문과 가까운 내용은 있지만, 질문에 답하는 내용은 없습니다.",
	},
	missing: "문서 어디에도 없는 말: %s.",
	nearest: "가장 가까운 문서:",
	next:    "문서에서 쓰는 말로 다시 묻거나, 한 번에 한 가지만 묻거나, 가장 가까운 문서의 담당자에게 확인해 보세요.",
	direct:  "저에게 다이렉트 메시지로 물어보셔도 됩니다. 거기서는 본인이 읽을 수 있는 모든 문서를 사용할 수 있습니다.",
	empty:   "메시지에 질문이 없습니다. 알고 싶은 것을 문장으로 적어 주세요.",
	long:    "질문이 %d자입니다. %d자까지 읽습니다. 몇 문장으로 물어봐 주세요.",
}
