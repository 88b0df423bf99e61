// Runs another Worker ("subject", which esbuild puts in) and counts what its objects cost: rows written and read, as the
// cursors say, alarms set and rung, calls of objects. GET /counted answers with the counts since the last time.
// Worker and objects share one isolate on a bare workerd, so a plain variable sees them all.

import { WorkerEntrypoint } from "cloudflare:workers";
import * as subject from "subject";

const none = () => ({ calls: 0, rowsWritten: 0, rowsRead: 0, alarmsSet: 0, alarmsRung: 0 });
const noneAtAll = () => ({ source: none(), directory: none() });
let counts = noneAtAll();
/** By the storage: the class of its object, and cursors. Only the object itself may look at them. */
const objects = new Map();
const watched = new WeakSet();

/** Once for the class, not for each object: a method is looked up at the prototype. */
function watch(storage, kind) {
  objects.set(storage.sql, { kind, cursors: [] });
  const ofSql = Object.getPrototypeOf(storage.sql);
  if (watched.has(ofSql)) return;
  watched.add(ofSql);
  const { exec } = ofSql;
  ofSql.exec = function (...args) {
    const cursor = exec.apply(this, args);
    objects.get(this)?.cursors.push(cursor);
    return cursor;
  };
  const ofStorage = Object.getPrototypeOf(storage);
  const { setAlarm } = ofStorage;
  ofStorage.setAlarm = function (...args) {
    counts[objects.get(this.sql).kind].alarmsSet += 1;
    return setAlarm.apply(this, args);
  };
}

function take(storage) {
  const { kind, cursors } = objects.get(storage.sql);
  for (const cursor of cursors.splice(0)) {
    counts[kind].rowsWritten += cursor.rowsWritten;
    counts[kind].rowsRead += cursor.rowsRead;
  }
}

const counted = (Class, kind) =>
  class {
    constructor(ctx, env) {
      this.storage = ctx.storage;
      watch(ctx.storage, kind);
      this.inner = new Class(ctx, env);
      take(ctx.storage);
    }

    fetch(request) {
      counts[kind].calls += 1;
      return this.during(() => this.inner.fetch(request));
    }

    alarm() {
      counts[kind].alarmsRung += 1;
      return this.during(() => this.inner.alarm());
    }

    during(work) {
      const result = work();
      take(this.storage);
      if (!(result instanceof Promise)) return result;
      return result.finally(() => take(this.storage));
    }
  };

class Nothing {}
export const Source = counted(subject.Source, "source");
export const Directory = counted(subject.Directory ?? Nothing, "directory");

const inner = subject.default;

export default class extends WorkerEntrypoint {
  fetch(request) {
    if (request.url.endsWith("/counted")) {
      const answer = Response.json(counts);
      counts = noneAtAll();
      return answer;
    }
    if (typeof inner === "function") return new inner(this.ctx, this.env).fetch(request);
    return inner.fetch(request, this.env, this.ctx);
  }
}
