/** Ends the program, faster than Node's own teardown. What a pipe has not taken yet is written before: it would be lost. */
export async function endProgram(): Promise<never> {
  for (const stream of [process.stdout, process.stderr]) await new Promise((written) => stream.write('', written))
  process.exit()
}
