package discordtest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
)

// form gathers the nested errors of a 50035.
type form struct {
	errors object
	n      int
}

func newForm() *form { return &form{errors: object{}} }

// add files an error under a dotted path such as embeds.0.title.
func (f *form) add(path, code, message string) {
	f.n++
	at := f.errors
	for part := range strings.SplitSeq(strings.Trim(path, "."), ".") {
		next, has := at[part].(object)
		if !has {
			next = object{}
			at[part] = next
		}
		at = next
	}
	l, _ := at["_errors"].([]object)
	at["_errors"] = append(l, object{"code": code, "message": message})
}

func (f *form) result() result {
	r := failure(400, 50035, "Invalid Form Body")
	r.body.(object)["errors"] = f.errors
	return r
}

// length counts UTF-16 units, the larger of the two ways in which Discord may count.
func length(text string) int { return len(utf16.Encode([]rune(text))) }

// text checks the length of a text.
func (f *form) text(path, text string, least, most int) {
	switch n := length(text); {
	case n < least && n == 0:
		f.add(path, "BASE_TYPE_REQUIRED", "This field is required")
	case n < least:
		f.add(path, "BASE_TYPE_MIN_LENGTH", fmt.Sprintf("Must be %d or more in length.", least))
	case n > most:
		f.add(path, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", most))
	}
}

func (f *form) count(path string, n, most int) {
	if n > most {
		f.add(path, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", most))
	}
}

// link checks an address in a button or embed.
func (f *form) link(path, link string, most int) {
	f.text(path, link, 1, most)
	u, err := url.Parse(link)
	if err != nil || u.Host == "" && u.Scheme != "discord" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "discord" {
		f.add(path, "URL_TYPE_INVALID_URL", "Not a well formed URL.")
	}
}

// payload is what a message-creating or -editing route takes.
type payload struct {
	Content         *string         `json:"content"`
	Embeds          json.RawMessage `json:"embeds"`
	Components      json.RawMessage `json:"components"`
	AllowedMentions json.RawMessage `json:"allowed_mentions"`
	Flags           int             `json:"flags"`
	Nonce           json.RawMessage `json:"nonce"`
	EnforceNonce    bool            `json:"enforce_nonce"`
	Reference       *struct {
		MessageID       string `json:"message_id"`
		ChannelID       string `json:"channel_id"`
		FailIfNotExists *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`

	sent     map[string]bool // which fields were there; null clears in an edit
	rules    mentionRules
	explicit bool
}

// parsePayload decodes and checks a message; prefix is "data." in a callback.
func parsePayload(body json.RawMessage, prefix string, allowedFlags int) (*payload, *result) {
	p, e := &payload{sent: map[string]bool{}}, newForm()
	var fields map[string]json.RawMessage
	if len(body) > 0 && string(body) != "null" {
		if err := json.Unmarshal(body, &fields); err != nil {
			e.add(prefix+"body", "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a model.")
		} else if err := json.Unmarshal(body, p); err != nil {
			e.add(prefix+fieldOf(err), "BASE_TYPE_BAD_TYPE", err.Error())
		}
	}
	for k := range fields {
		p.sent[k] = true
	}
	p.check(prefix, allowedFlags, e)
	if e.n > 0 {
		out := e.result()
		return p, &out
	}
	return p, nil
}

func fieldOf(err error) string {
	if te, isType := err.(*json.UnmarshalTypeError); isType && te.Field != "" {
		return te.Field
	}
	return "body"
}

func (p *payload) check(prefix string, allowedFlags int, e *form) {
	if p.Content != nil {
		e.text(prefix+"content", *p.Content, 0, 2000)
	}
	if p.Flags&^allowedFlags != 0 {
		e.add(prefix+"flags", "MESSAGE_FLAGS_INVALID", fmt.Sprintf("Flags %d are not allowed here.", p.Flags&^allowedFlags))
	}
	v2 := p.Flags&FlagComponentsV2 != 0
	if v2 && (p.Content != nil && *p.Content != "" || len(list(p.Embeds)) > 0) {
		e.add(prefix+"content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The 'content' and 'embeds' fields cannot be used with components v2.")
	}
	checkEmbeds(prefix+"embeds", p.Embeds, e)
	checkComponents(prefix+"components", p.Components, v2, e)
	p.rules, p.explicit = parseMentions(p.AllowedMentions, prefix, e)
	var nonce any
	if len(p.Nonce) > 0 && json.Unmarshal(p.Nonce, &nonce) == nil && nonce != nil {
		e.text(prefix+"nonce", fmt.Sprint(nonce), 0, 25)
	}
}

// isList says whether the JSON is an array, absent or null.
func isList(r json.RawMessage) bool {
	var l []any
	return len(r) == 0 || json.Unmarshal(r, &l) == nil
}

// checkEmbeds knows the limits of each part and the 6000 of all together.
func checkEmbeds(path string, embeds json.RawMessage, e *form) {
	if !isList(embeds) {
		e.add(path, "BASE_TYPE_BAD_TYPE", "Must be a list.")
		return
	}
	l := list(embeds)
	e.count(path, len(l), 10)
	total := 0
	for i, v := range l {
		o, isObject := v.(object)
		at := fmt.Sprintf("%s.%d", path, i)
		if !isObject {
			e.add(at, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a model.")
			continue
		}
		total += checkEmbed(at, o, e)
	}
	if total > 6000 {
		e.add(path, "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
	}
}

func checkEmbed(at string, o object, e *form) (size int) {
	limited := func(from object, path, key string, least, most int) {
		t, _ := from[key].(string)
		size += length(t)
		e.text(at+path+"."+key, t, least, most)
	}
	limited(o, "", "title", 0, 256)
	limited(o, "", "description", 0, 4096)
	if u, _ := o["url"].(string); u != "" {
		e.link(at+".url", u, 2048)
	}
	if f, has := o["footer"].(object); has {
		limited(f, ".footer", "text", 0, 2048)
	}
	if a, has := o["author"].(object); has {
		limited(a, ".author", "name", 0, 256)
	}
	fields, _ := o["fields"].([]any)
	e.count(at+".fields", len(fields), 25)
	for i, v := range fields {
		f, _ := v.(object)
		limited(f, fmt.Sprintf(".fields.%d", i), "name", 1, 256)
		limited(f, fmt.Sprintf(".fields.%d", i), "value", 1, 1024)
	}
	if size == 0 && o["image"] == nil && o["thumbnail"] == nil && len(fields) == 0 {
		e.add(at+".description", "BASE_TYPE_REQUIRED", "This field is required")
	}
	return size
}

// The component types by Discord's numbers.
const (
	actionRow = 1
	button    = 2
	selectBox = 3
	textInput = 4
	display   = 10
)

func checkComponents(path string, components json.RawMessage, v2 bool, e *form) {
	if !isList(components) {
		e.add(path, "BASE_TYPE_BAD_TYPE", "Must be a list.")
		return
	}
	l, ids := list(components), map[string]bool{}
	if v2 {
		checkV2(path, l, ids, e)
		return
	}
	e.count(path, len(l), 5)
	for i, v := range l {
		row, _ := v.(object)
		at := fmt.Sprintf("%s.%d", path, i)
		if number(row["type"]) != actionRow {
			e.add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).")
			continue
		}
		checkRow(at, row, ids, e)
	}
}

// checkV2 knows the sums of components v2 and looks into every action row.
func checkV2(path string, l []any, ids map[string]bool, e *form) {
	n, chars := 0, 0
	walk(l, func(o object) {
		if o["type"] == nil {
			return
		}
		n++
		if number(o["type"]) == actionRow {
			checkRow(path, o, ids, e)
		}
		if number(o["type"]) == display {
			t, _ := o["content"].(string)
			chars += length(t)
			e.text(path+".content", t, 1, 4000)
		}
	})
	if n > 40 {
		e.add(path, "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", "The total number of components cannot exceed 40")
	}
	if chars > 4000 {
		e.add(path, "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", "The total displayable text cannot exceed 4000")
	}
}

func checkRow(at string, row object, ids map[string]bool, e *form) {
	kids, _ := row["components"].([]any)
	if len(kids) == 0 || len(kids) > 5 {
		e.add(at+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	for i, v := range kids {
		o, _ := v.(object)
		kid := fmt.Sprintf("%s.components.%d", at, i)
		switch t := number(o["type"]); {
		case t == button:
			checkButton(kid, o, ids, e)
		case t >= selectBox && t <= 8 && t != textInput:
			checkSelect(kid, o, ids, e)
			if len(kids) > 1 {
				e.add(at+".components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "A select fills the row.")
			}
		default:
			e.add(kid+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (2, 3, 5, 6, 7, 8).")
		}
	}
}

func checkID(at string, o object, ids map[string]bool, e *form) {
	id, _ := o["custom_id"].(string)
	e.text(at+".custom_id", id, 1, 100)
	if ids[id] && id != "" {
		e.add(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
	}
	ids[id] = true
}

func checkButton(at string, o object, ids map[string]bool, e *form) {
	label, _ := o["label"].(string)
	e.text(at+".label", label, 0, 80)
	if label == "" && o["emoji"] == nil {
		e.add(at, "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", "A label or an emoji is required.")
	}
	switch style := number(o["style"]); {
	case style < 1 || style > 6:
		e.add(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
	case style == 5:
		u, _ := o["url"].(string)
		e.link(at+".url", u, 512)
		if id, _ := o["custom_id"].(string); id != "" {
			e.add(at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE", "A custom id and url cannot both be specified")
		}
	case style < 5:
		checkID(at, o, ids, e)
		if u, _ := o["url"].(string); u != "" {
			e.add(at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE", "A custom id and url cannot both be specified")
		}
	}
}

func checkSelect(at string, o object, ids map[string]bool, e *form) {
	checkID(at, o, ids, e)
	placeholder, _ := o["placeholder"].(string)
	e.text(at+".placeholder", placeholder, 0, 150)
	if number(o["type"]) != selectBox {
		return
	}
	options, _ := o["options"].([]any)
	if len(options) == 0 || len(options) > 25 {
		e.add(at+".options", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length.")
	}
	for i, v := range options {
		opt, _ := v.(object)
		for _, key := range []string{"label", "value"} {
			t, _ := opt[key].(string)
			e.text(fmt.Sprintf("%s.options.%d.%s", at, i, key), t, 1, 100)
		}
	}
}

// checkModal checks the data of a modal response.
func checkModal(data object) *result {
	e := newForm()
	title, _ := data["title"].(string)
	id, _ := data["custom_id"].(string)
	e.text("data.title", title, 1, 45)
	e.text("data.custom_id", id, 1, 100)
	rows, _ := data["components"].([]any)
	if len(rows) == 0 || len(rows) > 5 {
		e.add("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	ids, inputs := map[string]bool{}, 0
	walk(rows, func(o object) {
		if number(o["type"]) != textInput {
			return
		}
		inputs++
		checkID("data.components", o, ids, e)
		if label, has := o["label"].(string); has {
			e.text("data.components.label", label, 1, 45)
		}
		if style := number(o["style"]); style != 1 && style != 2 {
			e.add("data.components.style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
		}
		if value, has := o["value"].(string); has {
			e.text("data.components.value", value, 0, 4000)
		}
	})
	if inputs == 0 {
		e.add("data.components", "BASE_TYPE_REQUIRED", "This field is required")
	}
	if e.n > 0 {
		out := e.result()
		return &out
	}
	return nil
}
