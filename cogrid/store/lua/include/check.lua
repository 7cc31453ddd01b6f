-- First half of every script: ask for each key that will be written whether it is ours and whether
-- we may. Redis does not undo a script that fails half-way, so nothing is written before this.
local refused

-- Every command that changes a key of that kind. The first is asked for every key, the others once
-- a script, for the first key of its kind: asking costs time on every call.
local RIGHTS = {
  hash = {'HSET', 'HDEL', 'HINCRBY', 'PEXPIRE', 'DEL'},
  zset = {'ZADD', 'ZREM', 'ZREMRANGEBYSCORE'},
  set = {'SADD', 'SREM'},
  stream = {'XADD'},
  string = {'SET', 'INCR', 'PERSIST'},
}
local asked = {}

-- DEL takes any number of keys, so that anything behind the key would be asked for as one too.
local function may(command, key)
  if command == 'DEL' then return redis.acl_check_cmd('DEL', key) end
  return redis.acl_check_cmd(command, key, '0', '0', '0')
end

-- A key is asked for once a script, however many of its steps will write it.
local function need(key, kind)
  if refused or asked[key] then return end
  asked[key] = true
  local is = redis.call('TYPE', key)
  is = type(is) == 'table' and is.ok or is
  if is ~= 'none' and is ~= kind then
    refused = 'FOREIGN ' .. key .. ' is a ' .. is .. ', not cogrid\'s ' .. kind
    return
  end
  if not redis.acl_check_cmd then return end
  local rights = RIGHTS[kind]
  for i = 1, asked[kind] and 1 or #rights do
    if not may(rights[i], key) then
      refused = 'NOPERM ' .. rights[i] .. ' ' .. key
      return
    end
  end
  asked[kind] = true
end

local function need_zset(key) need(key, 'zset') end
local function need_hash(key) need(key, 'hash') end
local function need_set(key) need(key, 'set') end
local function need_stream(key) need(key, 'stream') end
local function need_string(key) need(key, 'string') end
