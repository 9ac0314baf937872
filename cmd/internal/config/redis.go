package config

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Where index, catalog and ledger lie.
const (
	Embedded = "embedded" // in the data directory, of one process
	OnRedis  = "redis"    // on a Redis, of any number of processes
)

// Redis is the server that processes share; zero values mean the defaults.
type Redis struct {
	URL      string // redis://HOST:PORT, rediss:// for TLS, without user and password
	Prefix   string // of all keys: footnote
	CAFile   string
	CertFile string
	KeyFile  string
	Vectors  string // flat (""), hnsw
	// InboxMegabytes bounds what pushed documents, files from chats and each channel
	// as a source may have of the server's memory, each of them.
	InboxMegabytes int

	// Of the environment alone.
	Username, Password                 Secret
	SentinelUsername, SentinelPassword Secret // where the Sentinels ask for one
}

// Variables of the user of Redis; like secrets they come from the environment
// alone.
const (
	redisUsername = "FOOTNOTE_REDIS_USERNAME"
	redisPassword = "FOOTNOTE_REDIS_PASSWORD"

	sentinelUsername = "FOOTNOTE_REDIS_SENTINEL_USERNAME"
	sentinelPassword = "FOOTNOTE_REDIS_SENTINEL_PASSWORD"
)

// redisSecrets are those that Load reads where there is a Redis.
var redisSecrets = []string{redisUsername, redisPassword, sentinelUsername, sentinelPassword}

const aRedis = "redis://HOST:PORT, rediss:// for TLS, with ?master_name=NAME for Sentinels"

var redisPrefix = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._:-]{0,99}$`).MatchString

func (r *Redis) settings() []setting {
	return []setting{
		redisAddress("redis.url", &r.URL),
		id("redis.prefix", "letters, digits, dot, underscore, hyphen and colon, 100 at most", &r.Prefix, redisPrefix),
		path("redis.ca_file", &r.CAFile),
		path("redis.cert_file", &r.CertFile),
		path("redis.key_file", &r.KeyFile),
		choice("redis.vectors", &r.Vectors, "flat", "hnsw"),
		whole("redis.inbox_megabytes", &r.InboxMegabytes, 1, 1<<20),
	}
}

// redisAddress is the address of a Redis. It never quotes what it refuses, for
// that may hold a password.
func redisAddress(at string, to *string) setting {
	return setting{path: at, accepts: aRedis, set: func(v, _ string) error {
		u, err := url.Parse(v)
		switch {
		case err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "":
			return fmt.Errorf("it is no address of a Redis")
		case u.User != nil:
			return fmt.Errorf("it holds a user or a password: set %s and %s instead", redisUsername, redisPassword)
		case strings.Contains(u.Host, ","):
			return fmt.Errorf("it names several servers: one server, or Sentinels with ?master_name=NAME&addr=HOST:PORT")
		case !isPort(u.Port()):
			return fmt.Errorf("its port is none: 1 to 65535")
		case u.Query().Has("master_name") && u.Query().Get("master_name") == "":
			return fmt.Errorf("its master_name is empty")
		case u.Query().Has("cluster"):
			return fmt.Errorf("it names a cluster, which cannot hold the index: see Redis in README.md")
		case strings.Trim(u.Path, "/") != "" && strings.Trim(u.Path, "/") != "0":
			return fmt.Errorf("it names a database: the Query Engine works in database 0 only")
		}
		for name := range u.Query() {
			if !slices.Contains([]string{"master_name", "addr"}, name) {
				return fmt.Errorf("its part %q is not known", name)
			}
		}
		*to = v
		return nil
	}}
}

// isPort reports that s is a port, or none is written.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// Shared reports that index, catalog and ledger lie on a Redis.
func (c Config) Shared() bool { return c.Index == OnRedis }

// chooseRedis settles where the index lies, and checks what a Redis needs.
// flag is what --redis says, which wins over everything.
func (c *Config) chooseRedis(flag string, env Lookup, p *Problems) {
	if flag != "" {
		s := redisAddress("--redis", &c.Redis.URL)
		if err := s.set(flag, ""); err != nil {
			p.add("--redis", err.Error(), s.accepts)
		}
		c.Index = OnRedis
	}
	switch {
	case c.Index == "" && c.Redis.URL != "":
		c.Index = OnRedis
	case c.Index == "":
		c.Index = Embedded
	}
	if !c.Shared() {
		return
	}
	if c.Redis.URL == "" && !p.about("redis.url", "FOOTNOTE_REDIS_URL", "--redis") {
		p.add("redis.url", "is not set, and index is redis", aRedis)
	}
	c.Redis.checkFiles(p)
	for name, to := range map[string]*Secret{
		redisUsername: &c.Redis.Username, redisPassword: &c.Redis.Password,
		sentinelUsername: &c.Redis.SentinelUsername, sentinelPassword: &c.Redis.SentinelPassword,
	} {
		var err error
		if *to, err = LookupSecret(name, env); err != nil {
			p.add(name, err.Error(), "a secret, or "+name+"_FILE with the path of a file that holds one")
		}
	}
	if !c.Redis.Username.IsZero() && c.Redis.Password.IsZero() {
		p.add(redisPassword, "is not set, and "+redisUsername+" is", "the password of the user")
	}
	if !c.Redis.SentinelUsername.IsZero() && c.Redis.SentinelPassword.IsZero() {
		p.add(sentinelPassword, "is not set, and "+sentinelUsername+" is", "the password of the user")
	}
}

func (r *Redis) checkFiles(p *Problems) {
	files := []struct{ at, path string }{{"redis.ca_file", r.CAFile}, {"redis.cert_file", r.CertFile}, {"redis.key_file", r.KeyFile}}
	for _, f := range files {
		switch {
		case f.path == "":
		case strings.HasPrefix(r.URL, "redis://"):
			p.add(f.at, "is set, but redis.url begins with redis://", "rediss:// in redis.url, or no certificates")
		default:
			if _, err := os.ReadFile(f.path); err != nil {
				p.add(f.at, err.Error(), "a readable PEM file")
			}
		}
	}
	if (r.CertFile == "") != (r.KeyFile == "") {
		p.add("redis.cert_file", "a certificate and its key belong together", "both of redis.cert_file and redis.key_file, or neither")
	}
}
