// What a run says: what was done, what held, the worst figures, and of what broke the part of the history that shows it.
// Never shows a whole slot id or key.

import { say } from "../../scripts/lib/say.mjs";

const MOST_PROBLEMS = 5;
const MOST_CALLS = 30;

/** Prints it, and answers how many of its checks passed and failed. */
export function report({ history, faults }, expected, results) {
  const missing = expected.filter((name) => !faults[name]);
  say(`\n${history.calls.length} calls; what was done:`);
  for (const name of expected)
    say(`  ${String(faults[name] ?? 0).padStart(6)}  ${name}${faults[name] ? "" : "   <- never happened"}`);

  say("\nwhat held:");
  for (const { promise, looked, problems } of results) {
    const verdict = problems.length > 0 ? `BROKEN ${problems.length} times` : looked === 0 ? "NOTHING TO LOOK AT" : "held";
    say(`  ${promise}: ${verdict} (${looked} looked at)`);
  }

  say("\nfigures:");
  for (const { figures } of results) for (const [name, value] of Object.entries(figures)) say(`  ${name}: ${value ?? "none"}`);
  say(`  longest time this process did not get to run, ms: ${history.stallMs}`);

  for (const { promise, problems } of results) {
    if (problems.length > 0) say(`\n== ${promise}: BROKEN ==`);
    for (const { sentence, calls } of problems.slice(0, MOST_PROBLEMS)) {
      say(`\n${sentence}`);
      tell(history, calls);
    }
    if (problems.length > MOST_PROBLEMS) say(`\n… and ${problems.length - MOST_PROBLEMS} more`);
  }
  if (missing.length > 0)
    say(`\nThese faults never happened, so the run shows nothing about them: ${missing.join(", ")}. Give it more --seconds.`);

  const broken = results.filter(({ looked, problems }) => problems.length > 0 || looked === 0).length;
  return { passed: results.length - broken + (missing.length === 0 ? 1 : 0), failed: broken + (missing.length > 0 ? 1 : 0) };
}

/** Calls and what was done around them, in order, by ms since the run began. */
function tell({ calls: [{ invokedAt: began }], events }, calls) {
  if (calls.length === 0) return;
  const ms = (at) => (at === null ? "?" : (at - began).toFixed(1));
  const [from, to] = [Math.min(...calls.map((call) => call.invokedAt)), Math.max(...calls.map((call) => call.returnedAt ?? 0))];
  const around = events.filter(
    (event) =>
      (!event.source || event.source === calls[0].source) &&
      event.invokedAt <= to &&
      (event.returnedAt ?? Infinity) >= from - 2000,
  );
  const lines = [...new Set([...calls, ...around])].sort((a, b) => a.invokedAt - b.invokedAt);
  for (const { invokedAt, returnedAt, ...line } of lines.slice(0, MOST_CALLS))
    say(`  ${ms(invokedAt)} to ${ms(returnedAt)}  ${line.what ? done(line) : called(line, ms)}`);
  if (lines.length > MOST_CALLS) say(`  … and ${lines.length - MOST_CALLS} more`);
}

const done = ({ what, settings, family }) => `${what} ${settings ? JSON.stringify(settings) : (family ?? "")}`;

function called({ kind, caller, family, slotId, end, status, headers, body, waitMs, attempt, reused }, ms) {
  const slot = body?.slotId ?? slotId;
  const told = [
    slot && `slot …${slot.slice(-6)}`,
    waitMs > 0 && `waitMs ${waitMs}`,
    attempt && `attempt ${attempt.slice(0, 8)}`,
    !reused && "new connection",
    body?.leaseDeadline && `lease until ${ms(body.leaseDeadline)}`,
    body?.termMs && `granted ${ms(body.leaseDeadline - body.termMs)}`,
    headers?.["x-swarmvia-queued-ms"] && `queued ${headers["x-swarmvia-queued-ms"]} ms`,
    headers?.["x-swarmvia-replayed"] && "replayed",
    body?.released !== undefined && `released ${body.released}`,
    body?.reason,
  ];
  return `${kind} of ${caller} (key ${family}): ${end} ${status ?? ""} ${told.filter(Boolean).join(", ")}`;
}
