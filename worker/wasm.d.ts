// What the bundle is made of beside this folder (scripts/lib/bundle.mjs).

/** What wasm-bindgen writes of src/edge. */
declare module "wasm" {
  type Answer = Response | Promise<Response>;

  interface Instance {
    criticalError: boolean;
    instanceId: number;
  }

  export function __worker_init_state(): Instance;
  export function __wbg_reset_state(): void;
  export function fetch(request: Request, env: unknown, context: ExecutionContext): Answer;
  /** What the URL of each lock call begins with. */
  export function lockBase(): string;

  export class Source {
    constructor(context: DurableObjectState, env: unknown);
    fetch(request: Request): Answer;
    lock(url: string, request: Request): Answer;
    alarm(): void;
  }

  export class Directory {
    constructor(context: DurableObjectState, env: unknown);
    fetch(request: Request): Answer;
  }
}

/** openapi.yaml as JSON. */
declare module "*/openapi.json" {
  const text: string;
  export default text;
}

/** Of the worker crate; the same as `__worker_init_state()` returns. */
declare var __worker_init_state: { criticalError: boolean; instanceId: number };
