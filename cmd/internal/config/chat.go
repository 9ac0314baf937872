package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"footnote/acl"
)

// Uploads is what is set for files that people post in a chat.
type Uploads struct {
	By           acl.List // who may add them; zero: nobody
	MaxMegabytes int      // of one file
	MaxFiles     int      // of one message
	Types        []string // endings without a dot; none: all that are read
}

var defaultUploads = Uploads{MaxMegabytes: 20, MaxFiles: 10}

// On reports that somebody may add files on one of the platforms.
func (u Uploads) On(p Platforms) bool {
	return !u.By.IsZero() && (p.Slack != nil || p.Discord != nil)
}

func (u *Uploads) settings() []setting {
	const endings = "endings of files, for example md, pdf, docx"
	return []setting{
		{path: "uploads.by", list: true, accepts: "who may add files: slack:TEAM:usergroup/ID, discord:SERVER:role/ID, everyone, group:NAME or an e-mail address", set: func(v, _ string) (err error) {
			u.By, err = acl.ParseList(strings.Split(v, ","))
			return err
		}},
		whole("uploads.max_megabytes", &u.MaxMegabytes, 1, 64),
		whole("uploads.max_files", &u.MaxFiles, 1, 50),
		{path: "uploads.types", list: true, accepts: endings, set: func(v, _ string) error {
			u.Types = nil
			for e := range strings.SplitSeq(v, ",") {
				e = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(e), "."))
				if e == "" || strings.ContainsAny(e, "./*\\ ") {
					return fmt.Errorf("%q is no ending", e)
				}
				u.Types = append(u.Types, e)
			}
			return nil
		}},
	}
}

// Channel is an entry of sources that is a channel, whose threads are documents
// for those who are in it:
//
//	sources:
//	  - slack_channel: C0123ABCD
//	    history: 90d            # how far back; this if it is not given
type Channel struct {
	ID      string
	History time.Duration
}

var channelKeys = []string{"history", "slack_channel"}

const (
	defaultHistory = 90 * 24 * time.Hour
	acceptsHistory = "a number of days from 1d to 3650d, for example 90d"
)

// isChannel reports that an entry of sources is a channel.
func isChannel(e *yaml.Node) bool {
	if e.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(e.Content); i += 2 {
		if e.Content[i].Value == "slack_channel" {
			return true
		}
	}
	return false
}

// channel reads an entry that is a channel, and reports false if it cannot be
// used.
func (r sourceReader) channel(e *yaml.Node) (Channel, bool) {
	c := Channel{History: defaultHistory}
	before := len(r.p.All)
	var seen []string
	for i := 0; i+1 < len(e.Content); i += 2 {
		key, value := e.Content[i], e.Content[i+1]
		if slices.Contains(seen, key.Value) {
			r.problem(key, key.Value, "is set twice", "one value")
			continue
		}
		seen = append(seen, key.Value)
		switch key.Value {
		case "slack_channel":
			v, ok := r.text(key, value, aSlackChannel)
			if ok && (!slackID(v) || v[0] != 'C' && v[0] != 'G') {
				r.problem(key, key.Value, fmt.Sprintf("%q is not the id of a channel", v), aSlackChannel)
			}
			c.ID = v
		case "history":
			v, ok := r.text(key, value, acceptsHistory)
			if !ok {
				continue
			}
			var err error
			if c.History, err = days(v); err != nil {
				r.problem(key, key.Value, err.Error(), acceptsHistory)
			}
		default:
			r.problem(key, key.Value, "is not a setting of a channel", "one of "+strings.Join(channelKeys, ", "))
		}
	}
	return c, len(r.p.All) == before
}

func days(v string) (time.Duration, error) {
	number, ok := strings.CutSuffix(v, "d")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || n > 3650 {
		return 0, errors.New(strconv.Quote(v) + " is no number of days")
	}
	return time.Duration(n) * 24 * time.Hour, nil
}
