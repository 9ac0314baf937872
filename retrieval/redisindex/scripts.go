package redisindex

import (
	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redislink"
)

// move is a function of scripts: it names the version anew and appends to the
// log what makes the difference, for those who know the version before.
const move = `
local function move(version, log, token, said)
  local before = redis.call('GET', version) or ''
  local id = redis.call('XADD', log, 'MAXLEN', '~', 1000, '*', 'f', before, 't', token, unpack(said))
  redis.call('SET', version, token .. '@' .. id)
end
`

// stageScript hides a publication that is about to be written. Run again it
// changes nothing.
//
//	keys: version log overlay names contents documents
//	args: token of the version, publication, its overlay, its name, its contents, the document's id
//	gives the document's record, "" for none
var stageScript = redis.NewScript(move + `
local record = redis.call('HGET', KEYS[6], ARGV[6]) or ''
if redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1 then return record end
move(KEYS[1], KEYS[2], ARGV[1], {'o' .. ARGV[2], ARGV[3]})
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[4])
redis.call('SET', KEYS[5], ARGV[5])
return record`)

// changeScript is one change that readers see: it replaces a document's record
// if that is still the one that the change was made from, sets overlay and
// directory of its publications, and names the version anew. A change under a
// fence is made only while that stands, and one with conditions while they do;
// one without a fence ends any.
//
//	keys: version log documents directory overlay fences, those of the conditions…
//	args: id, expected record, new record ("" none), publication that must be staged ("" none),
//	      token of the version, fence ("" none), conditions, then (publication, overlay, entry of the
//	      directory; "" none)…
//	gives 1 if done, 0 if the record is another by now, -1 if the publication was swept away,
//	      -2 if the fence or a condition does not stand
var changeScript = redis.NewScript(move + redislink.Standing + `
local function set(key, field, value)
  if value == '' then redis.call('HDEL', key, field) else redis.call('HSET', key, field, value) end
end
local stands, rest = standing(7, 7)
if not stands then return -2 end
if (redis.call('HGET', KEYS[3], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[4] ~= '' and redis.call('HEXISTS', KEYS[5], ARGV[4]) == 0 then return -1 end
if ARGV[6] == '' then redis.call('HDEL', KEYS[6], ARGV[1])
elseif redis.call('HGET', KEYS[6], ARGV[1]) ~= ARGV[6] then return -2 end
local said = {}
for i = rest, #ARGV, 3 do
  for _, x in ipairs({'o' .. ARGV[i], ARGV[i + 1], 'a' .. ARGV[i], ARGV[i + 2]}) do said[#said + 1] = x end
end
move(KEYS[1], KEYS[2], ARGV[5], said)
set(KEYS[3], ARGV[1], ARGV[3])
for i = rest, #ARGV, 3 do
  set(KEYS[5], ARGV[i], ARGV[i + 1])
  set(KEYS[4], ARGV[i], ARGV[i + 2])
end
return 1`)

// retagScript writes an access list into chunks of a publication, as long as
// the overlay says that this list is in force. Chunks that are gone stay gone.
//
//	keys: overlay, chunks…
//	args: publication, overlay expected, access tags
//	gives 1 if done, 0 if another change came in between
var retagScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('HSET', KEYS[i], 'acl', ARGV[3]) end
end
return 1`)

// settleScript takes an access list out of the overlay once the tags say it.
//
//	keys: version log overlay
//	args: publication, overlay expected, token of the version
var settleScript = redis.NewScript(move + `
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
move(KEYS[1], KEYS[2], ARGV[3], {'o' .. ARGV[1], ''})
redis.call('HDEL', KEYS[3], ARGV[1])
return 1`)

// loadScript reads one part of chunks together with the records of their
// documents, from one moment.
//
//	keys: documents
//	args: prefix of the part's hashes, (id, ordinal)…
//	gives for each chunk the record and the part, "" for what is not there
var loadScript = redis.NewScript(`
local out = {}
for i = 2, #ARGV, 2 do
  local record = redis.call('HGET', KEYS[1], ARGV[i]) or ''
  local part = ''
  if record ~= '' then part = redis.call('HGET', ARGV[1] .. string.sub(record, 1, 16), ARGV[i + 1]) or '' end
  out[#out + 1] = record
  out[#out + 1] = part
end
return out`)
