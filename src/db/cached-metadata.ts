import * as driver from './driver-commands.ts'

/** What the driver's commands have (`test/db/cached-metadata.test.ts` notices when they have it otherwise). */
interface Handshake {
  /** What the server says of itself. */
  readonly handshake: { readonly mariadbExtendedCapabilityFlags: number }
  clientFlags: number
  mariadbExtendedClientFlags: number
  sendSSLRequest: (this: Handshake, connection: unknown) => void
  sendCredentials: (this: Handshake, connection: unknown) => void
}

/** The run of a prepared statement. */
interface Execute {
  readonly statement: PreparedStatement
  /** The definitions of the columns, by result. */
  readonly _fields: unknown[]
  readonly _resultIndex: number
  _currentFields: unknown
  _rowParser: object | null
  resultsetHeader: State
  readField: State
  fieldsEOF: State
  row: State
  buildParserFromFields: (columns: unknown, connection: unknown) => RowParser
}

/** Takes the server's next packet; returns what takes the one after it. */
type State = (this: Execute, packet: Packet, connection: unknown) => State | null

type RowParser = new () => object

interface PreparedStatement {
  /** The definitions that the server sent last. */
  columns: unknown
  rowParser: RowParser | null
}

interface Packet {
  haveMoreData: () => boolean
  readInt8: () => number
}

/** A client that has it sends no extended capabilities. */
const CLIENT_MYSQL = 1
/** One of MariaDB's extended capabilities, from 10.6 on. */
const MARIADB_CLIENT_CACHE_METADATA = 0x10

/**
 * Teaches the driver a part of MariaDB's protocol: once a client has the definitions of a prepared statement's columns, the server sends
 * them again only when they change. Reading them was 5 % of a payment. Servers that do not offer it are used as before.
 *
 * Source: MariaDB's documentation of the protocol, "Result Set Packets". A newer driver may do it by itself; then this file can go.
 */
export function cacheMetadata(): void {
  requestCaching(driver.ClientHandshake.prototype as Handshake)
  useCached(driver.Execute.prototype as Execute)
}

function requestCaching(handshake: Handshake): void {
  for (const step of ['sendSSLRequest', 'sendCredentials'] as const) {
    const send = handshake[step]
    handshake[step] = function (connection) {
      if (this.handshake.mariadbExtendedCapabilityFlags & MARIADB_CLIENT_CACHE_METADATA) {
        this.clientFlags &= ~CLIENT_MYSQL
        this.mariadbExtendedClientFlags |= MARIADB_CLIENT_CACHE_METADATA
      }
      send.call(this, connection)
    }
  }
}

function useCached(execute: Execute): void {
  const { resultsetHeader, fieldsEOF } = execute
  execute.resultsetHeader = function (packet, connection) {
    const next = resultsetHeader.call(this, packet, connection)
    // Behind the number of columns a byte says whether the definitions follow; servers that always send them have no such byte.
    const isOmitted = next === this.readField && packet.haveMoreData() && packet.readInt8() === 0
    if (!isOmitted) return next
    this._currentFields = this.statement.columns
    this._fields[this._resultIndex] = this.statement.columns
    return cachedEOF
  }
  execute.fieldsEOF = function (packet, connection) {
    this.statement.columns = this._fields[this._resultIndex]
    this.statement.rowParser = null
    return fieldsEOF.call(this, packet, connection)
  }
}

const cachedEOF: State = function (_packet, connection) {
  const { statement } = this
  const RowParser = (statement.rowParser ??= this.buildParserFromFields(statement.columns, connection))
  this._rowParser = new RowParser()
  return this.row
}
