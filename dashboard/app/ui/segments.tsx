// One choice of a few, side by side: radio buttons, so that arrow keys work as everywhere.

interface Props<T extends string> {
  legend: string;
  name: string;
  options: readonly { value: T; label: string }[];
  value: T;
  onChange: (value: T) => void;
}

export function Segments<T extends string>({ legend, name, options, value, onChange }: Props<T>) {
  return (
    <fieldset class="segments">
      <legend class="unseen">{legend}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  );
}
