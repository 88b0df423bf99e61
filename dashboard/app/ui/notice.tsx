// A sentence that matters: what went wrong, what to know, what was done.

import type { ComponentChildren } from "preact";

interface Props {
  kind?: "info" | "bad" | "warn" | "good";
  id?: string;
  children: ComponentChildren;
}

/** Bad news interrupts a screen reader, the rest waits its turn. */
export function Notice({ kind = "info", id, children }: Props) {
  return <div id={id} class={`notice ${kind}`} role={kind === "bad" ? "alert" : "status"}>{children}</div>;
}
