package sandbox

import (
	"encoding/json"
	"html"
	"html/template"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// blocks shows Slack's blocks as HTML. Every text is escaped here.
type blocks struct {
	names   func(user string) string
	out     strings.Builder
	buttons [][]pressable
}

// show renders a list of blocks; actions become buttons beside the HTML.
func (b *blocks) show(raw json.RawMessage) template.HTML {
	var list []object
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	for _, o := range list {
		b.block(o)
	}
	return template.HTML(b.out.String())
}

func (b *blocks) tag(name, class string, inside func()) {
	b.out.WriteString("<" + name)
	if class != "" {
		b.out.WriteString(` class="` + class + `"`)
	}
	b.out.WriteString(">")
	inside()
	b.out.WriteString("</" + name + ">")
}

func (b *blocks) text(s string) { b.out.WriteString(html.EscapeString(s)) }

func (b *blocks) block(o object) {
	switch field(o, "type") {
	case "rich_text":
		for _, e := range objects(o["elements"]) {
			b.rich(e)
		}
	case "divider":
		b.out.WriteString("<hr>")
	case "actions", "context_actions":
		var row []pressable
		for _, e := range objects(o["elements"]) {
			label, _ := e["text"].(object)
			row = append(row, pressable{field(label, "text"), field(e, "action_id"), field(e, "url")})
		}
		b.buttons = append(b.buttons, row)
	default: // section, header, context: their texts
		texts := objects([]any{o["text"]})
		texts = append(texts, objects(o["elements"])...)
		texts = append(texts, objects(o["fields"])...)
		for _, t := range texts {
			b.tag("div", "", func() { b.text(field(t, "text")) })
		}
	}
}

func (b *blocks) rich(e object) {
	inside := func() { b.inline(objects(e["elements"])) }
	switch field(e, "type") {
	case "rich_text_preformatted":
		b.tag("pre", "", inside)
	case "rich_text_quote":
		b.tag("blockquote", "", inside)
	case "rich_text_list":
		name := "ul"
		if field(e, "style") == "ordered" {
			name = "ol"
		}
		b.tag(name, "", func() {
			for _, item := range objects(e["elements"]) {
				b.tag("li", "", func() { b.inline(objects(item["elements"])) })
			}
		})
	default:
		b.tag("div", "said", inside)
	}
}

func (b *blocks) inline(list []object) {
	for i, e := range list {
		s := field(e, "text")
		if i == len(list)-1 {
			s = strings.TrimSuffix(s, "\n") // the end of a section ends its line
		}
		switch field(e, "type") {
		case "link":
			b.link(field(e, "url"), s)
		case "user":
			b.tag("b", "who", func() { b.text("@" + b.names(field(e, "user_id"))) })
		case "emoji":
			b.text(":" + field(e, "name") + ":")
		default:
			b.styled(s, e)
		}
	}
}

func (b *blocks) styled(s string, e object) {
	style, _ := e["style"].(object)
	inside := func() { b.text(s) }
	for key, name := range map[string]string{"bold": "b", "italic": "i", "strike": "s", "code": "code"} {
		if style[key] == true {
			next := inside
			inside = func() { b.tag(name, "", next) }
		}
	}
	inside()
}

func (b *blocks) link(to, label string) {
	if !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://") {
		b.text(label)
		return
	}
	if label == "" {
		label = to
	}
	b.out.WriteString(`<a href="` + html.EscapeString(to) + `" rel="noreferrer" target="_blank">` + html.EscapeString(label) + "</a>")
}

// field is a text of an object, "" if it has none.
func field(o object, key string) string {
	s, _ := o[key].(string)
	return s
}

// objects are the objects of a list.
func objects(v any) []object {
	list, _ := v.([]any)
	var out []object
	for _, e := range list {
		if o, ok := e.(object); ok {
			out = append(out, o)
		}
	}
	return out
}
