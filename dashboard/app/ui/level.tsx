// How full something is, as a bar. The numbers stand beside it, so it says nothing to a screen reader.

interface Props {
  value: number;
  of: number;
  tone?: "use" | "warn";
}

export function Level({ value, of, tone = "use" }: Props) {
  const part = of > 0 ? Math.min(1, value / of) : 0;
  return <span class={`level ${tone}`} aria-hidden="true"><span style={{ width: `${part * 100}%` }} /></span>;
}
