package extract

import (
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

// TestShortTextsInCharsetsOfTheirTime encodes a sentence and expects it back,
// without a word about the charset.
func TestShortTextsInCharsetsOfTheirTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		charsets []string
	}{
		{"Schöne Grüße aus München, die Straße ist gesperrt.", []string{"windows-1252"}},
		{"The word Größe appears once.", []string{"windows-1252"}},
		{"Le café coûte 3 €, dit l’élève à sa mère.", []string{"windows-1252"}},
		{"Zażółć gęślą jaźń. Proszę sprawdzić urządzenie przed użyciem.", []string{"windows-1250", "iso-8859-2"}},
		{"Před použitím zařízení si přečtěte návod k obsluze.", []string{"windows-1250", "iso-8859-2"}},
		{"Használat előtt olvassa el a kezelési útmutatót, és őrizze meg.", []string{"windows-1250"}},
		{"Lütfen cihazı kullanmadan önce kılavuzu okuyun. Şifre değiştirme güvenlidir.", []string{"windows-1254"}},
		{"Перед включением проверьте кабель питания и нажмите кнопку «Пуск».", []string{"windows-1251"}},
		{"Перед включением проверьте кабель питания.", []string{"koi8-r", "iso-8859-5", "ibm866"}},
		{"Παρακαλώ διαβάστε τις οδηγίες πριν από τη χρήση.", []string{"windows-1253"}},
		{"אנא קראו את ההוראות לפני השימוש במכשיר.", []string{"windows-1255"}},
		{"يرجى قراءة التعليمات قبل استخدام الجهاز.", []string{"windows-1256"}},
		{"โปรดอ่านคำแนะนำก่อนใช้งานอุปกรณ์นี้", []string{"windows-874"}},
		{"名前,部署\n山田太郎,営業部のひと", []string{"shift_jis", "euc-jp"}},
		{"안녕하세요", []string{"euc-kr"}},
		{"请在使用设备之前阅读说明书。如果有问题，请联系客户服务部门。", []string{"gbk"}},
	} {
		for _, name := range c.charsets {
			e, err := htmlindex.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			data, err := e.NewEncoder().Bytes([]byte(c.text))
			if err != nil {
				t.Fatalf("%s in %s: %v", c.text, name, err)
			}
			d, err := decode(data, false)
			if err != nil || d.text != c.text {
				t.Errorf("in %s: %q %v %v, want %q", name, d.text, d.warnings, err, c.text)
			}
		}
	}
}
