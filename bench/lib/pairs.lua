-- Acquires and releases, over and over: each slot that an answer brings is released by the next request of its thread.
-- The plan (a Lua file that Node wrote) has the requests as text. Thread n calls source n, so with several sources there
-- is one connection to a thread.
-- A contender whose answers are empty is sent the same requests in turn, with an id that is made up.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

function init(args)
  local plan = dofile(args[1])
  local source = plan.sources[(number - 1) % #plan.sources + 1]
  acquire = source.acquire
  before, after, last = source.release:match("^(.-){id}(.*)$")
  pattern = plan.idField and '"' .. plan.idField .. '": *"([^"]+)"'
  made_up = plan.madeUpId
  free, bad, turn = {}, 0, 0
end

function request()
  if pattern then
    local id = table.remove(free)
    return id and before .. id .. after or acquire
  end
  turn = turn + 1
  return turn % 2 == 1 and acquire or before .. made_up .. after
end

function response(status, headers, body)
  if status ~= 200 and status ~= 204 then bad = bad + 1 end
  local id = pattern and body:match(pattern)
  if id then free[#free + 1] = id end
end

function done(summary, latency, requests)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + thread:get("bad") end
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%.6f,"bad":%d,"broken":%d,"p50":%.3f,"p99":%.3f}\n',
    summary.requests, summary.duration / 1e6, wrong,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
