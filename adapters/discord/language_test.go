package discord

import (
	"strings"
	"testing"
	"unicode"

	dt "footnote/adapters/discord/discordtest"
	"footnote/adapters/discord/render"
	"footnote/bot/desk"
)

func hangul(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Hangul, r) })
}

// D-39: what only a person sees is in their language, what all see is in the
// server's, and what is neither known nor translated is in English.
func TestD39Languages(t *testing.T) {
	t.Parallel()
	x := newTown()
	for i := range x.world.Users {
		if x.world.Users[i].ID == x.bob {
			x.world.Users[i].Locale = "ko"
		}
	}
	english := newRig(t, x, setting{})
	t.Run("D-39 a Korean in an English server", func(t *testing.T) {
		aloud, alone := english.ask(x.bob, x.open, "what about all").WaitAnswer(), english.privately(x.bob, x.open, "what about all")
		if hangul(aloud.Content+string(aloud.Components)) || !strings.Contains(alone.Content, "**출처**") || !strings.Contains(string(alone.Components), "채널에 게시") {
			t.Errorf("aloud %s, alone %s %s", aloud.Content, alone.Content, alone.Components)
		}
		for what, m := range map[string]dt.Message{
			"help":     english.Command(x.bob, x.open, "footnote help", nil).WaitAnswer(),
			"status":   english.Command(x.bob, x.open, "footnote status", nil).WaitAnswer(),
			"a source": english.Click(x.bob, aloud, button(t, aloud, "s1")).WaitAnswer(),
			"a button": english.Click(x.bob, aloud, button(t, aloud, "no")).WaitAnswer(),
			"nothing":  english.Inject(x.bob, x.open, typeComponent, map[string]any{"custom_id": "x", "component_type": 2}).WaitAnswer(),
		} {
			if !hangul(m.Content + string(m.Embeds)) {
				t.Errorf("%s: %s", what, m.Content)
			}
		}
		if m := english.Command(x.cy, x.open, "footnote help", nil).WaitAnswer(); hangul(m.Content) {
			t.Errorf("to somebody else: %s", m.Content)
		}
	})
	english.clean()
	x.world.Guilds[0].Locale = "ko"
	korean := newRig(t, x, setting{})
	t.Run("D-39 an American in a Korean server", func(t *testing.T) {
		aloud, alone := korean.ask(x.cy, x.open, "what about all").WaitAnswer(), korean.privately(x.cy, x.open, "what about all")
		if !strings.Contains(aloud.Content, "**출처**") || hangul(alone.Content+string(alone.Components)) {
			t.Errorf("aloud %s, alone %s", aloud.Content, alone.Content)
		}
		korean.Click(x.cy, alone, button(t, alone, "post")).WaitAnswer()
		posted := korean.WaitMessage(x.open, func(m dt.Message) bool { return strings.HasPrefix(m.Content, "> ") })
		if !strings.Contains(posted.Content, "**출처**") {
			t.Errorf("posted %s", posted.Content)
		}
	})
	korean.clean()
}

// Texts of other packages are translated, too: a changed one is noticed here.
func TestD39EveryTextIsTranslated(t *testing.T) {
	t.Parallel()
	texts := []string{sayNotAvailable, sayNotServed, sayStarting, sayTimedOut, sayOff, sayTryAgain, sayFailed + " (Reference: ABC)", sayPrivately, sayPressed, sayPosted, sayNotShared, sayOld, sayNothing, sayNoSource, help}
	for _, v := range []desk.Verdict{desk.BusyAsker, desk.BusyRoom, desk.Busy, desk.Stale} {
		texts = append(texts, v.Text())
	}
	for _, c := range []desk.Cause{desk.Broke, desk.Panicked, desk.TimedOut, desk.TooOld, desk.Crashed, desk.Restarting} {
		texts = append(texts, desk.Trouble{Cause: c, Reference: "ABC"}.Text(), desk.Trouble{Cause: c}.Text())
	}
	for _, r := range render.Reasons {
		texts = append(texts, r[1])
	}
	for _, s := range texts {
		got := translate("ko", s)
		if !hangul(got) || strings.Contains(got, "ABC") != strings.Contains(s, "ABC") {
			t.Errorf("%q is %q", s, got)
		}
		for _, locale := range []string{"", "en-US", "kok", "de", "xx-ko"} {
			if translate(locale, s) != s {
				t.Errorf("%q is translated for %q", s, locale)
			}
		}
	}
	if got := translate("ko", "what nobody translated"); got != "what nobody translated" {
		t.Errorf("%q", got)
	}
}
