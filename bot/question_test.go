package bot

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/retrieval"
)

func TestForms(t *testing.T) {
	t.Parallel()
	vacation := []Turn{{User, "How many vacation days do employees get?"}, {Agent, "Thirty [1]."}}
	korean := []Turn{{User, "정규직 휴가는 며칠인가요?"}, {Agent, "서른 날입니다 [1]."}}
	joined := func(q string) string { return "How many vacation days do employees get? " + q }
	tests := map[string]struct {
		question string
		history  []Turn
		want     []string
	}{
		"no history":                         {"And for interns?", nil, []string{"And for interns?"}},
		"and":                                {"And for interns?", vacation, []string{joined("And for interns?")}},
		"what about":                         {"what about part-time staff", vacation, []string{joined("what about part-time staff")}},
		"a pronoun":                          {"How do I request them?", vacation, []string{joined("How do I request them?")}},
		"only function words":                {"Why?", vacation, []string{joined("Why?")}},
		"two words may stand alone":          {"parental leave?", vacation, []string{"parental leave?", joined("parental leave?")}},
		"a whole question stands alone":      {"Which browsers must be used to open the training site?", vacation, []string{"Which browsers must be used to open the training site?"}},
		"a long one with a pronoun is tried": {"Which browsers must be used to open it from a private laptop?", vacation, []string{"Which browsers must be used to open it from a private laptop?", joined("Which browsers must be used to open it from a private laptop?")}},
		"a word that begins like an opener":  {"Andrea Miller manages which large engineering team?", vacation, []string{"Andrea Miller manages which large engineering team?"}},
		"over an earlier follow-up":          {"And for guests?", append(vacation, Turn{User, "And for interns?"}, Turn{Agent, "Twenty [1]."}), []string{joined("And for guests?")}},
		"only the agent spoke":               {"And for interns?", []Turn{{Agent, "Hello, ask me."}}, []string{"And for interns?"}},
		"Korean 그럼":                          {"그럼 인턴은요?", korean, []string{"정규직 휴가는 며칠인가요? 그럼 인턴은요?"}},
		"Korean, short":                      {"인턴은요?", korean, []string{"인턴은요?", "정규직 휴가는 며칠인가요? 인턴은요?"}},
		"Korean, whole":                      {"회의실 예약은 어디에서 어떻게 하나요?", korean, []string{"회의실 예약은 어디에서 어떻게 하나요?"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range forms(tt.question, tt.history) {
				got = append(got, f.text)
				if (f.own != "") != (f.text != tt.question) {
					t.Errorf("%q has its own words %q", f.text, f.own)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzForms(f *testing.F) {
	f.Add("And for interns?", "How many days?")
	f.Add("\xff", "\x00")
	f.Add("🙂", "그럼")
	f.Fuzz(func(t *testing.T, question, before string) {
		fs := forms(clean(question), []Turn{{User, before}})
		if len(fs) == 0 || len(fs) > 2 {
			t.Errorf("%d readings of %q", len(fs), question)
		}
	})
}

func TestClean(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"white space":             {" a\t\nb\u00a0 c ", "a b c"},
		"terminal commands":       {"a\x1b[31mb\x07", "a [31mb"},
		"direction marks":         {"a\u202eb\u2066c", "a b c"},
		"invalid UTF-8":           {"a\xffb", "a b"},
		"joined emoji stay":       {"👩‍💻❤️", "👩‍💻❤️"},
		"nothing is left of none": {"\x00\u200b", ""},
	}
	for name, tt := range tests {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	hit := func(distance, probability float64) retrieval.Hit {
		h := retrieval.Hit{}
		if distance >= 0 {
			h.Distance = &distance
		}
		if probability >= 0 {
			h.Rerank = &probability
		}
		return h
	}
	met := func(late, distance float64) retrieval.Hit {
		h := hit(distance, -1)
		h.Late = &late
		return h
	}
	c := Cuts{Late: .8, Distance: .2, Probability: .5}
	tests := map[string]struct {
		hits []retrieval.Hit
		want []bool
	}{
		"no hits":                            {nil, []bool{}},
		"near and probable":                  {[]retrieval.Hit{hit(.1, .9)}, []bool{true}},
		"at both cuts":                       {[]retrieval.Hit{hit(.2, .5)}, []bool{true}},
		"too far":                            {[]retrieval.Hit{hit(.201, .9)}, []bool{false}},
		"not probable":                       {[]retrieval.Hit{hit(.1, .49)}, []bool{false}},
		"near where nothing was reranked":    {[]retrieval.Hit{hit(.1, -1)}, []bool{true}},
		"a distance that nobody knows":       {[]retrieval.Hit{hit(-1, .9)}, []bool{false}},
		"far, yet every word is met":         {[]retrieval.Hit{met(.8, .9)}, []bool{true}},
		"near, yet its words are not met":    {[]retrieval.Hit{met(.799, .1)}, []bool{false}},
		"met, and nobody knows how far":      {[]retrieval.Hit{met(.9, -1)}, []bool{true}},
		"met to no number":                   {[]retrieval.Hit{met(math.NaN(), .1)}, []bool{false}},
		"far to no number":                   {[]retrieval.Hit{{Distance: new(math.NaN())}}, []bool{false}},
		"a later hit passes":                 {[]retrieval.Hit{hit(.3, .9), hit(.1, .6)}, []bool{false, true}},
		"four at most":                       {[]retrieval.Hit{hit(.1, .9), hit(.1, .9), hit(.3, .9), hit(.1, .9), hit(.1, .9), hit(.1, .9)}, []bool{true, true, false, true, true, false}},
		"nothing passes, and nothing is let": {[]retrieval.Hit{hit(.21, .1), hit(.22, .1)}, []bool{false, false}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := []bool{}
			for _, v := range c.judge(tt.hits, 4) {
				got = append(got, v.Passed)
				if v.Why == "" {
					t.Error("a verdict without a reason")
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A model without a cut for token states leaves the gate to the distance.
func TestGateWithoutALateCut(t *testing.T) {
	t.Parallel()
	late, near, far := .1, .1, .3
	got := Cuts{Distance: .2}.judge([]retrieval.Hit{{Late: &late, Distance: &near}, {Late: &late, Distance: &far}, {Late: &late}}, 4)
	for i, want := range []bool{true, false, false} {
		if got[i].Passed != want {
			t.Errorf("hit %d: %+v, want %v", i, got[i], want)
		}
	}
}

func TestRefusalText(t *testing.T) {
	t.Parallel()
	near := []Nearest{{Title: "Handbook", Section: []string{"Leave"}}, {Title: "Prices"}}
	tests := map[string]struct {
		reply    Reply
		reason   Reason
		audience acl.Audience
		want     string
	}{
		"English, in a direct message": {Reply{Question: "Who won?", Missing: []string{"won"}, Nearest: near}, NoMatch, acl.AskerOnly(),
			"I looked for “Who won?” in the documents that may be shown here, and cannot answer it from them.\nNothing I found is near enough to the question.\nFound nowhere in them: won.\nThe nearest documents:\n- Handbook > Leave\n- Prices\n" + english.next},
		"English, in a room": {Reply{Question: "Who won?"}, NotAnswered, acl.Room([]acl.Principal{acl.Everyone}),
			"I looked for “Who won?” in the documents that may be shown here, and cannot answer it from them.\nSome passages are near the question, but none of them answers it.\n" + english.next + "\n" + english.direct},
		"Korean": {Reply{Question: "누가 이겼나요?"}, NoMatch, acl.AskerOnly(),
			"여기에 보여 드릴 수 있는 문서에서 “누가 이겼나요?”을(를) 찾아보았지만, 그 문서들로는 답할 수 없습니다.\n질문에 충분히 가까운 내용이 없습니다.\n" + korean.next},
		"a language without its own words": {Reply{Question: "Qui a gagné ?", Language: "fr"}, NoMatch, acl.AskerOnly(),
			"I looked for “Qui a gagné ?” in the documents that may be shown here, and cannot answer it from them.\nNothing I found is near enough to the question.\n" + english.next},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tt.reply
			r.refuse(tt.reason, Message{Audience: tt.audience})
			if d := cmp.Diff(tt.want, r.Text); d != "" {
				t.Error(d)
			}
		})
	}
}
