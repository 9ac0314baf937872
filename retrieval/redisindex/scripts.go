package redisindex

import "github.com/redis/go-redis/v9"

// changeScript is one change that readers see: it replaces a document's record
// if that is still the one that the change was made from, sets overlay and
// directory of its publications, and names the version anew. A change under a
// fence is made only while that stands; one without a fence ends any.
//
//	keys: version documents directory overlay fences
//	args: id, expected record, new record ("" none), publication that must be staged ("" none),
//	      version, fence ("" none), then (publication, overlay, entry of the directory; "" none)…
//	gives 1 if done, 0 if the record is another by now, -1 if the publication was swept away,
//	      -2 if the fence does not stand
var changeScript = redis.NewScript(`
local function set(key, field, value)
  if value == '' then redis.call('HDEL', key, field) else redis.call('HSET', key, field, value) end
end
if (redis.call('HGET', KEYS[2], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[4] ~= '' and redis.call('HEXISTS', KEYS[4], ARGV[4]) == 0 then return -1 end
if ARGV[6] == '' then redis.call('HDEL', KEYS[5], ARGV[1])
elseif redis.call('HGET', KEYS[5], ARGV[1]) ~= ARGV[6] then return -2 end
set(KEYS[2], ARGV[1], ARGV[3])
for i = 7, #ARGV, 3 do
  set(KEYS[4], ARGV[i], ARGV[i + 1])
  set(KEYS[3], ARGV[i], ARGV[i + 2])
end
redis.call('SET', KEYS[1], ARGV[5])
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
//	keys: version overlay
//	args: publication, overlay expected, version
var settleScript = redis.NewScript(`
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[3])
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
