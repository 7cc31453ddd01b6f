-- rights: which of these commands our user may not run; asks, and changes nothing.
-- include: clock
-- KEYS    none, since to be refused one is an answer here
-- ARGV    1 prefix, then command, key each ('' for a command that takes none)
-- reply   {command, key…} of those that are refused
local refused = {}
for i = 2, #ARGV, 2 do
  local command, key = ARGV[i], ARGV[i + 1]
  local may
  if key == '' then
    may = redis.acl_check_cmd(command)
  else
    may = redis.acl_check_cmd(command, key)
  end
  if not may then
    refused[#refused + 1] = command
    refused[#refused + 1] = key
  end
end
return refused
