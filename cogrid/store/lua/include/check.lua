-- First half of every script: ask for each key that will be written whether it is ours and whether
-- we may. Redis does not undo a script that fails half-way, so nothing is written before this.
local refused

-- Every command that changes a key of that kind. The first is asked for every key, the others once
-- a script, for the first key of its kind: asking costs time on every call.
local RIGHTS = {
  hash = {'HDEL', 'HSET', 'HINCRBY', 'PEXPIRE', 'DEL'},
  zset = {'ZREM', 'ZADD', 'ZREMRANGEBYSCORE'},
  set = {'SREM', 'SADD'},
  stream = {'XADD'},
  string = {'SET', 'INCR', 'PERSIST'},
}
local asked = {}

local function may(command, key)
  return not redis.acl_check_cmd or redis.acl_check_cmd(command, key)
end

local function foreign(key, kind)
  local is = redis.call('TYPE', key)
  is = type(is) == 'table' and is.ok or is
  if is ~= 'none' and is ~= kind then
    return 'FOREIGN ' .. key .. ' is a ' .. is .. ', not cogrid\'s ' .. kind
  end
end

-- What stands in the way of writing the key, or nil. To take what is in no hash, zset or set out of
-- it changes nothing, and asks for type and right in one command.
local function refusal(key, kind)
  local first = RIGHTS[kind][1]
  if kind == 'stream' or kind == 'string' then
    return foreign(key, kind) or (not may(first, key) and 'NOPERM ' .. first .. ' ' .. key) or nil
  end
  local touched = redis.pcall(first, key, '')
  if type(touched) ~= 'table' then return nil end
  return foreign(key, kind) or (not may(first, key) and 'NOPERM ' .. first .. ' ' .. key)
    or touched.err
end

-- A full server refuses a script only at its first write, and only one that may need memory. To
-- take something out is none, and behind it everything is let through; so this comes before.
local function full()
  local added = redis.pcall('ZADD', P .. 'grid:due', 'XX', '0', '')
  return type(added) == 'table' and string.match(added.err, '^OOM.*') or nil
end

-- A key is asked for once a script, however many of its steps will write it.
local function need(key, kind)
  if not next(asked) then refused = full() end
  if refused or asked[key] then return end
  asked[key] = true
  refused = refusal(key, kind)
  if refused or asked[kind] then return end
  asked[kind] = true
  for i = 2, #RIGHTS[kind] do
    local right = RIGHTS[kind][i]
    if not may(right, key) then
      refused = 'NOPERM ' .. right .. ' ' .. key
      return
    end
  end
end

local function need_zset(key) need(key, 'zset') end
local function need_hash(key) need(key, 'hash') end
local function need_set(key) need(key, 'set') end
local function need_stream(key) need(key, 'stream') end
local function need_string(key) need(key, 'string') end
