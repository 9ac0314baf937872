package slack_test

import (
	"strings"
	"testing"

	"footnote/adapters/slack/slacktest"
)

func TestMentionIsAnsweredInItsThread(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	p := start(t, s, newStore(t, handbook))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	a := p.answer(q)
	text := shown(a)
	for _, want := range []string{"Employees get thirty vacation days each year.", "[1]", "Sources", "The handbook > Part", "2026-02-03", "Helpful", "Not helpful", "Ask a human"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q: %s", want, text)
		}
	}
	p.done()
	if n := answers(s.Everything("C0GENERAL")); n != 1 {
		t.Errorf("%d answers", n)
	}
}
