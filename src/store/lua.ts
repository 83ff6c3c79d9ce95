/**
 * The scripts of the session store in Lua, for Redis 5 and later. `memory-scripts.ts` has the same behaviour in
 * TypeScript. Both keys of a session have the same hash tag, so they are on the same node of a Redis Cluster.
 *
 * A script that fails on a full Redis must fail before it changes anything. Redis rejects a write that needs memory only
 * if it is the first write of its script. Therefore `take` begins with HSET, and fails, while `save` and `out` begin with
 * DEL, and succeed.
 */

// KEYS: the entry (a hash), its record (a text). Every script returns an array of texts and numbers, or nil.
const PRELUDE = `
local entry, recordKey = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local e = redis.call('HMGET', entry, 'rev', 'state', 'reason', 'seen', 'owner', 'owned', 'retry', 'suspect', 'loss', 'settled')
local current, state, reason, seen, owner, loss = tonumber(e[1]), e[2], e[3] or '', e[4] == '1', e[5], e[9]
local owned, retry, suspect, settled = tonumber(e[6]) or 0, tonumber(e[7]) or 0, tonumber(e[8]), tonumber(e[10])

local function record()
  return redis.call('GET', recordKey)
end

local function position(rev)
  if state == 'out' then return {'out'} end
  if not current or current < rev then return {'behind'} end
  if state == 'ended' then return {'ended', reason} end
  if current == rev then return {'same', seen and 1 or 0, redis.call('EXISTS', recordKey)} end
  local text = record()
  if text then return {'newer', current, text, seen and 1 or 0} end
  return {seen and 'stale' or 'lost'}
end

-- The entry of a login that has not succeeded has revision 0, and a shorter lifetime.
local function renew(entryMs, loginMs)
  redis.call('PEXPIRE', entry, current == 0 and loginMs or entryMs)
end

-- Raises the revision. Everything that belongs to the older revision goes, except the lock.
local function raise(rev)
  current = rev
  redis.call('HSET', entry, 'rev', rev)
  redis.call('HDEL', entry, 'state', 'reason', 'seen', 'retry', 'suspect')
  redis.call('DEL', recordKey)
end

local function markLoss(newLoss)
  redis.call('HSET', entry, 'loss', newLoss)
  redis.call('HDEL', entry, 'settled')
end

local function release()
  redis.call('HDEL', entry, 'owner', 'owned')
end
`

// ARGV: rev
const LOOK = `return position(tonumber(ARGV[1]))`

// A stored time that is too far ahead shows that the clock of Redis was set back. It is shortened, or a pause is ignored.
// ARGV: rev, owner, reported loss, new loss, entryMs, loginMs, lockMs, settleMs, longest pause
const TAKE = `
local rev, me, reported, newLoss = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local found = position(rev)
local kind = found[1]
if kind ~= 'same' and kind ~= 'behind' and kind ~= 'lost' then return found end
local isNewLogin = rev == 0 and not current and not state
if kind == 'behind' then
  raise(rev)
  retry, suspect = 0, nil
end
if kind ~= 'same' and not isNewLogin and not loss then
  markLoss(newLoss)
  loss, settled = newLoss, nil
end
if loss then
  if reported == loss and (not settled or settled > now + ARGV[8]) then
    settled = now + ARGV[8]
    redis.call('HSET', entry, 'settled', settled)
  end
  if not settled or now < settled then
    renew(ARGV[5], ARGV[6])
    return {'unsettled', loss}
  end
  redis.call('HDEL', entry, 'loss', 'settled')
end
if kind == 'lost' then
  redis.call('HSET', entry, 'seen', '1')
  renew(ARGV[5], ARGV[6])
  return {'stale'}
end
if owner and owner ~= me and now < owned then
  if owned > now + ARGV[7] then redis.call('HSET', entry, 'owned', now + ARGV[7]) end
  return {'held'}
end
if retry > now and retry - now <= tonumber(ARGV[9]) then return {'pausing', retry - now} end
redis.call('HSET', entry, 'owner', me, 'owned', now + ARGV[7])
renew(ARGV[5], ARGV[6])
return {'mine', suspect and now - suspect or -1}
`

// ARGV: kind, rev, owner, new loss, entryMs, loginMs, lockMs, then
// for tokens: record, 1 to keep the lock, pause, keepMs; for a failure: pause, 1 if doubtful; for an end: its reason
const SAVE = `
local outcome, rev, me, newLoss = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
if state == 'out' then return {'out'} end
local isOwner = owner == me
local function releaseOwn()
  if isOwner then release() end
end
if current and (current > rev or current == rev and state == 'ended') then
  releaseOwn()
  return position(rev)
end
if outcome == 'tokens' then
  if current == rev then
    local text = record()
    if text or seen then
      releaseOwn()
      if text then return {'newer', current, text, seen and 1 or 0} end
      -- A browser has the session, but requests with its old cookie may still be under way.
      redis.call('SET', recordKey, ARGV[8], 'PX', ARGV[11])
      return {'saved', isOwner and 1 or 0}
    end
  end
  redis.call('DEL', recordKey)
  local isNext = isOwner and current == rev - 1
  raise(rev)
  if not isNext then markLoss(newLoss) end
  if tonumber(ARGV[10]) > 0 then redis.call('HSET', entry, 'retry', now + ARGV[10]) end
  if isOwner and ARGV[9] == '1' then redis.call('HSET', entry, 'owned', now + ARGV[7]) else releaseOwn() end
  redis.call('SET', recordKey, ARGV[8], 'PX', ARGV[5])
  renew(ARGV[5], ARGV[6])
  return {'saved', isOwner and 1 or 0}
end
if current and not isOwner then return {'saved', 0} end
redis.call('HDEL', entry, 'owner', 'owned')
if not current or current < rev then
  raise(rev)
  markLoss(newLoss)
  suspect = nil
end
if outcome == 'ended' then
  redis.call('DEL', recordKey)
  redis.call('HSET', entry, 'state', 'ended', 'reason', ARGV[8])
else
  redis.call('HSET', entry, 'retry', now + ARGV[8])
  if ARGV[9] == '1' then redis.call('HSET', entry, 'suspect', suspect or now) else redis.call('HDEL', entry, 'suspect') end
end
renew(ARGV[5], ARGV[6])
return {'saved', isOwner and 1 or 0}
`

// ARGV: rev, new loss, entryMs, loginMs, keepMs, the record or an empty text
const SEEN = `
local rev = tonumber(ARGV[1])
local found = position(rev)
if found[1] == 'behind' then
  redis.call('DEL', recordKey)
  raise(rev)
  markLoss(ARGV[2])
elseif found[1] ~= 'same' or found[2] == 1 then
  return nil
end
local hasRecord = redis.call('PEXPIRE', recordKey, ARGV[5]) == 1
if not hasRecord and ARGV[6] ~= '' then
  redis.call('SET', recordKey, ARGV[6], 'PX', ARGV[5])
  hasRecord = true
end
if hasRecord then redis.call('HSET', entry, 'seen', '1') end
renew(ARGV[3], ARGV[4])
return nil
`

// ARGV: entryMs, loginMs
const UNSEEN = `
if not seen or redis.call('PEXPIRE', recordKey, ARGV[1]) == 0 then return nil end
redis.call('HDEL', entry, 'seen')
renew(ARGV[1], ARGV[2])
return nil
`

// ARGV: rev, owner, left, new loss, entryMs, loginMs, lockMs
const HOLD = `
local rev, me = tonumber(ARGV[1]), ARGV[2]
local found = position(rev)
if found[1] ~= 'same' and found[1] ~= 'behind' then return 0 end
local untilMs = now + math.min(tonumber(ARGV[3]), tonumber(ARGV[7]))
if owner and owner ~= me and now < owned then
  if untilMs > owned then redis.call('HSET', entry, 'owned', untilMs) end
  return 0
end
if found[1] == 'behind' then
  raise(rev)
  markLoss(ARGV[4])
end
redis.call('HSET', entry, 'owner', me, 'owned', untilMs)
renew(ARGV[5], ARGV[6])
return found[1] == 'same' and owner == me and not loss and 1 or 0
`

// ARGV: entryMs, loginMs
const OUT = `
local text = record()
redis.call('DEL', recordKey)
redis.call('HDEL', entry, 'owner', 'owned')
redis.call('HSET', entry, 'state', 'out')
renew(ARGV[1], ARGV[2])
-- A record without its entry cannot be read, because its revision is unknown.
if text and current then return {current, text} end
return nil
`

export const LUA = {
  look: PRELUDE + LOOK,
  take: PRELUDE + TAKE,
  save: PRELUDE + SAVE,
  seen: PRELUDE + SEEN,
  unseen: PRELUDE + UNSEEN,
  hold: PRELUDE + HOLD,
  out: PRELUDE + OUT
} as const

export type ScriptName = keyof typeof LUA
