/** A command line that is wrong, or settings that are missing. */
export class UsageError extends Error {}
