// What @cloudflare/workers-types leaves out of what the runtime has.

interface ErrorConstructor {
  stackTraceLimit: number;
}

declare function addEventListener(type: "error", listener: (event: ErrorEvent) => void): void;
