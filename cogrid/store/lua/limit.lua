-- limit: counts a request against an API key's requests per minute.
-- include: clock check
-- KEYS[1] hash  grid:keys
-- ARGV    1 prefix  2 key id  3 most a minute
-- reply   {'ok', count} | {'over', seconds until the next minute}
local second = math.floor(now / 1000)
local key = P .. 'limit:' .. ARGV[2] .. ':' .. int(math.floor(second / 60))
need_string(key, 'SET')
need_right('INCR', key)
if refused then return redis.error_reply(refused) end
redis.call('SET', key, '0', 'EX', 120, 'NX')
local count = redis.call('INCR', key)
if count > tonumber(ARGV[3]) then return {'over', 60 - second % 60} end
return {'ok', count}
