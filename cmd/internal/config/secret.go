package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

const redacted = "[redacted]"

// Secret is a value that no format, log or encoding prints.
type Secret struct{ value string }

// Reveal returns the value. Call it only where the secret is used.
func (s Secret) Reveal() string { return s.value }

// IsZero reports that there is no secret.
func (s Secret) IsZero() bool { return s.value == "" }

// Format prints every verb redacted.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText redacts JSON, YAML and every other text encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue redacts structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// LookupSecret reads the variable name, or the file that name_FILE names
// (one trailing line break is dropped). Neither gives the zero Secret; a
// blank value is an error, for it is most often a mistake that would leave a
// check open. The error never holds the value.
func LookupSecret(name string, env Lookup) (Secret, error) {
	value, direct := env(name)
	file, byFile := env(name + "_FILE")
	switch {
	case direct && byFile:
		return Secret{}, fmt.Errorf("%s and %s_FILE are both set: keep one", name, name)
	case byFile:
		raw, err := os.ReadFile(file)
		if err != nil {
			return Secret{}, fmt.Errorf("reading the secret that %s_FILE names: %w", name, err)
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	case !direct:
		return Secret{}, nil
	}
	if strings.TrimSpace(value) == "" {
		return Secret{}, fmt.Errorf("%s is blank: set a value or remove it", name)
	}
	return Secret{value}, nil
}
