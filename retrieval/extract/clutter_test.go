package extract_test

import (
	"strings"
	"testing"
)

func TestWhatStandsAroundTheContentIsLeftOut(t *testing.T) {
	t.Parallel()
	prose := "<p>" + strings.Repeat("The guide explains how to move all accounts to the new platform. ", 6) + "</p>"
	menu := "<ul>" + strings.Repeat(`<li><a href="/a">Menu entry</a></li>`, 12) + "</ul>"
	for _, c := range []struct {
		name, page string
		want, not  []string
	}{
		{"blocks named like it", `<div id="navbar">` + menu + `</div><div class="cookie-banner">We use cookies.</div><div class="sidebar"><p>See also this.</p></div><div id="content"><h1>Guide</h1>` + prose + `</div><div class="site-footer">Copyright.</div>`,
			[]string{"Guide", "all accounts"}, []string{"Menu entry", "cookies", "See also", "Copyright"}},
		{"blocks of links", `<div>` + menu + `</div><div><h1>Guide</h1>` + prose + `</div>`, []string{"all accounts"}, []string{"Menu entry"}},
		{"a page with such a name that holds the content", `<div class="page has-sidebar"><div class="related"><h1>Guide</h1>` + prose + `</div></div>`, []string{"Guide", "all accounts"}, nil},
		{"most of the text under such a name", `<div class="newsletter">` + prose + prose + `</div><div><p>Short.</p></div>`, []string{"all accounts", "Short."}, nil},
		{"a teaser that is a sentence", `<div class="teaser"><p>This introduction of the article says in one long sentence what all the rest of it is going to be about.</p></div>` + prose + prose, []string{"This introduction"}, nil},
		{"a page that is a list of links", `<h1>Downloads</h1>` + strings.ReplaceAll(menu, "Menu entry", "Driver version"), []string{"Driver version"}, nil},
		{"links in sentences", `<h1>Guide</h1><div><p>` + strings.Repeat(`Ask <a href="/a">the desk</a> before you change what <a href="/b">others</a> have set up there. `, 5) + `</p></div>` + prose, []string{"before you change"}, nil},
		{"elements that never end", `<div class="nav"><p>Home` + `<div><h1>Guide</h1>` + prose, []string{"Guide", "all accounts"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := tree(t, "a.html", "<html><body>"+c.page+"</body></html>").Canonical
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q is missing: %q", w, got)
				}
			}
			for _, n := range c.not {
				if strings.Contains(got, n) {
					t.Errorf("%q is there: %q", n, got)
				}
			}
		})
	}
}
