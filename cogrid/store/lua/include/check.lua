-- First half of every script: ask for each key that will be written whether it is ours and whether
-- we may. Redis does not undo a script that fails half-way, so nothing is written before this.
local refused

local function need(key, kind, command)
  if refused then return end
  local is = redis.call('TYPE', key)
  is = type(is) == 'table' and is.ok or is
  if is ~= 'none' and is ~= kind then
    refused = 'FOREIGN ' .. key .. ' is a ' .. is .. ', not cogrid\'s ' .. kind
  elseif redis.acl_check_cmd and not redis.acl_check_cmd(command, key, '0', '0', '0') then
    refused = 'NOPERM ' .. command .. ' ' .. key
  end
end

local function need_zset(key) need(key, 'zset', 'ZADD') end
local function need_hash(key) need(key, 'hash', 'HSET') end
local function need_set(key) need(key, 'set', 'SADD') end
local function need_stream(key) need(key, 'stream', 'XADD') end
