package jobs

import "github.com/redis/go-redis/v9"

// now gives the server's time in milliseconds: workers' clocks need not agree.
const now = `
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
`

// putScript makes or replaces a document's job. Who works on it keeps it; else
// an entry of the stream that was delivered already is replaced, too.
//
//	keys: stream, open, job, bytes
//	args: document, token, task, same, parts, seconds to keep, group, beginning of the keys of bytes
var putScript = redis.NewScript(now + `
local old = redis.call('HMGET', KEYS[3], 'token', 'entry', 'tries', 'until', 'done')
local entry = old[2]
local held = old[4] and not old[5] and tonumber(old[4]) > now()
if entry and not held and (old[5] or tonumber(old[3] or '0') > 0) then
  redis.call('XACK', KEYS[1], ARGV[7], entry)
  redis.call('XDEL', KEYS[1], entry)
  entry = false
end
if not entry then entry = redis.call('XADD', KEYS[1], '*', 'd', ARGV[1]) end
redis.call('HDEL', KEYS[3], 'done', 'state')
if not held then redis.call('HDEL', KEYS[3], 'holder', 'until') end
redis.call('HSET', KEYS[3], 'token', ARGV[2], 'task', ARGV[3], 'same', ARGV[4], 'parts', ARGV[5], 'entry', entry, 'tries', 0)
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('EXPIRE', KEYS[3], ARGV[6])
redis.call('EXPIRE', KEYS[4], ARGV[6])
if old[1] and old[1] ~= ARGV[2] then redis.call('UNLINK', ARGV[8] .. old[1]) end
return 1`)

// takeScript takes a job to work on it. That counts as a try once it begins.
//
//	keys: stream, job
//	args: entry, worker, lease in ms, tries allowed, how the job ends when they are used up, seconds to keep, group
//	gives what (0 nothing to do, 1 another works on it, 2 it is yours), token, task, parts, try
var takeScript = redis.NewScript(now + `
local j = redis.call('HMGET', KEYS[2], 'entry', 'done', 'holder', 'until', 'tries', 'token', 'task', 'parts')
if j[1] ~= ARGV[1] then
  redis.call('XACK', KEYS[1], ARGV[7], ARGV[1])
  redis.call('XDEL', KEYS[1], ARGV[1])
  return {0, '', '', 0, 0}
end
if j[2] then return {0, '', '', 0, 0} end
if j[3] and j[3] ~= ARGV[2] and tonumber(j[4]) > now() then return {1, '', '', 0, 0} end
local tries = tonumber(j[5])
if tries >= tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[2], 'done', ARGV[5])
  return {0, '', '', 0, 0}
end
redis.call('HSET', KEYS[2], 'holder', ARGV[2], 'until', string.format('%.0f', now() + ARGV[3]))
redis.call('EXPIRE', KEYS[2], ARGV[6])
return {2, j[6], j[7], tonumber(j[8]), tries + 1}`)

// beginScript counts a try of a job that the worker holds for the token.
//
//	keys: job
//	args: worker, token
//	gives which try it is, 0 if the job is another's
var beginScript = redis.NewScript(`
local j = redis.call('HMGET', KEYS[1], 'holder', 'token')
if j[1] ~= ARGV[1] or j[2] ~= ARGV[2] then return 0 end
return redis.call('HINCRBY', KEYS[1], 'tries', 1)`)

// keepScript renews the lease of who holds a job for the token, also one that
// ran out and that nobody else took.
//
//	keys: stream, job
//	args: worker, token, lease in ms, entry, group, seconds to keep
//	gives 1 if the worker still has it, else 0
var keepScript = redis.NewScript(now + `
local j = redis.call('HMGET', KEYS[2], 'holder', 'token')
if j[1] ~= ARGV[1] or j[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], 'until', string.format('%.0f', now() + ARGV[3]))
redis.call('EXPIRE', KEYS[2], ARGV[6])
redis.call('XCLAIM', KEYS[1], ARGV[5], ARGV[1], 0, ARGV[4], 'JUSTID')
return 1`)

// noteScript sets a field of a job that the worker holds for the token.
//
//	keys: job
//	args: worker, token, field, value
var noteScript = redis.NewScript(`
local j = redis.call('HMGET', KEYS[1], 'holder', 'token')
if j[1] ~= ARGV[1] or j[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
return 1`)

// giveScript gives a job back, for others to take.
//
//	keys: stream, job
//	args: worker, token, tries to take off, document, group
var giveScript = redis.NewScript(`
local j = redis.call('HMGET', KEYS[2], 'holder', 'token', 'entry', 'tries', 'done')
if j[1] ~= ARGV[1] or j[2] ~= ARGV[2] or j[5] then return 0 end
redis.call('XACK', KEYS[1], ARGV[5], j[3])
redis.call('XDEL', KEYS[1], j[3])
local entry = redis.call('XADD', KEYS[1], '*', 'd', ARGV[4])
redis.call('HDEL', KEYS[2], 'holder', 'until')
redis.call('HSET', KEYS[2], 'entry', entry, 'tries', math.max(0, tonumber(j[4]) - ARGV[3]))
return 1`)

// dropScript ends a job, only that of the token, and held by the worker, where
// these are given.
//
//	keys: stream, open, job
//	args: document, token ("" any), worker ("" any, or none), group, beginning of the keys of bytes
var dropScript = redis.NewScript(`
local j = redis.call('HMGET', KEYS[3], 'token', 'entry', 'holder')
if not j[1] then
  redis.call('SREM', KEYS[2], ARGV[1])
  return 1
end
if ARGV[2] ~= '' and ARGV[2] ~= j[1] then return 0 end
if ARGV[3] ~= '' and ARGV[3] ~= j[3] then return 0 end
redis.call('XACK', KEYS[1], ARGV[4], j[2])
redis.call('XDEL', KEYS[1], j[2])
redis.call('UNLINK', KEYS[3], ARGV[5] .. j[1])
redis.call('SREM', KEYS[2], ARGV[1])
return 1`)
