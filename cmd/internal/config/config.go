// Package config turns one strict YAML file and the environment into a Config.
//
// Its one idea: every setting is one row of a table (path, where it goes, what
// it accepts). The file, the environment and the documentation are all read
// from that table, so an unknown key is an error, a value out of range names
// its range, and all problems are reported at once.
//
// Formats: the file is a YAML mapping of mappings with scalar leaves, for
// example
//
//	data: ./state
//	models:
//	  threads: 2
//	slack:
//	  channels:
//	    C0123ABCD: {mode: private-always}
//
// and one list, sources, which is documented at Source and Channel.
//
// The setting models.threads is FOOTNOTE_MODELS_THREADS in the environment,
// which wins over the file. Relative paths in the file are relative to the
// file, those in the environment to the working directory.
//
// It does not read secrets from the file: those come from the environment or
// from a file that the environment names, see LookupSecret.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"footnote/acl"
)

// Config is everything that can be set. Paths are absolute.
type Config struct {
	Data   string // directory of the index
	Index  string // embedded or redis
	Redis  Redis
	People string // people file; "": people.yaml in Data, if it is there

	Models struct {
		Runtime string // libonnxruntime; "": looked for
		Threads int    // of the models' pool; 0: one per processor
	}
	Search struct {
		Depth  int // candidates per leg
		Rerank int // best fused candidates that are reranked; 0: none
	}
	Gate struct {
		Late      *float64 // least MaxSim of evidence; 0: the distance decides; nil: the model's own cut
		Distance  *float64 // greatest cosine distance of evidence; nil: the model's own cut
		Relevance *float64 // least rerank probability of evidence; nil: the model's own cut
	}
	Answer struct {
		Sources   int // greatest number of sources
		Sentences int // greatest number of sentences
	}
	Chunk struct {
		Strategy string // structural, or A to F of the experiments
		Tokens   int    // budget of a chunk with its header
	}
	Ingest struct {
		MaxMegabytes int // greatest size of a file
		Workers      int // documents of others' that a process takes in at once, on a Redis
		Extract      Extract
	}
	Notes    Notes
	Sources  []Source
	Channels []Channel // sources that are channels
	Uploads  Uploads
	// Operators are told in a chat of documents without settled access and of
	// the troubles of sources; zero: nobody.
	Operators acl.List
	Sync      struct {
		Interval   int // seconds between full passes over a source
		MaxRemoved int // greatest share of a source that is removed unasked, in percent; 100: no bound
	}
	Log struct {
		Level  string
		Format string
	}
	Slack   Slack
	Discord Discord
	Push    map[string]PushToken // by name; the secrets come from Platforms
	Web     struct {
		Listen    string // host:port, "" no HTTP
		PublicURL string // address of the source viewer as people reach it, "" no viewer
	}
	Serve struct {
		Workers  int // questions worked on at once
		Queue    int // questions that may wait
		PerAsker int // that one person may have waiting or running
		PerRoom  int // that may wait or run for one room
		Deadline int // seconds for one question
		Grace    int // seconds to finish at a shutdown
		Lease    int // seconds after which another replica takes over what one left unfinished
	}

	File string // the file that was read, "" if none

	sections map[string]bool // groups of which the file or the environment speaks
}

// Default returns the settings as they stand without a file.
func Default() Config {
	var c Config
	c.Search.Depth, c.Search.Rerank = 100, 25
	c.Answer.Sources, c.Answer.Sentences = 4, 3
	c.Chunk.Strategy, c.Chunk.Tokens = "structural", 500
	c.Ingest.MaxMegabytes, c.Ingest.Workers = 50, 2
	c.Ingest.Extract = defaultExtract
	c.Uploads = defaultUploads
	c.Redis.InboxMegabytes = 1024
	c.Notes = defaultNotes
	c.Sync.Interval, c.Sync.MaxRemoved = 60, 30
	c.Log.Level, c.Log.Format = "warn", "text"
	c.Serve.Workers, c.Serve.Queue, c.Serve.Deadline, c.Serve.Grace = 4, 1000, 120, 20
	c.Serve.PerAsker, c.Serve.PerRoom, c.Serve.Lease = 10, 100, 120
	return c
}

// settings is the table: every setting of c with what it accepts.
func (c *Config) settings() []setting {
	return append([]setting{
		directory("data", &c.Data),
		choice("index", &c.Index, Embedded, OnRedis),
		path("people", &c.People),
		path("models.runtime", &c.Models.Runtime),
		whole("models.threads", &c.Models.Threads, 0, 64),
		whole("search.depth", &c.Search.Depth, 1, 1000),
		whole("search.rerank", &c.Search.Rerank, 0, 200),
		fraction("gate.late", &c.Gate.Late, 0, 1),
		fraction("gate.distance", &c.Gate.Distance, 0, 2),
		fraction("gate.relevance", &c.Gate.Relevance, 0, 1),
		whole("answer.sources", &c.Answer.Sources, 1, 4),
		whole("answer.sentences", &c.Answer.Sentences, 1, 10),
		choice("chunk.strategy", &c.Chunk.Strategy, "structural", "A", "B", "C", "D", "E", "F"),
		whole("chunk.tokens", &c.Chunk.Tokens, 50, 508),
		whole("ingest.max_megabytes", &c.Ingest.MaxMegabytes, 1, 64),
		whole("ingest.workers", &c.Ingest.Workers, 0, 64),
		whole("sync.interval", &c.Sync.Interval, 1, 86_400),
		whole("sync.max_removed", &c.Sync.MaxRemoved, 0, 100),
		choice("log.level", &c.Log.Level, "debug", "info", "warn", "error"),
		choice("log.format", &c.Log.Format, "text", "json"),
		{path: "operators", list: true, accepts: "who is told in a chat what is wrong with documents: slack:TEAM:usergroup/ID, discord:SERVER:role/ID, group:NAME or an e-mail address", set: func(v, _ string) (err error) {
			c.Operators, err = acl.ParseList(strings.Split(v, ","))
			return err
		}},
		listen("web.listen", &c.Web.Listen),
		address("web.public_url", &c.Web.PublicURL),
		whole("serve.workers", &c.Serve.Workers, 1, 64),
		whole("serve.queue", &c.Serve.Queue, 1, 10_000),
		whole("serve.per_asker", &c.Serve.PerAsker, 1, 10_000),
		whole("serve.per_room", &c.Serve.PerRoom, 1, 10_000),
		whole("serve.deadline", &c.Serve.Deadline, 5, 600),
		whole("serve.grace", &c.Serve.Grace, 1, 300),
		whole("serve.lease", &c.Serve.Lease, 5, 600),
	}, slices.Concat(c.Ingest.Extract.settings(), c.Notes.settings(), c.Slack.settings(), c.Redis.settings(), c.Discord.settings(), c.Uploads.settings(), c.pushSettings())...)
}

// Lookup reads one environment variable; os.LookupEnv is one.
type Lookup func(name string) (string, bool)

// Flags are what the command line says, "" nothing. It wins over the file and
// the environment.
type Flags struct {
	File  string // --config; "": FOOTNOTE_CONFIG, else the user's own file if there is one
	Data  string // --data
	Redis string // --redis
}

// Load reads the file and the environment. The error is a *Problems that holds
// everything wrong at once.
func Load(f Flags, env Lookup) (Config, error) {
	c := Default()
	var p Problems
	c.File = pick(f.File, env, &p)
	if c.File != "" {
		c.readFile(&p)
	}
	c.readEnvironment(env, &p)
	c.Notes.check(&p)
	if f.Data != "" {
		setPath(&c.Data, f.Data, "", "--data", &p)
	}
	if c.Data == "" {
		c.Data = stateDirectory(env)
	}
	if c.Data == "" {
		p.add("data", "there is no home directory to put it in", "set FOOTNOTE_DATA or --data to a directory")
	}
	c.chooseRedis(f.Redis, env, &p)
	return c, p.err()
}

// PeopleFile is the people file to use, "" if none is named and Data has none.
func (c Config) PeopleFile() string {
	if c.People != "" {
		return c.People
	}
	own := filepath.Join(c.Data, "people.yaml")
	if _, err := os.Stat(own); err != nil {
		return ""
	}
	return own
}

// pick finds the file to read, absolute.
func pick(file string, env Lookup, p *Problems) string {
	origin := "--config"
	if file == "" {
		file, _ = env("FOOTNOTE_CONFIG")
		origin = "FOOTNOTE_CONFIG"
	}
	if file != "" {
		var abs string
		setPath(&abs, file, "", origin, p)
		return abs
	}
	own := configFile(env)
	if own == "" {
		return ""
	}
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return own
}

func (c *Config) readFile(p *Problems) {
	root, err := readYAML(c.File)
	if err != nil {
		p.add(c.File, err.Error(), "a readable YAML file")
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		c.speaks(root.Content[i].Value)
	}
	walk(c.withoutSources(root, p), place{}, c.File, tableOf(c), p)
	if len(p.All) == 0 {
		_, err := c.Folders()
		var more *Problems
		if errors.As(err, &more) {
			p.All = append(p.All, more.All...)
		}
	}
}

// withoutSources reads the one setting that is a list and leaves the others.
func (c *Config) withoutSources(root *yaml.Node, p *Problems) *yaml.Node {
	rest := &yaml.Node{Kind: yaml.MappingNode}
	seen := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case key.Value != "sources":
			rest.Content = append(rest.Content, key, value)
		case seen:
			p.add(fmt.Sprintf("%s:%d: sources", c.File, key.Line), "is set twice", "one value")
		default:
			seen = true
			c.readSources(value, c.File, p)
		}
	}
	return rest
}

// speaks notes that the file or the environment speaks of a group.
func (c *Config) speaks(group string) {
	if c.sections == nil {
		c.sections = map[string]bool{}
	}
	c.sections[group] = true
}

func (c *Config) readEnvironment(env Lookup, p *Problems) {
	for _, s := range c.settings() {
		if s.keyed() {
			continue
		}
		if v, ok := env(s.env()); ok && v != "" {
			group, _, _ := strings.Cut(s.path, ".")
			c.speaks(group)
			if err := s.set(v, ""); err != nil {
				p.add(s.env(), err.Error(), s.accepts)
			}
		}
	}
}

// Unknown lists variables of environ (KEY=value) that begin with FOOTNOTE_ but
// mean nothing, most likely misspelt.
func Unknown(environ []string) []string {
	known := []string{"FOOTNOTE_CONFIG", "FOOTNOTE_AS", "FOOTNOTE_ONNXRUNTIME"}
	for _, s := range new(Config).settings() {
		known = append(known, s.env())
	}
	for _, s := range secrets {
		known = append(known, s, s+"_FILE")
	}
	var out []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "FOOTNOTE_") && !slices.Contains(known, name) && !isPushToken(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Public lists the variables of environ that may be handed to a process of the
// same user: those that say where things are and how they are set, no secrets.
func Public(environ []string) []string {
	var out []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		secret := slices.ContainsFunc(secrets, func(s string) bool { return name == s || name == s+"_FILE" })
		if !secret && !isPushToken(name) && (strings.HasPrefix(name, "FOOTNOTE_") || strings.HasPrefix(name, "XDG_") || name == "HOME") {
			out = append(out, e)
		}
	}
	return out
}

// stateDirectory is where programs keep their state for the user, "" if no
// home is known.
func stateDirectory(env Lookup) string {
	return userDirectory(env, "XDG_STATE_HOME", ".local", "state")
}

func configFile(env Lookup) string {
	dir := userDirectory(env, "XDG_CONFIG_HOME", ".config")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "config.yaml")
}

// userDirectory follows the XDG base directories; macOS has one place for all.
func userDirectory(env Lookup, variable string, fallback ...string) string {
	if d, _ := env(variable); filepath.IsAbs(d) {
		return filepath.Join(d, "footnote")
	}
	home, _ := env("HOME")
	if !filepath.IsAbs(home) {
		return ""
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "footnote")
	}
	return filepath.Join(append(append([]string{home}, fallback...), "footnote")...)
}
