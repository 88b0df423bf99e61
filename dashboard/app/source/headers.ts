// The head of an HTTP answer as people paste it: a status line, if there is one, and headers.

export interface Head {
  status?: number;
  headers: Record<string, string | string[]>;
}

/** Lines that are neither are passed over; a header that comes twice has both values. */
export function parseHead(text: string): Head {
  const head: Head = { headers: {} };
  for (const line of text.split(/\r?\n/)) {
    const status = line.match(/^\s*(?:<\s*)?HTTP\/[\d.]+\s+(\d{3})\b/i) ?? line.match(/^\s*(\d{3})\s*$/);
    if (status) {
      head.status = Number(status[1]);
      continue;
    }
    const header = line.match(/^\s*(?:<\s*)?([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*?)\s*$/);
    if (!header) continue;
    const [, name, value] = header as unknown as [string, string, string];
    const before = head.headers[name];
    head.headers[name] = before === undefined ? value : [before, value].flat();
  }
  return head;
}
