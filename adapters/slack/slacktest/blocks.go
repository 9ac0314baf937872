package slacktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Surfaces that blocks are shown on; each allows other blocks.
const (
	SurfaceMessage = "message"
	SurfaceModal   = "modal"
	SurfaceHome    = "home"
)

type object = map[string]any

// checker walks a block tree and collects what Slack would complain about.
type checker struct {
	surface  string
	problems []string
	blockIDs map[string]bool
	inputs   int
	markdown int
}

// ValidateBlocks checks the JSON array of blocks as Slack does when a message
// or view is sent. It returns one text per problem, with a JSON pointer, or an
// error when the input is not an array of objects.
func ValidateBlocks(data []byte, surface string) ([]string, error) {
	var list []object
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("blocks are not a JSON array of objects: %w", err)
	}
	k := &checker{surface: surface, blockIDs: map[string]bool{}}
	k.blocks("/blocks", list)
	return k.problems, nil
}

// ValidateView checks a modal or home view, its blocks included.
func ValidateView(data []byte, surface string) ([]string, error) {
	var v object
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("view is not a JSON object: %w", err)
	}
	if v == nil {
		return nil, errors.New("view is null")
	}
	k := &checker{surface: surface, blockIDs: map[string]bool{}}
	if str(v, "type") != surface {
		k.bad("/view/type", "must be %s", surface)
	}
	if surface == SurfaceModal {
		k.plain("/view/title", v["title"], 24)
		for _, key := range []string{"submit", "close"} {
			if v[key] != nil {
				k.plain("/view/"+key, v[key], 24)
			}
		}
	}
	k.short("/view", v, "private_metadata", 3000)
	k.short("/view", v, "callback_id", 255)
	k.short("/view", v, "external_id", 255)
	list, ok := objects(v["blocks"])
	if !ok {
		k.bad("/view/blocks", "missing required field: blocks")
	}
	k.blocks("/view/blocks", list)
	if k.inputs > 0 && v["submit"] == nil && surface == SurfaceModal {
		k.bad("/view/submit", "submit is required when an input block is in the blocks array")
	}
	return k.problems, nil
}

func (k *checker) bad(at, format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf("[ERROR] "+format+" [json-pointer:%s]", append(args, at)...))
}

func str(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

func objects(v any) ([]object, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]object, 0, len(list))
	for _, e := range list {
		o, ok := e.(object)
		if !ok {
			return nil, false
		}
		out = append(out, o)
	}
	return out, true
}

func (k *checker) blocks(at string, list []object) {
	most := 50
	if k.surface != SurfaceMessage {
		most = 100
	}
	if len(list) > most {
		k.bad(at, "no more than %d items allowed", most)
	}
	for i, b := range list {
		k.block(at+"/"+strconv.Itoa(i), b)
	}
	if k.markdown > maxMarkdown {
		k.bad(at, "must be less than %d characters in all markdown blocks", maxMarkdown+1)
	}
}

func (k *checker) block(at string, b object) {
	if k.short(at, b, "block_id", 255); str(b, "block_id") != "" {
		if k.blockIDs[str(b, "block_id")] {
			k.bad(at+"/block_id", "block_id %q already exists", str(b, "block_id"))
		}
		k.blockIDs[str(b, "block_id")] = true
	}
	check, ok := map[string]func(string, object){
		"section": k.section, "header": k.header, "divider": func(string, object) {}, "context": k.context,
		"actions": k.actions, "context_actions": k.contextActions, "rich_text": k.richText, "markdown": k.markdownBlock,
		"image": k.image, "input": k.input,
	}[str(b, "type")]
	if !ok {
		k.bad(at+"/type", "unsupported type: %s", str(b, "type"))
		return
	}
	check(at, b)
}

// short checks the length of an optional string field.
func (k *checker) short(at string, o object, key string, most int) {
	v, present := o[key]
	s, isString := v.(string)
	if present && !isString {
		k.bad(at+"/"+key, "must be a string")
	}
	if units(s) > most {
		k.bad(at+"/"+key, "must be less than %d characters", most+1)
	}
}

// text checks a text object of one of the types.
func (k *checker) text(at string, v any, most int, types ...string) {
	o, ok := v.(object)
	if !ok {
		k.bad(at, "missing required field: %s", at[strings.LastIndex(at, "/")+1:])
		return
	}
	if !slices.Contains(types, str(o, "type")) {
		k.bad(at+"/type", "must be %s", strings.Join(types, " or "))
	}
	if n := units(str(o, "text")); n < 1 || n > most {
		k.bad(at+"/text", "must be more than 0 and less than %d characters", most+1)
	}
	if o["verbatim"] != nil && str(o, "type") == "plain_text" {
		k.bad(at+"/verbatim", "invalid additional property: verbatim")
	}
	if o["emoji"] != nil && str(o, "type") == "mrkdwn" {
		k.bad(at+"/emoji", "invalid additional property: emoji")
	}
}

func (k *checker) plain(at string, v any, most int) { k.text(at, v, most, "plain_text") }

func (k *checker) section(at string, b object) {
	fields, hasFields := objects(b["fields"])
	if b["text"] == nil && !hasFields {
		k.bad(at, "missing required field: text")
	}
	if b["text"] != nil {
		k.text(at+"/text", b["text"], 3000, "mrkdwn", "plain_text")
	}
	if hasFields && (len(fields) < 1 || len(fields) > 10) {
		k.bad(at+"/fields", "must have 1 to 10 items")
	}
	for i, f := range fields {
		k.text(fmt.Sprintf("%s/fields/%d", at, i), f, 2000, "mrkdwn", "plain_text")
	}
	if a, ok := b["accessory"].(object); ok {
		k.element(at+"/accessory", a, map[string]bool{})
	}
}

func (k *checker) header(at string, b object) { k.plain(at+"/text", b["text"], 150) }

func (k *checker) context(at string, b object) {
	for i, e := range k.elements(at, b, 10) {
		p := fmt.Sprintf("%s/elements/%d", at, i)
		if str(e, "type") == "image" {
			k.image(p, e)
		} else {
			k.text(p, e, 3000, "mrkdwn", "plain_text")
		}
	}
}

func (k *checker) elements(at string, b object, most int) []object {
	list, ok := objects(b["elements"])
	if !ok || len(list) < 1 || len(list) > most {
		k.bad(at+"/elements", "must have 1 to %d items", most)
	}
	return list
}

func (k *checker) actions(at string, b object) {
	seen := map[string]bool{}
	for i, e := range k.elements(at, b, 25) {
		k.element(fmt.Sprintf("%s/elements/%d", at, i), e, seen)
	}
}

func (k *checker) contextActions(at string, b object) {
	if k.surface != SurfaceMessage {
		k.bad(at+"/type", "unsupported type: context_actions")
	}
	seen := map[string]bool{}
	for i, e := range k.elements(at, b, 5) {
		p := fmt.Sprintf("%s/elements/%d", at, i)
		switch str(e, "type") {
		case "feedback_buttons":
			k.actionID(p, e, seen)
			for _, key := range []string{"positive_button", "negative_button"} {
				o, _ := e[key].(object)
				k.plain(p+"/"+key+"/text", o["text"], 75)
				k.short(p+"/"+key, o, "value", 2000)
			}
		case "icon_button":
			k.actionID(p, e, seen)
			k.plain(p+"/text", e["text"], 75)
		default:
			k.bad(p+"/type", "unsupported type: %s", str(e, "type"))
		}
	}
}

func (k *checker) actionID(at string, e object, seen map[string]bool) {
	k.short(at, e, "action_id", 255)
	if id := str(e, "action_id"); id != "" {
		if seen[id] {
			k.bad(at+"/action_id", "action_id %q already exists for another element in this block", id)
		}
		seen[id] = true
	}
}

// element checks an interactive element or an image accessory.
func (k *checker) element(at string, e object, seen map[string]bool) {
	k.actionID(at, e, seen)
	switch t := str(e, "type"); t {
	case "button":
		k.plain(at+"/text", e["text"], 75)
		k.short(at, e, "value", 2000)
		k.short(at, e, "url", 3000)
		k.short(at, e, "accessibility_label", 75)
		if s := str(e, "style"); e["style"] != nil && s != "primary" && s != "danger" {
			k.bad(at+"/style", "must be primary or danger")
		}
		if u := str(e, "url"); u != "" && !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") {
			k.bad(at+"/url", "invalid url")
		}
	case "static_select", "multi_static_select", "overflow", "radio_buttons", "checkboxes":
		k.options(at, e, map[string]int{"overflow": 5, "radio_buttons": 10, "checkboxes": 10}[t])
	case "plain_text_input":
		if e["placeholder"] != nil {
			k.plain(at+"/placeholder", e["placeholder"], 150)
		}
	case "image":
		k.image(at, e)
	case "datepicker", "users_select", "conversations_select", "channels_select":
	default:
		k.bad(at+"/type", "unsupported type: %s", t)
	}
}

func (k *checker) options(at string, e object, most int) {
	if most == 0 {
		most = 100
	}
	list, ok := objects(e["options"])
	if !ok && e["option_groups"] == nil || len(list) > most || ok && len(list) < 1 {
		k.bad(at+"/options", "must have 1 to %d items", most)
	}
	for i, o := range list {
		p := fmt.Sprintf("%s/options/%d", at, i)
		k.text(p+"/text", o["text"], 75, "plain_text", "mrkdwn")
		k.short(p, o, "value", 150)
	}
}

func (k *checker) image(at string, b object) {
	if str(b, "image_url") == "" && b["slack_file"] == nil {
		k.bad(at, "missing required field: image_url")
	}
	k.short(at, b, "image_url", 3000)
	if n := units(str(b, "alt_text")); n < 1 || n > 2000 {
		k.bad(at+"/alt_text", "must be more than 0 and less than 2001 characters")
	}
}

func (k *checker) input(at string, b object) {
	k.inputs++
	k.plain(at+"/label", b["label"], 2000)
	if b["hint"] != nil {
		k.plain(at+"/hint", b["hint"], 2000)
	}
	e, ok := b["element"].(object)
	if !ok {
		k.bad(at, "missing required field: element")
		return
	}
	if str(e, "type") == "button" {
		k.bad(at+"/element/type", "unsupported type: button")
	}
	k.element(at+"/element", e, map[string]bool{})
}

func (k *checker) markdownBlock(at string, b object) {
	if k.surface != SurfaceMessage {
		k.bad(at+"/type", "unsupported type: markdown")
	}
	n := units(str(b, "text"))
	if n < 1 {
		k.bad(at+"/text", "must be more than 0 characters")
	}
	k.markdown += n
}

func (k *checker) richText(at string, b object) {
	list, ok := objects(b["elements"])
	if !ok {
		k.bad(at+"/elements", "missing required field: elements")
	}
	for i, e := range list {
		k.richElement(fmt.Sprintf("%s/elements/%d", at, i), e)
	}
}

func (k *checker) richElement(at string, e object) {
	list, ok := objects(e["elements"])
	if !ok {
		k.bad(at+"/elements", "missing required field: elements")
	}
	t := str(e, "type")
	switch t {
	case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
	case "rich_text_list":
		if s := str(e, "style"); s != "bullet" && s != "ordered" {
			k.bad(at+"/style", "must be bullet or ordered")
		}
		if indent, _ := e["indent"].(float64); indent > 8 {
			k.bad(at+"/indent", "must be less than 9")
		}
	default:
		k.bad(at+"/type", "unsupported type: %s", t)
		return
	}
	for i, in := range list {
		p := fmt.Sprintf("%s/elements/%d", at, i)
		if t != "rich_text_list" {
			k.inline(p, in, t)
		} else if str(in, "type") != "rich_text_section" {
			k.bad(p+"/type", "must be rich_text_section")
		} else {
			k.richElement(p, in)
		}
	}
}

var inlineRequires = map[string]string{
	"text": "text", "link": "url", "user": "user_id", "usergroup": "usergroup_id", "channel": "channel_id",
	"emoji": "name", "broadcast": "range", "date": "timestamp", "color": "value", "team": "team_id",
}

// inline checks a leaf of a rich_text block.
func (k *checker) inline(at string, e object, parent string) {
	t := str(e, "type")
	need, ok := inlineRequires[t]
	if !ok || parent == "rich_text_preformatted" && t != "text" && t != "link" {
		k.bad(at+"/type", "unsupported type: %s", t)
		return
	}
	if e[need] == nil || e[need] == "" {
		k.bad(at+"/"+need, "missing required field: %s", need)
	}
	if r := str(e, "range"); t == "broadcast" && !slices.Contains([]string{"here", "channel", "everyone"}, r) {
		k.bad(at+"/range", "must be here, channel or everyone")
	}
	if t == "link" {
		k.short(at, e, "url", 3000)
	}
	style, isObject := e["style"].(object)
	if e["style"] != nil && !isObject {
		k.bad(at+"/style", "must be an object")
	}
	for name := range style {
		if !slices.Contains([]string{"bold", "italic", "strike", "code", "underline", "highlight", "client_highlight", "unlink"}, name) {
			k.bad(at+"/style/"+name, "invalid additional property: %s", name)
		}
	}
}

// blockTotal counts the characters of all texts in the blocks.
func blockTotal(data []byte) int {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return 0
	}
	n := 0
	walk(v, func(o object) {
		if t, ok := o["text"].(string); ok {
			n += units(t)
		}
	})
	return n
}

// walk visits every object in a JSON value, parents first.
func walk(v any, visit func(object)) {
	switch v := v.(type) {
	case object:
		visit(v)
		for _, e := range v {
			walk(e, visit)
		}
	case []any:
		for _, e := range v {
			walk(e, visit)
		}
	}
}
