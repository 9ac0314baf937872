package discordtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Command is one registered command, as the server keeps it.
type Command struct {
	ID, Guild string // Guild is "" for a global command
	Name      string
	Type      int // 1 slash, 2 user, 3 message
	Raw       json.RawMessage
}

type commandState struct {
	commands map[string][]*command  // by guild, "" for global
	creates  map[string][]time.Time // of the last day
}

func newCommandState() commandState {
	return commandState{commands: map[string][]*command{}, creates: map[string][]time.Time{}}
}

// command is a registered command: the fields of the wire, with the server's defaults.
type command struct {
	object
	options []commandOption
}

type commandOption struct {
	Type         int             `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Required     bool            `json:"required"`
	Autocomplete bool            `json:"autocomplete"`
	MinLength    *int            `json:"min_length"`
	MaxLength    *int            `json:"max_length"`
	Choices      []commandChoice `json:"choices"`
	Options      []commandOption `json:"options"`
}

type commandChoice struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

type commandBody struct {
	Type        *int            `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Options     []commandOption `json:"options"`
	Contexts    *[]int          `json:"contexts"`
	Integration *[]int          `json:"integration_types"`
}

func (c *command) name() string { n, _ := c.object["name"].(string); return n }
func (c *command) kind() int    { n, _ := c.object["type"].(int); return n }

// creationsADay is how many new commands a guild, or the app, may create in a day.
const creationsADay = 200

// Commands returns what is registered for the guild, "" for global commands.
func (s *Server) Commands(guild string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Command
	for _, c := range s.commands[guild] {
		id, _ := c.object["id"].(string)
		out = append(out, Command{ID: id, Guild: guild, Name: c.name(), Type: c.kind(), Raw: raw(c.object)})
	}
	return out
}

// Shown returns the command names that a person in the guild sees in the
// client; a name registered globally and for the guild is there twice.
func (s *Server) Shown(guild string) []string {
	var out []string
	for _, scope := range slices.Compact([]string{guild, ""}) {
		for _, c := range s.Commands(scope) {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Created is how many commands were created in the last day.
func (s *Server) Created(guild string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recentCreates(guild))
}

func (s *Server) recentCreates(guild string) []time.Time {
	now := s.clock.Now()
	s.creates[guild] = slices.DeleteFunc(s.creates[guild], func(t time.Time) bool { return now.Sub(t) >= 24*time.Hour })
	return s.creates[guild]
}

// scope checks the application and guild of a command route.
func (s *Server) scope(c *call) (guild string, bad *result) {
	out := unknown("Application", 10002)
	if c.p["app"] != s.world.app.ID {
		return "", &out
	}
	guild = c.p["guild"]
	if g := s.world.guilds[guild]; guild != "" && (g == nil || g.NoCommands) {
		out = noAccess()
		return "", &out
	}
	return guild, nil
}

// shown is the command as an answer gives it.
func (c *command) shown(localizations bool) object {
	o := maps.Clone(c.object)
	if !localizations {
		delete(o, "name_localizations")
		delete(o, "description_localizations")
	}
	return o
}

func (s *Server) listCommands(c *call) result {
	guild, bad := s.scope(c)
	if bad != nil {
		return *bad
	}
	out := []object{}
	for _, cmd := range s.commands[guild] {
		out = append(out, cmd.shown(c.query.Get("with_localizations") == "true"))
	}
	return ok(out)
}

// putCommands is the bulk overwrite: what is not in the list is gone.
func (s *Server) putCommands(c *call) result {
	guild, bad := s.scope(c)
	if bad != nil {
		return *bad
	}
	var bodies []json.RawMessage
	if json.Unmarshal(c.body, &bodies) != nil {
		e := newForm()
		e.add("body", "BASE_TYPE_BAD_TYPE", "Must be a list of commands.")
		return e.result()
	}
	e, fresh, seen := newForm(), []*command{}, map[string]bool{}
	perType := map[int]int{}
	for i, b := range bodies {
		cmd := parseCommand(b, fmt.Sprintf("%d", i), e)
		key := fmt.Sprintf("%d %s", cmd.kind(), cmd.name())
		if seen[key] {
			e.add(fmt.Sprintf("%d", i), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		seen[key] = true
		perType[cmd.kind()]++
		fresh = append(fresh, cmd)
	}
	if e.n > 0 {
		return e.result()
	}
	if perType[1] > 100 || perType[2] > 15 || perType[3] > 15 {
		return failure(400, 30032, "Maximum number of application commands reached")
	}
	return s.overwrite(guild, fresh)
}

func (s *Server) overwrite(guild string, fresh []*command) result {
	isNew := 0
	for _, cmd := range fresh {
		if s.commandNamed(guild, cmd.kind(), cmd.name()) == nil {
			isNew++
		}
	}
	if len(s.recentCreates(guild))+isNew > creationsADay {
		return failure(400, 30034, "Max number of daily application command creates has been reached (200)")
	}
	out := []object{}
	for _, cmd := range fresh {
		s.adopt(guild, cmd)
		out = append(out, cmd.shown(true))
	}
	s.commands[guild] = fresh
	return ok(out)
}

// adopt gives the command its id, keeping that of its predecessor.
func (s *Server) adopt(guild string, cmd *command) {
	now := s.clock.Now()
	old := s.commandNamed(guild, cmd.kind(), cmd.name())
	if old == nil {
		cmd.object["id"] = s.world.snowflake(now)
		s.creates[guild] = append(s.creates[guild], now)
	} else {
		cmd.object["id"] = old.object["id"]
	}
	cmd.object["application_id"], cmd.object["version"] = s.world.app.ID, s.world.snowflake(now)
	if guild != "" {
		cmd.object["guild_id"] = guild
		delete(cmd.object, "dm_permission")
	}
}

func (s *Server) commandNamed(guild string, kind int, name string) *command {
	for _, c := range s.commands[guild] {
		if c.kind() == kind && c.name() == name {
			return c
		}
	}
	return nil
}

// postCommand creates one command, or replaces the one of that name.
func (s *Server) postCommand(c *call) result {
	guild, bad := s.scope(c)
	if bad != nil {
		return *bad
	}
	e := newForm()
	cmd := parseCommand(c.body, "", e)
	if e.n > 0 {
		return e.result()
	}
	old := s.commandNamed(guild, cmd.kind(), cmd.name())
	if old == nil && len(s.recentCreates(guild)) >= creationsADay {
		return failure(400, 30034, "Max number of daily application command creates has been reached (200)")
	}
	s.adopt(guild, cmd)
	s.commands[guild] = append(slices.DeleteFunc(s.commands[guild], func(o *command) bool { return o == old }), cmd)
	if old != nil {
		return ok(cmd.shown(true))
	}
	return created(cmd.shown(true))
}

func (s *Server) deleteCommand(c *call) result {
	guild, bad := s.scope(c)
	if bad != nil {
		return *bad
	}
	n := len(s.commands[guild])
	s.commands[guild] = slices.DeleteFunc(s.commands[guild], func(o *command) bool { return o.object["id"] == c.p["command"] })
	if len(s.commands[guild]) == n {
		return unknown("Application Command", 10063)
	}
	return none()
}

// parseCommand checks a command and adds the defaults of the server. Null and
// empty lists count as absent, as clients send them.
func parseCommand(body json.RawMessage, path string, e *form) *command {
	var b commandBody
	fields := object{}
	if err := json.Unmarshal(body, &b); err != nil {
		e.add(path+"."+fieldOf(err), "BASE_TYPE_BAD_TYPE", err.Error())
	}
	_ = json.Unmarshal(body, &fields)
	kind := 1
	if b.Type != nil {
		kind = *b.Type
	}
	checkCommand(path, kind, &b, e)
	o := object{
		"type": kind, "default_member_permissions": nil, "nsfw": false, "dm_permission": true, "contexts": nil,
		"integration_types": []int{0}, "name": b.Name, "description": b.Description, "name_localizations": nil, "description_localizations": nil,
	}
	for _, k := range []string{"default_member_permissions", "nsfw", "dm_permission", "name_localizations", "description_localizations", "options"} {
		if v := fields[k]; v != nil {
			o[k] = v
		}
	}
	if b.Contexts != nil {
		o["contexts"], o["dm_permission"] = *b.Contexts, slices.Contains(*b.Contexts, 1)
	}
	if b.Integration != nil {
		o["integration_types"] = *b.Integration
	}
	if opts, isList := pruned(o["options"]).([]any); isList && len(opts) > 0 {
		o["options"] = opts
	} else {
		delete(o, "options")
	}
	return &command{object: o, options: b.Options}
}

// pruned drops what the server does not give back: null, false and empty lists.
func pruned(v any) any {
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, pruned(e))
		}
		return out
	case object:
		out := object{}
		for k, e := range v {
			if l, isList := e.([]any); e == nil || e == false || isList && len(l) == 0 {
				continue
			}
			out[k] = pruned(e)
		}
		return out
	}
	return v
}

var nameRE = regexp.MustCompile(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)

func checkName(path, name string, e *form) {
	if !nameRE.MatchString(name) || strings.ToLower(name) != name {
		e.add(path+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
	}
}

func checkCommand(path string, kind int, b *commandBody, e *form) {
	switch kind {
	case 1:
		checkName(path, b.Name, e)
		e.text(path+".description", b.Description, 1, 100)
	case 2, 3:
		e.text(path+".name", b.Name, 1, 32)
		if b.Description != "" {
			e.add(path+".description", "APPLICATION_COMMAND_INVALID_DESCRIPTION", "Context menu commands cannot have description")
		}
		if len(b.Options) > 0 {
			e.add(path+".options", "APPLICATION_COMMAND_INVALID_OPTIONS", "Context menu commands cannot have options")
		}
	default:
		e.add(path+".type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3}.")
	}
	within(path+".contexts", b.Contexts, 2, e)
	within(path+".integration_types", b.Integration, 1, e)
	if n := length(b.Name) + length(b.Description) + checkOptions(path+".options", b.Options, 0, e); n > 8000 {
		e.add(path, "APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size (8000)")
	}
}

func within(path string, l *[]int, most int, e *form) {
	if l == nil {
		return
	}
	if len(*l) == 0 {
		e.add(path, "BASE_TYPE_REQUIRED", "This field is required")
	}
	for _, n := range *l {
		if n < 0 || n > most {
			e.add(path, "BASE_TYPE_CHOICES", fmt.Sprintf("%d is not one of the choices.", n))
		}
	}
}

// checkOptions checks a list of options and returns the number of characters in it.
func checkOptions(path string, options []commandOption, depth int, e *form) (size int) {
	e.count(path, len(options), 25)
	seen, optional := map[string]bool{}, false
	for i, o := range options {
		at := fmt.Sprintf("%s.%d", path, i)
		checkName(at, o.Name, e)
		e.text(at+".description", o.Description, 1, 100)
		if seen[o.Name] {
			e.add(at, "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option names must be unique")
		}
		seen[o.Name] = true
		if o.Required && optional {
			e.add(at, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
		optional = optional || !o.Required && o.Type > 2
		size += length(o.Name) + length(o.Description) + checkOption(at, o, depth, e)
	}
	return size
}

func checkOption(at string, o commandOption, depth int, e *form) (size int) {
	if o.Type < 1 || o.Type > 11 || o.Type <= 2 && depth >= 2 {
		e.add(at+".type", "BASE_TYPE_CHOICES", "Option type is not allowed here.")
	}
	if len(o.Options) > 0 {
		if o.Type > 2 {
			e.add(at+".options", "APPLICATION_COMMAND_OPTIONS_INVALID", "Only subcommands have options")
		}
		size += checkOptions(at+".options", o.Options, depth+1, e)
	}
	if n := o.MinLength; n != nil && (*n < 0 || *n > 6000 || o.Type != 3) {
		e.add(at+".min_length", "NUMBER_TYPE_MAX", "int value should be between 0 and 6000, for strings only.")
	}
	if n := o.MaxLength; n != nil && (*n < 1 || *n > 6000 || o.Type != 3) {
		e.add(at+".max_length", "NUMBER_TYPE_MAX", "int value should be between 1 and 6000, for strings only.")
	}
	if o.Autocomplete && len(o.Choices) > 0 {
		e.add(at+".autocomplete", "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE", "Autocomplete and choices exclude each other")
	}
	return size + checkChoices(at+".choices", o.Choices, e)
}

func checkChoices(at string, choices []commandChoice, e *form) (size int) {
	e.count(at, len(choices), 25)
	seen := map[string]bool{}
	for i, c := range choices {
		path := fmt.Sprintf("%s.%d", at, i)
		e.text(path+".name", c.Name, 1, 100)
		if seen[c.Name] {
			e.add(path, "APPLICATION_COMMAND_OPTIONS_CHOICE_NAME_ALREADY_EXISTS", "Choice names must be unique")
		}
		seen[c.Name] = true
		size += length(c.Name)
		if v, isText := c.Value.(string); isText {
			e.text(path+".value", v, 1, 100)
			size += length(v)
		}
	}
	return size
}
