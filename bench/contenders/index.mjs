// Who is measured, in the order of the report.

import { emptyHop, hop } from "./hop/start.mjs";
import { ours } from "./ours/start.mjs";
import { plain } from "./plain/start.mjs";
import { prefect } from "./prefect/start.mjs";
import { redis } from "./redis/start.mjs";

export const contenders = [ours, hop, emptyHop, plain, redis, prefect];
