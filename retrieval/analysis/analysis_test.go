package analysis_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval/analysis"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", " \n?! ... --- ", ""},
		{"prose", "The Quick, brown fox.", "the quick brown fox"},
		{"case beyond ASCII", "STRASSE Straße ÉTÉ", "strasse strasse été"},
		{"compatibility forms", "ﬁle ＡＢＣ ½", "file abc 1⁄2"},
		{"possessive", "the employee's and the boss’s", "the employee and the boss"},
		{"error code", "ERR-4012.", "err-4012 err 4012"},
		{"version", "v2.3.1,", "v2.3.1 v2"},
		{"snake case", "foo_bar", "foo_bar foo bar"},
		{"camel case", "fooBar HTTPServer", "foobar foo bar httpserver http server"},
		{"address", "mail a@b.c or jane.doe@example.org", "mail a@b.c a b.c or jane.doe@example.org jane.doe jane doe example.org example org"},
		{"path", "/etc/hosts", "/etc/hosts etc hosts"},
		{"assignment", "CONFIG_X=1", "config_x=1 config_x config 1"},
		{"ticket number", "see #1234", "see #1234 1234"},
		{"hidden file", ".env", ".env env"},
		{"languages with signs", "C++ and C#", "c++ c and c# c"},
		{"numbers", "3.14 1,000 10%", "3.14 1,000 10% 10"},
		{"Hangul", "비밀번호를", "비밀 밀번 번호 호를"},
		{"one syllable", "키", "키"},
		{"one syllable under a particle", "키를", "키를 키"},
		{"Latin and Hangul", "API키를", "api 키를 키"},
		{"Han", "重置密码", "重置 置密 密码"},
		{"Kana", "パスワード", "パス スワ ワー ード"},
		{"half-width Kana", "ﾊﾟｽ", "パス"},
		{"emoji", "ship 🚀", "ship 🚀"},
		{"encoded data", "x " + strings.Repeat("QUJDREVG", 20) + " y", "x y"},
		{"escape sequence", "\x1b[31mred", "31mred"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, strings.Join(analysis.Terms(c.text), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCase_Q1_BareNounIsFoundUnderItsParticle(t *testing.T) {
	t.Parallel()
	for noun, sentence := range map[string]string{
		"비밀번호": "비밀번호를 바꾸려면 설정을 여세요.",
		"휴가":   "휴가는 매년 1월에 갱신됩니다.",
		"서버":   "서버가 응답하지 않습니다.",
		"계약서":  "계약서에 서명하세요.",
		"팀":    "팀은 월요일에 만납니다.",
		"값":    "값이 비어 있습니다.",
		"키":    "API키를 교체합니다.",
		"예산":   "예산으로 구매합니다.",
		"직원":   "직원과 상담하세요.",
		"결제":   "결제만 가능합니다.",
	} {
		terms := analysis.Terms(sentence)
		for _, term := range analysis.Terms(noun) {
			// 휴가 alone could be 휴 under a particle: what counts are its pairs.
			if !slices.Contains(terms, term) && (utf8.RuneCountInString(term) > 1 || term == noun) {
				t.Errorf("%s: %s is not among %v", noun, term, terms)
			}
		}
	}
}

func TestCase_Q2_QuestionAndDocumentShareTerms(t *testing.T) {
	t.Parallel()
	for question, document := range map[string]string{
		"如何重置密码？":           "如果忘记了，可以在这里重置密码。",
		"パスワードの変更は？":        "ここでパスワードを変更できます。",
		"비밀번호 재설정은 어떻게 하나요": "비밀번호를 재설정하려면 링크를 누르세요.",
	} {
		shared := 0
		terms := analysis.Terms(document)
		for _, term := range analysis.Terms(question) {
			if slices.Contains(terms, term) {
				shared++
			}
		}
		if shared < 3 {
			t.Errorf("%s shares %d terms with %s", question, shared, document)
		}
	}
}

func TestTermsAreBounded(t *testing.T) {
	t.Parallel()
	for _, line := range []string{strings.Repeat("a-", 1<<19), strings.Repeat("x", 5<<20), strings.Repeat("/", 1<<20), strings.Repeat("가", 1<<18), strings.Repeat("a\u0301", 1<<18), strings.Repeat("aB", 1<<19)} {
		if n := len(analysis.Terms(line)); n > len(line) {
			t.Errorf("%d terms of %d bytes", n, len(line))
		}
	}
}

func checkTerms(t interface{ Errorf(string, ...any) }, s string) {
	terms := analysis.Terms(s)
	if diff := cmp.Diff(terms, analysis.Terms(s)); diff != "" {
		t.Errorf("not deterministic: %s", diff)
	}
	for _, term := range terms {
		if term == "" || utf8.RuneCountInString(term) > 3*64 || strings.ContainsFunc(term, unicode.IsSpace) {
			t.Errorf("term %q of %q", term, s)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"ERR-4012 /etc/hosts a@b.c", "비밀번호를 API키를", "ﬁle ｶﾞ e\u0301 \u0301", "\xff\xfe", "İIıß"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkTerms(t, s) })
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", " \n ", nil},
		{"prose", "One. Two! Three? Four", []string{"One.", "Two!", "Three?", "Four"}},
		{"hard wrapping", "it can take up to\n8 weeks. Then\nmore.", []string{"it can take up to\n8 weeks.", "Then\nmore."}},
		{"paragraphs", "no stop\n\nnext", []string{"no stop", "next"}},
		{"abbreviations", "Dr. Smith, e.g. in the U.S. Army. He left.", []string{"Dr. Smith, e.g. in the U.S. Army.", "He left."}},
		{"initials", "J. R. R. Tolkien wrote. We read.", []string{"J. R. R. Tolkien wrote.", "We read."}},
		{"stops without a space", "See v2.3.1 at https://x.y/?a=b.c now. Ok", []string{"See v2.3.1 at https://x.y/?a=b.c now.", "Ok"}},
		{"list items", "- one\n- two. More\n1. three\n", []string{"- one", "- two.", "More", "1. three"}},
		{"table rows", "| a. b |\n| c |", []string{"| a. b |", "| c |"}[:0:0]},
		{"fenced code", "Run it.\n```\na. B. C!\n\nd\n```\nDone.", []string{"Run it.", "```\na. B. C!\n\nd\n```", "Done."}},
		{"inline code", "Call `a. B` now. Ok.", []string{"Call `a. B` now.", "Ok."}},
		{"Korean", "신청합니다. 승인됩니다.", []string{"신청합니다.", "승인됩니다."}},
		{"Korean lines without stops", "신청할 수 있습니다\n승인은 팀장이 합니다", []string{"신청할 수 있습니다", "승인은 팀장이 합니다"}},
		{"Chinese", "可以。不行！", []string{"可以。", "不行！"}},
		{"bold", "**Note.** It works.", []string{"**Note.**", "It works."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range analysis.Sentences(c.text) {
				got = append(got, c.text[s.From:s.To])
			}
			if c.name == "table rows" {
				if len(got) < 2 || !strings.HasPrefix(got[len(got)-1], "| c") {
					t.Errorf("%q", got)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func checkSentences(t interface{ Errorf(string, ...any) }, s string) {
	last := 0
	for _, p := range analysis.Sentences(s) {
		if p.From < last || p.To <= p.From || p.To > len(s) {
			t.Errorf("%v after %d in %q", p, last, s)
			return
		}
		if strings.TrimSpace(s[last:p.From]) != "" || strings.TrimSpace(s[p.From:p.To]) != s[p.From:p.To] {
			t.Errorf("%q is not covered or %q not trimmed", s[last:p.From], s[p.From:p.To])
		}
		last = p.To
	}
	if strings.TrimSpace(s[last:]) != "" {
		t.Errorf("%q is not covered", s[last:])
	}
}

func FuzzSentences(f *testing.F) {
	for _, s := range []string{"One. Two\n- x\n\n```\na. b\n```\n", "합니다\n그리고. \u3000。", "\xff. `a\nb`", "1. 2. 3."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkSentences(t, s) })
}

func TestAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.String().Draw(r, "text")
		checkTerms(r, s)
		checkSentences(r, s)
	})
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"1234 !?":                      "",
		"what is it":                   "en",
		"useState setFoo":              "en",
		"reset password":               "en",
		"How do I rotate the API key?": "en",
		"API 키를 어떻게 만들어요?":             "ko",
		"useEffect의 cleanup 함수는 언제 실행돼?":                  "ko",
		"パスワードの変更方法":                                      "ja",
		"如何重置密码":                                          "zh",
		"Как сменить пароль?":                             "ru",
		"Як змінити пароль, її":                           "uk",
		"كيف أغير كلمة المرور":                            "ar",
		"Wie kann ich das Passwort ändern?":               "de",
		"Comment changer le mot de passe de mon compte":   "fr",
		"¿Cómo puedo cambiar la contraseña de mi cuenta?": "es",
		"What does 김치 mean in the menu?":                  "en",
	} {
		if got := analysis.Language(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestFunction(t *testing.T) {
	t.Parallel()
	for _, question := range []string{"how do I", "What's it?", "I don't know what that is", "can’t you", "pls tell me how"} {
		for _, term := range analysis.Terms(question) {
			if !analysis.Function(term) {
				t.Errorf("%q of %q has a meaning of its own", term, question)
			}
		}
	}
	for _, term := range []string{"key", "rotate", "err-4012", "비밀", "it.skip", "", "'"} {
		if analysis.Function(term) {
			t.Errorf("%q has none", term)
		}
	}
}
