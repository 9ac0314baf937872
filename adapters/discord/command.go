package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Names of the commands.
const (
	askCommand      = "ask"
	askMessage      = "Ask footnote"
	footnoteCommand = "footnote"
)

// Kinds of commands and options.
const (
	kindChat    = 1
	kindMessage = 3

	optionSub    = 1
	optionString = 3
	optionBool   = 5
)

// command is a command as it is registered. Lists are never null.
type command struct {
	Name        string          `json:"name"`
	Type        int             `json:"type"`
	Description string          `json:"description"`
	Options     []commandOption `json:"options"`
	// Contexts and Installs are given always: left out they mean everywhere.
	Contexts []int `json:"contexts"`
	Installs []int `json:"integration_types"`
	// Members null is everybody. Secrecy does not rest on it.
	Members *string `json:"default_member_permissions"`
}

// local is the command as a guild has it, which says neither: Discord drops
// both, or gives its defaults.
func (c command) local() command {
	c.Contexts, c.Installs = nil, nil
	return c
}

type commandOption struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	MaxLength   int    `json:"max_length,omitempty"`
	// Options are those of a subcommand.
	Options []commandOption `json:"options,omitempty"`
}

// commands is the table of all commands: servers and direct messages with the
// bot, installed by servers only.
func commands() []command {
	in := []int{0, 1}
	by := []int{0}
	return []command{
		{Name: askCommand, Type: kindChat, Description: "Ask a question about your organisation's documents", Contexts: in, Installs: by, Options: []commandOption{
			{Type: optionString, Name: "question", Description: "What do you want to know?", Required: true, MaxLength: 2000},
			{Type: optionBool, Name: "private", Description: "Show the answer to me alone, from everything I may read"},
		}},
		{Name: footnoteCommand, Type: kindChat, Description: "About this bot", Contexts: in, Installs: by, Options: []commandOption{
			{Type: optionSub, Name: "status", Description: "Is the bot working, and how do the documents stand?", Options: []commandOption{
				{Type: optionString, Name: "document", Description: "One document: its id, path, file name or title", MaxLength: 512},
			}},
			{Type: optionSub, Name: "help", Description: "What can I ask, and who sees the answer?"},
			{Type: optionSub, Name: "why", Description: "What became of my latest questions?"},
		}},
		{Name: askMessage, Type: kindMessage, Contexts: in, Installs: by, Options: []commandOption{}},
	}
}

// sameCommands compares two lists of commands of one scope.
func sameCommands(a, b []byte, inGuild bool) (bool, error) {
	is, err := fingerprint(a, inGuild)
	if err != nil {
		return false, err
	}
	should, err := fingerprint(b, inGuild)
	return is == should, err
}

// fingerprint is what counts of a list of commands, whatever the server added
// or left out: only our fields, null as empty, in order of type and name.
func fingerprint(raw []byte, inGuild bool) (string, error) {
	var list []command
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", fmt.Errorf("reading commands: %w", err)
	}
	byName := map[string]command{}
	for _, c := range list {
		if c.Options == nil {
			c.Options = []commandOption{}
		}
		if c.Type == 0 {
			c.Type = kindChat
		}
		slices.Sort(c.Contexts)
		slices.Sort(c.Installs)
		if inGuild {
			c = c.local()
		}
		byName[fmt.Sprint(c.Type, c.Name)] = c
	}
	out, err := json.Marshal(byName) // keys in order
	return string(out), err
}

// register makes Discord's list of commands ours, in one scope, and empties
// the other one: otherwise every command would show twice. It writes only what
// differs.
func (a *Adapter) register(ctx context.Context) error {
	if a.application() == "" {
		if err := a.introduce(ctx); err != nil {
			return fmt.Errorf("registering commands: %w", err)
		}
	}
	app := a.application()
	global := "applications/" + app + "/commands"
	inGuild := func(g string) string { return "applications/" + app + "/guilds/" + g + "/commands" }
	if a.c.DevGuild != "" {
		return errors.Join(a.overwrite(ctx, global, []command{}), a.overwrite(ctx, inGuild(a.c.DevGuild), commands()))
	}
	for i, g := range a.book.Guilds() {
		if i == maxCleaned {
			break
		}
		// A guild that refuses is no reason to have no commands at all.
		if err := a.overwrite(ctx, inGuild(g), []command{}); err != nil && (!refusedCall(err) || status(err) == 401) {
			return err
		}
	}
	return a.overwrite(ctx, global, commands())
}

// maxCleaned bounds how many servers are looked at for commands of an earlier
// development scope.
const maxCleaned = 50

func (a *Adapter) overwrite(ctx context.Context, path string, want []command) error {
	var current json.RawMessage
	err := a.rest.do(ctx, call{name: "reading commands", method: "GET", path: path + "?with_localizations=true", lane: "commands", again: true}, &current)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(current)) == 0 {
		current = json.RawMessage("[]")
	}
	wanted, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if same, err := sameCommands(current, wanted, strings.Contains(path, "/guilds/")); err != nil || same {
		return err
	}
	err = a.rest.do(ctx, call{name: "registering commands", method: "PUT", path: path, lane: "commands", again: true, body: want}, nil)
	if code(err) == codeTooManyCommands {
		return fmt.Errorf("commands were changed 200 times today; they can be registered again tomorrow: %w", err)
	}
	return err
}
