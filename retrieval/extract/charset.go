package extract

import (
	"strings"
	"unicode"
)

// alphabet is what a language writes beyond ASCII, and the charsets of one byte
// a character that it is found in, the likeliest first.
type alphabet struct {
	letters  string
	script   *unicode.RangeTable // counts like letters, nil none
	common   string              // letters that make up most of a text in the script
	charsets []string
}

var (
	western  = []string{"windows-1252", "iso-8859-15", "macintosh"}
	central  = []string{"windows-1250", "iso-8859-2"}
	cyrillic = []string{"windows-1251", "koi8-r", "iso-8859-5", "ibm866", "x-mac-cyrillic"}
)

// alphabets are tried in this order; of equally good ones the earlier wins.
var alphabets = []alphabet{
	{"äöüßÄÖÜ", nil, "", western},
	{"àâæçéèêëîïôœùûüÿÀÂÇÉÈÊÎÔŒÙ", nil, "", western},
	{"áéíóúüñ¿¡ÁÉÍÓÚÑ", nil, "", western},
	{"àèéìíòóùúÀÈÉÌÒÙ", nil, "", western},
	{"áéíóöőúüűÁÉÍÓÖŐÚÜŰ", nil, "", central},
	{"ãõâêôáéíóúàçÃÕÂÊÔÁÉÍÓÚÀÇ", nil, "", western},
	{"åäöæøéÅÄÖÆØÉ", nil, "", western},
	{"áðéíóúýþæöÁÐÉÍÓÚÝÞÆÖ", nil, "", western},
	{"ąćęłńóśźżĄĆĘŁŃÓŚŹŻ", nil, "", central},
	{"áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽ", nil, "", central},
	{"áäčďéíĺľňóôŕšťúýžÁÄČĎÉÍĹĽŇÓÔŔŠŤÚÝŽ", nil, "", central},
	{"čćđšžČĆĐŠŽ", nil, "", central},
	{"ăâîşţĂÂÎŞŢ", nil, "", central},
	{"çğıöşüâîûÇĞİÖŞÜÂÎÛ", nil, "", []string{"windows-1254"}},
	{"āčēģīķļņšūžąęėįųĀČĒĢĪĶĻŅŠŪŽĄĘĖĮŲ", nil, "", []string{"windows-1257"}},
	{"", unicode.Cyrillic, "оеаинтсрвлкмдпуяі", cyrillic},
	{"", unicode.Greek, "αοιετσνρπκμλυάέήίόύώςη", []string{"windows-1253", "iso-8859-7"}},
	{"", unicode.Hebrew, "יוהלאמרתבשנדכ", []string{"windows-1255", "iso-8859-8"}},
	{"", unicode.Arabic, "اليمنورتبةعدسه", []string{"windows-1256", "iso-8859-6"}},
	{"", unicode.Thai, "านรกอเงมยลวดทสตะปบคหั่้ิี", []string{"windows-874"}},
}

// neutral are signs that all languages use.
const neutral = "„“”‚‘’«»‹›–—…•·€£¥¢§©®™°±×÷²³¹¼½¾µ¶№¡¿ªº\u00a0\u00ad\u200e\u200f"

// singleByte finds the charset of one byte a character in which a text reads as
// one of the languages: its characters beyond ASCII are letters of that
// language, or signs between words, and no capital follows a small letter. 0 to
// 1 says how well.
func singleByte(part []byte) (string, float64) {
	best, bestScore := "", 0.0
	texts := map[string]string{}
	for _, a := range alphabets {
		for _, name := range a.charsets {
			if _, done := texts[name]; !done {
				texts[name] = ""
				if e, err := named(name); err == nil {
					if s, err := e.NewDecoder().Bytes(part); err == nil {
						texts[name] = string(s)
					}
				}
			}
			if s := a.share(texts[name]); s > bestScore+1e-9 {
				best, bestScore = name, s
			}
		}
	}
	return best, bestScore
}

// share is the share of characters beyond ASCII that the language explains,
// less those that it makes unlikely. Any bytes are letters of some script: so
// the letters that it uses most must be there.
func (a alphabet) share(text string) float64 {
	good, all, common := 0.0, 0.0, 0.0
	before := ' '
	runes := []rune(text)
	for i, r := range runes {
		if r >= 0x80 {
			after := ' '
			if i+1 < len(runes) {
				after = runes[i+1]
			}
			good += a.fits(before, r, after)
			all++
			if strings.ContainsRune(a.common, unicode.ToLower(r)) {
				common++
			}
		}
		before = r
	}
	if all == 0 {
		return 0
	}
	score := good / all
	switch {
	case a.script == nil:
	case common < 0.5*all:
		score /= 2
	default:
		score += 0.1 * common / all
	}
	return score
}

// fits is 1 for a character that belongs where it stands, negative for one that
// hardly ever does.
func (a alphabet) fits(before, r, after rune) float64 {
	within := unicode.IsLetter(before) && unicode.IsLetter(after)
	own := strings.ContainsRune(a.letters, r) || a.script != nil && unicode.Is(a.script, r)
	switch {
	case own && unicode.IsUpper(r) && unicode.IsLower(before):
		return -1
	case own && a.script != nil && (foreign(before) || foreign(after)):
		return -0.5 // two scripts in one word
	case own && unicode.IsUpper(r) && unicode.IsLower(after) && unicode.IsLetter(before):
		return 0
	case own:
		return 1
	case strings.ContainsRune(neutral, r) && (!within || r == '’' || r == '\u00ad' || r == '·'):
		return 0.9
	}
	return -1
}

// foreign reports a letter of ASCII.
func foreign(r rune) bool { return r < 0x80 && unicode.IsLetter(r) }
