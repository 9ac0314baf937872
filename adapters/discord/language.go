package discord

import "strings"

// translate gives a text of ours in the language of a locale, and leaves it
// as it is where there is none. The tables are keyed by the English text, so
// that texts of other packages need no key of their own. A reference to the
// log stays at the end.
func translate(locale, text string) string {
	if language, _, _ := strings.Cut(locale, "-"); language != "ko" {
		return text
	}
	plain, reference, found := strings.Cut(text, " (Reference: ")
	t, ok := korean[plain]
	switch {
	case !ok:
		return text
	case found:
		return t + " (Reference: " + reference
	}
	return t
}

// language is that of who reads an answer: the asker's if only they do, else
// the server's.
func (q question) language(private bool) func(string) string {
	locale := q.GuildLocale
	if private || q.Guild == "" {
		locale = q.Locale
	}
	return func(text string) string { return translate(locale, text) }
}

var korean = map[string]string{
	sayNotAvailable: "여기에서는 사용할 수 없습니다.",
	sayNotServed:    "이 서버는 footnote에 설정되어 있지 않습니다. 봇을 운영하는 분에게 이 서버를 설정에 추가해 달라고 요청하세요.",
	sayStarting:     "지금 시작하는 중입니다. 잠시 후 다시 질문해 주세요.",
	sayTimedOut:     "이 서버에서 타임아웃 상태이므로 지금은 답하지 않습니다.",
	sayOff:          "이 채널에서는 답하지 않습니다. 다른 채널이나 다이렉트 메시지로 질문해 주세요.",
	sayTryAgain:     "질문을 받지 못했습니다. 잠시 후 다시 질문해 주세요.",
	sayFailed:       "문제가 발생했습니다. 다시 시도해 주세요.",
	sayPrivately:    "이 질문에는 비공개로 답합니다.",
	sayPressed:      "이미 누르셨습니다.",
	sayPosted:       "채널에 게시했습니다.",
	sayNotShared:    "여기를 읽을 수 있는 사람 가운데 이 답변의 출처를 읽을 수 없는 사람이 있어 게시하지 않습니다.",
	sayOld:          "그 답변이 더 이상 없습니다. 다시 질문해 주세요.",
	sayNothing:      "질문이 없습니다. 알고 싶은 것을 문장으로 적어 주세요.",
	sayNoSource:     "이 문서는 여기에서 볼 수 없습니다.",
	sayMayNotWrite:  "이 채널에 글을 쓸 권한이 없습니다.",
	sayThanks:       "감사합니다.",
	sayHelpful:      "감사합니다. 도움이 됩니다.",
	sayAskedBefore:  "이미 담당자를 요청하셨으며, 기록되어 있습니다.",
	sayAskedHuman:   "담당자의 확인을 원하신다는 것을 기록했습니다.",
	sayNoQuestions:  "여기에서 받은 질문이 없습니다.",
	sayLatest:       "최근 질문:",
	sayHere:         "작동 중입니다. 대기 중인 질문 %d개, 처리 중인 질문 %d개.",
	sayConnected:    "연결된 시간: %s.",
	help: `조직의 문서에서 번호가 붙은 출처와 함께 답하거나, 문서에 답이 없다고 알려 드립니다.
- /ask question: 여기 있는 모두가 답변을 보며, 모두가 읽을 수 있는 문서만 사용합니다.
- /ask에 private: true를 쓰거나 다이렉트 메시지로 물으면 본인만 답변을 보며, 본인이 읽을 수 있는 모든 문서를 사용할 수 있습니다.
- 메시지에서 앱 > Ask footnote: 그 메시지에 대한 비공개 답변.
- /footnote why: 최근 질문이 어떻게 되었는지.
- 답변 아래의 버튼은 읽을 수 있는 출처를 보여 줍니다.`,

	// Of the desk.
	"You have several questions waiting already. Please ask again when they are answered.": "이미 대기 중인 질문이 여러 개 있습니다. 답변을 받은 뒤 다시 질문해 주세요.",
	"Many questions are waiting in this channel. Please ask again in a few minutes.":       "이 채널에 대기 중인 질문이 많습니다. 몇 분 후 다시 질문해 주세요.",
	"Many questions are waiting right now. Please ask again in a few minutes.":             "지금 대기 중인 질문이 많습니다. 몇 분 후 다시 질문해 주세요.",
	"Your question reached me too late to be answered. Please ask again.":                  "질문이 너무 늦게 도착하여 답할 수 없습니다. 다시 질문해 주세요.",
	"I could not answer this in time. Please ask again.":                                   "제시간에 답하지 못했습니다. 다시 질문해 주세요.",
	"I was interrupted and could not answer this in time. Please ask again.":               "중단되어 제시간에 답하지 못했습니다. 다시 질문해 주세요.",
	"I am being restarted. Your question is kept and will be answered afterwards.":         "다시 시작하는 중입니다. 질문은 보관되며 이후에 답해 드립니다.",
	"Something went wrong and I could not answer this. Please ask again.":                  "문제가 발생하여 답하지 못했습니다. 다시 질문해 주세요.",

	// Of the rendering.
	"Sources":                               "출처",
	"Shortened. The sources hold the rest.": "줄였습니다. 나머지는 출처에 있습니다.",
	"Helpful":                               "도움이 됨",
	"Not helpful":                           "도움이 안 됨",
	"Ask a human":                           "담당자에게 문의",
	"Ask privately":                         "비공개로 질문",
	"Post to channel":                       "채널에 게시",
	"Thank you. What was wrong with it?":    "감사합니다. 무엇이 문제였나요?",
	"Wrong":                                 "틀림",
	"Incomplete":                            "불완전함",
	"Out of date":                           "오래됨",
	"Hard to follow":                        "이해하기 어려움",
	"Revision of":                           "개정일",
	"the document has changed since":        "이후 문서가 변경됨",
	"Discord did not confirm the rest of this answer. If it is missing, ask again.": "Discord가 답변의 나머지 부분을 확인해 주지 않았습니다. 없으면 다시 질문해 주세요.",
}
