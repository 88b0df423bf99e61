// What one caller sees, on an idle service: how long each verb takes.

import { acquire, Line, release, renew } from "../lib/line.mjs";
import { latency } from "../lib/stats.mjs";

export const verbs = {
  name: "verbs",
  title: "each verb, by one caller",
  async run({ server, contender, calls, unique }) {
    const source = await server.source(unique("verbs"), { limit: 1000 });
    const line = await Line.open(server.port);
    const took = { acquire: [], renew: [], release: [] };
    const timed = async (verb, work) => {
      const sent = performance.now();
      const answer = await work();
      took[verb].push(answer.at - sent);
      return answer;
    };
    for (let i = 0; i < calls; i += 1) {
      const { id } = await timed("acquire", () => acquire(line, source, 0));
      if (contender.locks) await timed("renew", () => renew(line, source, id));
      await timed("release", () => release(line, source, id));
    }
    line.close();
    return Object.fromEntries(
      Object.entries(took).flatMap(([verb, values]) => {
        const { p50, p99 } = latency(values);
        return [[`${verb}-p50`, p50], [`${verb}-p99`, p99]];
      }),
    );
  },
};
