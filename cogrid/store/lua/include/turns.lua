-- Turn-taking. Score = band * 2^50 + turn * 2^25 + seq % 2^25, exact in a double.
-- turns:<queue>: seq; v:<band>, the turn claimed last; f:<band>:<user>, that user's next turn, kept
-- only while it says more than v + 1 does. The hash goes when its queue is empty, which keeps turns
-- small; a queue that is never empty ends up first come, first served, at the last turn.
local BAND = 1125899906842624
local TURN = 33554432

local function turns_key(queue) return P .. 'turns:' .. queue end
local function band_of(score) return math.floor(score / BAND) end
local function turn_of(score) return math.floor((score % BAND) / TURN) end

local function served(queue, band)
  return tonumber(redis.call('HGET', turns_key(queue), 'v:' .. band) or '0')
end

local function score_of(band, turn, seq)
  return int(band * BAND + math.min(turn, TURN - 1) * TURN + seq % TURN)
end

-- A new task: behind the user's own others, beside everybody else's next one.
local function enter(queue, id, band, user)
  local key, field = turns_key(queue), 'f:' .. band .. ':' .. user
  local turn = math.max(served(queue, band) + 1, tonumber(redis.call('HGET', key, field) or '0'))
  redis.call('HSET', key, field, int(turn + 1))
  local seq = redis.call('HINCRBY', key, 'seq', 1)
  redis.call('ZADD', P .. queue, score_of(band, turn, seq), id)
end

-- A task that comes back or is moved in: at the turn that is being served, with a number that no
-- other has, so before all who wait.
local function enter_first(queue, id, band)
  redis.call('ZADD', P .. queue, score_of(band, served(queue, band), 0), id)
end

local function forget_turn(queue, band, user, back)
  local key, field = turns_key(queue), 'f:' .. band .. ':' .. user
  local next_turn = tonumber(redis.call('HGET', key, field) or '0') - back
  if next_turn <= served(queue, band) + 1 then
    redis.call('HDEL', key, field)
  elseif back > 0 then
    redis.call('HSET', key, field, int(next_turn))
  end
end

local function serve(queue, score, user)
  local band, turn = band_of(score), turn_of(score)
  if turn > served(queue, band) then
    redis.call('HSET', turns_key(queue), 'v:' .. band, int(turn))
  end
  forget_turn(queue, band, user, 0)
end
