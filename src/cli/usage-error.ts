/** The command was called in the wrong way: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
