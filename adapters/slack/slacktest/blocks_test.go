package slacktest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"footnote/adapters/slack/slacktest"
)

func TestValidateBlocks(t *testing.T) {
	t.Parallel()
	button := func(fields string) string {
		return `[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"}` + fields + `}]}]`
	}
	rich := func(inline string) string {
		return `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + inline + `]}]}]`
	}
	long := func(n int) string { return strings.Repeat("a", n) }
	cases := map[string]struct {
		blocks, want string // want is part of the problem, "" for none
	}{
		"section":                  {section("x"), ""},
		"section at its limit":     {section(long(3000)), ""},
		"section over its limit":   {section(long(3001)), "less than 3001"},
		"section without text":     {`[{"type":"section"}]`, "missing required field"},
		"eleven fields":            {`[{"type":"section","fields":[` + strings.TrimSuffix(strings.Repeat(`{"type":"mrkdwn","text":"x"},`, 11), ",") + `]}]`, "1 to 10"},
		"long field":               {`[{"type":"section","fields":[{"type":"mrkdwn","text":"` + long(2001) + `"}]}]`, "/blocks/0/fields/0/text"},
		"header of 150":            {`[{"type":"header","text":{"type":"plain_text","text":"` + long(150) + `"}}]`, ""},
		"header of 151":            {`[{"type":"header","text":{"type":"plain_text","text":"` + long(151) + `"}}]`, "less than 151"},
		"header in mrkdwn":         {`[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`, "must be plain_text"},
		"context of eleven":        {`[{"type":"context","elements":[` + strings.TrimSuffix(strings.Repeat(`{"type":"mrkdwn","text":"x"},`, 11), ",") + `]}]`, "1 to 10"},
		"context of nothing":       {`[{"type":"context","elements":[]}]`, "1 to 10"},
		"divider":                  {`[{"type":"divider"}]`, ""},
		"unknown block":            {`[{"type":"hologram"}]`, "unsupported type: hologram"},
		"block id twice":           {`[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`, "already exists"},
		"long block id":            {`[{"type":"divider","block_id":"` + long(256) + `"}]`, "less than 256"},
		"button":                   {button(`,"action_id":"a","value":"v","style":"primary","url":"https://a.b"`), ""},
		"button with a bad style":  {button(`,"style":"loud"`), "primary or danger"},
		"button with a bad url":    {button(`,"url":"javascript:alert(1)"`), "invalid url"},
		"button with a long value": {button(`,"value":"` + long(2001) + `"`), "less than 2001"},
		"button with a long label": {`[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"` + long(76) + `"}}]}]`, "less than 76"},
		"action id twice": {`[{"type":"actions","elements":[{"type":"button","action_id":"a","text":{"type":"plain_text","text":"x"}},
			{"type":"button","action_id":"a","text":{"type":"plain_text","text":"y"}}]}]`, "already exists"},
		"26 buttons":       {`[{"type":"actions","elements":[` + strings.TrimSuffix(strings.Repeat(`{"type":"button","text":{"type":"plain_text","text":"x"}},`, 26), ",") + `]}]`, "1 to 25"},
		"feedback buttons": {`[{"type":"context_actions","elements":[{"type":"feedback_buttons","action_id":"f","positive_button":{"text":{"type":"plain_text","text":"+"},"value":"p"},"negative_button":{"text":{"type":"plain_text","text":"-"},"value":"n"}}]}]`, ""},
		"half of them":     {`[{"type":"context_actions","elements":[{"type":"feedback_buttons","positive_button":{"text":{"type":"plain_text","text":"+"}}}]}]`, "negative_button"},
		"markdown":         {`[{"type":"markdown","text":"**x**"}]`, ""},
		"markdown in two blocks over the sum": {fmt.Sprintf(`[{"type":"markdown","text":"%s"},{"type":"markdown","text":"%s"}]`, long(6001), long(6000)),
			"all markdown blocks"},
		"rich text":                {rich(`{"type":"text","text":"x","style":{"bold":true}},{"type":"link","url":"https://a.b","text":"y"}`), ""},
		"rich text list":           {`[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"ordered","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"}]}]}]}]`, ""},
		"list of texts":            {`[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"bullet","elements":[{"type":"text","text":"x"}]}]}]`, "must be rich_text_section"},
		"empty text":               {rich(`{"type":"text","text":""}`), "missing required field: text"},
		"link without url":         {rich(`{"type":"link","text":"x"}`), "missing required field: url"},
		"unknown style":            {rich(`{"type":"text","text":"x","style":{"blink":true}}`), "blink"},
		"style as a string":        {rich(`{"type":"text","text":"x","style":"bold"}`), "must be an object"},
		"unknown broadcast":        {rich(`{"type":"broadcast","range":"all"}`), "here, channel or everyone"},
		"user in preformatted":     {`[{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"user","user_id":"U0A"}]}]}]`, "unsupported type: user"},
		"unknown rich element":     {`[{"type":"rich_text","elements":[{"type":"rich_text_poem","elements":[]}]}]`, "rich_text_poem"},
		"image without alt text":   {`[{"type":"image","image_url":"https://a.b/c.png"}]`, "alt_text"},
		"verbatim on plain_text":   {`[{"type":"header","text":{"type":"plain_text","text":"x","verbatim":true}}]`, "verbatim"},
		"emoji on mrkdwn":          {`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, "emoji"},
		"overflow of six":          {`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"overflow","options":[` + strings.TrimSuffix(strings.Repeat(`{"text":{"type":"plain_text","text":"x"},"value":"v"},`, 6), ",") + `]}}]`, "1 to 5"},
		"unknown element":          {`[{"type":"actions","elements":[{"type":"lever"}]}]`, "unsupported type: lever"},
		"input with a button":      {`[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"button","text":{"type":"plain_text","text":"x"}}}]`, "unsupported type: button"},
		"block id is not a string": {`[{"type":"divider","block_id":7}]`, "must be a string"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := slacktest.ValidateBlocks([]byte(c.blocks), slacktest.SurfaceMessage)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(problems, "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

func TestValidateView(t *testing.T) {
	t.Parallel()
	modal := func(fields string) string {
		return `{"type":"modal","title":{"type":"plain_text","text":"t"},"blocks":[]` + fields + `}`
	}
	cases := map[string]struct{ view, surface, want string }{
		"modal":                  {modal(""), slacktest.SurfaceModal, ""},
		"home":                   {`{"type":"home","blocks":[]}`, slacktest.SurfaceHome, ""},
		"home as a modal":        {`{"type":"home","blocks":[]}`, slacktest.SurfaceModal, "must be modal"},
		"title of 25":            {`{"type":"modal","title":{"type":"plain_text","text":"` + strings.Repeat("a", 25) + `"},"blocks":[]}`, slacktest.SurfaceModal, "less than 25"},
		"long close":             {modal(`,"close":{"type":"plain_text","text":"` + strings.Repeat("a", 25) + `"}`), slacktest.SurfaceModal, "/view/close"},
		"no blocks":              {`{"type":"modal","title":{"type":"plain_text","text":"t"}}`, slacktest.SurfaceModal, "blocks"},
		"long metadata":          {modal(`,"private_metadata":"` + strings.Repeat("a", 3001) + `"`), slacktest.SurfaceModal, "private_metadata"},
		"input without a submit": {`{"type":"modal","title":{"type":"plain_text","text":"t"},"blocks":[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input"}}]}`, slacktest.SurfaceModal, "submit is required"},
		"markdown in a modal":    {`{"type":"modal","title":{"type":"plain_text","text":"t"},"blocks":[{"type":"markdown","text":"x"}]}`, slacktest.SurfaceModal, "markdown"},
		"101 blocks":             {`{"type":"home","blocks":[` + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, 101), ",") + `]}`, slacktest.SurfaceHome, "no more than 100"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := slacktest.ValidateView([]byte(c.view), c.surface)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(problems, "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzValidateBlocks(f *testing.F) {
	f.Add([]byte(section("x")))
	f.Add([]byte(`[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"bullet","elements":[]}]}]`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := slacktest.ValidateBlocks(data, slacktest.SurfaceMessage)
		if err == nil && !json.Valid(data) {
			t.Errorf("accepted what is not JSON: %q", data)
		}
		_, _ = slacktest.ValidateView(data, slacktest.SurfaceModal)
		_ = slacktest.Pings(slacktest.Message{Text: string(data), Blocks: data})
	})
}
