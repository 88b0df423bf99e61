// What the scripts tell the person at the terminal.
// An expected failure is a Stop: it prints one plain sentence that says what to do, never a stack trace.

export class Stop extends Error {}

export const say = (line = "") => console.log(line);

/** Runs a script's main function; a Stop ends the process with its sentence and exit code 1. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}

export const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
