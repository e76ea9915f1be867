import { createRequire } from 'node:module'

/** What the driver's connections run. */
export interface DriverCommand {
  /** Writes the command where no packet is given, else takes one of the server's; returns whether it is over. */
  execute(packet: unknown, connection: unknown): boolean
  /** Is given the error that ended the connection. */
  onResult(error: Error): void
}

type Take = (error: Error | null, result: unknown) => void

/** A class, whose prototype `cached-metadata.ts` knows. */
interface CommandClass<Options> {
  new (options: Options, take: Take): DriverCommand
  readonly prototype: unknown
}

interface Commands {
  readonly ClientHandshake: { readonly prototype: unknown }
  readonly Execute: CommandClass<{ readonly statement: unknown; readonly values: unknown[] }>
  readonly Query: CommandClass<{ readonly sql: string }>
}

/** Classes that the driver keeps to itself (`test/db/mysql-adapter.test.ts` notices when they are otherwise). */
export const { ClientHandshake, Execute, Query } = createRequire(import.meta.resolve('mysql2'))(
  './lib/commands/index.js',
) as Commands
