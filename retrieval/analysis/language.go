package analysis

import (
	"strings"
	"unicode"
)

// scripts that alone tell the language.
var scripts = []struct {
	table *unicode.RangeTable
	code  string
}{
	{unicode.Hangul, "ko"}, {unicode.Hiragana, "ja"}, {unicode.Katakana, "ja"}, {unicode.Han, "zh"},
	{unicode.Cyrillic, "ru"}, {unicode.Greek, "el"}, {unicode.Arabic, "ar"}, {unicode.Hebrew, "he"},
	{unicode.Thai, "th"}, {unicode.Devanagari, "hi"}, {unicode.Armenian, "hy"}, {unicode.Georgian, "ka"},
	{unicode.Bengali, "bn"}, {unicode.Tamil, "ta"}, {unicode.Telugu, "te"}, {unicode.Khmer, "km"},
	{unicode.Lao, "lo"}, {unicode.Myanmar, "my"}, {unicode.Ethiopic, "am"},
}

// profiles are the most frequent words of languages in Latin script, chosen so
// that few of them are words of another one.
var profiles = map[string]string{
	"en": "the of and to in is that it for was with are this be not have from you how what when which do does can i my we our your there where why who if or at on",
	"de": "der die das und ist nicht ein eine ich sie mit für auf den dem von zu wie was wird sich auch werden bei nach aus wir wer wo kann ihre einen im",
	"fr": "le la les des et est une un du que qui dans pour pas sur au avec vous nous je ce cette sont comment quel quelle où ne par il elle mon votre",
	"es": "el la los las de y que es en un una por con para no se del cómo qué su al lo como más pero está puedo mi cuál dónde son hay",
	"it": "il lo la gli di e che è un una per con non sono come del della si da nel alla più quale dove posso mio questo anche cosa le dei",
	"pt": "o os as de e que é um uma para com não do da em no na se por como mais está eu você meu qual onde são ao dos das",
	"nl": "de het een en van ik is dat niet op te zijn met voor aan hoe wat wordt er ook als bij naar kan mijn waar we uit om deze",
	"sv": "och att det som en ett är på av för med den till inte har jag om hur vad från kan ska var vi de eller",
	"da": "og at det som en et er på af for med den til ikke har jeg om hvordan hvad fra kan skal hvor vi de eller",
	"pl": "i w na się z do nie że to jest jak co od po za przez ale dla czy są gdzie mój być tego oraz",
	"cs": "a v na se z do je že to jak co od po za ale pro si jsou kde můj být této nebo který jako",
	"tr": "ve bir bu için ile ne nasıl da de mi çok daha olarak olan gibi kadar var değil en benim nerede",
	"id": "yang dan di ke dari untuk dengan ini itu tidak adalah pada saya apa bagaimana akan bisa ada dalam oleh",
	"vi": "và của là có không được cho trong một các những với này để như thế nào tôi ở đã khi",
	"fi": "ja on ei se että hän ovat mutta kun niin miten mitä tai kuin minä joka myös ole voi",
	"hu": "a az és hogy nem egy is van ez meg de mint csak hogyan mi kell vagy lesz ki volt",
}

var frequent = func() map[string][]string {
	m := map[string][]string{}
	for code, list := range profiles {
		for w := range strings.FieldsSeq(list) {
			m[w] = append(m[w], code)
		}
	}
	return m
}()

// languageSample is how many bytes Language looks at.
const languageSample = 32 << 10

// Language names the language of a text in ISO 639-1, "" if it holds no
// letters. The script decides first, Hangul and Kana weighing as much as
// three Latin letters, since technical text in them is full of English names.
// Latin script is told by its most frequent words; it is English unless
// another language is clearly ahead, so that short questions are English.
func Language(text string) string {
	text = text[:min(len(text), languageSample)]
	counts := map[string]int{}
	latin := 0
	for _, r := range text {
		switch {
		case r < 0x80:
			if r|0x20 >= 'a' && r|0x20 <= 'z' {
				latin++
			}
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.IsLetter(r):
			counts[script(r)]++
		}
	}
	best, n := "", 0
	for _, s := range scripts {
		if c := counts[s.code]; c > n {
			best, n = s.code, c
		}
	}
	if best == "zh" && counts["ja"]*20 > n || best == "ko" && counts["ja"] > n {
		best, n = "ja", n+counts["ja"]
	}
	if best == "ko" || best == "ja" || best == "zh" {
		n *= 3
	}
	switch {
	case n == 0 && latin == 0:
		return ""
	case n < latin:
		return latinLanguage(text)
	}
	return within(best, text)
}

func script(r rune) string {
	for _, s := range scripts {
		if unicode.Is(s.table, r) {
			return s.code
		}
	}
	return ""
}

// within tells apart languages of one script by letters of their own.
func within(code, text string) string {
	switch {
	case code == "ru" && strings.ContainsAny(text, "їєґЇЄҐ"):
		return "uk"
	case code == "ar" && strings.ContainsAny(text, "پچژگ"):
		return "fa"
	}
	return code
}

// latinLanguage counts frequent words. Another language must have at least two
// hits and half as many again as English.
func latinLanguage(text string) string {
	hits := map[string]int{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		for _, code := range frequent[w] {
			hits[code]++
		}
	}
	best := "en"
	for code, n := range hits {
		if code != "en" && n >= 2 && 2*n > 3*hits["en"] && (best == "en" || n > hits[best] || n == hits[best] && code < best) {
			best = code
		}
	}
	return best
}
