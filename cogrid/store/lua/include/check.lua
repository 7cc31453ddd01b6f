-- First half of every script: ask for each key that will be written whether it is ours and whether
-- we may. Redis does not undo a script that fails half-way, so nothing is written before this.
local refused

-- What nearly every script does to a key of that kind. The first is asked for every key, the others
-- once a script, for the first key of its kind: asking costs time on every call. A script that does
-- something else to one asks for that right itself.
local RIGHTS = {
  hash = {'HDEL', 'HSET', 'HINCRBY', 'PEXPIRE', 'DEL'},
  zset = {'ZREM', 'ZADD'},
  set = {'SREM', 'SADD'},
  stream = {'XADD'},
}
local asked = {}

local function need_right(command, key)
  if refused or not redis.acl_check_cmd or redis.acl_check_cmd(command, key) then return end
  refused = 'NOPERM ' .. command .. ' ' .. key
end

local function need_kind(key, kind)
  local is = redis.call('TYPE', key)
  is = type(is) == 'table' and is.ok or is
  if is ~= 'none' and is ~= kind then
    refused = 'FOREIGN ' .. key .. ' is a ' .. is .. ', not cogrid\'s ' .. kind
  end
end

-- To take what is in no hash, zset or set out of it changes nothing, and asks for type and right in
-- one command.
local function need_first(key, kind)
  local first = RIGHTS[kind][1]
  local touched = kind ~= 'stream' and redis.pcall(first, key, '')
  if touched == 0 then return end
  need_kind(key, kind)
  need_right(first, key)
  refused = refused or touched and touched.err
end

-- A full server refuses a script only at its first write, and only one that may need memory. To
-- take something out is none, and behind it everything is let through; so this comes before.
local fresh = true
local function need_memory()
  fresh = false
  local due = P .. 'grid:due'
  local added = redis.pcall('ZADD', due, 'XX', '0', '')
  if added == 0 then
    asked[due] = true
  else
    refused = string.match(added.err, '^OOM.*')
  end
end

-- A key is asked for once a script, however many of its steps will write it.
local function need(key, kind)
  if fresh then need_memory() end
  if refused or asked[key] then return end
  asked[key] = true
  need_first(key, kind)
  if asked[kind] then return end
  asked[kind] = true
  for i = 2, #RIGHTS[kind] do need_right(RIGHTS[kind][i], key) end
end

local function need_zset(key) need(key, 'zset') end
local function need_hash(key) need(key, 'hash') end
local function need_set(key) need(key, 'set') end
local function need_stream(key) need(key, 'stream') end

-- right: what will be done to it; nil where it is only read.
local function need_string(key, right)
  if fresh then need_memory() end
  if refused then return end
  if type(redis.pcall('STRLEN', key)) == 'table' then need_kind(key, 'string') end
  if right then need_right(right, key) end
end
