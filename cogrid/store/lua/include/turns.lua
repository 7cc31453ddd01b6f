-- Turn-taking. Score = band * 2^50 + turn * 2^25 + seq % 2^25, exact in a double.
-- turns:<queue>: seq; v:<band>, the turn claimed last; f:<band>:<user>, that user's next turn, kept
-- only while it says more than v + 1 does. The hash goes when its queue is empty, which keeps turns
-- small; a queue that is never empty ends up first come, first served, at the last turn.
local BAND = 1125899906842624
local TURN = 33554432

local function turns_key(queue) return P .. 'turns:' .. queue end
local function band_of(score) return math.floor(score / BAND) end
local function turn_of(score) return math.floor((score % BAND) / TURN) end

-- v, f of this user and seq, 0 where there is none; and the name of the field of f.
local function turns_of(queue, band, user)
  local field = 'f:' .. band .. ':' .. user
  local said = redis.call('HMGET', turns_key(queue), 'v:' .. band, field, 'seq')
  return tonumber(said[1] or '0'), tonumber(said[2] or '0'), tonumber(said[3] or '0'), field
end

local function score_of(band, turn, seq)
  return int(band * BAND + math.min(turn, TURN - 1) * TURN + seq % TURN)
end

-- A new task: behind the user's own others, beside everybody else's next one.
local function enter(queue, id, band, user)
  local v, f, seq, field = turns_of(queue, band, user)
  local turn = math.max(v + 1, f)
  redis.call('HSET', turns_key(queue), field, int(turn + 1), 'seq', int(seq + 1))
  redis.call('ZADD', P .. queue, score_of(band, turn, seq + 1), id)
end

-- A task that comes back or is moved in: at the turn that is being served, with a number that no
-- other has, so before all who wait.
local function enter_first(queue, id, band)
  local v = tonumber(redis.call('HGET', turns_key(queue), 'v:' .. band) or '0')
  redis.call('ZADD', P .. queue, score_of(band, v, 0), id)
end

-- back: turns that the user did not use after all.
local function forget_turn(queue, band, user, back)
  local v, f, _, field = turns_of(queue, band, user)
  if f - back <= v + 1 then
    redis.call('HDEL', turns_key(queue), field)
  elseif back > 0 then
    redis.call('HSET', turns_key(queue), field, int(f - back))
  end
end

local function serve(queue, score, user)
  local band, turn = band_of(score), turn_of(score)
  local v, f, _, field = turns_of(queue, band, user)
  if turn > v then redis.call('HSET', turns_key(queue), 'v:' .. band, int(turn)) end
  if f > 0 and f <= math.max(v, turn) + 1 then redis.call('HDEL', turns_key(queue), field) end
end
