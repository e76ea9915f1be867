/**
 * The line that the supervisor writes on the connection of each program that uses the database server, once the server accepts connections.
 * Any other line is the reason why it does not.
 */
export const READY = 'ready'
/** The supervisor's exit code if another one holds the lock. */
export const ALREADY_SUPERVISED = 75
