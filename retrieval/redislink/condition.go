package redislink

import (
	"context"
	"slices"
)

// Condition is what a change was decided by and must still be so when it is
// made: the value of a key, or of a field of a hash. So whoever took a decision
// long ago, because its process was stopped meanwhile, changes nothing by it.
type Condition struct {
	Key   string
	Field string // of a hash; "" the key is a string
	Value string // "" it is absent
}

type conditions struct{}

// While is the context for changes that are made only while the conditions, and
// those of ctx, hold. Scripts that change what others decide about, too, check
// them: see Standing.
func While(ctx context.Context, c ...Condition) context.Context {
	return context.WithValue(ctx, conditions{}, append(Conditions(ctx), c...))
}

// Conditions are those of ctx.
func Conditions(ctx context.Context) []Condition {
	c, _ := ctx.Value(conditions{}).([]Condition)
	return slices.Clip(c)
}

// Standing is a function of Lua for the beginning of a script: standing(key,
// arg) reports that the conditions hold whose keys begin at KEYS[key] and which
// begin at ARGV[arg] with their number; and where they end in ARGV.
const Standing = `
local function standing(key, arg)
  local n = tonumber(ARGV[arg])
  for i = 0, n - 1 do
    local field, now = ARGV[arg + 1 + 2 * i]
    if field == '' then now = redis.call('GET', KEYS[key + i]) else now = redis.call('HGET', KEYS[key + i], field) end
    if (now or '') ~= ARGV[arg + 2 + 2 * i] then return false, arg + 1 + 2 * n end
  end
  return true, arg + 1 + 2 * n
end
`

// Standings are the keys and arguments of the conditions of ctx for a script.
func Standings(ctx context.Context) (keys []string, args []any) {
	all := Conditions(ctx)
	args = []any{len(all)}
	for _, c := range all {
		keys = append(keys, c.Key)
		args = append(args, c.Field, c.Value)
	}
	return keys, args
}
